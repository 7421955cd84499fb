//! `http-request-tool`: hosts, methods, headers and credentials.

use crate::kit::{check, checked, good, node, report, with};
use redflow_contract::flow::Profile;
use redflow_flow::Verdict;
use serde_json::{Value, json};

/// An agent with an HTTP tool of these properties.
fn with_tool(extra: Value) -> Value {
    let mut flow = good(json!([["m"], ["h"], [], ["d"]]), vec![]);
    flow[1] = with(flow[1].clone(), json!({"allowedTools": ["http_request"]}));
    flow[3] = with(node("h", "http-request-tool", json!([[]])), extra);
    flow
}

#[test]
fn properties_are_checked_all_at_once() {
    let many: Vec<String> = (0..65).map(|n| format!("h{n}.example.org")).collect();
    let rows: Vec<(Value, &[&str])> = vec![
        (json!({}), &[]),
        (json!({"authentication": "", "hosts": "", "timeout": "", "effect": "", "headers": ""}), &[]),
        (
            json!({"authentication": "none", "methods": "get, Post", "timeout": "500", "maxRedirects": "0"}),
            &[],
        ),
        (json!({"options": {"timeout": 5000, "followRedirects": false, "maxRedirects": 3}}), &[]),
        (
            json!({"hosts": ["api.example.org", "https://x.org", "*", 5], "methods": ["GET", "PATCH"]}),
            &[
                "CONFIG_INVALID h /hosts/1",
                "CONFIG_INVALID h /hosts/2",
                "CONFIG_INVALID h /methods/1",
                "CONFIG_INVALID h /hosts",
            ],
        ),
        (json!({"hosts": "api.example.org, 127.1"}), &["CONFIG_INVALID h /hosts"]),
        (json!({"hosts": many}), &["CONFIG_INVALID h /hosts/64"]),
        (json!({"options": {"hosts": "a b"}}), &["CONFIG_INVALID h /options/hosts"]),
        (
            json!({"headers": {"Host": "x", "a b": "1", "Accept": "a\nb", "X-Ok": "fine", "x-ok": "2", "N": 5}}),
            &[
                "CONFIG_INVALID h /headers/Host",
                "CONFIG_INVALID h /headers/a b",
                "CONFIG_INVALID h /headers/Accept",
                "CONFIG_INVALID h /headers/x-ok",
                "CONFIG_INVALID h /headers/N",
            ],
        ),
        (
            json!({"authentication": "digest", "apiKeyIn": "body", "maxRedirects": 21, "maxBodyBytes": 0,
                "hosts": "api.example.org"}),
            &[
                "CONFIG_INVALID h /apiKeyIn",
                "CONFIG_INVALID h /authentication",
                "CONFIG_INVALID h /maxBodyBytes",
                "CONFIG_INVALID h /maxRedirects",
            ],
        ),
    ];
    for (extra, expected) in rows {
        check(with_tool(extra), expected);
    }
}

// SECURITY: tool-hosts
#[test]
fn credentials_need_hosts() {
    for authentication in
        ["basic", "header", "bearer", "apiKey", "httpBasicAuth", "httpHeaderAuth", "httpBearerAuth"]
    {
        let expected = "CREDENTIAL_UNBOUND h /authentication";
        check(with_tool(json!({"authentication": authentication})), &[expected]);
        check(with_tool(json!({"authentication": authentication, "hosts": " , "})), &[expected]);
        check(with_tool(json!({"authentication": authentication, "hosts": "*.example.org"})), &[]);
        let expected = "CREDENTIAL_UNBOUND h /options/authentication";
        check(with_tool(json!({"options": {"authentication": authentication}})), &[expected]);
        let bound = json!({"options": {"authentication": authentication, "hosts": ["api.example.org"]}});
        check(with_tool(bound), &[]);
    }
    // A key in a header is a credential, too.
    let header = json!({"headers": {"Accept": "text/plain", "X-Api-Key": "${SERVICE_API_KEY}"}});
    check(with_tool(header.clone()), &["CREDENTIAL_UNBOUND h /headers/X-Api-Key"]);
    check(with_tool(with(header, json!({"hosts": "api.example.org"}))), &[]);
    // What would be sent as it is.
    let references = json!({"hosts": "api.example.org", "headers": {"X-Api-Key": "${UNSET_API_KEY}", "X-A": "${UNSET}",
        "X-B": "${SERVICE_API_KEY}", "X-C": "a ${TOOL_NAME}", "X-D": "${TOOL_NAME}", "X-E": "$5"}});
    check(
        with_tool(references),
        &[
            "CONFIG_INVALID h /headers/X-Api-Key",
            "CONFIG_INVALID h /headers/X-A",
            "CONFIG_INVALID h /headers/X-B",
            "CONFIG_INVALID h /headers/X-C",
        ],
    );
    let plain = json!({"headers": {"X-Api-Key": "s3cret"}, "hosts": "api.example.org"});
    check(with_tool(plain), &["SECRET_IN_FLOW h /headers/X-Api-Key"]);
}

#[test]
fn the_header_of_a_credential_is_checked() {
    let bound = |extra: Value| with_tool(with(json!({"hosts": "api.example.org"}), extra));
    for (extra, expected) in [
        (json!({"authentication": "header", "headerName": "Host"}), "CONFIG_INVALID h /headerName"),
        (
            json!({"authentication": "header", "credentials": {"headerName": "a\r\nb"}}),
            "CONFIG_INVALID h /credentials/headerName",
        ),
        (json!({"authentication": "apiKey", "apiKeyName": "a b"}), "CONFIG_INVALID h /apiKeyName"),
        (
            json!({"authentication": "bearer", "headers": {"Authorization": "x"}}),
            "CONFIG_INVALID h /headers/Authorization",
        ),
    ] {
        check(bound(extra), &[expected]);
    }
    check(bound(json!({"authentication": "apiKey", "apiKeyName": "a b", "apiKeyIn": "query"})), &[]);
    // A blank in the credentials does not hide the node's own property.
    let blank = json!({"authentication": "header", "headerName": "Host", "credentials": {"headerName": " "}});
    check(bound(blank), &["CONFIG_INVALID h /headerName"]);
    let same = json!({"authentication": "apiKey", "apiKeyName": "X-Tenant", "headers": {"X_Tenant": "a"}});
    check(bound(same), &["CONFIG_INVALID h /headers/X_Tenant"]);
}

#[test]
fn a_refusal_says_what_to_write() {
    let report =
        report(&with_tool(json!({"authentication": "bearer", "token": "s3cret-token"})), Profile::Strict);
    let found = &report.diagnostics[0];
    assert_eq!(found.help, "Name the hosts that may get them in `hosts`, such as [\"api.example.org\"].");
    assert!(!format!("{report:?}").contains("s3cret-token"), "{report:?}");
    let flow = checked(&with_tool(json!({"authentication": "bearer"})));
    let Verdict::Refused { error, .. } = &flow.agents[0].verdict else { panic!("refused") };
    assert_eq!(error.code.as_str(), "CONFIG_INVALID");
}

#[test]
fn the_timeout_may_stand_in_options() {
    for (extra, expected) in [
        (json!({}), 30_000),
        (json!({"options": {"timeout": 4000}}), 4000),
        (json!({"timeout": 2000, "options": {"timeout": 4000}}), 2000),
        (json!({"timeout": "", "options": {"timeout": "4000"}}), 4000),
    ] {
        let flow = checked(&with_tool(extra));
        let Verdict::Ready(agent) = &flow.agents[0].verdict else { panic!("ready") };
        assert_eq!(agent.spec.tools[0].timeout_ms, expected);
    }
}
