//! MCP servers in a manifest, and added ones: every problem at once, each with its place, and no secret in a text.

use pretty_assertions::assert_eq;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::mcp::{MAX_MCP_RESULT_BYTES, MAX_MCP_SERVERS, MAX_MCP_TIMEOUT_MS};
use redflow_flow::{check_manifest, check_mcp_server};
use serde_json::{Map, Value, json};

fn program() -> Value {
    json!({
        "command": "npx", "args": ["-y", "server-files@1.2.3", "/srv/files"], "env": {"LOG_LEVEL": "warn"},
        "secrets": ["FILES_TOKEN"], "read": ["/usr/share/files"], "write": ["/srv/files"], "network": "none",
        "include": ["read_*", "list.dir/all"], "exclude": ["delete_*"], "effects": {"read_*": "read"},
        "timeoutMs": MAX_MCP_TIMEOUT_MS, "maxResultBytes": MAX_MCP_RESULT_BYTES, "resources": true, "trust": "pinned",
    })
}

fn remote() -> Value {
    json!({
        "url": "https://mcp.example.org:8443/mcp?tenant=a",
        "auth": {"type": "oauth", "grant": "client_credentials", "clientId": "c", "secretEnv": "S", "scopes": ["a:b"]},
    })
}

fn pointers(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().map(|problem| problem.pointer.clone().unwrap_or_default()).collect()
}

/// Sets a key of a server. Expects one problem at this place, with this text in what it expected.
fn check_one(mut server: Value, key: &str, value: Value, place: &str, expected: &str) {
    server[key] = value.clone();
    let found = check_mcp_server(&server).unwrap_err();
    assert_eq!(pointers(&found), [place], "{key}: {value}");
    assert_eq!(found[0].code, DiagnosticCode::ManifestInvalid);
    let text = found[0].expected.clone().unwrap();
    assert!(text.contains(expected), "{key} {value}: {text}");
    assert!(!found[0].help.is_empty());
    // In a manifest the same problem is at its place.
    let of_manifest = check_manifest(&json!({"mcp": {"files": server}})).unwrap_err();
    assert_eq!(pointers(&of_manifest), [format!("/mcp/files{place}")], "{key}: {value}");
}

#[test]
fn servers_are_read_as_they_were_written() {
    for server in [program(), remote(), json!({"url": "http://localhost:3000/mcp"}), json!({"command": "x"})]
    {
        assert_eq!(serde_json::to_value(check_mcp_server(&server).unwrap()).unwrap(), server);
        let manifest = check_manifest(&json!({"mcp": {"a-B_1": server}})).unwrap();
        assert_eq!(serde_json::to_value(&manifest.mcp["a-B_1"]).unwrap(), server);
    }
    for auth in
        [json!({"type": "bearer", "env": "T"}), json!({"type": "header", "name": "X-Key", "env": "T"})]
    {
        let mut server = remote();
        server["auth"] = auth;
        assert!(check_mcp_server(&server).is_ok());
    }
}

#[test]
fn a_server_is_a_program_or_an_address() {
    for server in
        [json!({}), json!({"command": "npx", "url": "https://example.org/"}), json!({"timeoutMs": 1})]
    {
        let found = check_mcp_server(&server).unwrap_err();
        assert_eq!(pointers(&found), [""], "{server}");
        assert_eq!(found[0].expected.as_deref(), Some("either `command` or `url`"));
    }
    for (key, value) in [
        ("args", json!([])),
        ("env", json!({})),
        ("secrets", json!([])),
        ("read", json!([])),
        ("write", json!([])),
        ("network", json!("any")),
    ] {
        check_one(remote(), key, value, &format!("/{key}"), "only beside `command`");
    }
    let bearer = json!({"type": "bearer", "env": "T"});
    check_one(program(), "auth", bearer, "/auth", "only beside `url`");
}

#[test]
fn names_are_parts_of_ids_and_apart() {
    let named = |names: &[&str]| {
        let servers: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), program())).collect();
        check_manifest(&json!({"mcp": servers}))
    };
    assert!(named(&["files", "git-hub", &"x".repeat(40)]).is_ok());
    for (name, place) in [("", "/mcp/"), ("a.b", "/mcp/a.b"), ("a b", "/mcp/a b"), ("a/b", "/mcp/a~1b")] {
        assert_eq!(pointers(&named(&[name]).unwrap_err()), [place]);
    }
    assert_eq!(named(&[&"x".repeat(41)]).unwrap_err().len(), 1);
    assert_eq!(pointers(&named(&["Files", "files"]).unwrap_err()), ["/mcp/files"]);
    let many = |count: usize| -> Value {
        (0..count).map(|number| (format!("s{number}"), json!({"command": "x"}))).collect::<Map<_, _>>().into()
    };
    assert!(check_manifest(&json!({"mcp": many(MAX_MCP_SERVERS)})).is_ok());
    let found = check_manifest(&json!({"mcp": many(MAX_MCP_SERVERS + 1)})).unwrap_err();
    assert_eq!((pointers(&found), found[0].found.as_deref()), (vec!["/mcp".to_owned()], Some("501")));
}

#[test]
fn programs_are_bounded_and_load_no_foreign_code() {
    let long = "x".repeat(4097);
    check_one(program(), "command", json!(" "), "/command", "a program");
    check_one(program(), "command", json!("a\u{0}b"), "/command", "without a NUL");
    check_one(program(), "command", json!(long), "/command", "at most 4096 bytes");
    check_one(program(), "args", json!(["a", long]), "/args/1", "at most 4096 bytes");
    check_one(program(), "args", json!(["a\u{0}"]), "/args/0", "without a NUL");
    check_one(program(), "args", json!(vec!["a"; 101]), "/args", "at most 100 entries");
    let mut most = program();
    most["args"] = json!(vec!["x".repeat(4096); 100]);
    assert!(check_mcp_server(&most).is_ok());
    for name in ["LD_PRELOAD", "ld_library_path", "DYLD_INSERT_LIBRARIES"] {
        check_one(program(), "env", json!({name: "x"}), &format!("/env/{name}"), "does not begin with `LD_`");
        check_one(program(), "secrets", json!([name]), "/secrets/0", "does not begin with `LD_`");
    }
    check_one(program(), "env", json!({"A-B": "x"}), "/env/A-B", "the name of an environment variable");
    check_one(program(), "env", json!({"API_KEY": "sk-1"}), "/env/API_KEY", "without a secret");
    check_one(program(), "env", json!({"A": long}), "/env/A", "at most 4096 bytes");
    check_one(program(), "secrets", json!(["1A"]), "/secrets/0", "the name of an environment variable");
    check_one(program(), "secrets", json!(["REDFLOW_TOKEN"]), "/secrets/0", "`REDFLOW_`");
    for key in ["read", "write"] {
        check_one(program(), key, json!(["/a", "b/c"]), &format!("/{key}/1"), "an absolute path");
        check_one(program(), key, json!(vec!["/a"; 101]), &format!("/{key}"), "at most 100 entries");
    }
    let alone = json!({"command": "server-files"});
    for key in ["read", "write"] {
        check_one(alone.clone(), key, json!(["/"]), &format!("/{key}/0"), "a path below the root");
    }
    let inside = json!(["/srv/notes-old", "/srv/notes", "/srv/notes/", "/srv/notes/today"]);
    let mut around = alone.clone();
    around["write"] = json!(["/srv/notes/"]);
    check_one(around, "read", inside.clone(), "/read/3", "a path outside of writable ones");
    check_one(alone, "write", inside, "/write/3", "a path outside of writable ones");
    for (name, value) in [("PATH", "/opt/bin"), ("HOME", "/srv/home"), ("TMPDIR", "/srv/tmp")] {
        let mut own = program();
        own["env"] = json!({name: value});
        assert!(check_mcp_server(&own).is_ok(), "{name}");
    }
}

#[test]
fn addresses_have_no_secret_and_credentials_are_names() {
    for (url, expected) in [
        ("ftp://example.org/", "`https://`"),
        ("https://user:word@example.org/", "use `auth`"),
        ("https://example.org/?api_key=sk-0123456789", "use `auth`"),
        ("https://{{input.host}}/mcp", "without placeholders"),
        ("https://example.org/{{input.a}}", "without placeholders"),
        ("https://*.example.org/mcp", "a fixed host"),
        ("https://example.org/a b", "printable ASCII"),
        ("https:///mcp", "a host"),
    ] {
        let server = json!({"url": "https://example.org/"});
        check_one(server, "url", json!(url), "/url", expected);
    }
    let auth = |auth: Value, place: &str, expected: &str| check_one(remote(), "auth", auth, place, expected);
    auth(json!({"type": "bearer", "env": "sk-1"}), "/auth/env", "the name of an environment variable");
    auth(json!({"type": "header", "name": "Host", "env": "T"}), "/auth/name", "the connection does not set");
    auth(json!({"type": "digest"}), "/auth", "{type: bearer, env}");
    auth(
        json!({"type": "oauth", "grant": "client_credentials", "secretEnv": "S"}),
        "/auth/clientId",
        "a key",
    );
    auth(json!({"type": "oauth", "clientId": "a b"}), "/auth/clientId", "printable ASCII");
    auth(json!({"type": "oauth", "scopes": vec!["a"; 33]}), "/auth/scopes", "at most 32 entries");
    auth(json!({"type": "oauth", "scopes": ["a", "b c"]}), "/auth/scopes/1", "printable ASCII");
}

#[test]
fn patterns_numbers_and_words_are_strict() {
    for key in ["include", "exclude"] {
        for pattern in ["", "read me", "a?", "é", &"x".repeat(129)] {
            check_one(program(), key, json!([pattern]), &format!("/{key}/0"), "a pattern such as `read_*`");
        }
        check_one(program(), key, json!(vec!["a"; 129]), &format!("/{key}"), "at most 128 entries");
    }
    check_one(program(), "effects", json!({"a b": "read"}), "/effects/a b", "a pattern such as `read_*`");
    check_one(program(), "effects", json!({"a*": "write"}), "/effects/a*", "`read`, `idempotent`");
    check_one(program(), "timeoutMs", json!(0), "/timeoutMs", "from 1 to 3600000");
    check_one(program(), "timeoutMs", json!(MAX_MCP_TIMEOUT_MS + 1), "/timeoutMs", "from 1 to 3600000");
    check_one(program(), "maxResultBytes", json!(0), "/maxResultBytes", "from 1 to 196608");
    check_one(program(), "maxResultBytes", json!(MAX_MCP_RESULT_BYTES + 1), "/maxResultBytes", "196608");
    check_one(program(), "network", json!("some"), "/network", "`any` or `none`");
    check_one(program(), "trust", json!("all"), "/trust", "`first-use` or `pinned`");
    check_one(program(), "comand", json!("x"), "/comand", "a known key");
    for other in [json!(null), json!([]), json!("npx")] {
        assert_eq!(pointers(&check_mcp_server(&other).unwrap_err()), [""], "{other}");
    }
}

#[test]
fn all_problems_come_at_once_and_no_text_repeats_a_secret() {
    let secret = "sk-0123456789abcdef";
    let manifest = json!({
        "tools": [{"id": "mcp.files.read"}],
        "mcp": {
            "a.b": {"command": "x", "args": [format!("{secret}\u{0}")], "env": {"API_KEY": secret}, "secrets": [secret]},
            "c": {"url": format!("https://u:{secret}@example.org/"), "auth": {"type": "bearer", "env": secret}},
        },
    });
    let found = check_manifest(&manifest).unwrap_err();
    let places = pointers(&found);
    for place in [
        "/tools/0/id",
        "/mcp/a.b",
        "/mcp/a.b/args/0",
        "/mcp/a.b/env/API_KEY",
        "/mcp/a.b/secrets/0",
        "/mcp/c/url",
        "/mcp/c/auth/env",
    ] {
        assert!(places.contains(&place.to_owned()), "{place}: {places:?}");
    }
    assert!(!serde_json::to_string(&found).unwrap().contains(secret), "{found:#?}");
}
