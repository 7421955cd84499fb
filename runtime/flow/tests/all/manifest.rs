//! Manifests of tools: every problem at once, each with its place, and no secret in a text.

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::{MAX_MANIFEST_TOOLS, Manifest};
use redflow_flow::{MAX_MANIFEST_PROBLEMS, check_manifest, check_node_tools, check_tool};
use serde_json::{Value, json};

fn weather() -> Value {
    json!({
        "id": "weather.current",
        "kind": "http",
        "title": "Weather",
        "description": "The weather of a city.\nIn degrees.",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "outputSchema": {"type": "object"},
        "effect": "read",
        "timeoutMs": 600_000,
        "retry": {"max": 5, "backoffMs": 0},
        "method": "POST",
        "url": "https://api.example.org:8443/v1/{{input.city}}?day={{input.day.name}}",
        "headers": {"X-Unit": "C", "X-City": "{{input.city}}"},
        "body": {"city": "{{input.city}}", "list": [1, "a {{input.b}} c"]},
        "credential": {"type": "header", "name": "X-Key", "env": "WEATHER_KEY"},
    })
}

fn operation() -> Value {
    json!({
        "description": "Creates a record.",
        "inputSchema": {"type": "object"},
        "effect": "at_most_once",
        "timeout": 1,
        "msg": {"payload": {"fields": "{{input.fields}}"}, "topic": "a {{ input.b }}"},
        "result": "payload.records.0.id",
    })
}

fn manifest() -> Value {
    json!({
        "tools": [weather()],
        "nodes": {"airtable out": {"createRecord": operation()}},
        "roles": {"office": {"tokens": ["alice"]}},
        "policy": [{"deny": ["*"], "roles": ["office"]}, {"limit": ["weather.*"], "rate": "30/m"}],
    })
}

fn problems(value: &Value) -> Vec<Diagnostic> {
    check_manifest(value).unwrap_err()
}

fn pointers(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().map(|problem| problem.pointer.clone().unwrap_or_default()).collect()
}

/// Changes one place of a valid manifest. Expects one problem there, with this text in what it expected.
fn check(pointer: &str, value: Value, expected: &str) {
    check_at(pointer, value, pointer, expected);
}

fn check_at(pointer: &str, value: Value, place: &str, expected: &str) {
    let mut changed = manifest();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    changed.pointer_mut(parent).unwrap()[key.replace("~1", "/")] = value.clone();
    let found = problems(&changed);
    assert_eq!(pointers(&found), [place], "{value}");
    let problem = &found[0];
    assert_eq!(problem.code, DiagnosticCode::ManifestInvalid);
    assert_eq!(problem.code.as_str(), "MANIFEST_INVALID");
    let text = problem.expected.clone().unwrap();
    assert!(text.contains(expected), "{pointer} {value}: {text}");
    assert!(problem.found.is_some() && !problem.help.is_empty() && problem.message.contains(&text));
}

#[test]
fn a_valid_manifest_is_read() {
    let read = check_manifest(&manifest()).unwrap();
    assert_eq!((read.tools.len(), read.nodes.len(), read.roles.len(), read.policy.len()), (1, 1, 1, 2));
    assert_eq!(serde_json::to_value(&read.tools[0]).unwrap(), weather());
    assert_eq!(check_manifest(&Value::Null), Ok(Manifest::default()), "an empty file");
    assert_eq!(check_manifest(&json!({})), Ok(Manifest::default()));
    assert_eq!(serde_json::to_value(check_tool(&weather()).unwrap()).unwrap(), weather());
}

#[test]
fn defaults_may_be_absent() {
    let mut tool = weather();
    let keep = ["id", "kind", "description", "inputSchema", "url"];
    tool.as_object_mut().unwrap().retain(|key, _| keep.contains(&key.as_str()));
    assert!(check_tool(&tool).is_ok());
    for key in keep {
        let mut without = tool.clone();
        without.as_object_mut().unwrap().remove(key);
        let found = check_tool(&without).unwrap_err();
        assert_eq!(pointers(&found), [format!("/{key}")]);
        assert_eq!(found[0].message, format!("expected a key `{key}` at `/{key}`, found nothing"));
    }
    tool["retry"] = json!({"max": 1});
    assert_eq!(check_tool(&tool).unwrap().retry.unwrap().backoff_ms, 500);
}

#[test]
fn keys_types_and_words_are_strict() {
    check("/tool", json!([]), "a known key");
    check("/tools/0/uri", json!("x"), "a known key");
    check(
        "/tools/0/credential",
        json!({"type": "header", "name": "X", "env": "K", "key": "v"}),
        "{type: bearer, env}",
    );
    check("/tools/0/credential", json!({"type": "digest", "env": "K"}), "{type: bearer, env}");
    check("/tools/0/credential", json!("sk-secret"), "{type: bearer, env}");
    check("/nodes/airtable out/createRecord/timeoutMs", json!(1), "a known key");
    check("/roles/office/users", json!([]), "a known key");
    check("/policy/1/rates", json!("1/s"), "a known key");
    check("/tools", json!({}), "an array");
    check("/nodes", json!([]), "an object");
    check("/tools/0/id", json!(1), "a string");
    check("/tools/0/kind", json!("sql"), "`http`");
    check("/tools/0/effect", json!("write"), "`read`, `idempotent` or `at_most_once`");
    check("/tools/0/method", json!("get"), "`GET`, `POST`, `PUT` or `DELETE`");
    check("/tools/0/inputSchema", json!(true), "an object");
    check_at("/tools/0/headers", json!({"X": 1}), "/tools/0/headers/X", "a string");
    check("/policy/1/per", json!("user"), "`tool`, `agent`, `session` or `principal`");
    check_at("/policy/1/effect", json!(["read", "write"]), "/policy/1/effect/1", "`read`, `idempotent`");
    check_at("/tools/0/retry", json!({"max": "1"}), "/tools/0/retry", "`max` and `backoffMs`");
    for other in [json!([]), json!("tools"), json!(1)] {
        assert_eq!(pointers(&problems(&other)), [""]);
    }
}

#[test]
fn ids_are_dotted_free_and_apart() {
    let form = "an id such as `weather.current`";
    for id in ["", "weather", "a..b", "a b.c", "../a.b", "a/b.c", "é.a"] {
        check("/tools/0/id", json!(id), form);
    }
    check("/tools/0/id", json!(format!("a.{}", "b".repeat(127))), form);
    for id in ["builtin.a", "flow.a", "agent.a.b", "mcp.github.a", "MCP.a", "mcp__github.a", "Mcp__a.b"] {
        check("/tools/0/id", json!(id), "does not begin with");
    }
    let twice = |first: &str, second: &str| {
        let mut tools = [weather(), weather()];
        (tools[0]["id"], tools[1]["id"]) = (json!(first), json!(second));
        check_manifest(&json!({"tools": tools})).err().unwrap_or_default()
    };
    assert_eq!(twice("a.b", "a.c"), []);
    for (first, second) in [("a.b", "a.b"), ("a.b", "A.B"), ("a.b.c", "a.b__c")] {
        let found = twice(first, second);
        assert_eq!(pointers(&found), ["/tools/1/id"], "{second}");
        assert!(found[0].message.contains("/tools/0/id"), "{}", found[0].message);
    }
    let both = json!({"tools": [weather()], "nodes": {"weather": {"current": operation()}}});
    assert_eq!(pointers(&problems(&both)), ["/nodes/weather/current"]);
}

#[test]
fn descriptions_have_a_length_and_no_hidden_characters() {
    check("/tools/0/description", json!(""), "1 to 1024 characters");
    check("/tools/0/description", json!(" \n"), "1 to 1024 characters");
    check("/tools/0/description", json!("é".repeat(1025)), "1 to 1024 characters");
    check("/tools/0/title", json!("t".repeat(101)), "1 to 100 characters");
    let mut longest = manifest();
    longest["tools"][0]["description"] = json!("é".repeat(1024));
    assert!(check_manifest(&longest).is_ok());
    for hidden in [
        '\u{0}',
        '\r',
        '\u{1b}',
        '\u{7f}',
        '\u{ad}',
        '\u{200b}',
        '\u{202e}',
        '\u{2066}',
        '\u{feff}',
        '\u{e0041}',
    ] {
        check("/tools/0/description", json!(format!("a{hidden}b")), "without hidden characters");
        check("/nodes/airtable out/createRecord/description", json!(format!("a{hidden}b")), "without hidden");
    }
}

#[test]
fn schemas_are_usable_and_of_objects() {
    check_at("/tools/0/inputSchema", json!({}), "/tools/0/inputSchema/type", "`type: object`");
    check_at(
        "/tools/0/inputSchema",
        json!({"type": "string"}),
        "/tools/0/inputSchema/type",
        "`type: object`",
    );
    for bad in [
        json!({"type": "object", "properties": 1}),
        json!({"type": "object", "$ref": "https://example.org/schema.json"}),
        json!({"type": "object", "patternProperties": {"(": {}}}),
    ] {
        check("/tools/0/inputSchema", bad.clone(), "a JSON Schema");
        check("/tools/0/outputSchema", bad, "a JSON Schema");
    }
    let mut any = manifest();
    any["tools"][0]["outputSchema"] = json!({"type": "string"});
    assert!(check_manifest(&any).is_ok());
}

#[test]
fn an_address_has_a_fixed_host() {
    let beginning = "begins with `https://` or `http://`";
    let rows = [
        ("", beginning),
        ("ftp://example.org/", beginning),
        ("HTTPS://example.org/", beginning),
        ("{{input.url}}", beginning),
        ("https://{{input.host}}/a", "a fixed host"),
        ("https://example.org{{input.path}}", "a fixed host"),
        ("https://example.org:{{input.port}}/", "a fixed host"),
        ("https://user:word@example.org/", "without a user name"),
        ("https://example.org\\@evil.example/", "printable ASCII"),
        ("https://exämple.org/", "printable ASCII"),
        ("https://example.org/a b", "printable ASCII"),
        ("https://example.org/\r\nX: y", "printable ASCII"),
        ("https:///a", "a host such as"),
        ("https://example.org:0/", "a host such as"),
        ("https://example.org:99999/", "a host such as"),
        ("https://example.org:+1/", "a host such as"),
        ("https://exam%70le.org/", "a host such as"),
        ("https://[::1/", "a host such as"),
        ("https://[a.b]/", "a host such as"),
        ("https://*.example.org/", "a fixed host"),
        ("https://2130706433/", "a host such as"),
        ("https://example.org/#top", "without spaces"),
        ("https://example.org/a/../b", "without the segments"),
        ("https://example.org/%2E%2e/b", "without the segments"),
        ("https://example.org/?{{input.a}}=1", "only as values of the query"),
        ("https://example.org/?a=1&api_key=sk-0123456789", "use `credential`"),
        ("https://example.org/?key=abc{{input.a}}", "use `credential`"),
        ("https://example.org/?api%5Fkey=abc", "use `credential`"),
        ("https://example.org/{{input.a", "only placeholders"),
        ("https://example.org/{{env.KEY}}", "only placeholders"),
        ("https://example.org/{{input}}", "only placeholders"),
        ("https://example.org/{{input.a.}}", "only placeholders"),
    ];
    for (url, expected) in rows {
        check("/tools/0/url", json!(url), expected);
    }
    check("/tools/0/url", json!(format!("https://example.org/{}", "a".repeat(2048))), "at most 2048");
    for url in [
        "http://127.0.0.1:8080",
        "https://[2001:db8::1]:443/a",
        "https://a.example?b={{input.c}}&d",
        "https://a.example?key={{input.c}}&token=&100%=1",
    ] {
        let mut changed = weather();
        changed["url"] = json!(url);
        assert!(check_tool(&changed).is_ok(), "{url}");
    }
}

#[test]
fn headers_are_legal_and_carry_no_key() {
    let at = |name: &str, value: &str, expected: &str| {
        let place = format!("/tools/0/headers/{}", name.replace('/', "~1"));
        check_at("/tools/0/headers", json!({name: value}), &place, expected);
    };
    for name in ["", "a b", "a:", "é", "a\r\nb", "a/b"] {
        at(name, "v", "the name of a header");
    }
    for name in ["Host", "content-length", "Transfer-Encoding", "Connection", "Proxy-Thing", "Sec-Fetch-Mode"]
    {
        at(name, "v", "the connection does not set");
    }
    for name in ["Authorization", "cookie", "X-Api-Key", "X_Auth_Token", "Ocp-Apim-Subscription-Key"] {
        at(name, "Bearer sk-secret-0123456789", "a header without a key");
    }
    at("X", "a\r\nHost: b", "printable ASCII characters in one line");
    at("X", &"v".repeat(4097), "at most 4096 printable");
    at("X", "{{input.a", "only placeholders");
    check_at("/tools/0/headers", json!({"X-a": "1", "x-A": "2"}), "/tools/0/headers/x-A", "each header once");
    let many: Value =
        (0..33).map(|n| (format!("X-{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    check("/tools/0/headers", many, "at most 32 headers");
}

#[test]
fn credentials_are_names_and_no_text_repeats_them() {
    let key = "sk-live-0123456789abcdef";
    check_at(
        "/tools/0/credential",
        json!({"type": "bearer", "env": key}),
        "/tools/0/credential/env",
        "the name of an environment",
    );
    let rows = [
        json!({"type": "bearer", "env": ""}),
        json!({"type": "bearer", "env": "1A"}),
        json!({"type": "bearer", "env": "A B"}),
        json!({"type": "bearer", "env": "A".repeat(129)}),
    ];
    for row in rows {
        check_at(
            "/tools/0/credential",
            row,
            "/tools/0/credential/env",
            "the name of an environment variable",
        );
    }
    check_at(
        "/tools/0/credential",
        json!({"type": "header", "name": "Host", "env": "K"}),
        "/tools/0/credential/name",
        "the connection",
    );
    check_at(
        "/tools/0/credential",
        json!({"type": "header", "name": "a b", "env": "K"}),
        "/tools/0/credential/name",
        "the name of a header",
    );
    check_at(
        "/tools/0/credential",
        json!({"type": "query", "name": "a b", "env": "K"}),
        "/tools/0/credential/name",
        "a query parameter",
    );
    check_at(
        "/tools/0/credential",
        json!({"type": "basic", "user": "a:b", "env": "K"}),
        "/tools/0/credential/user",
        "a user name",
    );
    check_at(
        "/tools/0/credential",
        json!({"type": "basic", "user": "jürgen", "env": "K"}),
        "/tools/0/credential/user",
        "printable ASCII",
    );
    for own in ["REDFLOW_MASTER_KEY", "redflow_token"] {
        check_at(
            "/tools/0/credential",
            json!({"type": "bearer", "env": own}),
            "/tools/0/credential/env",
            "does not begin with `REDFLOW_`",
        );
    }
    for good in [
        json!({"type": "basic", "user": "a", "env": "_K1"}),
        json!({"type": "query", "name": "key", "env": "k"}),
        json!({"type": "header", "name": "Authorization", "env": "K"}),
    ] {
        let mut changed = weather();
        changed["credential"] = good;
        assert!(check_tool(&changed).is_ok());
    }
    let mut leaky = weather();
    leaky["credential"] = json!({"type": "bearer", "env": key});
    leaky["url"] = json!(format!("https://user:{key}@example.org/"));
    leaky["headers"] = json!({"Authorization": key, "X": format!("{key}\n")});
    leaky["body"] = json!(format!("{key} {{{{"));
    let text = serde_json::to_string(&check_tool(&leaky).unwrap_err()).unwrap();
    assert!(!text.contains(key), "{text}");
    leaky["credential"] = json!({"type": "bearer", "key": key});
    assert!(!serde_json::to_string(&check_tool(&leaky).unwrap_err()).unwrap().contains(key));
}

#[test]
fn numbers_have_a_range() {
    for (pointer, bad, good) in [
        ("/tools/0/timeoutMs", vec![json!(0), json!(600_001), json!(1.5)], json!(1)),
        ("/nodes/airtable out/createRecord/timeout", vec![json!(0), json!(600_001)], json!(600_000)),
        ("/tools/0/retry/max", vec![json!(6), json!(u32::MAX)], json!(0)),
        ("/tools/0/retry/backoffMs", vec![json!(60_001)], json!(60_000)),
    ] {
        for number in bad {
            check(
                pointer,
                number,
                if pointer.ends_with("timeoutMs") { "whole number" } else { "a whole number from" },
            );
        }
        let mut changed = manifest();
        *changed.pointer_mut("/tools/0/timeoutMs").unwrap() = json!(1);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        changed.pointer_mut(parent).unwrap()[key] = good;
        assert!(check_manifest(&changed).is_ok(), "{pointer}");
    }
    check("/tools/0/timeoutMs", json!(-1), "at least 0");
    check("/tools/0/timeoutMs", json!(5.0), "a whole number from");
    check_at("/policy/1/burst", json!(5.0), "", "whole numbers");
}

#[test]
fn operations_have_plain_names_properties_and_templates() {
    let at = "/nodes/airtable out/createRecord";
    for name in ["", "a.b", "a b", "é"] {
        let changed = json!({"nodes": {"t": {name: operation()}}});
        let found = problems(&changed);
        assert_eq!(pointers(&found), [format!("/nodes/t/{name}")]);
        assert!(found[0].message.contains("the name of an operation"), "{}", found[0].message);
    }
    for name in ["_msgid", "__proto__", "a.b", "1a", ""] {
        check_at(
            &format!("{at}/msg"),
            json!({name: 1}),
            &format!("{at}/msg/{name}"),
            "the name of a property",
        );
    }
    for path in ["", "payload.", "_msgid", "payload[0]", "a.__proto__"] {
        check(&format!("{at}/result"), json!(path), "the path of a property");
    }
    let deep = json!({"payload": {"list": [{"x": "{{msg.payload}}"}]}});
    check_at(&format!("{at}/msg"), deep, &format!("{at}/msg/payload/list/0/x"), "only placeholders");
    check_at("/tools/0/body", json!({"a/b": ["{{env.KEY}}"]}), "/tools/0/body/a~1b/0", "only placeholders");
    check_at("/nodes", json!({"mcp": {"a": operation()}}), "/nodes/mcp/a", "does not begin with");
}

#[test]
fn policy_problems_have_their_place() {
    check_at("/policy/0/roles", json!(["guests"]), "/policy/0/roles/0", "a role that `roles` defines");
    check("/policy/1/rate", json!("often"), "such as `30/m`");
    // A rule of a wrong shape does not hide or move the problems of others.
    let mut changed = manifest();
    changed["policy"] = json!([{"deny": "all"}, {"limit": ["*"]}]);
    assert_eq!(pointers(&problems(&changed)), ["/policy/0/deny", "/policy/1"]);
}

#[test]
fn all_problems_come_at_once() {
    let mut changed = manifest();
    changed["tools"][0]["url"] = json!("x");
    changed["tools"][0]["uri"] = json!("x");
    changed["tools"][0]["urn"] = json!("x");
    changed["tools"][0]["timeoutMs"] = json!(0);
    changed["nodes"]["airtable out"]["createRecord"]["result"] = json!("");
    changed["policy"][1]["rate"] = json!("x");
    let mut found = pointers(&problems(&changed));
    found.sort();
    let expected = [
        "/nodes/airtable out/createRecord/result",
        "/policy/1/rate",
        "/tools/0/timeoutMs",
        "/tools/0/uri",
        "/tools/0/url",
        "/tools/0/urn",
    ];
    assert_eq!(found, expected);
}

#[test]
fn tools_and_problems_are_bounded() {
    let tools = |count: usize| {
        let numbered = |n: usize| {
            let mut tool = weather();
            tool["id"] = json!(format!("t.n{n}"));
            tool
        };
        json!({"tools": (0..count).map(numbered).collect::<Vec<_>>()})
    };
    assert!(check_manifest(&tools(MAX_MANIFEST_TOOLS)).is_ok());
    let found = problems(&tools(MAX_MANIFEST_TOOLS + 1));
    assert_eq!(pointers(&found), [""]);
    assert!(found[0].message.contains("at most 2000 tools"), "{}", found[0].message);
    let found = problems(&json!({"tools": vec![json!({}); MAX_MANIFEST_PROBLEMS]}));
    assert_eq!(found.len(), MAX_MANIFEST_PROBLEMS + 1);
    assert_eq!(
        found.last().unwrap().message,
        format!("the manifest has {} more problems", 4 * MAX_MANIFEST_PROBLEMS)
    );
    let long = problems(&json!({"tools": [{"id": "x".repeat(100_000)}], "k".repeat(100_000): 1}));
    assert!(long.iter().all(|problem| problem.message.chars().count() <= 601));
}

#[test]
fn a_wrong_operation_of_a_package_is_left_out() {
    let package = json!({
        "airtable out": {"createRecord": operation(), "bad": {"description": "x"}, "a.b": operation()},
        "other": "no object",
        "mail": {"send": operation(), "Send": operation()},
    });
    let (tools, found) = check_node_tools(&package);
    let names: Vec<_> = tools
        .iter()
        .flat_map(|(node, list)| list.keys().map(move |name| (node.as_str(), name.as_str())))
        .collect();
    assert_eq!(names, [("airtable out", "createRecord"), ("mail", "send")]);
    let mut found = pointers(&found);
    found.sort();
    assert_eq!(found, ["/airtable out/a.b", "/airtable out/bad/inputSchema", "/mail/Send", "/other"]);
    for nonsense in [json!(null), json!([]), json!("x")] {
        let (tools, found) = check_node_tools(&nonsense);
        assert_eq!((tools.len(), found.len()), (0, 1), "{nonsense}");
    }
    assert_eq!(check_node_tools(&json!({})), (Default::default(), vec![]));
    let package = |operations: usize| {
        let many: serde_json::Map<_, _> =
            (0..operations).map(|n| (format!("o{n}"), json!({"x": 1}))).collect();
        let (tools, found) = check_node_tools(&json!({"t": many}));
        (tools.len(), found.len())
    };
    assert_eq!(package(MAX_MANIFEST_TOOLS), (0, MAX_MANIFEST_PROBLEMS + 1));
    assert_eq!(package(100_000), (0, 1), "too many are not looked at");
}

fn any_json() -> impl Strategy<Value = Value> {
    let words =
        ["tools", "nodes", "policy", "roles", "id", "url", "kind", "http", "deny", "{{input.x}}", "a.b", ""];
    let word = proptest::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word.clone().prop_map(str::to_owned), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_read_or_has_problems(value in any_json(), pointer in proptest::sample::select(vec![
        "/tools/0", "/tools/0/url", "/tools/0/headers", "/tools/0/retry", "/nodes/airtable out", "/policy/0", "/roles",
    ])) {
        let mut changed = manifest();
        *changed.pointer_mut(pointer).unwrap() = value.clone();
        for value in [value, changed] {
            match check_manifest(&value) {
                // What is read is written as a manifest again.
                Ok(read) => prop_assert!(check_manifest(&serde_json::to_value(read).unwrap()).is_ok()),
                Err(problems) => prop_assert!(!problems.is_empty()),
            }
            let _ = check_tool(&value);
            let _ = check_node_tools(&value);
        }
    }
}
