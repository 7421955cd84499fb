//! The data directory: its place, its permissions, and its errors.

use crate::kit::{Folder, final_answer, flow, redflow};
use pretty_assertions::assert_eq;

fn folder() -> Folder {
    Folder::with_flow(&flow(final_answer("hi"), vec![]))
}

/// The command fails with this code.
#[track_caller]
fn assert_error(folder: &Folder, args: &[&str], code: &str) {
    let output = folder.redflow(args.iter().copied()).run();
    output.assert_refused(&format!("   = help: redflow explain {code}\n"));
    assert_eq!(output.errors(), [code], "{output:#?}");
}

#[test]
fn the_data_option_overrides_the_variable() {
    let folder = folder();
    folder.run_ok(["run", "flow.json", "--data", "mine"]);
    assert!(folder.path("mine/redflow.db").exists() && !folder.data().exists());
    assert_eq!(folder.runs(), [] as [serde_json::Value; 0]);
    assert_eq!(folder.run_ok(["runs", "--json", "--data", "mine"]).lines().count(), 1);
    folder.run_ok(["run", "flow.json"]);
    assert!(folder.data().join("redflow.db").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn the_platform_has_a_default_directory() {
    let folder = folder();
    let path = |name: &str| folder.path(name).to_str().unwrap().to_owned();
    let run = || folder.redflow(["run", "flow.json", "--quiet"]).env_remove("REDFLOW_DATA");
    let output = run().env("HOME", &path("home")).env_remove("XDG_DATA_HOME").run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(folder.path("home/.local/share/redflow/redflow.db").exists());
    assert_eq!(run().env("HOME", &path("home2")).env("XDG_DATA_HOME", &path("xdg")).run().code, 0);
    assert!(folder.path("xdg/redflow/redflow.db").exists() && !folder.path("home2").exists());
    // Empty and relative values count as unset, also in REDFLOW_DATA.
    let output = run().env("HOME", &path("home3")).env("XDG_DATA_HOME", "xdg2").env("REDFLOW_DATA", "").run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(folder.path("home3/.local/share/redflow").exists() && !folder.path("xdg2").exists());

    let output = run().env_remove("HOME").env("XDG_DATA_HOME", "").run();
    output.assert_refused(
        "There is no place for a data directory, because neither XDG_DATA_HOME nor HOME is set to",
    );
}

#[test]
fn ephemeral_runs_leave_nothing() {
    let folder = folder();
    let output = folder.redflow(["run", "flow.json", "--ephemeral", "--quiet", "--journal", "j"]).run();
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "hi\n", ""));
    assert!(!folder.data().exists());
    assert_eq!(folder.run_ok(["replay", "j"]).split(':').next(), Some("equal"));
    // It also works without any place for a data directory.
    let output = folder.redflow(["run", "flow.json", "--ephemeral"]);
    let output = output.env_remove("REDFLOW_DATA").env_remove("HOME").env_remove("XDG_DATA_HOME").run();
    assert_eq!(output.code, 0, "{output:#?}");
}

#[test]
fn a_refused_command_creates_no_directory() {
    let folder = folder();
    for args in [
        ["run", "gone.json"].as_slice(),
        &["run", "flow.json", "--node", "gone"],
        &["run", "flow.json", "--input", "no json"],
        &["run", "flow.json", "--journal", "gone/j"],
        &["run", "--resume", "0197"],
        &["runs", "show", "0197"],
        &["runs", "export", "0197"],
        &["runs", "cancel", "0197"],
        &["backup", "copy"],
    ] {
        assert_eq!(folder.redflow(args.iter().copied()).run().code, 2, "{args:?}");
    }
    for args in [
        ["runs"].as_slice(),
        &["run", "--resume", "all"],
        &["runs", "prune", "--keep", "1"],
        &["runs", "recount"],
        &["replay", "--all"],
    ] {
        assert_eq!(folder.redflow(args.iter().copied()).run().code, 0, "{args:?}");
    }
    assert!(!folder.data().exists());
}

// SECURITY: data-private
#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_data_directory() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    folder.run_ok(["run", "flow.json"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.data()), 0o700);
    for entry in std::fs::read_dir(folder.data()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
    folder.run_ok(["backup", "copy"]);
    assert_eq!(mode(&folder.path("copy")), 0o600);
}

// SECURITY: data-private
#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_journal_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    folder.write("there", "");
    std::fs::set_permissions(folder.path("there"), std::fs::Permissions::from_mode(0o644)).unwrap();
    for name in ["new", "there"] {
        folder.run_ok(["run", "flow.json", "--journal", name]);
        assert!(!folder.read(name).is_empty());
        assert_eq!(
            std::fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
    }
}

/// Commands that read a data directory, and commands that drive its runs.
const ALL: [&[&str]; 11] = [
    &["run", "flow.json"],
    &["run", "--resume", "all"],
    &["runs"],
    &["runs", "show", "0197"],
    &["runs", "export", "0197"],
    &["runs", "cancel", "0197"],
    &["runs", "prune", "--keep", "1"],
    &["runs", "recount"],
    &["replay", "--all"],
    &["replay", "0197"],
    &["backup", "copy"],
];

#[test]
fn a_path_that_is_no_directory_is_refused() {
    let folder = folder();
    std::fs::write(folder.data(), "mine").unwrap();
    for args in ALL {
        assert_error(&folder, args, "DATA_UNUSABLE");
    }
    assert_eq!(std::fs::read_to_string(folder.data()).unwrap(), "mine");
}

#[test]
fn a_foreign_database_is_not_changed() {
    let folder = folder();
    std::fs::create_dir(folder.data()).unwrap();
    let file = folder.data().join("redflow.db");
    for text in ["not a database, but quite long enough to look at it twice", "SQLite format 3\0"] {
        std::fs::write(&file, text.repeat(20)).unwrap();
        for args in ALL {
            assert_error(&folder, args, "DATA_CORRUPT");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text.repeat(20));
    }
    // With another directory, or with none, the flow runs.
    let output = folder.redflow(["run", "flow.json"]).run();
    assert!(output.stderr.contains("use another --data DIR, or --ephemeral"), "{output:#?}");
    folder.run_ok(["run", "flow.json", "--ephemeral"]);
    folder.run_ok(["run", "flow.json", "--data", "other"]);
}

#[test]
fn a_database_of_a_later_version_is_refused() {
    let folder = folder();
    folder.run_ok(["run", "flow.json"]);
    let file = folder.data().join("redflow.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // This is the place of `user_version` in a SQLite file.
    bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
    std::fs::write(&file, &bytes).unwrap();
    for args in ALL {
        assert_error(&folder, args, "DATA_NEWER");
    }
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn the_data_option_can_be_anywhere_after_runs() {
    let folder = folder();
    folder.run_ok(["run", "flow.json", "--data", "mine"]);
    let list = folder.run_ok(["runs", "--data", "mine"]);
    let id = list.split(' ').next().unwrap();
    assert_eq!(id.len(), 36, "{list}");
    for args in [
        ["runs", "--data", "mine", "list"].as_slice(),
        &["runs", "list", "--data", "mine"],
        &["runs", "--data", "elsewhere", "list", "--data", "mine"],
    ] {
        assert_eq!(folder.run_ok(args.iter().copied()), list, "{args:?}");
    }
    let text = folder.run_ok(["runs", "show", id, "--data", "mine"]);
    assert_eq!(folder.run_ok(["runs", "--data", "mine", "show", id]), text);
    assert_eq!(folder.run_ok(["runs", "show", "--data", "mine", id]), text);
    assert!(folder.run_ok(["runs", "--data", "mine", "prune", "--keep", "0"]).starts_with("1 run removed"));
    assert!(!folder.data().exists() && !folder.path("elsewhere").exists());
}

#[cfg(unix)]
#[test]
fn a_read_only_directory_can_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    folder.run_ok(["run", "flow.json"]);
    let set = |path: std::path::PathBuf, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir(folder.path("closed")).unwrap();
    set(folder.data().join("redflow.db"), 0o644);
    for closed in [folder.data(), folder.path("closed")] {
        set(closed, 0o555);
    }
    let call = |args: &[&str]| folder.redflow_without_root(args.iter().copied()).run();
    let (output, listed) = (call(&["run", "flow.json"]), call(&["runs", "--json"]));
    let copied = call(&["backup", "closed/copy"]);
    for open in [folder.data(), folder.path("closed")] {
        set(open, 0o700);
    }
    assert_eq!((output.code, output.errors()), (2, vec!["DATA_READ_ONLY"]), "{output:#?}");
    assert_eq!((listed.code, listed.stdout.lines().count()), (0, 1), "{listed:#?}");
    // The error is about the copy, not about the data directory.
    assert_eq!(copied.errors(), ["DATA_READ_ONLY"], "{copied:#?}");
    copied.assert_refused("closed/copy cannot be written: allow it, or name another file.\n");
}

#[test]
fn wrong_combinations_of_options_are_refused() {
    for (args, words) in [
        (["run"].as_slice(), "<FLOW>"),
        (&["run", "--resume", "all", "--node", "a"], "cannot be used with '--node <ID>'"),
        (&["run", "--resume", "all", "--input", "1"], "cannot be used with '--input <JSON>'"),
        (&["run", "--resume", "all", "--ephemeral"], "cannot be used with '--ephemeral'"),
        (&["run", "f", "--data", "d", "--ephemeral"], "cannot be used with"),
        (&["replay"], "<JOURNAL|RUN>"),
        (&["replay", "j", "--all"], "cannot be used with"),
        (&["runs", "--limit", "0"], "invalid value '0' for '--limit <N>'"),
        (&["runs", "--limit", "x"], "invalid value 'x' for '--limit <N>'"),
        (&["runs", "--status", "done"], "invalid value 'done' for '--status <STATUS>'"),
        (&["runs", "--status", "failed", "show", "0197"], "'show' cannot be used with '--status <STATUS>'"),
        (&["runs", "--agent", "a", "show", "0197"], "'show' cannot be used with '--agent <NODE>'"),
        (&["runs", "--since", "1h", "show", "0197"], "'show' cannot be used with '--since <TIME>'"),
        (&["runs", "--until", "1h", "show", "0197"], "'show' cannot be used with '--until <TIME>'"),
        (&["runs", "--code", "TIMEOUT", "show", "0197"], "'show' cannot be used with '--code <CODE>'"),
        (&["runs", "--prefix", "0", "show", "0197"], "'show' cannot be used with '--prefix <ID>'"),
        (&["runs", "--roots", "recount"], "'recount' cannot be used with '--roots'"),
        (&["runs", "--code", "E_NONE"], "no run fails with this code; see `redflow explain`"),
        (&["runs", "--since", "1"], "give a number and a unit: 90s, 15m, 12h, 30d or 8w"),
        (&["runs", "--prefix", ""], "a value is required for '--prefix <ID>'"),
        (&["runs", "--limit", "3", "list"], "'list' cannot be used with '--limit <N>'"),
        (&["runs", "--json", "cancel", "0197"], "'cancel' cannot be used with '--json'"),
        (&["runs", "--json", "cancel", "0197"], "\nUsage: redflow runs [OPTIONS] [COMMAND]\n"),
        (&["runs", "show"], "<RUN>"),
        (&["runs", "resolve", "0197"], "<--done|--not-done>"),
        (&["runs", "resolve", "0197", "--done", "--not-done"], "cannot be used with"),
        (&["runs", "resolve", "0197", "--not-done", "--result", "1"], "cannot be used with"),
        (&["runs", "resolve", "0197", "--done", "--error", "x"], "cannot be used with"),
        (&["runs", "prune"], "<--older-than <TIME>|--keep <N>|--damaged>"),
        (&["runs", "prune", "--undelivered"], "<--older-than <TIME>|--keep <N>|--damaged>"),
        (&["runs", "prune", "--older-than", "30"], "give a number and a unit: 90s, 15m, 12h, 30d or 8w"),
        (&["runs", "prune", "--older-than", "99999999999999999w"], "the time is too long"),
        (&["runs", "prune", "--keep", "-1"], "unexpected argument '-1'"),
        (&["backup"], "<FILE>"),
        (&["backup", "f", "--data", ""], "a value is required for '--data <DIR>'"),
    ] {
        redflow(args.iter().copied()).run().assert_refused(words);
    }
}
