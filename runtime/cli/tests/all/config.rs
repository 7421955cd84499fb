//! `redflow config show`, and wrong configurations.

use crate::kit::{Folder, final_answer, flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

const SECRET: &str = "s3cret-0123456789";

const FILE: &str = "\
[server]
listen = \"127.0.0.1:2000\"
hosts = [\"flows.example\", \"flows.example:8443\"]
rate_burst = 7

[http]
proxy = \"http://me:s3cret-0123456789@proxy.example:3128\"

[prices.\"gpt-5*\"]
input = 1
output = 2.5
";

/// A folder with a flow and a configuration file.
fn folder() -> Folder {
    let folder = Folder::with_flow(&flow(final_answer("ok"), vec![]));
    folder.write("redflow.toml", FILE);
    folder
}

#[test]
fn every_setting_is_printed_with_its_origin() {
    let folder = folder();
    let args =
        ["config", "show", "--config", "redflow.toml", "--flows", "flows.json", "--profile", "redflow"];
    let call = || folder.redflow(args).env("REDFLOW_DATA", "data").env("REDFLOW_LOG", "debug");
    let call = || call().env("REDFLOW_TOKEN", SECRET).env("REDFLOW_MEMORY_KEY", SECRET);
    let output = call().run();
    assert_eq!((output.code, output.stderr.as_str()), (0, "the configuration is redflow.toml\n"));
    insta::assert_snapshot!(output.stdout);
    assert!(!output.stdout.contains("s3cret"), "{output:#?}");
}

#[test]
fn settings_are_printed_as_json() {
    let folder = folder();
    let args = ["config", "show", "--json", "--listen", "[::1]:1", "--config", "redflow.toml"];
    let output = folder.redflow(args).env("REDFLOW_TOKEN", SECRET).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let config = output.json();
    assert_eq!(config["file"], "redflow.toml");
    let setting = |key: &str| {
        let found = config["settings"].as_array().unwrap().iter().find(|row| row["key"] == key);
        found.unwrap_or_else(|| panic!("no {key}: {config:#}")).clone()
    };
    let file = |line: u32| json!({"from": "file", "file": "redflow.toml", "line": line});
    let rows = [
        ("server.listen", json!("[::1]:1"), json!({"from": "flag", "name": "--listen"})),
        ("server.hosts", json!(["flows.example", "flows.example:8443"]), file(3)),
        ("server.rate_burst", json!(7), file(4)),
        ("server.https", json!(false), json!({"from": "default"})),
        ("http.proxy", json!("http://••••@proxy.example:3128/"), file(7)),
        ("prices.\"gpt-5*\".output", json!(2.5), file(11)),
        ("token", json!("[set]"), json!({"from": "environment", "name": "REDFLOW_TOKEN"})),
        ("memory_key", Value::Null, json!({"from": "default"})),
        ("log.format", json!("auto"), json!({"from": "default"})),
        ("config", json!("redflow.toml"), json!({"from": "flag", "name": "--config"})),
    ];
    for (key, value, origin) in rows {
        assert_eq!(setting(key), json!({"key": key, "value": value, "origin": origin}));
    }
}

#[test]
fn every_command_reports_all_problems_at_once() {
    let folder = folder();
    folder.write("bad.toml", "[server]\nport = \"s3cret-0123456789\"\nlisten = \"s3cret-0123456789\"\n");
    for args in [
        ["serve", "--config", "bad.toml"].as_slice(),
        &["config", "show", "--config", "bad.toml"],
        &["run", "flow.json", "--config", "bad.toml"],
        &["runs", "--config", "bad.toml"],
        &["token", "--config", "bad.toml"],
    ] {
        let output = folder.redflow(args.iter().copied()).env("REDFLOW_TOKEN", "s3cret").run();
        output.assert_refused("the configuration bad.toml is wrong in line 2: unknown field `port`");
        output.assert_refused(
            "the configuration bad.toml is wrong in line 3: it must be an IP address and a port",
        );
        output.assert_refused(
            "the variable REDFLOW_TOKEN is wrong: it must be 16 to 512 visible ASCII characters",
        );
        output.assert_refused("\n   = help: redflow explain CONFIG_FILE_INVALID\n");
        assert_eq!(output.errors(), ["CONFIG_FILE_INVALID"; 3], "{output:#?}");
        assert!(!output.stderr.contains("s3cret"), "{output:#?}");
    }
    assert_eq!(
        folder.redflow(["explain", "CONFIG_FILE_INVALID"]).env("REDFLOW_CONFIG", "bad.toml").run().code,
        0
    );
}

#[test]
fn a_long_list_of_problems_is_cut() {
    let folder = Folder::new();
    let keys: String = (0..1000).map(|key| format!("k{key} = 1\n")).collect();
    folder.write("bad.toml", format!("[server]\n{keys}"));
    let output = folder.redflow(["config", "show", "--config", "bad.toml"]).run();
    output.assert_refused("\n… and 950 more\n");
    assert_eq!(output.errors().len(), 50);
}

#[test]
fn a_wrong_log_filter_is_reported_with_its_origin() {
    let folder = Folder::new();
    let output = folder.redflow(["config", "show", "--log", "what=ever=x"]).run();
    output.assert_refused("error[CONFIG_FILE_INVALID]: --log: the log filter");
    let output = folder.redflow(["runs"]).env("REDFLOW_LOG", "what=ever=x").run();
    output.assert_refused("error[CONFIG_FILE_INVALID]: REDFLOW_LOG: the log filter");
}

#[test]
fn limits_of_the_file_apply_to_a_run() {
    let folder = folder();
    folder.write("redflow.toml", "[limits]\nmax_deliveries = 1\n");
    let output = folder.redflow(["run", "flow.json", "--config", "redflow.toml"]).run();
    assert!(output.stderr.contains("one start sets off at most 1 runs, deliveries or bytes"), "{output:#?}");
    let output = folder.redflow(["run", "flow.json"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
}

#[test]
fn the_file_can_name_the_data_directory_of_every_command() {
    let folder = folder();
    folder.write("redflow.toml", "[server]\ndata = \"kept\"\n");
    let call = |args: &[&str]| {
        let args = args.iter().copied().chain(["--config", "redflow.toml"]);
        let output = folder.redflow(args).env_remove("REDFLOW_DATA").run();
        assert_eq!(output.code, 0, "{output:#?}");
        output
    };
    call(&["run", "flow.json", "--quiet"]);
    assert!(folder.path("kept/redflow.db").exists());
    assert_eq!(call(&["runs"]).stdout.lines().count(), 1);
    let token = call(&["token"]).stdout;
    assert_eq!(folder.read("kept/token"), token);
}

#[test]
fn the_profile_can_come_from_the_environment() {
    let fresh = json!([
        {"id": "i", "type": "inject", "z": "t", "wires": [["a"]]},
        {"id": "a", "type": "agent-core", "z": "t", "wires": [["m"], [], [], [], []]},
        {"id": "m", "type": "scripted-model", "z": "t", "replies": final_answer("ok"), "wires": [[]]},
    ]);
    let folder = Folder::with_flow(&fresh);
    let code = |name: &str, args: &[&str]| {
        let args = ["check", "flow.json"].into_iter().chain(args.iter().copied());
        folder.redflow(args).env("REDFLOW_PROFILE", name).run().code
    };
    assert_eq!(code("strict", &[]), 1);
    assert_eq!(code("redflow", &[]), 0);
    assert_eq!(code("redflow", &["--profile", "strict"]), 1);
}
