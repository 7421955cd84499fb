//! Encrypted knowledge bases: what the files show, keys, and backups.

use crate::kit::{Call, Folder, Output, final_answer, flow, repository};
use pretty_assertions::assert_eq;
use serde_json::json;
use std::path::Path;

const KEY: &str = "yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Tl5uc=";
const KEY_IN_HEX: &str = "c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7";

/// A folder with documents that have words of their own.
fn documents() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docsfolder")).unwrap();
    folder.write("docsfolder/pumpfile.md", "# Headword\n\nThe zebracorn needs oil.\n");
    folder.write("docsfolder/quaggafile.txt", "Quaggas need hay.\n");
    folder
}

fn encrypted<'a>(folder: &Folder, args: impl IntoIterator<Item = &'a str>) -> Call {
    folder.redflow(args).env("REDFLOW_ARCHIVE_ENCRYPT", "true")
}

#[track_caller]
fn ok(call: Call) -> String {
    let output = call.run();
    assert_eq!(output.code, 0, "{output:#?}");
    output.stdout
}

fn add(folder: &Folder) -> Call {
    encrypted(folder, ["kb", "add", "basename", "docsfolder", "--tag", "tagword", "--embeddings", "hash"])
}

fn search(folder: &Folder) -> Call {
    encrypted(folder, ["kb", "search", "basename", "zebracorn oil", "--limit", "1", "--json"])
}

#[track_caller]
fn assert_found(output: &Output) {
    assert_eq!(output.code, 0, "{output:#?}");
    assert_eq!(output.json()["metadata"]["document"], "pumpfile.md", "{output:#?}");
}

#[track_caller]
fn assert_unreadable(call: Call, words: &str) {
    let output = call.run();
    assert_eq!((output.code, output.errors()), (2, vec!["ARCHIVE_UNREADABLE"]), "{output:#?}");
    assert!(output.stderr.contains(words), "{output:#?}");
}

/// The files of a folder, and all that is in them.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())
    };
    let mut contents: Vec<_> = files.map(read).collect();
    contents.sort();
    contents
}

/// What a command must not change. A process that only reads leaves two more files of SQLite behind, without data.
fn stored(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let is_data = |(name, bytes): &(String, Vec<u8>)| {
        !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty())
    };
    contents(folder).into_iter().filter(is_data).collect()
}

// SECURITY: archive-encrypted
#[test]
fn no_word_of_an_encrypted_knowledge_base_is_on_the_disk() {
    let folder = documents();
    folder.write("redflow.toml", "[archive]\nencrypt = true\n");
    let config = ["--config", "redflow.toml"];
    ok(folder.redflow(["kb", "add", "basename", "docsfolder", "--tag", "tagword"].into_iter().chain(config)));
    assert_found(&search(&folder).run());
    let show = ["kb", "show", "basename", "pumpfile.md"].into_iter().chain(config);
    assert!(ok(folder.redflow(show)).contains("The zebracorn needs oil."));
    let listed = ok(folder.redflow(["kb", "list"].into_iter().chain(config)));
    assert_eq!(listed, "basename  2 documents, 2 passages, hash\n");
    let files = contents(&folder.data());
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"archive.db") && names.contains(&"archive.key"), "{names:?}");
    for word in ["zebracorn", "headword", "quagga", "pumpfile", "docsfolder", "basename", "tagword"] {
        for (name, bytes) in &files {
            let has_word = bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()));
            assert!(!has_word, "{word} in {name}");
        }
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for name in names {
            let mode = std::fs::metadata(folder.data().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
    // What is removed is gone, and the rest stays.
    ok(encrypted(&folder, ["kb", "remove", "basename", "quaggafile.txt"]));
    assert_found(&search(&folder).run());
    assert_eq!(ok(encrypted(&folder, ["kb", "list"])), "basename  1 document, 1 passage, hash\n");
}

// SECURITY: archive-intact
#[test]
fn a_key_that_is_missing_or_wrong_changes_no_file() {
    let folder = documents();
    ok(add(&folder));
    let key = folder.data().join("archive.key");
    let kept = std::fs::read(&key).unwrap();
    let commands = [["kb", "list"].as_slice(), &["kb", "add", "basename", "docsfolder", "--tag", "new"]];
    let with_key =
        |args: &[&'static str]| encrypted(&folder, args.iter().copied()).env("REDFLOW_ARCHIVE_KEY", KEY);

    std::fs::remove_file(&key).unwrap();
    let before = stored(&folder.data());
    for args in commands {
        assert_unreadable(encrypted(&folder, args.iter().copied()), "its key is missing; restore ");
        assert_unreadable(with_key(args), "it is encrypted with another key; restore ");
        assert_eq!(stored(&folder.data()), before, "no key is made, and nothing is written");
    }
    std::fs::write(&key, "no key").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let set_mode = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o600);
        assert_unreadable(encrypted(&folder, ["kb", "list"]), "(its key is no key): restore it.");
        std::fs::write(&key, &kept).unwrap();
        set_mode(0o644);
        assert_unreadable(
            encrypted(&folder, ["kb", "list"]),
            "can be read or changed by others: run `chmod 600 ",
        );
        set_mode(0o600);
    }
    std::fs::write(&key, &kept).unwrap();
    assert_found(&search(&folder).run());
}

#[test]
fn a_key_can_come_from_the_environment() {
    let folder = documents();
    ok(add(&folder).env("REDFLOW_ARCHIVE_KEY", KEY));
    assert!(!folder.data().join("archive.key").exists(), "the key is not on the disk");
    assert_found(&search(&folder).env("REDFLOW_ARCHIVE_KEY", KEY_IN_HEX).run());
    assert_unreadable(search(&folder), "its key is missing; restore ");
    let wrong = search(&folder).env("REDFLOW_ARCHIVE_KEY", "s3cret").run();
    assert_eq!((wrong.code, wrong.errors()), (2, vec!["CONFIG_FILE_INVALID"]), "{wrong:#?}");
    let words =
        "the variable REDFLOW_ARCHIVE_KEY is wrong: it must be 32 bytes in base64 or in hexadecimal digits";
    assert!(wrong.stderr.contains(words) && !wrong.stderr.contains("s3cret"), "{wrong:#?}");
}

#[test]
fn an_archive_stays_as_it_began() {
    let folder = documents();
    ok(folder.redflow(["kb", "add", "basename", "docsfolder", "--embeddings", "hash"]));
    let before = stored(&folder.data());
    assert_unreadable(
        add(&folder),
        "it is not encrypted, and `encrypt` in `[archive]` is true; set it to false",
    );
    assert_unreadable(search(&folder), "it is not encrypted");
    assert_eq!(stored(&folder.data()), before);
    // The way out that the message names.
    std::fs::remove_file(folder.data().join("archive.db")).unwrap();
    ok(add(&folder));
    assert_found(&search(&folder).run());
    assert_unreadable(folder.redflow(["kb", "list"]), "it is encrypted; set `encrypt = true` in `[archive]`");
}

/// The tool of an agent uses the same archive as the commands.
#[test]
fn agents_search_an_encrypted_knowledge_base() {
    let folder = documents();
    ok(encrypted(&folder, ["kb", "add", "docs", "docsfolder", "--embeddings", "hash"]));
    let example = std::fs::read_to_string(repository().join("examples/knowledge-base.json")).unwrap();
    folder.write("flow.json", example.replace("continue a run after a crash", "zebracorn oil"));
    let ran = encrypted(&folder, ["run", "flow.json"]).run();
    assert!(ran.code == 0 && ran.stdout.contains("The zebracorn needs oil."), "{ran:#?}");
    let ran = folder.redflow(["run", "flow.json"]).run();
    assert!(ran.stdout.contains("ARCHIVE_UNREADABLE"), "{ran:#?}");
}

/// A kill between the last write and its commit.
#[cfg(feature = "faults")]
#[test]
fn a_kill_before_the_commit_leaves_an_encrypted_archive_readable() {
    use std::io::{BufRead as _, BufReader};
    let folder = documents();
    // The first write makes the collection, the second one adds a document.
    for count in ["archive.before-commit=1", "archive.before-commit=2"] {
        let mut running = add(&folder).env("REDFLOW_FAILPOINT", count).spawn();
        let mut stderr = BufReader::new(running.0.stderr.take().unwrap()).lines();
        assert!(stderr.any(|line| line.unwrap() == "FAILPOINT archive.before-commit"), "{count}");
        running.0.kill().unwrap();
        running.0.wait().unwrap();
        ok(encrypted(&folder, ["kb", "list"]));
    }
    ok(add(&folder));
    assert_found(&search(&folder).run());
}

#[test]
fn a_backup_has_the_knowledge_bases_and_no_key() {
    let folder = documents();
    ok(add(&folder));
    // No runs yet.
    let printed = ok(encrypted(&folder, ["backup", "first.db"]));
    assert!(printed.starts_with("knowledge bases copied into first.db.archive: "), "{printed}");
    assert!(!folder.path("first.db").exists());
    folder.write("flow.json", flow(final_answer("ok"), vec![]).to_string());
    ok(folder.redflow(["run", "flow.json"]));
    let report = encrypted(&folder, ["backup", "--json", "copy.db"]).run().json();
    let size = |name: &str| std::fs::metadata(folder.path(name)).unwrap().len();
    let archive = json!({"file": "copy.db.archive", "bytes": size("copy.db.archive")});
    assert_eq!(report, json!({"file": "copy.db", "runs": 1, "bytes": size("copy.db"), "archive": archive}));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(folder.path("copy.db.archive")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // A copy that cannot be made leaves neither file.
    folder.write("mine.db", "mine");
    let refused = encrypted(&folder, ["backup", "mine.db"]).run();
    refused.assert_refused("mine.db exists already: name a file that does not.\n");
    assert!(!folder.path("mine.db.archive").exists());
    folder.write("other.db.archive", "mine");
    let refused = encrypted(&folder, ["backup", "other.db"]).run();
    refused.assert_refused("other.db.archive exists already: name a file that does not.\n");
    assert!(!folder.path("other.db").exists() && folder.read("other.db.archive") == "mine");

    std::fs::create_dir(folder.path("restored")).unwrap();
    std::fs::copy(folder.path("copy.db.archive"), folder.path("restored/archive.db")).unwrap();
    let restored = || {
        let args =
            ["kb", "search", "basename", "zebracorn oil", "--limit", "1", "--json", "--data", "restored"];
        encrypted(&folder, args)
    };
    assert_unreadable(restored(), "its key is missing; restore ");
    std::fs::copy(folder.data().join("archive.key"), folder.path("restored/archive.key")).unwrap();
    assert_found(&restored().run());
}

/// A copy of an archive that is not encrypted can be searched too, and written.
#[test]
fn a_backup_of_a_plain_archive_can_be_used() {
    let folder = documents();
    folder.run_ok(["kb", "add", "basename", "docsfolder", "--embeddings", "hash"]);
    folder.run_ok(["backup", "copy.db"]);
    std::fs::create_dir(folder.path("restored")).unwrap();
    std::fs::copy(folder.path("copy.db.archive"), folder.path("restored/archive.db")).unwrap();
    let data = ["--data", "restored"];
    let search = ["kb", "search", "basename", "zebracorn", "--mode", "lexical", "--json"];
    assert_found(&folder.redflow(search.into_iter().chain(data)).run());
    folder.run_ok(["kb", "remove", "basename", "pumpfile.md"].into_iter().chain(data));
    let gone = folder.redflow(search.into_iter().chain(data)).run();
    assert_eq!((gone.code, gone.stdout.as_str()), (1, ""), "{gone:#?}");
}
