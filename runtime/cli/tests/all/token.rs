//! `redflow token`: what is printed, what is kept, and files that others could read.

use crate::kit::Folder;
use pretty_assertions::assert_eq;

const CHOSEN: &str = "chosen-by-the-operator";

#[test]
fn the_token_is_made_once_and_printed_again() {
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
fn only_the_owner_can_read_what_is_made() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.well(["token", "add", "grafana", "--scope", "read"]);
    folder.well(["token"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.data()), 0o700);
    for name in ["token", "tokens.json"] {
        assert_eq!(mode(&folder.data().join(name)), 0o600, "{name}");
    }
}

#[test]
fn another_token_takes_the_place_of_the_old_one() {
    let folder = Folder::new();
    let old = folder.well(["token"]);
    let new = folder.well(["token", "--rotate"]);
    assert_ne!(new, old);
    assert_eq!(folder.well(["token"]), new);
}

#[test]
fn a_token_of_the_environment_counts_and_that_is_said() {
    let folder = Folder::new();
    let output = folder.redflow(["token"]).env("REDFLOW_TOKEN", CHOSEN).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "chosen-by-the-operator\n"));
    assert!(output.stderr.starts_with("warning: REDFLOW_TOKEN is set and counts instead of "), "{output:#?}");
    assert!(!folder.data().exists(), "nothing is made that does not count");
    // Another one in the file changes nothing as long as the variable is set, so that is said too.
    let output = folder.redflow(["token", "--rotate", "--json"]).env("REDFLOW_TOKEN", CHOSEN).run();
    assert_eq!((output.code, &output.json()["from"]), (0, &"file".into()));
    assert!(output.stderr.contains("REDFLOW_TOKEN is set"), "{output:#?}");
    let output = folder.redflow(["token"]).env("REDFLOW_TOKEN", "too short").run();
    output.refused("error[CONFIG_FILE_INVALID]: the variable REDFLOW_TOKEN is wrong");
    assert!(!output.stderr.contains("too short"), "{output:#?}");
}

#[test]
fn further_tokens_are_named_and_shown_once() {
    let folder = Folder::new();
    assert_eq!(folder.well(["token", "list"]), "");
    let made = folder.redflow(["token", "add", "grafana", "--scope", "read"]).run();
    assert_eq!((made.code, made.stderr.as_str()), (0, "keep it: it is shown this once\n"), "{made:#?}");
    let json = folder.redflow(["token", "add", "ci", "--scope", "run,deploy", "--json"]).run().json();
    assert_eq!((&json["name"], &json["scopes"]), (&"ci".into(), &serde_json::json!(["run", "deploy"])));
    let kept = std::fs::read_to_string(folder.data().join("tokens.json")).unwrap();
    for token in [made.stdout.trim_end(), json["token"].as_str().unwrap()] {
        assert!(token.len() >= 32 && !kept.contains(token), "{kept}");
    }
    let listed = folder.redflow(["token", "list"]).run();
    assert_eq!(listed.stderr, "2 tokens beside the main one\n");
    let rows: Vec<Vec<&str>> = listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((rows[0][0], rows[0][2], rows[1][0], rows[1][2]), ("grafana", "read", "ci", "run,deploy"));
    folder
        .redflow(["token", "add", "ci", "--scope", "read"])
        .run()
        .refused("error[REQUEST_INVALID]: There is a token `ci`");
    folder.redflow(["token", "add", "a b", "--scope", "read"]).run().refused("error[REQUEST_INVALID]");
    folder.redflow(["token", "add", "x", "--scope", "all"]).run().refused("invalid value 'all'");
    folder.redflow(["token", "add", "x"]).run().refused("--scope <SCOPE>");
    assert_eq!(folder.well(["token", "remove", "grafana"]), "");
    folder.redflow(["token", "remove", "grafana"]).run().refused("error[NOT_FOUND]");
    let left = folder.well(["token", "list", "--json"]);
    assert_eq!((left.lines().count(), left.contains("\"ci\"")), (1, true), "{left}");
    folder.redflow(["token", "--rotate", "list"]).run().refused("are about the main token");
}

#[cfg(unix)]
#[test]
fn a_file_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let token = folder.well(["token"]);
    let path = folder.data().join("token");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    for args in [["token"].as_slice(), &["token", "--browser"], &["runs", "--url", "http://127.0.0.1:1"]] {
        let output = folder.redflow(args.iter().copied()).run();
        output.refused("error[SECRET_FILE_UNSAFE]");
        output.refused("chmod 600");
        assert!(!output.stderr.contains(token.trim_end()), "{output:#?}");
    }
    // A new one is as safe as any.
    let new = folder.well(["token", "--rotate"]);
    assert_eq!(folder.well(["token"]), new);
    // So is another file with a token.
    folder.write("mine", token);
    std::fs::set_permissions(folder.path("mine"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let args = ["runs", "--url", "http://127.0.0.1:1", "--token-file", "mine"];
    folder.redflow(args).run().refused("error[SECRET_FILE_UNSAFE]: mine ");
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let folder = Folder::new();
    std::fs::create_dir(folder.data()).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = folder.redflow_as_nobody(["token", "--data", "/nowhere/at/all"]).run();
    output.refused(
        "error[DATA_UNUSABLE]: The data directory /nowhere/at/all cannot be made: permission denied.",
    );
}
