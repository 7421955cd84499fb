//! `redflow kb`: documents of files and folders, without an embedding model.

use crate::kit::{Folder, Output, port3, repository};
use pretty_assertions::assert_eq;
use redflow_contract::digest::Digest;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) const LEXICAL: &str = "warning: EMBEDDINGS_LEXICAL: without an embedding model the search finds words, not meaning; \
                       set OPENAI_API_KEY, or name a model with --embeddings\n";

/// A folder with `manuals`: a document of each kind, and three things that are no documents.
pub(crate) fn manuals() -> Folder {
    let folder = Folder::new();
    for name in ["manuals", "manuals/shop", "manuals/.git"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    folder.write(
        "manuals/pump.md",
        "# Pump\n\nThe pump needs oil.\n\n## Reset\n\nPress the red button for five seconds.\n",
    );
    folder.write("manuals/shop/refund.txt", "Refunds are paid within 30 days.\n");
    folder.write("manuals/shop/prices.csv", "part,price\nvalve,12\nseal,3\n");
    folder.write("manuals/contact.json", r#"{"contact": {"phone": "555-0100", "open": "Monday to Friday"}}"#);
    folder.write(
        "manuals/warranty.html",
        "<title>Warranty</title><h1>Warranty</h1><p>It lasts two years.</p><script>pwned()</script>",
    );
    folder.write("manuals/.draft.md", "hiddenword");
    folder.write("manuals/.git/notes.md", "hiddenword");
    folder.write("manuals/photo.png", "picture");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/passwd", folder.path("manuals/link.txt")).unwrap();
    folder
}

fn kb<'a>(folder: &Folder, args: impl IntoIterator<Item = &'a str>) -> Output {
    folder.redflow(["kb"].into_iter().chain(args)).run()
}

/// The values of the lines on stdout.
#[track_caller]
pub(crate) fn lines(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn names(output: &Output, name: &str) -> Vec<String> {
    lines(output).iter().map(|line| line[name].as_str().unwrap().to_owned()).collect()
}

fn with_manuals(args: &[&str]) -> Folder {
    let folder = manuals();
    let output = kb(&folder, ["add", "m", "manuals"].into_iter().chain(args.iter().copied()));
    assert_eq!(output.code, 0, "{output:#?}");
    folder
}

/// All bytes of the archive's files, as text.
fn archive_text(folder: &Folder) -> String {
    let files = std::fs::read_dir(folder.data()).unwrap().map(|entry| entry.unwrap().path());
    let archive = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("archive.db"));
    archive.map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()).collect()
}

#[cfg(unix)]
#[test]
fn a_folder_becomes_a_knowledge_base() {
    let folder = manuals();
    let added = kb(&folder, ["add", "m", "manuals"]);
    let stdout = "contact.json: 1 passage\npump.md: 2 passages\nshop/prices.csv: 1 passage\n\
                  shop/refund.txt: 1 passage\nwarranty.html: 1 passage\n";
    let stderr = format!(
        "warning: 1 link not followed\n1 file of other kinds left out\n{LEXICAL}m: 5 documents added, 6 passages\n"
    );
    assert_eq!(added, Output { code: 0, stdout: stdout.to_owned(), stderr });
    let archive = folder.data().join("archive.db");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(archive).unwrap().permissions().mode() & 0o777, 0o600);
    let text = archive_text(&folder);
    assert!(text.contains("Press the red button"));
    for absent in ["hiddenword", "picture", "root:", "pwned"] {
        assert!(!text.contains(absent), "{absent}");
    }

    assert_eq!(folder.run_ok(["kb", "list"]), "m  5 documents, 6 passages, hash\n");
    let shown = folder.run_ok(["kb", "show", "m", "pump.md"]);
    assert_eq!(
        shown,
        "1. pump.md > Pump\n   | # Pump\n   | \n   | The pump needs oil.\n\n\
         2. pump.md > Pump > Reset\n   | ## Reset\n   | \n   | Press the red button for five seconds.\n\n"
    );
    let documents = folder.run_ok(["kb", "list", "m"]);
    assert!(documents.contains("\nwarranty.html\n  Warranty ("), "{documents}");

    let all = kb(&folder, ["list", "--json"]);
    assert_eq!(all.json()["settings"], json!({"embeddings": "hash"}));
    let refund = &lines(&kb(&folder, ["list", "m", "--json"]))[3];
    let origin = Path::new(refund["origin"].as_str().unwrap());
    assert!(origin.is_absolute() && origin.ends_with("manuals/shop/refund.txt"), "{refund}");
    assert_eq!((&refund["bytes"], &refund["chunks"]), (&json!(33), &json!(1)));
    let passages = lines(&kb(&folder, ["show", "m", "pump.md", "--json"]));
    assert_eq!((passages.len(), &passages[1]["metadata"]["headings"]), (2, &json!(["Pump", "Reset"])));
    assert_eq!(passages[1]["content"], "## Reset\n\nPress the red button for five seconds.");
}

#[test]
fn only_what_has_changed_is_added_again() {
    let folder = with_manuals(&[]);
    let added_at = |name: &str| {
        let all = lines(&kb(&folder, ["list", "m", "--json"]));
        all.iter().find(|document| document["name"] == name).unwrap()["addedAt"].clone()
    };
    let before = (added_at("pump.md"), added_at("warranty.html"));
    let again = kb(&folder, ["add", "m", "manuals", "--json"]);
    assert_eq!((again.code, names(&again, "status")), (0, vec!["unchanged".to_owned(); 5]), "{again:#?}");

    folder.write("manuals/pump.md", "# Pump\n\nThe pump needs water.\n");
    let changed = kb(&folder, ["add", "m", "manuals"]);
    assert_eq!((changed.code, changed.stdout.as_str()), (0, "pump.md: 1 passage\n"));
    assert!(changed.stderr.ends_with("m: 1 document added, 1 passage, 4 unchanged\n"), "{changed:#?}");
    assert!(!changed.stderr.contains("EMBEDDINGS_LEXICAL"), "it is said once, for a new one");
    let after = (added_at("pump.md"), added_at("warranty.html"));
    assert!(after.0 != before.0 && after.1 == before.1);
    // Both passages of the earlier version are gone.
    let earlier = kb(&folder, ["search", "m", "oil button", "--mode", "lexical"]);
    assert_eq!((earlier.code, earlier.stdout.as_str()), (1, ""), "{earlier:#?}");
    assert_eq!(
        folder.run_ok(["kb", "search", "m", "water", "--mode", "lexical"]).matches("\n   | ").count(),
        3
    );

    // Other tags are another content.
    let tagged = kb(&folder, ["add", "m", "manuals", "--tag", "new"]);
    assert!(tagged.stderr.ends_with("m: 5 documents added, 5 passages\n"), "{tagged:#?}");
    assert!(folder.run_ok(["kb", "list", "m"]).contains(", tags new)"));
    // A file that is gone stays until it is removed.
    std::fs::remove_file(folder.path("manuals/pump.md")).unwrap();
    assert_eq!(kb(&folder, ["add", "m", "manuals", "--tag", "new"]).code, 0);
    assert!(folder.run_ok(["kb", "list", "m"]).contains("pump.md\n"));
}

#[test]
fn what_is_removed_is_gone_from_the_file() {
    let folder = with_manuals(&[]);
    assert!(archive_text(&folder).contains("Refunds are paid"));
    let removed = kb(&folder, ["remove", "m", "shop/refund.txt"]);
    assert_eq!(removed, Output { code: 0, stdout: String::new(), stderr: String::new() });
    assert!(!archive_text(&folder).contains("Refunds are paid"));
    assert!(archive_text(&folder).contains("Press the red button"));
    assert_eq!(folder.run_ok(["kb", "list"]), "m  4 documents, 5 passages, hash\n");
    kb(&folder, ["remove", "m", "shop/refund.txt"]).assert_refused("error[DOCUMENT_UNKNOWN]: ");

    assert_eq!(kb(&folder, ["remove", "m"]).code, 0);
    assert!(!archive_text(&folder).contains("Press the red button"));
    kb(&folder, ["remove", "m"]).assert_refused("error[COLLECTION_UNKNOWN]: ");
    let none = kb(&folder, ["list"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.starts_with("no knowledge bases in "), "{none:#?}");
}

#[test]
fn a_search_says_why() {
    let folder = with_manuals(&["--tag", "manual"]);
    let text = folder.run_ok(["kb", "search", "m", "reset the pump", "--limit", "1"]);
    let mut shown = text.lines();
    let (first, why) = (shown.next().unwrap(), shown.next().unwrap());
    assert!(first.starts_with("1. 0.") && first.ends_with("  pump.md > Pump"), "{text}");
    assert!(
        why.starts_with("   rank 1 by vector, cosine 0.") && why.ends_with("; rank 1 by words"),
        "{text}"
    );
    assert_eq!(shown.collect::<Vec<_>>(), ["   | # Pump", "   | ", "   | The pump needs oil.", ""]);

    let hits = lines(&kb(&folder, ["search", "m", "valve", "--json"]));
    assert_eq!(hits.len(), 5);
    let best = &hits[0];
    assert_eq!(best["content"], "part: valve\nprice: 12\n\npart: seal\nprice: 3");
    assert_eq!(
        [&best["metadata"]["document"], &best["metadata"]["row"], &best["metadata"]["chunk"]],
        [&json!("shop/prices.csv"), &json!(1), &json!(1)]
    );
    assert_eq!([&best["reason"]["vectorRank"], &best["reason"]["textRank"]], [&json!(1), &json!(1)]);
    let (score, cosine) = (best["score"].as_f64().unwrap(), best["reason"]["cosine"].as_f64().unwrap());
    assert!((score - f64::midpoint(1.0, cosine)).abs() < 1e-6, "{best}");
    assert!(hits.iter().all(|hit| hit["reason"]["cosine"].is_f64()), "{hits:#?}");
    // Only one passage has the word.
    assert_eq!(hits.iter().filter(|hit| hit["reason"].get("textRank").is_some()).count(), 1);

    // By words alone, there is no cosine and no other passage.
    let words = lines(&kb(&folder, ["search", "m", "VALVE", "--mode", "lexical", "--json"]));
    assert_eq!((words.len(), words[0]["reason"].get("cosine")), (1, None));
    // By meaning alone, there is no rank by words.
    let vectors =
        lines(&kb(&folder, ["search", "m", "valve", "--mode", "semantic", "--json", "--limit", "2"]));
    assert_eq!((vectors.len(), vectors[1]["reason"].get("textRank")), (2, None));

    let contact = folder.run_ok(["kb", "search", "m", "phone", "--limit", "1"]);
    assert!(contact.lines().next().unwrap().ends_with("  contact.json at the root"), "{contact}");
}

#[test]
fn a_search_can_be_narrowed() {
    let folder = with_manuals(&["--tag", "manual"]);
    folder.write("notes.txt", "Somebody has lost a valve.");
    assert_eq!(kb(&folder, ["add", "m", "notes.txt", "--tag", "note", "--tag", "lost"]).code, 0);
    let search = |args: &[&str]| {
        let args = ["search", "m", "valve", "--json"].into_iter().chain(args.iter().copied());
        lines(&kb(&folder, args))
    };
    assert_eq!(search(&["--limit", "200"]).len(), 7);
    let notes = search(&["--tag", "note"]);
    assert_eq!((notes.len(), &notes[0]["metadata"]["document"]), (1, &json!("notes.txt")));
    // One of the tags is enough.
    assert_eq!(search(&["--tag", "note", "--tag", "manual", "--limit", "200"]).len(), 7);
    let all = search(&[]);
    let best = all[0]["score"].as_f64().unwrap();
    let close = search(&["--min-score", &format!("{:.3}", best - 0.001)]);
    assert_eq!(close, [all[0].clone()].map(|hit| with_age(hit, &close[0])));

    let nothing = kb(&folder, ["search", "m", "valve", "--tag", "unused"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""));
    assert_eq!(nothing.stderr, "nothing was found; a lower --min-score or --mode hybrid finds more\n");
}

/// The hit with the age of another one: it grows.
fn with_age(mut hit: Value, other: &Value) -> Value {
    hit["reason"]["ageMs"] = other["reason"]["ageMs"].clone();
    hit
}

#[test]
fn a_dry_run_stores_nothing() {
    let folder = manuals();
    let output = kb(&folder, ["add", "m", "manuals", "--dry-run"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("pump.md: 2 passages to embed, about "), "{output:#?}");
    assert!(output.stderr.contains("\nm: 5 documents to add, 6 passages to embed, about "), "{output:#?}");
    assert!(!archive_text_if_any(&folder).contains("red button"));
    assert!(kb(&folder, ["list"]).stderr.starts_with("no knowledge bases in "));

    assert_eq!(kb(&folder, ["add", "m", "manuals"]).code, 0);
    folder.write("manuals/pump.md", "The pump is blue.");
    let estimates = lines(&kb(&folder, ["add", "m", "manuals", "--dry-run", "--json"]));
    let changed: Vec<&Value> = estimates.iter().filter(|one| one["status"] != "unchanged").collect();
    assert_eq!(
        changed,
        [&json!({"document": "pump.md", "status": "would be added", "passages": 1,
        "estimatedTokens": 8})]
    );
    assert_eq!(kb(&folder, ["search", "m", "blue", "--mode", "lexical"]).code, 1);
}

fn archive_text_if_any(folder: &Folder) -> String {
    if folder.data().exists() { archive_text(folder) } else { String::new() }
}

#[test]
fn a_wrong_document_keeps_no_other_out() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docs")).unwrap();
    folder.write("docs/good.md", "A good document.");
    folder.write("docs/binary.txt", b"text\0\x01\x02");
    folder.write("docs/latin.md", b"caf\xe9 \xff\xfe\xfd");
    folder.write("docs/broken.json", "{\"a\": 1,\n\"b\":");
    folder.write("docs/deep.json", "[".repeat(100_000));
    folder.write("docs/lines.jsonl", "{\"a\": 1}\nnonsense\n");
    folder.write("docs/empty.md", "");
    folder.write("docs/damaged.pdf", "%PDF-1.7\nnothing");
    let large = std::fs::File::create(folder.path("docs/large.log")).unwrap();
    large.set_len(2 << 30).unwrap();
    let output = kb(&folder, ["add", "d", "docs", "--json"]);
    assert_eq!(output.code, 1, "{output:#?}");
    let all = lines(&output);
    let result = |name: &str| all.iter().find(|one| one["document"] == name).unwrap();
    assert_eq!(result("good.md")["status"], "added");
    for (name, code, words) in [
        ("binary.txt", "DOCUMENT_UNREADABLE", "has a NUL in line 1"),
        ("latin.md", "DOCUMENT_UNREADABLE", "is not UTF-8 in line 1"),
        ("broken.json", "DOCUMENT_UNREADABLE", "is not JSON in line 2"),
        ("deep.json", "DOCUMENT_UNREADABLE", ""),
        ("lines.jsonl", "DOCUMENT_UNREADABLE", "line 2"),
        ("empty.md", "DOCUMENT_UNREADABLE", "has no text"),
        ("damaged.pdf", "DOCUMENT_UNREADABLE", "it is not a PDF document, or it is damaged"),
        ("large.log", "DOCUMENT_TOO_LARGE", "has 2.0 GiB, and a document may have 32.0 MiB"),
    ] {
        let one = result(name);
        assert_eq!((&one["status"], &one["code"]), (&json!("failed"), &json!(code)), "{one}");
        let message = one["message"].as_str().unwrap();
        assert!(message.contains(name) && message.contains(words), "{message}");
    }
    assert_eq!(folder.run_ok(["kb", "list", "d", "--json"]).matches("\"name\":\"good.md\"").count(), 1);

    // As text, each problem has its code, and the sum counts them.
    let output = kb(&folder, ["add", "d", "docs/binary.txt", "docs/large.log", "docs/good.md"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert_eq!(output.errors(), ["DOCUMENT_UNREADABLE", "DOCUMENT_TOO_LARGE"]);
    assert!(output.stderr.ends_with("\nd: 0 documents added, 1 unchanged, 2 failed\n"), "{output:#?}");
    // A document that became wrong keeps its earlier version.
    folder.write("docs/good.md", b"\0");
    assert_eq!(kb(&folder, ["add", "d", "docs/good.md"]).code, 1);
    assert_eq!(kb(&folder, ["search", "d", "good", "--mode", "lexical"]).code, 0);
}

#[test]
fn a_folder_that_cannot_be_read_keeps_no_other_out() {
    let folder = Folder::new();
    let deep = (0..70).fold(folder.path("docs"), |path, _| path.join("d"));
    std::fs::create_dir_all(deep).unwrap();
    folder.write("docs/good.md", "good");
    let output = kb(&folder, ["add", "d", "docs"]);
    assert_eq!((output.code, output.errors()), (1, vec!["DOCUMENT_UNREADABLE"]), "{output:#?}");
    assert!(output.stderr.contains("its folders are nested too deeply"), "{output:#?}");
    assert!(output.stderr.ends_with("d: 1 document added, 1 passage, 1 failed\n"), "{output:#?}");
    let failed = &lines(&kb(&folder, ["add", "d", "docs", "--json"]))[0];
    assert_eq!((&failed["status"], &failed["code"]), (&json!("failed"), &json!("DOCUMENT_UNREADABLE")));
    assert!(failed["document"].as_str().unwrap().starts_with("d/d/d/"), "{failed}");
}

#[test]
fn secrets_of_documents_are_not_stored() {
    let folder = Folder::new();
    let key = "sk-ant-api03-AbC_dEf-0123456789";
    folder.write("key.md", format!("# Setup\n\nSet KEY={key} and postgres://app:hunter22@db/app.\n"));
    let page = format!("<title>{key}</title><p>Text_of {key}, ghp_0123456789abcdefghijABCDEFGHIJ012345.</p>");
    folder.write("page.html", page);
    folder.write("plain.md", "Nothing to hide.");
    let added = kb(&folder, ["add", "m", "key.md", "page.html", "plain.md"]);
    let stdout =
        "key.md: 1 passage, 2 secrets masked\npage.html: 1 passage, 3 secrets masked\nplain.md: 1 passage\n";
    assert_eq!((added.code, added.stdout.as_str()), (0, stdout), "{added:#?}");
    let stored = archive_text(&folder);
    assert!(!stored.contains("sk-ant") && !stored.contains("hunter22") && !stored.contains("ghp"));
    assert!(folder.run_ok(["kb", "show", "m", "page.html"]).contains("Text_of [redacted], [redacted]."));
    let shown = folder.run_ok(["kb", "show", "m", "key.md"]);
    assert!(shown.contains("Set KEY=[redacted] and postgres://app:[redacted]@db/app."), "{shown}");
    let json = lines(&kb(&folder, ["add", "other", "key.md", "plain.md", "--json"]));
    assert_eq!((&json[0]["masked"], json[1].get("masked")), (&json!(2), None));
}

/// A table without rows is its header. Rows may be longer than it.
#[test]
fn a_table_may_be_short_or_uneven() {
    let folder = Folder::new();
    folder.write("one.csv", "name;city\n");
    folder.write("uneven.csv", "a,b\n1,2,3\n4\n");
    folder.run_ok(["kb", "add", "t", "one.csv", "uneven.csv"]);
    assert_eq!(folder.run_ok(["kb", "show", "t", "one.csv"]), "1. one.csv\n   | name, city\n\n");
    let uneven = folder.run_ok(["kb", "show", "t", "uneven.csv"]);
    assert!(uneven.contains("   | a: 1\n   | b: 2\n   | column 3: 3\n"), "{uneven}");
}

#[test]
fn wrong_usage_is_refused() {
    let folder = with_manuals(&[]);
    std::fs::create_dir(folder.path("empty")).unwrap();
    std::fs::create_dir(folder.path("other")).unwrap();
    folder.write("other/pump.md", "Another pump.");
    for (args, words) in [
        (&["add", "m", "empty"][..], "there is no document of a known kind: md, txt, html, pdf, csv"),
        (
            &["add", "m", "manuals/photo.png"],
            "manuals/photo.png cannot be read: it has no ending of a known kind",
        ),
        (&["add", "m", "missing.md"], "missing.md cannot be read: there is no such file"),
        (&["add", "m", "manuals", "other"], "two of the documents have the name `pump.md`"),
        (&["add", "m"], "<PATH|URL>..."),
        (&["add", "m", "manuals", "--embeddings", "magic"], "invalid value 'magic'"),
        (&["search", "m", "pump", "--min-score", "1.5"], "--min-score must be a number from 0 to 1"),
        (&["search", "m", "pump", "--min-score", "NaN"], "--min-score must be a number from 0 to 1"),
        (&["search", "m", "pump", "--limit", "0"], "0 is not in 1..=200"),
        (&["search", "nobody", "pump"], "error[COLLECTION_UNKNOWN]: There is no knowledge base `nobody`"),
        (&["list", "nobody"], "error[COLLECTION_UNKNOWN]: "),
        (&["reindex", "nobody"], "error[COLLECTION_UNKNOWN]: "),
        (&["show", "m", "nothing.md"], "error[DOCUMENT_UNKNOWN]: There is no document `nothing.md` in `m`"),
        (&["remove", "m", "nothing.md"], "error[DOCUMENT_UNKNOWN]: "),
    ] {
        kb(&folder, args.iter().copied()).assert_refused(words);
    }
    for name in ["my manuals", "", "a:b", "a\u{7}"] {
        let output = kb(&folder, ["add", name, "manuals/pump.md"]);
        assert!(output.code != 0 && output.errors() == ["ENTRY_INVALID"], "{name:?}: {output:#?}");
    }
    let tag = "t".repeat(65);
    let output = kb(&folder, ["add", "m", "manuals/pump.md", "--tag", &tag]);
    assert!(output.code != 0 && output.errors() == ["ENTRY_INVALID"], "{output:#?}");
    assert_eq!(folder.run_ok(["kb", "list"]), "m  5 documents, 6 passages, hash\n");
}

#[test]
fn a_damaged_archive_is_not_overwritten() {
    let folder = with_manuals(&[]);
    for name in ["archive.db-wal", "archive.db-shm"] {
        let _ = std::fs::remove_file(folder.data().join(name));
    }
    let archive = folder.data().join("archive.db");
    std::fs::write(&archive, "these are notes of somebody else, and no database at all").unwrap();
    for args in [&["list"][..], &["search", "m", "pump"], &["add", "m", "manuals"], &["remove", "m"]] {
        kb(&folder, args.iter().copied()).assert_refused("error[ARCHIVE_UNREADABLE]: ");
    }
    assert!(std::fs::read_to_string(&archive).unwrap().starts_with("these are notes"));
}

/// Four processes write to one file, and each one finds what the others have stored.
#[test]
fn several_processes_share_the_file() {
    let folder = Folder::new();
    let numbers = 0..4;
    for number in numbers.clone() {
        std::fs::create_dir(folder.path(&format!("part{number}"))).unwrap();
        for document in 0..10 {
            let text = format!("Document {document} of part {number}.\n\n# Section\n\nMore words.\n");
            folder.write(&format!("part{number}/p{number}-{document}.md"), text);
        }
    }
    std::thread::scope(|scope| {
        let add = |number: usize| {
            let part = format!("part{number}");
            let output = kb(&folder, ["add", "all", &part]);
            assert_eq!(output.code, 0, "{output:#?}");
        };
        for number in numbers.clone() {
            scope.spawn(move || add(number));
        }
    });
    assert_eq!(folder.run_ok(["kb", "list"]), "all  40 documents, 80 passages, hash\n");
    let found = kb(&folder, ["search", "all", "part 3", "--json", "--limit", "200"]);
    assert_eq!(lines(&found).len(), 80);
}

fn tool_result(output: &Output) -> Value {
    assert_eq!(output.code, 0, "{output:#?}");
    output.json()["payload"]["metadata"]["toolCalls"][0]["result"].clone()
}

#[test]
fn the_example_searches_the_documentation() {
    let folder = Folder::new();
    let run =
        || folder.redflow(["run", "examples/knowledge-base.json", "--json"]).within(&repository()).run();
    let result = tool_result(&run());
    let problem = "Knowledge base search failed: COLLECTION_UNKNOWN: There is no knowledge base `docs`";
    assert_eq!(result["success"], json!(false));
    assert!(result["error"].as_str().unwrap().starts_with(problem), "{result}");

    let add = folder.redflow(["kb", "add", "docs", "docs"]).within(&repository()).run();
    assert_eq!(add.code, 0, "{add:#?}");
    let result = tool_result(&run());
    let results = result["data"]["results"].as_array().unwrap_or_else(|| panic!("{result}"));
    // The model asks for three.
    assert_eq!(results.len(), 3);
    for passage in results {
        assert!(!passage["content"].as_str().unwrap().is_empty());
        let score = passage["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{passage}");
        let document = passage["metadata"]["document"].as_str().unwrap();
        assert!(repository().join("docs").join(document).is_file(), "{document}");
        assert_eq!(passage.get("reason"), None, "ranks are for people");
    }
}

/// A run records the passages that its answer comes from, and the replay proves them.
#[test]
fn an_answer_names_its_sources() {
    let folder = Folder::new();
    let redflow = |args: &[&str]| folder.redflow(args.iter().copied()).within(&repository()).run();
    assert_eq!(redflow(&["kb", "add", "docs", "docs"]).code, 0);
    let output = redflow(&["run", "examples/knowledge-base.json", "--json"]);
    let passages = tool_result(&output)["data"]["results"].as_array().unwrap().clone();
    let source = |passage: &Value| {
        let (document, chunk) =
            (passage["metadata"]["document"].as_str().unwrap(), &passage["metadata"]["chunk"]);
        let digest = Digest::of(passage["content"].as_str().unwrap().as_bytes()).to_hex();
        json!({"kind": "knowledge", "ref": format!("docs/{document}#{chunk}"), "digest": digest,
            "score": passage["score"], "trust": "external"})
    };
    let expected: Vec<Value> = passages.iter().map(source).collect();
    assert_eq!(port3(&output)["envelope"]["provenance"], json!(expected));

    // The timeline names the documents, live and of the stored run.
    let names: Vec<String> = expected
        .iter()
        .map(|source| {
            format!("{} ({:.2})", source["ref"].as_str().unwrap(), source["score"].as_f64().unwrap())
        })
        .collect();
    let line = format!("\n       from: {}\n", names.join(", "));
    assert!(output.stderr.contains(&line), "{line} {output:#?}");
    let run = folder.only_run();
    for command in ["show", "events"] {
        let shown = redflow(&["runs", command, &run]);
        assert!(shown.stdout.contains(&line), "{line} {shown:#?}");
    }
    let detail = redflow(&["runs", "show", &run, "--json"]).json();
    assert_eq!(detail["calls"][0]["result"]["sources"], json!(expected));
    let replayed = redflow(&["replay", &run]);
    assert_eq!(replayed.code, 0, "{replayed:#?}");
}

/// The first steps of the page print what it shows.
#[cfg(unix)]
#[test]
fn the_documented_start_works() {
    let page = std::fs::read_to_string(repository().join("docs/knowledge.md")).unwrap();
    let block = |kind: &str| page.split(kind).nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (commands, printed) = (block("```sh\n"), block("```text\n"));
    let folder = Folder::new();
    let program = Path::new(env!("CARGO_BIN_EXE_redflow"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1\n{commands}")]).current_dir(folder.path(""));
    shell
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .env("REDFLOW_DATA", folder.data())
        .env_remove("OPENAI_API_KEY");
    let output = shell.output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), printed);
    assert!(output.status.success());
}

/// An address is the name of its document, which is stored, listed and sent to models.
#[test]
fn an_address_with_a_key_is_refused_and_not_printed() {
    let folder = Folder::new();
    for address in [
        "https://ada:s3cret@example.org/a.md",
        "https://example.org/a.md?api_key=s3cret",
        "https://example.org/a.md?X-Amz-Signature=s3cret",
        "https://example.org/a.md?x=1&sig=s3cret",
    ] {
        let output = kb(&folder, ["add", "all", address]);
        assert_eq!(output.code, 2, "{output:#?}");
        assert!(output.stderr.contains("has a password or a key"), "{output:#?}");
        assert!(!output.stderr.contains("s3cret") && output.stdout.is_empty(), "{output:#?}");
    }
}

#[test]
fn documents_can_expire() {
    let folder = manuals();
    for days in ["0", "36501", "x"] {
        kb(&folder, ["add", "m", "manuals", "--retention-days", days]).assert_refused("error: invalid value");
    }
    assert_eq!(kb(&folder, ["add", "m", "manuals", "--retention-days", "30"]).code, 0);
    let expiry = |name: &str| {
        let all = lines(&kb(&folder, ["list", "m", "--json"]));
        let one = all.into_iter().find(|one| one["name"] == name).unwrap();
        one["expiresAt"].as_u64().map(|at| at - one["addedAt"].as_u64().unwrap())
    };
    const DAY: u64 = 86_400_000;
    let days = expiry("pump.md").unwrap();
    assert!((29 * DAY..=30 * DAY).contains(&days), "{days}");
    // Without the option it stays, and is stored again for that.
    assert_eq!(kb(&folder, ["add", "m", "manuals/pump.md"]).code, 0);
    assert_eq!(expiry("pump.md"), None);
}
