//! `redflow credentials`: import from and export to Node-RED's credentials file.

use crate::kit::{Folder, Output};
use pretty_assertions::assert_eq;
use redflow_ports::{Credentials, FlowStore as _, UiStorage as _};
use redflow_store::{FlowFile, UiStorageFile, decode_node_red};
use serde_json::{Value, json};

const SECRET: &str = "s3cret";
/// The file of Node-RED for `{"n1":{"apiKey":"abc"}}` with that secret.
const FILE: &str = r#"{"$":"000102030405060708090a0b0c0d0e0feEkjBItXl8Lu+ielZcyknqJuyW48kSI="}"#;

fn folder() -> Folder {
    let nodes = json!([{"id": "tab", "type": "tab"}, {"id": "n1", "type": "debug", "z": "tab", "wires": []},
                       {"id": "n 2.x", "type": "debug", "z": "tab", "wires": []}]);
    let folder = Folder::with_flow(&nodes);
    folder.write("flows_cred.json", FILE);
    folder.write("secret.txt", format!("{SECRET}\n"));
    folder
}

/// Calls the command for the flow of the folder, and checks that it prints no value.
#[track_caller]
fn call(folder: &Folder, args: &[&str]) -> Output {
    let args = ["credentials"].iter().chain(args).chain(&["--flows", "flow.json"]).copied();
    let output = folder.redflow(args).env_remove("REDFLOW_CREDENTIAL_SECRET").run();
    for value in ["abc", "hidden", SECRET] {
        assert!(!output.stdout.contains(value) && !output.stderr.contains(value), "{output:#?}");
    }
    output
}

fn stored_credentials(folder: &Folder) -> Credentials {
    let store = FlowFile::new(folder.path("flow.json"), folder.data());
    store.load().unwrap().unwrap().credentials
}

fn credentials(value: Value) -> Credentials {
    serde_json::from_value(value).unwrap()
}

// SECURITY: credentials-exchange
#[test]
fn credentials_are_imported_and_exported() {
    let folder = folder();
    let before = folder.read("flow.json");
    let output = call(&folder, &["import", "flows_cred.json", "--secret-file", "secret.txt"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:#?}");
    assert_eq!(output.stderr, "imported 1 credential of 1 node into flow.json\n");
    assert_eq!(stored_credentials(&folder), credentials(json!({"n1": {"apiKey": "abc"}})));
    assert_eq!(folder.read("flow.json"), before);
    let sealed = std::fs::read_to_string(folder.data().join("credentials.json")).unwrap();
    assert!(!sealed.contains("abc") && !sealed.contains("apiKey"));

    let output = call(&folder, &["export", "back.json", "--secret-file", "secret.txt"]);
    assert_eq!(output.stderr, "exported 1 credential of 1 node to back.json, encrypted\n", "{output:#?}");
    let back = folder.read("back.json");
    assert!(back.starts_with("{\"$\":\"") && back != FILE);
    assert_eq!(
        decode_node_red(back.as_bytes(), Some(SECRET)).unwrap().credentials,
        stored_credentials(&folder)
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.path("back.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // An existing file is overwritten only with --force.
    let output = call(&folder, &["export", "back.json", "--secret-file", "secret.txt"]);
    output.assert_refused("error[DATA_UNUSABLE]: back.json exists already");
    assert_eq!(folder.read("back.json"), back);
    call(&folder, &["export", "back.json", "--secret-file", "secret.txt", "--force"]);
    assert_ne!(folder.read("back.json"), back);
}

#[test]
fn the_secret_can_come_from_the_environment() {
    let folder = folder();
    let args = ["credentials", "import", "flows_cred.json", "--flows", "flow.json", "--json"];
    let output = folder.redflow(args).env("REDFLOW_CREDENTIAL_SECRET", SECRET).run();
    let expected = json!({"nodes": 1, "credentials": 1, "unknownNodes": 0, "oddNodes": 0, "emptyValues": 0});
    assert_eq!(output.json(), expected);
    let args = ["credentials", "export", "back.json", "--flows", "flow.json", "--json"];
    let output = folder.redflow(args).env("REDFLOW_CREDENTIAL_SECRET", SECRET).run();
    assert_eq!(output.json(), json!({"nodes": 1, "credentials": 1, "encrypted": true}));
    // A named file overrides the environment.
    folder.write("other.txt", "another secret");
    let args =
        ["credentials", "import", "flows_cred.json", "--flows", "flow.json", "--secret-file", "other.txt"];
    let output = folder.redflow(args).env("REDFLOW_CREDENTIAL_SECRET", SECRET).run();
    assert_eq!(output.errors(), ["CREDENTIALS_FILE_INVALID"]);
}

// SECURITY: credentials-exchange
#[test]
fn a_refused_import_changes_nothing() {
    let folder = folder();
    folder.write("wrong.txt", "S3cret");
    folder.write("empty.txt", "\n");
    folder.write("binary.txt", [0xff, 0xfe]);
    folder.write("array.json", folder.read("flow.json"));
    let rows: [(&[&str], &str); 8] = [
        (&["import", "flows_cred.json", "--secret-file", "wrong.txt"], "error[CREDENTIALS_FILE_INVALID]"),
        (&["import", "flows_cred.json"], "no secret was given"),
        (&["import", "array.json", "--secret-file", "secret.txt"], "error[CREDENTIALS_FILE_INVALID]"),
        (&["import", "none.json", "--secret-file", "secret.txt"], "there is no such file"),
        (&["import", "flows_cred.json", "--secret-file", "none.txt"], "there is no such file"),
        (&["import", "flows_cred.json", "--secret-file", "empty.txt"], "it is empty"),
        (&["import", "flows_cred.json", "--secret-file", "binary.txt"], "it is not UTF-8 text"),
        (&["export", "back.json"], "no secret to encrypt with"),
    ];
    for (args, words) in rows {
        call(&folder, args).assert_refused(words);
        assert!(!folder.data().join("credentials.json").exists(), "{args:?}");
        assert!(!folder.path("back.json").exists(), "{args:?}");
    }
    // Without a flow there are no nodes for the credentials.
    let args =
        ["credentials", "import", "flows_cred.json", "--secret-file", "secret.txt", "--flows", "no.json"];
    let output = folder.redflow(args).run();
    output.assert_refused("error[DATA_UNUSABLE]: There is no flow in no.json yet");
    folder.write("odd.json", "{");
    let args =
        ["credentials", "import", "flows_cred.json", "--secret-file", "secret.txt", "--flows", "odd.json"];
    folder.redflow(args).run().assert_refused("the flow odd.json cannot be used");
    let args = ["credentials", "export", "x", "--plain", "--secret-file", "secret.txt"];
    folder.redflow(args).run().assert_refused("cannot be used with");
}

#[test]
fn a_plain_file_needs_no_secret() {
    let folder = folder();
    let plain = json!({"n1": {"apiKey": "hidden", "b": "__PWRD__", "c": ""}, "n 2.x": {"d": "hidden"},
                       "gone": {"e": "hidden"}, "gone too": {"e": "hidden"}});
    folder.write("plain.json", plain.to_string());
    // Credentials that the file does not name stay.
    let store = FlowFile::new(folder.path("flow.json"), folder.data());
    let mut flow = store.load().unwrap().unwrap();
    flow.credentials = credentials(json!({"n1": {"apiKey": "old", "more": "kept"}}));
    store.save(&flow).unwrap();
    let output = call(&folder, &["import", "plain.json"]);
    assert_eq!(output.code, 0);
    assert_eq!(
        output.stderr,
        "imported 2 credentials of 2 nodes into flow.json\nleft out 2 nodes: not in the flow\n\
         left out 2 values: empty, or the mask of a secret\n"
    );
    let expected = json!({"n1": {"apiKey": "hidden", "more": "kept"}, "n 2.x": {"d": "hidden"}});
    assert_eq!(stored_credentials(&folder), credentials(expected.clone()));
    call(&folder, &["export", "back.json"]).assert_refused("--plain");
    let output = call(&folder, &["export", "back.json", "--plain"]);
    assert_eq!(output.stderr, "exported 3 credentials of 2 nodes to back.json, unencrypted\n");
    let back: Value = serde_json::from_str(&folder.read("back.json")).unwrap();
    assert_eq!(back, expected);
}

// SECURITY: credentials-exchange
#[cfg(unix)]
#[test]
fn an_import_is_refused_while_a_sidecar_runs() {
    let folder = folder();
    let sidecar = crate::serve::SidecarProcess::start_in(folder);
    let output = call(&sidecar.folder, &["import", "flows_cred.json", "--secret-file", "secret.txt"]);
    assert_eq!((output.code, output.errors()), (2, vec!["DATA_LOCKED"]), "{output:#?}");
    assert_eq!(stored_credentials(&sidecar.folder), Credentials::new());
    // An export only reads, so it is allowed.
    assert_eq!(call(&sidecar.folder, &["export", "back.json", "--secret-file", "secret.txt"]).code, 0);
}

/// The sidecar sends the imported key to the provider.
#[cfg(unix)]
#[test]
fn a_sidecar_uses_imported_credentials() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let provider = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let begin = head.len();
            stream.read_line(&mut head).unwrap();
            if let Some(value) = head[begin..].to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        stream.read_exact(&mut vec![0; length]).unwrap();
        let body = json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0,
            "finish_reason": "stop", "message": {"role": "assistant",
            "content": "{\"action\":\"final\",\"message\":\"It is 42.\",\"confidence\":1}"}}]})
        .to_string();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
        head
    });
    let mut nodes = crate::kit::flow(json!([]), vec![]);
    let model =
        nodes.as_array_mut().unwrap().iter_mut().find(|node| node["type"] == "scripted-model").unwrap();
    model["type"] = json!("model.azure.openai");
    for (name, value) in [("endpoint", format!("http://{address}")), ("deployment", "d".to_owned())] {
        model[name] = json!(value);
    }
    model["apiVersion"] = json!("2024-12-01-preview");
    let plain = json!({model["id"].as_str().unwrap(): {"apiKey": "hidden-key-of-node-red"}});
    model.as_object_mut().unwrap().remove("replies");
    let folder = Folder::with_flow(&nodes);
    folder.write("plain.json", plain.to_string());
    assert_eq!(call(&folder, &["import", "plain.json"]).code, 0);
    let sidecar = crate::serve::SidecarProcess::start_in(folder);
    let output = sidecar.run_remote(&["run", "--node", "a"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "It is 42.\n"), "{output:#?}");
    assert!(provider.join().unwrap().to_lowercase().contains("api-key: hidden-key-of-node-red\r\n"));
}

/// A user who moves to Node-RED must know that these credentials are missing.
#[test]
fn credentials_of_the_redflow_ui_are_counted_and_left_out() {
    let folder = folder();
    call(&folder, &["import", "flows_cred.json", "--secret-file", "secret.txt"]);
    let storage = UiStorageFile::new(&folder.data());
    let store = |items: Value| storage.save(&serde_json::from_value(items).unwrap()).unwrap();
    let export =
        |more: &[&str]| call(&folder, &[&["export", "back.json", "--plain", "--force"], more].concat());
    let first = "exported 1 credential of 1 node to back.json, unencrypted\n";
    store(json!({"theme": "dark", "node-config:n1": {"apiVersion": "v1"}}));
    assert_eq!(export(&[]).stderr, first);
    store(json!({"theme": "dark", "node-credentials:n1": {"apiKey": "hidden"}}));
    let one = "left out 1 credential: stored by the Redflow UI; enter it again in Node-RED\n";
    assert_eq!(export(&[]).stderr, format!("{first}{one}"));
    store(
        json!({"node-credentials:n1": {"apiKey": "hidden"}, "credential:c": {"data": {"apiKey": "hidden"}}}),
    );
    let output = export(&["--json"]);
    assert_eq!(
        output.stderr,
        "left out 2 credentials: stored by the Redflow UI; enter them again in Node-RED\n"
    );
    assert_eq!(serde_json::from_str::<Value>(&output.stdout).unwrap()["credentials"], 1);
    assert!(!folder.read("back.json").contains("hidden"));
    // An unreadable UI storage does not stop the export.
    std::fs::write(folder.data().join("storage.json"), "{}").unwrap();
    let output = export(&[]);
    let unread = "left out the credentials of the Redflow UI, which cannot be read: CREDENTIALS_UNREADABLE\n";
    assert_eq!((output.code, output.stderr), (0, format!("{first}{unread}")));
}

/// Opening a pipe without a writer would block forever.
#[cfg(unix)]
#[test]
fn a_named_pipe_is_refused() {
    let folder = folder();
    let made = std::process::Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(made.success());
    call(&folder, &["import", "pipe", "--secret-file", "secret.txt"])
        .assert_refused("it is not a regular file; pass a pipe");
    call(&folder, &["import", ".", "--secret-file", "secret.txt"]).assert_refused("it is a folder");
}
