//! The manifest of tools: what is read, what is refused with its place, and the registered tools.

use pretty_assertions::assert_eq;
use redflow_contract::code::{ApiCode, DiagnosticCode};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::MAX_MANIFEST_TOOLS;
use redflow_ports::ManifestStore as _;
use redflow_store::{
    MAX_MANIFEST_BYTES, MAX_MANIFEST_DEPTH, MAX_TOOL_BYTES, ManifestFiles, ManifestFormat, parse_manifest,
};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;

fn yaml(text: &str) -> Result<Value, Vec<Diagnostic>> {
    parse_manifest(text.as_bytes(), ManifestFormat::Yaml)
}

/// Expects one problem with these texts in its message.
fn check_refused(text: &[u8], format: ManifestFormat, expected: &[&str]) {
    let problems = parse_manifest(text, format).unwrap_err();
    let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
    assert_eq!(problems.len(), 1, "{shown}");
    assert_eq!(problems[0].code, DiagnosticCode::ManifestInvalid);
    assert!(!problems[0].help.is_empty());
    for part in expected {
        assert!(problems[0].message.contains(part), "{shown}: {}", problems[0].message);
    }
}

#[test]
fn yaml_becomes_the_json_that_a_reader_expects() {
    let text = "\
# a comment
tools:
  - id: weather.current
    description: |
      Two
      lines.
    folded: >-
      one
      line
    inputSchema: {type: object, required: [city], \"properties\": {}}
    empty:
    list:
    - 'it''s'
    - \"a\\tb\\u00e9\"
";
    let expected = json!({"tools": [{
        "id": "weather.current", "description": "Two\nlines.\n", "folded": "one line",
        "inputSchema": {"type": "object", "required": ["city"], "properties": {}},
        "empty": null, "list": ["it's", "a\tbé"],
    }]});
    assert_eq!(yaml(text), Ok(expected.clone()));
    assert_eq!(yaml(&expected.to_string()), Ok(expected), "JSON is YAML too");
    assert_eq!(yaml("--- # one document\na: 1\n...\n"), Ok(json!({"a": 1})));
    for empty in ["", "\n", "# nothing\n", "---\n"] {
        assert_eq!(yaml(empty), Ok(Value::Null), "{empty:?}");
    }
}

#[test]
fn plain_words_follow_the_core_schema() {
    let rows = [
        ("no", json!("no")),
        ("yes", json!("yes")),
        ("on", json!("on")),
        ("Off", json!("Off")),
        ("true", json!(true)),
        ("False", json!(false)),
        ("tRUE", json!("tRUE")),
        ("null", Value::Null),
        ("~", Value::Null),
        ("nULL", json!("nULL")),
        ("12", json!(12)),
        ("-12", json!(-12)),
        ("+12", json!(12)),
        ("18446744073709551615", json!(u64::MAX)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("017", json!(17)),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("-1e3", json!(-1000.0)),
        ("1_000", json!("1_000")),
        ("1:30", json!("1:30")),
        ("2026-11-16", json!("2026-11-16")),
        ("1e", json!("1e")),
        (".", json!(".")),
        ("-", Value::Array(vec![Value::Null])),
        ("+", json!("+")),
        ("0x", json!("0x")),
        ("30/m", json!("30/m")),
        ("https://a.example/{{input.x}}", json!("https://a.example/{{input.x}}")),
        ("\"12\"", json!("12")),
        ("'true'", json!("true")),
        ("|\n  12", json!("12\n")),
    ];
    for (text, expected) in rows {
        assert_eq!(yaml(text), Ok(expected), "{text}");
    }
    for text in ["18446744073709551616", "1e999", ".inf", "-.INF", ".nan"] {
        check_refused(
            text.as_bytes(),
            ManifestFormat::Yaml,
            &["line 1, column 1", "too large or not finite"],
        );
    }
}

#[test]
fn yaml_that_hides_something_is_refused_with_its_place() {
    let rows: &[(&str, &[&str])] = &[
        ("a: &x 1\nb: 2", &["line 1, column", "an anchor (`&`)"]),
        ("a: 1\nb: *x", &["line 2"]),
        ("a: &x {}\nb: *x", &["line 1", "an anchor"]),
        ("a: &x {b: 1}\nc:\n  <<: *x", &["an anchor"]),
        ("c:\n  <<: {a: 1}", &["line 2, column 3", "a merge key (`<<`)"]),
        ("a: !!str 1", &["line 1, column", "a tag (`!`)"]),
        ("a: !thing {}", &["a tag"]),
        ("!!binary aGVsbG8=", &["a tag"]),
        ("a: !!set {b}", &["a tag"]),
        ("a: 1\nb: 2\na: 3", &["line 3, column 1", "the key stands twice"]),
        ("a: {b: 1, \"b\": 2}", &["line 1, column 11", "the key stands twice"]),
        ("a: 1\n---\nb: 2", &["line 2", "a second document"]),
        ("a: 1\n...\n---\n", &["a second document"]),
        ("[a]: 1", &["a key is a list or an object"]),
        ("? {a: 1}\n: 2", &["a key is a list or an object"]),
        ("1: a", &["line 1, column 1", "a key is no text"]),
        ("a: {null: 1}", &["a key is no text"]),
        ("%YAML 1.1\n---\na: no", &["line 1"]),
        ("%TAG ! tag:x,2000:\n---\na: 1", &["line 1"]),
        ("a: [1, 2", &["line 1"]),
        ("a: \"open", &["line 1"]),
        ("a: b: c", &["line 1"]),
        ("a:\n\t- 1", &["line 2"]),
        ("a: @b", &["line 1"]),
        ("a: 1\n b: 2", &["line 2"]),
        ("a: \u{0}", &["line 1"]),
    ];
    for (text, expected) in rows {
        check_refused(text.as_bytes(), ManifestFormat::Yaml, expected);
    }
}

#[test]
fn a_bomb_costs_nothing() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    check_refused(bomb.as_bytes(), ManifestFormat::Yaml, &["line 1", "an anchor"]);
    for open in ["[", "{a: ", "- ", "? ", "[{b: "] {
        let deep = open.repeat(100_000);
        let problems = parse_manifest(deep.as_bytes(), ManifestFormat::Yaml).unwrap_err();
        assert!(problems[0].message.contains("line 1"), "{open}: {}", problems[0].message);
    }
    let indented: String = (0..200).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    check_refused(indented.as_bytes(), ManifestFormat::Yaml, &["nested deeper than 32 levels"]);
    check_refused(
        "[".repeat(100_000).as_bytes(),
        ManifestFormat::Json,
        &["line 1, column 33", "nested deeper than 32"],
    );
}

#[test]
fn depth_and_size_are_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for format in [ManifestFormat::Yaml, ManifestFormat::Json] {
        assert!(parse_manifest(nested(MAX_MANIFEST_DEPTH).as_bytes(), format).is_ok(), "{format:?}");
        check_refused(nested(MAX_MANIFEST_DEPTH + 1).as_bytes(), format, &["nested deeper than 32 levels"]);
        let text = |bytes: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(bytes - 9));
        assert!(parse_manifest(text(MAX_MANIFEST_BYTES).as_bytes(), format).is_ok(), "{format:?}");
        check_refused(text(MAX_MANIFEST_BYTES + 1).as_bytes(), format, &["more than 1048576 bytes"]);
        check_refused(text(2 * 1024 * 1024).as_bytes(), format, &["more than 1048576 bytes"]);
    }
}

#[test]
fn binary_and_other_encodings_are_refused_and_a_mark_is_skipped() {
    for format in [ManifestFormat::Yaml, ManifestFormat::Json] {
        let marked = parse_manifest("\u{feff}{\"a\": 1}".as_bytes(), format);
        assert_eq!(marked, Ok(json!({"a": 1})), "{format:?}");
        let utf16: Vec<u8> = "\u{feff}a: 1".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let binary: Vec<u8> = (0..=255).collect();
        for bytes in [&utf16[..], &binary, b"\x7fELF\x02\x01\x01\0\0", b"a: \xff", b"\x89PNG\r\n\x1a\n"] {
            let problems = parse_manifest(bytes, format).unwrap_err();
            assert!(problems[0].message.contains("line "), "{}", problems[0].message);
        }
    }
    check_refused(b"a: 1\nb: \xc3\xa9\xff", ManifestFormat::Yaml, &["line 2, column 5", "not UTF-8"]);
}

#[test]
fn json_names_every_duplicate_key() {
    let problems =
        parse_manifest(br#"{"tools": [], "tools": [], "a": {"b": 1, "b": 2}}"#, ManifestFormat::Json);
    let pointers: Vec<_> = problems.unwrap_err().into_iter().filter_map(|problem| problem.pointer).collect();
    assert_eq!(pointers, ["/tools", "/a/b"]);
    check_refused(b"{\"a\": 1,}", ManifestFormat::Json, &["line 1, column 9"]);
    assert_eq!(parse_manifest(b" \n", ManifestFormat::Json), Ok(Value::Null));
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
    std::fs::write(dir.join(name), text).unwrap();
}

#[test]
fn the_manifest_is_one_file_of_the_data_directory() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    assert_eq!(files.read(), Ok(Value::Null));
    assert_eq!(files.registered(), []);
    write(dir.path(), "tools.json", "{\"a\": true}");
    assert_eq!(files.read(), Ok(json!({"a": true})));
    write(dir.path(), "tools.yaml", "a: no");
    let both = files.read().unwrap_err();
    assert!(both[0].code.as_str() == "MANIFEST_INVALID" && both[0].message.contains("both"), "{both:?}");
    std::fs::remove_file(dir.path().join("tools.json")).unwrap();
    assert_eq!(files.read(), Ok(json!({"a": "no"})));
    write(dir.path(), "tools.yaml", "a: *x");
    let problems = files.read().unwrap_err();
    assert!(problems[0].file.as_ref().is_some_and(|file| file.ends_with("tools.yaml")), "{problems:?}");
    std::fs::remove_file(dir.path().join("tools.yaml")).unwrap();
    std::fs::create_dir(dir.path().join("tools.yaml")).unwrap();
    assert!(files.read().unwrap_err()[0].message.contains("no regular file"));
}

#[test]
fn the_stamp_changes_with_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    let mut stamps = vec![files.stamp()];
    let mut next = |what: &str| {
        let stamp = files.stamp();
        assert_eq!(stamp, files.stamp(), "{what}: it stays while nothing changes");
        assert!(!stamps.contains(&stamp), "{what}: {stamp:?}");
        stamps.push(stamp);
    };
    write(dir.path(), "tools.yaml", "a: 1");
    next("written");
    write(dir.path(), "new", "a: 2");
    std::fs::rename(dir.path().join("new"), dir.path().join("tools.yaml")).unwrap();
    next("replaced by a file of the same length");
    files.put("a.b", &json!({"id": "a.b"})).unwrap();
    next("registered");
    std::fs::remove_file(dir.path().join("tools.yaml")).unwrap();
    next("removed");
}

#[test]
fn tools_are_registered_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let files = ManifestFiles::new(data.clone());
    let tool = |id: &str, n: u32| json!({"id": id, "n": n});
    let listed = || -> Vec<Value> { files.registered().into_iter().map(|tool| tool.tool.unwrap()).collect() };
    assert_eq!(files.remove("a.b"), Ok(false));
    files.put("b.c", &tool("b.c", 1)).unwrap();
    files.put("a.b", &tool("a.b", 2)).unwrap();
    files.put("b.c", &tool("b.c", 3)).unwrap();
    assert_eq!(listed(), [tool("a.b", 2), tool("b.c", 3)]);
    assert_eq!((files.remove("b.c"), files.remove("b.c")), (Ok(true), Ok(false)));
    assert_eq!(listed(), [tool("a.b", 2)]);
    let names: Vec<_> =
        std::fs::read_dir(data.join("tools.d")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["a.b.json"], "no other file stays");
    #[cfg(unix)]
    {
        let mode = |path: &str| {
            std::os::unix::fs::PermissionsExt::mode(&data.join(path).metadata().unwrap().permissions())
        };
        assert_eq!((mode("tools.d") & 0o777, mode("tools.d/a.b.json") & 0o777), (0o700, 0o600));
    }
}

#[test]
fn an_id_is_no_path() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().join("data"));
    write(dir.path(), "data/tools.json", "{}");
    write(dir.path(), "secret.json", "{}");
    for id in [
        "../secret",
        "../tools",
        "..",
        ".",
        "",
        "a",
        "a/b.c",
        "/tmp/a.b",
        "a\\b.c",
        "a.b\0",
        ".a.b",
        "a.b/../../../secret",
    ] {
        assert!(files.put(id, &json!({"id": id})).is_err(), "{id:?}");
        assert!(files.remove(id).is_err(), "{id:?}");
    }
    assert!(dir.path().join("secret.json").exists() && files.read() == Ok(json!({})));
}

#[test]
fn a_damaged_file_does_not_hide_other_tools() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    files.put("a.good", &json!({"id": "a.good"})).unwrap();
    write(dir.path(), "tools.d/a.broken.json", "{");
    write(dir.path(), "tools.d/a.other.json", "{\"id\": \"a.good\"}");
    write(dir.path(), "tools.d/a.large.json", &format!("\"{}\"", "x".repeat(MAX_TOOL_BYTES)));
    write(dir.path(), "tools.d/no id.json", "{}");
    write(dir.path(), "tools.d/notes.txt", "not a tool");
    std::fs::create_dir(dir.path().join("tools.d/a.folder.json")).unwrap();
    let found: Vec<(String, String)> = files
        .registered()
        .into_iter()
        .map(|tool| {
            (tool.id, tool.tool.map_or_else(|problems| problems[0].message.clone(), |tool| tool.to_string()))
        })
        .collect();
    let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["a.broken", "a.folder", "a.good", "a.large", "a.other", "no id"]);
    let texts = [
        "line 1",
        "no regular file",
        "{\"id\":\"a.good\"}",
        "more than 262144 bytes",
        "another id",
        "no id of a tool",
    ];
    for ((id, text), expected) in found.iter().zip(texts) {
        assert!(text.contains(expected), "{id}: {text}");
    }
}

#[test]
fn registered_tools_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    let full = |result: Result<(), redflow_ports::FileStoreError>| {
        let error = result.unwrap_err();
        assert_eq!(error.code.as_str(), ApiCode::StorageFull.as_str());
        error.message
    };
    let large = json!({"id": "a.b", "x": "x".repeat(MAX_TOOL_BYTES)});
    assert!(full(files.put("a.b", &large)).contains("262144 bytes"));
    for number in 0..=MAX_MANIFEST_TOOLS {
        write(dir.path(), &format!("tools.d/a.n{number}.json"), "{}");
    }
    assert!(full(files.put("a.b", &json!({"id": "a.b"}))).contains("at most 2000 registered tools"));
    assert_eq!(files.put("a.n1", &json!({"id": "a.n1"})), Ok(()), "one that exists can be replaced");
    assert_eq!(files.registered().len(), MAX_MANIFEST_TOOLS);
}

#[test]
fn a_tool_that_is_edited_in_place_changes_the_stamp() {
    let dir = tempfile::tempdir().unwrap();
    let files = ManifestFiles::new(dir.path().to_owned());
    for id in ["a.b", "a.c"] {
        files.put(id, &json!({"id": id})).unwrap();
    }
    let (stamp, file) = (files.stamp(), dir.path().join("tools.d/a.b.json"));
    assert_eq!(files.stamp(), stamp);
    std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b" ").unwrap();
    assert_ne!(files.stamp(), stamp);
}

/// A manifest that may be there is not the same as none, which has no policy.
#[cfg(unix)]
#[test]
fn a_manifest_that_cannot_be_seen_is_a_problem() {
    for name in ["tools.yaml", "tools.json"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        std::os::unix::fs::symlink(&file, &file).unwrap();
        let problems = ManifestFiles::new(dir.path().to_owned()).read().unwrap_err();
        assert!(problems[0].message.starts_with("the file cannot be read: "), "{problems:?}");
        assert_eq!(problems[0].file.as_deref(), file.to_str());
    }
}
