//! `redflow egress test`: says which rule refuses an address, and what allows it.

use crate::kit::Folder;
use pretty_assertions::assert_eq;
use serde_json::json;
use std::net::TcpListener;

#[test]
fn says_which_rule_refuses_and_what_to_write() {
    let folder = Folder::new();
    let output = folder.redflow(["egress", "test", "http://nas.lan:8123/states?key=hunter2"]).run();
    assert_eq!(output.code, 1);
    assert_eq!(
        output.stdout,
        "the request is refused by the rule `port`: the port 8123 is not allowed; an operator can allow it: add \
         `nas.lan:8123` to `[egress] private`, start the sidecar with `--allow-private nas.lan:8123`, or fill in the \
         private hosts of the node redflow-runtime\n"
    );
    let output = folder.redflow(["egress", "test", "http://169.254.169.254/", "--json"]).run();
    assert_eq!(output.code, 1);
    assert_eq!(
        output.json(),
        json!({"allowed": false, "rule": "address",
               "reason": "169.254.169.254 is a link-local address, where clouds serve metadata and keys",
               "allow": "add `169.254.169.254:80` to `[egress] private`"})
    );
    for (url, rule) in [("file:///etc/passwd", "text"), ("http://2130706433/", "authority"), ("-x", "text")] {
        let output = folder.redflow(["egress", "test", "--json", url]).run();
        assert_eq!((output.code, output.json()["rule"].as_str()), (1, Some(rule)), "{url}");
    }
}

#[test]
fn an_allowed_address_is_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = Folder::new();
    let (url, entry) = (format!("http://127.0.0.1:{port}/"), format!("127.0.0.1:{port}"));
    assert_eq!(folder.redflow(["egress", "test", &url]).run().code, 1);
    let output = folder.redflow(["egress", "test", &url, "--allow-private", &entry]).run();
    let expected =
        format!("127.0.0.1 at port {port} is allowed as a private host; its addresses: 127.0.0.1\n");
    assert_eq!((output.code, output.stdout), (0, expected));
    let output =
        folder.redflow(["egress", "test", &url, "--json"]).env("REDFLOW_EGRESS_PRIVATE", &entry).run();
    assert_eq!(output.code, 0);
    assert_eq!(
        output.json(),
        json!({"allowed": true, "scheme": "http", "host": "127.0.0.1", "port": port, "private": true,
               "addresses": ["127.0.0.1"]})
    );
    folder.write("redflow.toml", format!("[egress]\nprivate = [\"{entry}\"]\n"));
    assert_eq!(folder.redflow(["egress", "test", &url, "--config", "redflow.toml"]).run().code, 0);
    assert!(listener.accept().is_err(), "nothing was dialled");
}

#[test]
fn a_wrong_private_host_is_reported() {
    let folder = Folder::new();
    let args = ["egress", "test", "http://nas.lan/", "--allow-private", "nas.lan"];
    let output = folder.redflow(args).run();
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("the flag --allow-private is wrong: entry 1: the port is missing"),
        "{output:?}"
    );
    assert!(output.stderr.contains("CONFIG_FILE_INVALID"), "{output:?}");
}

/// The script of the network stands in for DNS in the build for fault tests.
#[cfg(feature = "faults")]
#[test]
fn a_scripted_name_that_leads_inside_is_refused() {
    let folder = Folder::new();
    let script =
        json!({"names": {"api.example.org": [["93.184.216.34"]], "evil.example.org": [["10.0.0.1"]]}});
    folder.write("net.json", script.to_string());
    let test = |url: &str| {
        folder.redflow(["egress", "test", "--json", url]).env("REDFLOW_TEST_NET", "net.json").run().json()
    };
    assert_eq!(test("https://api.example.org/")["addresses"], json!(["93.184.216.34"]));
    let evil = test("https://evil.example.org/");
    assert_eq!(evil["rule"], "address");
    assert_eq!(evil["reason"], "the address of evil.example.org is a private address: 10.0.0.1");
    assert_eq!(test("https://other.example.org/")["rule"], "address");
}
