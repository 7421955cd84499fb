//! `/api/kb` of `redflow serve`: what each route answers, and what it refuses.

use crate::kb::manuals;
use crate::kit::Folder;
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const BYTES: &str = "application/octet-stream";
const JSON: &str = "application/json";

/// Sends a request and gives the status and the JSON of the answer.
fn request(sidecar: &SidecarProcess, method: &str, target: &str, kind: &str, body: &[u8]) -> (u16, Value) {
    let length = body.len();
    send(
        sidecar,
        &format!("{method} {target} HTTP/1.1\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n"),
        body,
    )
}

fn send(sidecar: &SidecarProcess, head: &str, body: &[u8]) -> (u16, Value) {
    let token = std::fs::read_to_string(sidecar.folder.data().join("token")).unwrap();
    let host = sidecar.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let more = format!("host: {host}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n", token.trim());
    stream.write_all(format!("{head}{more}").as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn get(sidecar: &SidecarProcess, target: &str) -> Value {
    let (status, value) = send(sidecar, &format!("GET {target} HTTP/1.1\r\n"), b"");
    assert_eq!(status, 200, "{value}");
    value
}

fn add(sidecar: &SidecarProcess, query: &str, body: &[u8]) -> (u16, Value) {
    request(sidecar, "POST", &format!("/api/kb/m/documents?{query}"), BYTES, body)
}

fn post(sidecar: &SidecarProcess, target: &str, body: &Value) -> (u16, Value) {
    request(sidecar, "POST", target, JSON, body.to_string().as_bytes())
}

fn delete(sidecar: &SidecarProcess, target: &str) -> (u16, Value) {
    send(sidecar, &format!("DELETE {target} HTTP/1.1\r\n"), b"")
}

#[track_caller]
fn refused((status, value): (u16, Value), expected: u16, code: &str) -> String {
    assert_eq!((status, value["code"].as_str().unwrap_or_default()), (expected, code), "{value}");
    value["message"].as_str().unwrap().to_owned()
}

fn names(list: &Value, of: &str) -> Vec<String> {
    list[of].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn documents_are_added_listed_searched_and_removed() {
    let sidecar = SidecarProcess::start_in(Folder::new());
    assert_eq!(get(&sidecar, "/api/kb"), json!({"knowledgeBases": []}));
    let text = b"# Pump\n\nIt needs oil.\n\n## Reset\n\nPress the red button.\n";
    let dry = add(&sidecar, "document=pump.md&dryRun=true", text);
    let estimate = json!({"document": "pump.md", "status": "estimated", "passages": 2, "embedded": 2, "tokens": 24,
        "findsMeaning": false});
    assert_eq!(dry, (200, estimate));
    assert_eq!(get(&sidecar, "/api/kb"), json!({"knowledgeBases": []}));

    let added = add(&sidecar, "document=pump.md&tag=a&tag=b&embeddings=hash", text);
    let mut answer = json!({"document": "pump.md", "status": "added", "passages": 2, "embedded": 2, "tokens": 0,
        "findsMeaning": false});
    assert_eq!(added, (200, answer.clone()));
    answer["status"] = json!("unchanged");
    answer["embedded"] = json!(0);
    assert_eq!(add(&sidecar, "document=pump.md&tag=a&tag=b", text), (200, answer));
    // The kind can be said, such as for an address.
    let html = b"<h1>Warranty</h1><p>Two years.</p><script>pwned()</script>";
    let page = add(
        &sidecar,
        "document=https://shop.example/warranty?x=1&kind=html&origin=https://shop.example/",
        html,
    );
    assert_eq!((page.0, &page.1["passages"]), (200, &json!(1)), "{}", page.1);
    assert_eq!(add(&sidecar, "document=notes&kind=txt", b"A note about a valve.").0, 200);

    let all = get(&sidecar, "/api/kb");
    let base = &all["knowledgeBases"][0];
    assert_eq!((&base["name"], &base["documents"], &base["entries"]), (&json!("m"), &json!(3), &json!(4)));
    assert_eq!((&base["embedder"], &base["settings"]), (&json!("hash"), &json!({"embeddings": "hash"})));
    let first = get(&sidecar, "/api/kb/m/documents?limit=2");
    assert_eq!(names(&first, "documents"), ["https://shop.example/warranty?x=1", "notes"]);
    assert_eq!(first["next"], "notes");
    assert_eq!(first["documents"][0]["origin"], "https://shop.example/");
    let last = get(&sidecar, "/api/kb/m/documents?limit=2&after=notes");
    assert_eq!((names(&last, "documents"), last.get("next")), (vec!["pump.md".to_owned()], None));
    assert_eq!(
        (&last["documents"][0]["tags"], &last["documents"][0]["origin"]),
        (&json!(["a", "b"]), &json!("pump.md"))
    );

    let first = get(&sidecar, "/api/kb/m/passages?document=pump.md&limit=1");
    assert_eq!(
        (&first["passages"][0]["content"], &first["next"]),
        (&json!("# Pump\n\nIt needs oil."), &json!(1))
    );
    let rest = get(&sidecar, "/api/kb/m/passages?document=pump.md&after=1");
    assert_eq!(rest["passages"][0]["metadata"]["headings"], json!(["Pump", "Reset"]));
    assert_eq!((rest["passages"].as_array().unwrap().len(), rest.get("next")), (1, None));

    let found = post(&sidecar, "/api/kb/m/search", &json!({"text": "red button", "limit": 1, "tags": ["b"]}));
    assert_eq!(found.0, 200, "{}", found.1);
    let hit = &found.1["results"][0];
    assert_eq!((&hit["metadata"]["chunk"], &hit["reason"]["textRank"]), (&json!(2), &json!(1)), "{hit}");
    let words =
        post(&sidecar, "/api/kb/m/search", &json!({"text": "valve", "mode": "lexical", "minScore": 0}));
    assert_eq!(words.1["results"].as_array().unwrap().len(), 1);
    let none = post(&sidecar, "/api/kb/m/search", &json!({"text": "weather", "mode": "lexical"}));
    assert_eq!(none, (200, json!({"results": []})));

    let reindexed = post(&sidecar, "/api/kb/m/reindex", &json!({"embeddings": "hash"}));
    let done = json!({"document": "m", "status": "added", "passages": 4, "embedded": 4, "tokens": 0,
        "findsMeaning": false});
    assert_eq!(reindexed, (200, done));
    assert_eq!(delete(&sidecar, "/api/kb/m/documents?document=notes"), (204, Value::Null));
    assert_eq!(names(&get(&sidecar, "/api/kb/m/documents"), "documents").len(), 2);
    assert_eq!(delete(&sidecar, "/api/kb/m"), (204, Value::Null));
    assert_eq!(get(&sidecar, "/api/kb"), json!({"knowledgeBases": []}));
}

#[test]
fn what_the_archive_refuses_has_its_code_and_status() {
    let sidecar = SidecarProcess::start_in(Folder::new());
    let to = |name: &str, query: &str, body: &[u8]| {
        request(&sidecar, "POST", &format!("/api/kb/{name}/documents?{query}"), BYTES, body)
    };
    let search = json!({"text": "x"});
    for answer in [
        send(&sidecar, "GET /api/kb/no/documents HTTP/1.1\r\n", b""),
        send(&sidecar, "GET /api/kb/no/passages?document=a.md HTTP/1.1\r\n", b""),
        post(&sidecar, "/api/kb/no/search", &search),
        post(&sidecar, "/api/kb/no/reindex", &json!({})),
        delete(&sidecar, "/api/kb/no"),
        delete(&sidecar, "/api/kb/no/documents?document=a.md"),
    ] {
        refused(answer, 404, "COLLECTION_UNKNOWN");
    }
    assert_eq!(to("m", "document=a.md", b"text").0, 200);
    for answer in [
        send(&sidecar, "GET /api/kb/m/passages?document=no.md HTTP/1.1\r\n", b""),
        delete(&sidecar, "/api/kb/m/documents?document=no.md"),
    ] {
        refused(answer, 404, "DOCUMENT_UNKNOWN");
    }
    for (query, body) in [
        ("document=b.md", &b""[..]),
        ("document=b.md", b"\0"),
        ("document=b.json", b"{"),
        ("document=b.pdf", b"%PDF-1.7"),
    ] {
        refused(to("m", query, body), 422, "DOCUMENT_UNREADABLE");
    }
    let headings = "# a\n\nb\n\n".repeat(20_001);
    refused(to("m", "document=b.md", headings.as_bytes()), 413, "DOCUMENT_TOO_LARGE");
    let long = "n".repeat(1_001);
    for (name, query) in [
        ("m", format!("document={long}&kind=md")),
        ("m", "document=&kind=md".to_owned()),
        ("m", "document=b.md&tag=".to_owned()),
        ("m", format!("document=b.md&tag={}", "t".repeat(65))),
        ("m", format!("document=b.md{}", "&tag=t".repeat(17))),
        ("a%20b", "document=b.md".to_owned()),
        ("..%2Fm", "document=b.md".to_owned()),
    ] {
        refused(to(name, &query, b"text"), 422, "ENTRY_INVALID");
    }
    refused(to("m", "document=b.md&embeddings=ollama", b"text"), 409, "EMBEDDER_MISMATCH");
    let failed = refused(to("n", "document=b.md&embeddings=openai", b"text"), 502, "EMBEDDINGS_FAILED");
    assert!(failed.contains("OPENAI_API_KEY"), "{failed}");
    assert_eq!(
        get(&sidecar, "/api/kb")["knowledgeBases"].as_array().unwrap().len(),
        1,
        "nothing is half stored"
    );
    assert_eq!(names(&get(&sidecar, "/api/kb/m/documents"), "documents"), ["a.md"]);

    let damaged = Folder::new();
    std::fs::create_dir_all(damaged.data()).unwrap();
    std::fs::write(damaged.data().join("archive.db"), "these are notes, and no database at all").unwrap();
    let sidecar = SidecarProcess::start_in(damaged);
    refused(send(&sidecar, "GET /api/kb HTTP/1.1\r\n", b""), 500, "ARCHIVE_UNREADABLE");
    refused(add(&sidecar, "document=a.md", b"text"), 500, "ARCHIVE_UNREADABLE");
}

// SECURITY: knowledge-key
#[test]
fn what_a_request_may_ask_has_bounds() {
    let folder = manuals();
    folder.run_ok(["kb", "add", "m", "manuals"]);
    let sidecar = SidecarProcess::start_in(folder);
    let invalid = |answer: (u16, Value), words: &str| {
        let message = refused(answer, 400, "REQUEST_INVALID");
        assert!(message.contains(words), "{message}");
    };
    for (target, words) in [
        ("/api/kb?limit=1", "There is no parameter `limit`"),
        ("/api/kb/m/documents?limit=0", "`limit` must be a number from 1 to 1000"),
        ("/api/kb/m/documents?limit=1001", "`limit` must be a number from 1 to 1000"),
        ("/api/kb/m/documents?limit=x", "`limit` must be a number"),
        ("/api/kb/m/documents?before=x", "There is no parameter `before`"),
        ("/api/kb/m/passages", "`document` is missing"),
        ("/api/kb/m/passages?document=pump.md&limit=201", "`limit` must be a number from 1 to 200"),
        ("/api/kb/m/passages?document=pump.md&after=-1", "`after` must be a number"),
        ("/api/kb/m/passages?document=pump.md&page=1", "There is no parameter `page`"),
        ("/api/kb/%ff/documents", "not UTF-8"),
    ] {
        invalid(send(&sidecar, &format!("GET {target} HTTP/1.1\r\n"), b""), words);
    }
    let origin = format!("document=a.md&origin={}", "o".repeat(2_049));
    let address = format!("document=a.md&baseURL={}", "o".repeat(2_049));
    for (query, words) in [
        ("", "`document` is missing"),
        ("document=a", "The name of the document has no ending of a known kind: md, txt"),
        ("document=a.exe", "has no ending of a known kind"),
        ("document=a.md&kind=exe", "`kind` has no ending of a known kind"),
        ("document=a.md&retentionDays=0", "`retentionDays` must be a number from 1 to 36500"),
        ("document=a.md&retentionDays=36501", "`retentionDays` must be a number from 1 to 36500"),
        ("document=a.md&dryRun=yes", "`dryRun` must be `true` or `false`"),
        ("document=a.md&embeddings=magic", "`embeddings` must be `auto`, `openai`"),
        ("document=a.md&dimensions=x", "`dimensions` must be a number"),
        ("document=a.md&dimensions=0", "`dimensions` must be a number from 1 to 4096"),
        ("document=a.md&dimensions=4097", "`dimensions` must be a number from 1 to 4096"),
        ("document=a.md&apiKey=x", "There is no parameter `apiKey`"),
        (&origin, "`origin` has more than 2048 bytes"),
        (&address, "`baseURL` has more than 2048 bytes"),
    ] {
        invalid(add(&sidecar, query, b"text"), words);
    }
    for (body, words) in [
        (json!({"text": " "}), "There is nothing to search for"),
        (json!({"text": "x", "limit": 0}), "`limit` must be a number from 1 to 200"),
        (json!({"text": "x", "limit": 201}), "`limit` must be a number from 1 to 200"),
        (json!({"text": "x", "minScore": 1.5}), "`minScore` must be a number from 0 to 1"),
        (json!({"text": "x", "tags": vec!["t"; 17]}), "`tags` may have 16 tags"),
    ] {
        invalid(post(&sidecar, "/api/kb/m/search", &body), words);
    }
    invalid(post(&sidecar, "/api/kb/m/reindex", &json!({"dimensions": 0})), "`dimensions` must be");
    invalid(post(&sidecar, "/api/kb/m/reindex?x=1", &json!({})), "There is no parameter `x`");
    for (target, body) in [
        ("/api/kb/m/search", json!({})),
        ("/api/kb/m/search", json!({"text": "x", "mode": "magic"})),
        ("/api/kb/m/search", json!({"text": "x", "more": 1})),
        ("/api/kb/m/reindex", json!({"apiKey": "x"})),
    ] {
        refused(post(&sidecar, target, &body), 400, "BODY_INVALID");
    }
    let large = json!({"text": "x".repeat(70_000)});
    refused(post(&sidecar, "/api/kb/m/search", &large), 413, "BODY_TOO_LARGE");
    // The header announces it, so no byte is read.
    let head = "POST /api/kb/m/documents?document=a.md HTTP/1.1\r\ncontent-type: application/octet-stream\r\n\
                content-length: 33554433\r\n";
    let message = refused(send(&sidecar, head, b""), 413, "BODY_TOO_LARGE");
    assert!(message.contains("33554432 bytes"), "{message}");
    // A document that is forgotten in the query must not remove all of them.
    invalid(delete(&sidecar, "/api/kb/m?document=pump.md"), "There is no parameter `document`");
    invalid(delete(&sidecar, "/api/kb/m/documents"), "`document` is missing");
    invalid(delete(&sidecar, "/api/kb/m/documents?document=pump.md&x=1"), "There is no parameter `x`");
    refused(request(&sidecar, "DELETE", "/api/kb/m", JSON, b"[1]"), 400, "BODY_INVALID");
    assert_eq!(sidecar.folder.run_ok(["kb", "list"]), "m  5 documents, 6 passages, hash\n");
}
