//! `redflow import` and `redflow export`: they lose nothing and overwrite nothing.

use crate::kit::{Folder, Output, redflow, repository};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The JSON on stdout.
#[track_caller]
fn value(output: &Output) -> Value {
    assert_eq!(output.code, 0, "{output:#?}");
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:#?}"))
}

fn by_id(nodes: &Value) -> BTreeMap<String, Value> {
    let nodes = nodes.as_array().unwrap();
    nodes.iter().map(|node| (node["id"].as_str().unwrap().to_owned(), node.clone())).collect()
}

/// Three tabs that share nodes; two of them have the same name.
fn three_tabs() -> Value {
    json!([
        {"id": "t1", "type": "tab", "label": "Home", "disabled": false, "info": "about"},
        {"id": "t2", "type": "tab", "label": "../../Other tab", "env": []},
        {"id": "t3", "type": "tab", "label": "home"},
        {"id": "a", "type": "mqtt in", "z": "t1", "broker": "k", "wires": [["b"]]},
        {"id": "b", "type": "subflow:s", "z": "t1", "wires": []},
        {"id": "c", "type": "mqtt out", "z": "t2", "broker": "k", "wires": []},
        {"id": "d", "type": "debug", "z": "t3", "wires": []},
        {"id": "s", "type": "subflow", "name": "S", "in": [], "out": []},
        {"id": "i", "type": "debug", "z": "s", "wires": []},
        {"id": "k", "type": "mqtt-broker", "host": "h"},
        {"id": "u", "type": "nobodys-config", "x\u{202e}": "\u{9b}31m"},
    ])
}

#[test]
fn an_array_is_exported_to_files_and_imported_back() {
    let folder = Folder::with_flow(&three_tabs());
    let written = folder.redflow(["export", "flow.json", "--to", "redflow", "-o", "tabs"]).run();
    assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{written:#?}");
    assert_eq!(written.stderr, "wrote tabs/Home.json\nwrote tabs/Other-tab.json\nwrote tabs/home-2.json\n");
    let home: Value = serde_json::from_str(&folder.read("tabs/Home.json")).unwrap();
    assert_eq!([&home["flow"]["id"], &home["flow"]["label"], &home["flow"]["info"]], ["t1", "Home", "about"]);
    let at = home["exportedAt"].as_str().unwrap();
    assert!(at.ends_with('Z') && at.starts_with("20"), "{at}");
    // Each file can be checked unchanged.
    for file in ["tabs/Home.json", "tabs/Other-tab.json", "tabs/home-2.json"] {
        assert_eq!(folder.redflow(["check", file]).run().code, 0, "{file}");
    }
    let args = ["import", "tabs/Home.json", "tabs/Other-tab.json", "tabs/home-2.json"];
    let back = folder.redflow(args).run();
    assert_eq!((back.code, back.stderr.as_str()), (0, ""));
    assert_eq!(by_id(&value(&back)), by_id(&three_tabs()));
    assert_eq!(value(&back).as_array().unwrap().len(), three_tabs().as_array().unwrap().len());
    // Characters that act on a terminal are escaped.
    assert!(!back.stdout.contains('\u{202e}') && !back.stdout.contains('\u{9b}'));
}

#[test]
fn every_example_survives_export_and_import() {
    for entry in std::fs::read_dir(repository().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let folder = Folder::new();
        let path = path.to_str().unwrap();
        let array = folder.redflow(["import", path]).run();
        assert_eq!((array.code, array.stderr.as_str()), (0, ""), "{path}");
        folder.write("array.json", &array.stdout);
        assert_eq!(folder.redflow(["export", "array.json", "-o", "tabs/"]).run().code, 0, "{path}");
        let files: Vec<String> = std::fs::read_dir(folder.path("tabs"))
            .unwrap()
            .map(|file| file.unwrap().path().to_str().unwrap().to_owned())
            .collect();
        let back = folder.redflow(["import"].into_iter().chain(files.iter().map(String::as_str))).run();
        assert_eq!(by_id(&value(&back)), by_id(&value(&array)), "{path}");
        // An array is unchanged.
        let original: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        if original.is_array() {
            assert_eq!(value(&array), original, "{path}");
        }
    }
}

#[test]
fn a_redflow_export_survives_import_and_export() {
    let path = repository().join("examples/redflow-chat.json");
    let original: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let array = redflow(["import", path.to_str().unwrap()]).run();
    assert_eq!(value(&array)[0]["type"], "tab");
    let back = redflow(["export", "-", "--to", "redflow"]).stdin(array.stdout).run();
    assert_eq!(value(&back)["flow"], original["flow"]);
}

#[test]
fn one_tab_is_exported_by_its_id_or_its_label() {
    let mut flow = three_tabs();
    flow[2]["label"] = json!("Home");
    let folder = Folder::with_flow(&flow);
    let one = |tab: &str| folder.redflow(["export", "flow.json", "--tab", tab]).run();
    for tab in ["t2", "../../Other tab"] {
        let document = value(&one(tab));
        assert_eq!(document["flow"]["id"], "t2");
        assert_eq!(document["flow"]["configs"], json!([{"id": "k", "type": "mqtt-broker", "host": "h"}]));
        assert_eq!(document["flow"].get("subflows"), None);
    }
    one("Home").assert_refused("several tabs are called `Home`; name one by its id:\n  t1  Home\n  t3  Home");
    one("gone").assert_refused("there is no tab `gone`; there are:\n  t1  Home\n");
    folder
        .redflow(["export", "flow.json"])
        .run()
        .assert_refused("the flow has 3 tabs, and Redflow needs one file for each");
    folder
        .redflow(["export", "flow.json", "--to", "node-red", "--tab", "t1"])
        .run()
        .assert_refused("an array contains all tabs");
    // The label of a tab can be the id of another tab.
    flow[2]["label"] = json!("t1");
    let document = value(&redflow(["export", "-", "--tab", "t1"]).stdin(flow.to_string()).run());
    assert_eq!(document["flow"]["label"], "Home");
}

#[test]
fn files_are_overwritten_only_with_force() {
    let folder = Folder::with_flow(&three_tabs());
    folder.write("mine.json", "mine");
    std::fs::create_dir(folder.path("tabs")).unwrap();
    folder.write("tabs/home-2.json", "mine");
    folder
        .redflow(["import", "flow.json", "-o", "mine.json"])
        .run()
        .assert_refused("mine.json exists already; --force overwrites it");
    folder
        .redflow(["export", "flow.json", "-o", "tabs"])
        .run()
        .assert_refused("tabs/home-2.json exists already");
    folder
        .redflow(["export", "flow.json", "--tab", "t1", "-o", "mine.json"])
        .run()
        .assert_refused("mine.json exists");
    assert_eq!([folder.read("mine.json"), folder.read("tabs/home-2.json")], ["mine", "mine"]);
    assert!(!folder.path("tabs/Home.json").exists());
    // Several tabs need several files.
    folder
        .redflow(["export", "flow.json", "-o", "mine.json", "--force"])
        .run()
        .assert_refused("cannot write mine.json/");

    folder.run_ok(["import", "flow.json", "-o", "mine.json", "--force"]);
    let array: Value = serde_json::from_str(&folder.read("mine.json")).unwrap();
    assert_eq!(array, three_tabs());
    folder.run_ok(["export", "flow.json", "-o", "tabs", "--force"]);
    assert!(folder.read("tabs/home-2.json").contains("\"t3\""));
    folder.run_ok(["export", "flow.json", "--tab", "t1", "-o", "new/deep/"]);
    assert!(folder.path("new/deep/Home.json").exists());
}

#[test]
fn credentials_are_left_out_of_exports_and_only_counted() {
    let flow = json!([
        {"id": "t", "type": "tab", "label": "Home"},
        {"id": "m", "type": "openai-model", "z": "t", "credentials": {"apiKey": "sk-secret"}},
        {"id": "n", "type": "openai-model", "z": "t", "credentials": "sk-secret"},
    ]);
    for shape in ["redflow", "node-red"] {
        let output = redflow(["export", "-", "--to", shape]).stdin(flow.to_string()).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, "the credentials of 2 nodes are left out\n"));
        assert!(
            !output.stdout.contains("sk-secret") && !output.stdout.contains("credentials"),
            "{output:#?}"
        );
    }
    let deployment = json!({"flows": [flow[0], {"id": "m", "type": "x", "z": "t"}], "credentials": {"m": {"k": "v"}},
                            "rev": "1", "odd": 1});
    let output = redflow(["import", "-"]).stdin(deployment.to_string()).run();
    assert_eq!(value(&output)[1]["credentials"], json!({"k": "v"}));
    assert!(output.stderr.contains("the credentials of 1 node are unencrypted"), "{output:#?}");
    let exported = redflow(["export", "-"]).stdin(deployment.to_string()).run();
    assert_eq!(exported.stderr, "-: `odd` is left out\nthe credentials of 1 node are left out\n");
    assert!(output.stderr.contains("-: `odd` is left out"), "{output:#?}");
}

#[test]
fn a_file_that_is_no_flow_is_refused() {
    let rows: [(&[u8], &str); 7] = [
        (b"no json", "FLOW_NOT_JSON"),
        (b"", "FLOW_NOT_JSON"),
        (b"{}", "FLOW_SHAPE_UNKNOWN"),
        (b"[5]", "FLOW_SHAPE_UNKNOWN"),
        (b"[{\"id\":\"a\",\"type\":\"x\"},{\"id\":\"a\",\"type\":\"y\"}]", "DUPLICATE_ID"),
        (b"[{\"id\":\"a\",\"id\":\"b\",\"type\":\"x\"}]", "DUPLICATE_KEY"),
        (b"\xff", "FLOW_NOT_JSON"),
    ];
    for (bytes, code) in rows {
        for args in [vec!["import", "-"], vec!["export", "-"]] {
            let output = redflow(args.iter().copied()).stdin(bytes).run();
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:#?}");
            assert!(output.stderr.contains(&format!("error[{code}]")), "{args:?} {code} {output:#?}");
        }
    }
    redflow(["import", "gone.json"]).run().assert_refused("error[FLOW_UNREADABLE]");
    redflow(["export", "-"]).stdin("[]").run().assert_refused("- has no nodes: there is nothing to export");
    let deep = format!("[{{\"id\":\"a\",\"type\":\"x\",\"d\":{}{}}}]", "[".repeat(200), "]".repeat(200));
    redflow(["import", "-"]).stdin(deep).run().assert_refused("error[FLOW_TOO_DEEP]");
    // Two files have different versions of one node.
    let folder = Folder::with_flow(&json!([{"id": "a", "type": "x"}]));
    folder.write("other.json", r#"[{"id":"a","type":"y"}]"#);
    folder.redflow(["import", "flow.json", "other.json"]).run().assert_refused("error[DUPLICATE_ID]");
}

#[test]
fn hostile_names_stay_in_the_folder() {
    let labels = [
        "..",
        "/etc/passwd",
        ".hidden",
        "a\u{0}b",
        "\u{202e}x",
        &"long ".repeat(100),
        "CON.json",
        "-",
        "é ü",
    ];
    let mut nodes = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        nodes.push(json!({"id": format!("t{number}"), "type": "tab", "label": label}));
    }
    let folder = Folder::with_flow(&Value::Array(nodes.clone()));
    let before = folder.files();
    let output = folder.redflow(["export", "flow.json", "-o", "tabs"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(!output.stderr.contains(['\u{202e}', '\u{0}']));
    let after: Vec<String> = folder.files().difference(&before).cloned().collect();
    assert_eq!(after, ["tabs"]);
    let mut files: Vec<String> = std::fs::read_dir(folder.path("tabs"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files.len(), labels.len());
    let is_plain = |name: &String| {
        let stem = name.strip_suffix(".json").unwrap();
        !stem.is_empty()
            && stem.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
            && name.len() < 100
    };
    assert!(files.iter().all(is_plain), "{files:?}");
    let paths: Vec<String> = files.iter().map(|name| format!("tabs/{name}")).collect();
    let back = folder.redflow(["import"].into_iter().chain(paths.iter().map(String::as_str))).run();
    assert_eq!(by_id(&value(&back)), by_id(&Value::Array(nodes)));
}

#[cfg(unix)]
#[test]
fn an_overwritten_file_keeps_its_link_and_its_permissions() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = Folder::with_flow(&json!([{"id": "a", "type": "x"}]));
    folder.write("real.json", "old");
    std::fs::set_permissions(folder.path("real.json"), std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink(folder.path("real.json"), folder.path("link.json")).unwrap();
    let before = folder.files();
    folder.run_ok(["import", "flow.json", "-o", "link.json", "--force"]);
    assert_eq!(folder.files(), before, "no temporary file is left");
    assert!(std::fs::symlink_metadata(folder.path("link.json")).unwrap().is_symlink());
    let found = std::fs::metadata(folder.path("real.json")).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(folder.path("real.json")).unwrap().contains("\"a\""));
}
