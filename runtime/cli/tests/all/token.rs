//! `redflow token`: its output, its files and their permissions.

use crate::kit::Folder;
use pretty_assertions::assert_eq;

const CHOSEN: &str = "chosen-by-the-operator";

#[test]
fn the_token_is_created_once() {
    let folder = Folder::new();
    let first = folder.redflow(["token"]).run();
    assert_eq!((first.code, first.stderr.as_str()), (0, ""), "{first:#?}");
    let token = first.stdout.trim_end();
    assert!(token.len() >= 32 && !token.contains(char::is_whitespace), "{first:#?}");
    assert_eq!(folder.redflow(["token"]).run(), first);
    assert_eq!(std::fs::read_to_string(folder.data().join("token")).unwrap(), first.stdout);
    let json = folder.redflow(["token", "--json"]).run().json();
    assert_eq!(json, serde_json::json!({"token": token, "from": "file"}));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_token_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.run_ok(["token", "add", "grafana", "--scope", "read"]);
    folder.run_ok(["token"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.data()), 0o700);
    for name in ["token", "tokens.json"] {
        assert_eq!(mode(&folder.data().join(name)), 0o600, "{name}");
    }
}

#[test]
fn rotate_replaces_the_token() {
    let folder = Folder::new();
    let old = folder.run_ok(["token"]);
    let new = folder.run_ok(["token", "--rotate"]);
    assert_ne!(new, old);
    assert_eq!(folder.run_ok(["token"]), new);
}

#[test]
fn a_token_of_the_environment_overrides_the_file_with_a_warning() {
    let folder = Folder::new();
    let output = folder.redflow(["token"]).env("REDFLOW_TOKEN", CHOSEN).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "chosen-by-the-operator\n"));
    assert!(output.stderr.starts_with("warning: REDFLOW_TOKEN is set and overrides "), "{output:#?}");
    assert!(!folder.data().exists(), "an overridden token is not created");
    // A new token in the file has no effect while the variable is set, so there is a warning too.
    let output = folder.redflow(["token", "--rotate", "--json"]).env("REDFLOW_TOKEN", CHOSEN).run();
    assert_eq!((output.code, &output.json()["from"]), (0, &"file".into()));
    assert!(output.stderr.contains("REDFLOW_TOKEN is set"), "{output:#?}");
    let output = folder.redflow(["token"]).env("REDFLOW_TOKEN", "too short").run();
    output.assert_refused("error[CONFIG_FILE_INVALID]: the variable REDFLOW_TOKEN is wrong");
    assert!(!output.stderr.contains("too short"), "{output:#?}");
}

#[test]
fn added_tokens_have_a_name_and_are_printed_once() {
    let folder = Folder::new();
    assert_eq!(folder.run_ok(["token", "list"]), "");
    let made = folder.redflow(["token", "add", "grafana", "--scope", "read"]).run();
    assert_eq!(
        (made.code, made.stderr.as_str()),
        (0, "keep this token: it is printed only once\n"),
        "{made:#?}"
    );
    let json = folder.redflow(["token", "add", "ci", "--scope", "run,deploy", "--json"]).run().json();
    assert_eq!((&json["name"], &json["scopes"]), (&"ci".into(), &serde_json::json!(["run", "deploy"])));
    let stored = std::fs::read_to_string(folder.data().join("tokens.json")).unwrap();
    for token in [made.stdout.trim_end(), json["token"].as_str().unwrap()] {
        assert!(token.len() >= 32 && !stored.contains(token), "{stored}");
    }
    let listed = folder.redflow(["token", "list"]).run();
    assert_eq!(listed.stderr, "2 tokens in addition to the main token\n");
    let rows: Vec<Vec<&str>> = listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[0][0], rows[0][2], rows[1][0], rows[1][2]), ("grafana", "read", "ci", "run,deploy"));
    folder
        .redflow(["token", "add", "ci", "--scope", "read"])
        .run()
        .assert_refused("error[REQUEST_INVALID]: There is a token `ci`");
    folder.redflow(["token", "add", "a b", "--scope", "read"]).run().assert_refused("error[REQUEST_INVALID]");
    folder.redflow(["token", "add", "x", "--scope", "all"]).run().assert_refused("invalid value 'all'");
    folder.redflow(["token", "add", "x"]).run().assert_refused("--scope <SCOPE>");
    assert_eq!(folder.run_ok(["token", "remove", "grafana"]), "");
    folder.redflow(["token", "remove", "grafana"]).run().assert_refused("error[NOT_FOUND]");
    let left = folder.run_ok(["token", "list", "--json"]);
    assert_eq!((left.lines().count(), left.contains("\"ci\"")), (1, true), "{left}");
    folder.redflow(["token", "--rotate", "list"]).run().assert_refused("are for the main token");
}

// SECURITY: secret-file
#[cfg(unix)]
#[test]
fn a_file_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let token = folder.run_ok(["token"]);
    let path = folder.data().join("token");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    for args in [["token"].as_slice(), &["token", "--browser"], &["runs", "--url", "http://127.0.0.1:1"]] {
        let output = folder.redflow(args.iter().copied()).run();
        output.assert_refused("error[SECRET_FILE_UNSAFE]");
        output.assert_refused("chmod 600");
        assert!(!output.stderr.contains(token.trim_end()), "{output:#?}");
    }
    // Rotation creates a safe file.
    let new = folder.run_ok(["token", "--rotate"]);
    assert_eq!(folder.run_ok(["token"]), new);
    // Other files with a token are checked too.
    folder.write("mine", token);
    std::fs::set_permissions(folder.path("mine"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let args = ["runs", "--url", "http://127.0.0.1:1", "--token-file", "mine"];
    folder.redflow(args).run().assert_refused("error[SECRET_FILE_UNSAFE]: mine ");
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_created_is_reported() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = folder.redflow_without_root(["token", "--data", "/nowhere/at/all"]).run();
    output.assert_refused(
        "error[DATA_UNUSABLE]: The data directory /nowhere/at/all cannot be created: permission denied.",
    );
}
