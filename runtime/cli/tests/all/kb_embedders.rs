//! `redflow kb` with an embedding model, which is a server in the test, and with documents of a web server.

use crate::kit::{Folder, Output, Running};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

pub(crate) const KEY: &str = "sk-test-very-secret";

/// The texts of a request. More of them are sent in another one.
const BATCH: usize = 96;

/// What the server does with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Answer,
    /// It says that the key is wrong.
    Refuse,
    /// It says that a text is wrong.
    RefuseText,
    /// It never answers.
    Hang,
}

/// An embedding server. Its vectors say which subjects a text has, so it knows some meaning.
pub(crate) struct Server {
    pub(crate) url: String,
    /// The texts of each request.
    requests: Receiver<Vec<String>>,
}

impl Server {
    /// `act` gets the number of the request, from 1.
    pub(crate) fn start(act: impl Fn(usize) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for (number, stream) in (1..).zip(listener.incoming().flatten()) {
                let (head, body) = read_request(&stream);
                assert!(head.starts_with("POST /v1/embeddings HTTP/1.1\r\n"), "{head}");
                let body: Value = serde_json::from_slice(&body).unwrap();
                let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap();
                let answer = match act(number) {
                    Act::Answer => respond("200 OK", "application/json", &vectors(&texts).to_string()),
                    Act::Refuse => {
                        respond("401 Unauthorized", "application/json", r#"{"error": {"code": "x"}}"#)
                    }
                    Act::RefuseText => {
                        respond("400 Bad Request", "application/json", r#"{"error": {"code": "x"}}"#)
                    }
                    Act::Hang => String::new(),
                };
                let _ = (&stream).write_all(answer.as_bytes());
                if act(number) == Act::Hang {
                    open.push(stream);
                }
                let _ = sender.send(texts);
            }
        });
        Self { url, requests }
    }

    /// The id of its model `subjects`.
    pub(crate) fn id(&self) -> String {
        format!("openai-compatible/{}/subjects", self.url.strip_prefix("http://").unwrap())
    }

    /// The texts that came since the last call.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.requests.try_iter().flatten().collect()
    }
}

pub(crate) fn read_request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

pub(crate) fn respond(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

fn vectors(texts: &[String]) -> Value {
    const SUBJECTS: [&[&str]; 3] = [&["pump", "oil"], &["refund", "money back"], &["warranty", "guarantee"]];
    let vector = |text: &String| {
        let text = text.to_lowercase();
        let has = |words: &&[&str]| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.0 };
        SUBJECTS.iter().map(has).chain([0.1]).collect::<Vec<f64>>()
    };
    let data: Vec<Value> = (0..)
        .zip(texts)
        .map(|(index, text): (u64, _)| json!({"index": index, "embedding": vector(text)}))
        .collect();
    json!({"data": data, "usage": {"prompt_tokens": 10 * texts.len()}})
}

fn kb<'a>(folder: &Folder, args: impl IntoIterator<Item = &'a str>) -> Output {
    folder.redflow(["kb"].into_iter().chain(args)).env("OPENAI_API_KEY", KEY).run()
}

/// The options of the server's model.
pub(crate) fn model(server: &Server) -> [&str; 6] {
    ["--embeddings", "openai", "--base-url", &server.url, "--embedding-model", "subjects"]
}

#[track_caller]
fn documents(folder: &Folder, args: &[&str]) -> Vec<String> {
    let output = kb(folder, args.iter().copied().chain(["--json"]));
    assert_eq!(output.code, 0, "{output:#?}");
    let values = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    values.map(|value| value["metadata"]["document"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn shop() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("shop")).unwrap();
    folder.write("shop/pump.md", "The pump needs oil.");
    folder.write("shop/refund.md", "A refund takes 30 days.");
    folder.write("shop/warranty.md", "The warranty lasts two years.");
    folder
}

/// A document of so many passages.
fn write_long(folder: &Folder, name: &str, sections: usize) {
    let section = |number| format!("## Section {number}\n\nThe pump number {number} needs oil.\n\n");
    folder.write(name, (1..=sections).map(section).collect::<String>());
}

#[test]
fn a_model_finds_meaning() {
    let (folder, server) = (shop(), Server::start(|_| Act::Answer));
    let dry = kb(&folder, ["add", "s", "shop", "--dry-run"].into_iter().chain(model(&server)));
    assert!(dry.stderr.starts_with("s: 3 documents to add, 3 passages to embed, about "), "{dry:#?}");
    assert_eq!(server.texts(), [] as [&str; 0]);

    let added = kb(&folder, ["add", "s", "shop"].into_iter().chain(model(&server)));
    assert_eq!(added.code, 0, "{added:#?}");
    assert!(added.stdout.starts_with("pump.md: 1 passage, 1 embedded, 10 tokens\n"), "{added:#?}");
    assert_eq!(added.stderr, "s: 3 documents added, 3 passages, 30 tokens\n");
    let texts = server.texts();
    assert_eq!(texts[1], "refund\nA refund takes 30 days.");
    assert_eq!(folder.run_ok(["kb", "list"]), format!("s  3 documents, 3 passages, {}\n", server.id()));

    // The best passage has no word of the question. The others are below 0.7.
    assert_eq!(documents(&folder, &["search", "s", "How do I get my money back?"]), ["refund.md"]);
    assert_eq!(server.texts(), ["How do I get my money back?"]);
    // The same question costs nothing.
    assert_eq!(documents(&folder, &["search", "s", "How do I get my money back?"]), ["refund.md"]);
    assert_eq!(server.texts(), [] as [&str; 0]);
    assert_eq!(documents(&folder, &["search", "s", "money back?", "--min-score", "0"]).len(), 3);
    let other = kb(&folder, ["search", "s", "weather"]);
    assert_eq!((other.code, other.stdout.as_str()), (1, ""), "{other:#?}");

    // What was removed is not in the cache either.
    assert_eq!(kb(&folder, ["remove", "s", "refund.md"]).code, 0);
    server.texts();
    assert_eq!(kb(&folder, ["add", "s", "shop"]).code, 0);
    assert_eq!(server.texts(), ["refund\nA refund takes 30 days."]);
    for file in std::fs::read_dir(folder.data()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "the key is stored");
    }
}

#[test]
fn another_embedder_is_refused_until_all_vectors_are_made_again() {
    let (folder, server) = (shop(), Server::start(|_| Act::Answer));
    folder.run_ok(["kb", "add", "s", "shop", "--embeddings", "hash"]);
    folder.write("shop/new.md", "A new document.");
    let refused = kb(&folder, ["add", "s", "shop/new.md"].into_iter().chain(model(&server)));
    refused.assert_refused(&format!(
        "error[EMBEDDER_MISMATCH]: The vectors of `s` come from hash, not from {}",
        server.id()
    ));
    assert_eq!(server.texts(), [] as [&str; 0], "nothing is paid for in vain");

    let reindexed = kb(&folder, ["reindex", "s"].into_iter().chain(model(&server)));
    assert_eq!(
        (reindexed.code, reindexed.stdout.as_str()),
        (0, "s: 3 passages, 3 embedded, 30 tokens\n"),
        "{reindexed:#?}"
    );
    assert_eq!(folder.run_ok(["kb", "list"]), format!("s  3 documents, 3 passages, {}\n", server.id()));
    assert_eq!(documents(&folder, &["search", "s", "guarantee"]), ["warranty.md"]);
    // It is the embedder of all later commands.
    assert_eq!(kb(&folder, ["add", "s", "shop/new.md"]).stdout, "new.md: 1 passage, 1 embedded, 10 tokens\n");
    // And back, which says what is lost.
    let back = kb(&folder, ["reindex", "s", "--embeddings", "hash"]);
    assert!(back.code == 0 && back.stderr.contains("EMBEDDINGS_LEXICAL"), "{back:#?}");
    assert_eq!(folder.run_ok(["kb", "list"]), "s  4 documents, 4 passages, hash\n");
}

#[test]
fn a_provider_that_fails_in_the_middle_is_not_paid_twice() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docs")).unwrap();
    folder.write("docs/first.md", "A refund.");
    write_long(&folder, "docs/long.md", 130);
    let server = Server::start(|number| if number == 3 { Act::Refuse } else { Act::Answer });
    let failed = kb(&folder, ["add", "d", "docs"].into_iter().chain(model(&server)));
    assert_eq!((failed.code, failed.errors()), (2, vec!["EMBEDDINGS_FAILED"]), "{failed:#?}");
    assert!(!failed.stderr.contains(KEY), "{failed:#?}");
    // The document before is there, and nothing of the one that failed.
    assert_eq!(failed.stdout, "first.md: 1 passage, 1 embedded, 10 tokens\n");
    assert!(folder.run_ok(["kb", "list"]).starts_with("d  1 document, 1 passage, "));
    assert_eq!(server.texts().len(), 1 + 130);

    let again = kb(&folder, ["add", "d", "docs"]);
    assert_eq!(
        again.stdout,
        format!("long.md: 130 passages, {} embedded, 340 tokens\n", 130 - BATCH),
        "{again:#?}"
    );
    assert_eq!(server.texts().len(), 130 - BATCH);
    assert!(folder.run_ok(["kb", "list"]).starts_with("d  2 documents, 131 passages, "));
}

#[test]
fn a_failed_reindex_changes_no_search() {
    let (folder, server) =
        (shop(), Server::start(|number| if number == 2 { Act::Refuse } else { Act::Answer }));
    folder.run_ok(["kb", "add", "s", "shop", "--embeddings", "hash"]);
    let failed = kb(&folder, ["reindex", "s"].into_iter().chain(model(&server)));
    assert_eq!((failed.code, failed.errors()), (2, vec!["EMBEDDINGS_FAILED"]), "{failed:#?}");
    assert_eq!(folder.run_ok(["kb", "list"]), "s  3 documents, 3 passages, hash\n");
    assert_eq!(documents(&folder, &["search", "s", "oil", "--limit", "1"]), ["pump.md"]);
    assert_eq!(server.texts().len(), 2);
    let again = kb(&folder, ["reindex", "s"].into_iter().chain(model(&server)));
    assert_eq!((again.code, server.texts().len()), (0, 2), "{again:#?}");
    assert!(folder.run_ok(["kb", "list"]).ends_with(&format!(", {}\n", server.id())));
}

#[test]
fn two_servers_share_nothing() {
    let (folder, one, two) = (shop(), Server::start(|_| Act::Answer), Server::start(|_| Act::Answer));
    assert_eq!(kb(&folder, ["add", "s", "shop"].into_iter().chain(model(&one))).code, 0);
    // The same name is another model there: its vectors are not in the cache.
    assert_eq!(kb(&folder, ["add", "t", "shop"].into_iter().chain(model(&two))).code, 0);
    assert_eq!((one.texts().len(), two.texts().len()), (3, 3));
    // Options replace what the knowledge base keeps, one by one.
    folder.write("shop/new.md", "A new document.");
    for (option, other) in [
        (["--base-url", &two.url], two.id()),
        (["--embedding-model", "other"], one.id().replace("subjects", "other")),
        (["--dimensions", "2"], format!("{}@2", one.id())),
    ] {
        let refused = kb(&folder, ["add", "s", "shop/new.md"].into_iter().chain(option));
        let words = format!("The vectors of `s` come from {}, not from {other}: ", one.id());
        refused.assert_refused(&format!("error[EMBEDDER_MISMATCH]: {words}"));
    }
    assert_eq!((one.texts().len(), two.texts().len()), (0, 0), "nothing is paid for in vain");
    let reindexed = kb(&folder, ["reindex", "s", "--embedding-model", "other"]);
    assert_eq!((reindexed.code, one.texts().len()), (0, 3), "{reindexed:#?}");
    let settings = &kb(&folder, ["list", "--json"]).stdout;
    let settings: Value = serde_json::from_str(settings.lines().next().unwrap()).unwrap();
    let kept = json!({"embeddings": "openai", "embeddingModel": "other", "baseURL": one.url});
    assert_eq!(settings["settings"], kept);
}

#[test]
fn a_reindex_makes_vectors_again_if_the_model_has_changed_under_its_name() {
    let (folder, server) = (shop(), Server::start(|_| Act::Answer));
    assert_eq!(kb(&folder, ["add", "s", "shop"].into_iter().chain(model(&server))).code, 0);
    documents(&folder, &["search", "s", "money back"]);
    server.texts();
    let reindexed = kb(&folder, ["reindex", "s"]);
    assert_eq!(reindexed.stdout, "s: 3 passages, 3 embedded, 30 tokens\n", "{reindexed:#?}");
    assert_eq!(server.texts().len(), 3);
    documents(&folder, &["search", "s", "money back"]);
    assert_eq!(server.texts(), ["money back"], "the vector of the question is new, too");
}

#[test]
fn a_text_that_the_provider_refuses_keeps_no_other_out() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docs")).unwrap();
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        folder.write(&format!("docs/{name}.md"), format!("A refund of {name}."));
    }
    // The second, the fourth and the fifth document: never three in a row.
    let server =
        Server::start(
            |number| if [2, 4, 5, 8, 9, 10].contains(&number) { Act::RefuseText } else { Act::Answer },
        );
    let some = kb(&folder, ["add", "d", "docs"].into_iter().chain(model(&server)));
    assert_eq!((some.code, some.errors()), (1, vec!["TEXT_REFUSED"; 3]), "{some:#?}");
    assert!(some.stderr.contains("b.md cannot be added:\n"), "{some:#?}");
    assert!(some.stderr.ends_with("d: 4 documents added, 4 passages, 40 tokens, 3 failed\n"), "{some:#?}");
    // Between them are documents that are stored, so they are not in a row.
    let again = kb(&folder, ["add", "d", "docs"]);
    assert_eq!((again.code, again.errors()), (1, vec!["TEXT_REFUSED"; 3]), "{again:#?}");
    let again = kb(&folder, ["add", "d", "docs", "--json"]);
    assert!(again.code == 0 && again.stdout.contains(r#"{"document":"b.md","status":"added""#), "{again:#?}");

    // What fails for all of them ends the command.
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docs")).unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        folder.write(&format!("docs/{name}.md"), format!("A refund of {name}."));
    }
    let server = Server::start(|_| Act::RefuseText);
    let all = kb(&folder, ["add", "d", "docs", "--json"].into_iter().chain(model(&server)));
    assert_eq!((all.code, all.errors(), server.texts().len()), (2, vec!["TEXT_REFUSED"], 3), "{all:#?}");
    let failed: Value = serde_json::from_str(all.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&failed["document"], &failed["code"]), (&json!("a.md"), &json!("TEXT_REFUSED")));
}

/// Starts an add, and waits until the server has its second request, which it never answers.
fn hang(folder: &Folder, server: &Server) -> Running {
    let args = ["kb", "add", "d", "long.md"].into_iter().chain(model(server));
    let running = folder.redflow(args).spawn();
    assert_eq!(server.requests.recv().unwrap().len(), BATCH);
    server.requests.recv().unwrap();
    running
}

#[test]
fn an_add_that_was_killed_goes_on() {
    let folder = Folder::new();
    write_long(&folder, "long.md", 130);
    let server = Server::start(|number| if number == 2 { Act::Hang } else { Act::Answer });
    let mut running = hang(&folder, &server);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    kb(&folder, ["list", "d"]).assert_refused("error[COLLECTION_UNKNOWN]: ");
    let again = kb(&folder, ["add", "d", "long.md"].into_iter().chain(model(&server)));
    assert_eq!(
        again.stdout,
        format!("long.md: 130 passages, {} embedded, 340 tokens\n", 130 - BATCH),
        "{again:#?}"
    );
    assert_eq!(documents(&folder, &["search", "d", "oil", "--limit", "200"]).len(), 130);
}

#[cfg(unix)]
#[test]
fn an_add_that_was_stopped_says_how_to_go_on() {
    let folder = Folder::new();
    write_long(&folder, "long.md", 130);
    let server = Server::start(|_| Act::Hang);
    let args = ["kb", "add", "d", "long.md"].into_iter().chain(model(&server));
    let mut running = folder.redflow(args).spawn();
    server.requests.recv().unwrap();
    let id = running.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(running.0.wait().unwrap().code(), Some(1));
    let mut stderr = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(
        stderr
            .ends_with("\nstopped; nothing is half stored, and `add` and `reindex` go on where they were\n"),
        "{stderr}"
    );
}

/// A kill between the last write and its commit: the earlier document stays whole.
#[cfg(feature = "faults")]
#[test]
fn a_kill_before_the_commit_keeps_the_earlier_document() {
    let folder = shop();
    folder.run_ok(["kb", "add", "s", "shop"]);
    folder.write("shop/pump.md", "The pump needs water.");
    let call = folder.redflow(["kb", "add", "s", "shop"]).env("REDFLOW_FAILPOINT", "archive.before-commit=1");
    let mut running = call.spawn();
    let mut stderr = BufReader::new(running.0.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap() == "FAILPOINT archive.before-commit"), "it was never there");
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    assert_eq!(folder.run_ok(["kb", "show", "s", "pump.md"]), "1. pump.md\n   | The pump needs oil.\n\n");
    assert_eq!(folder.run_ok(["kb", "list"]), "s  3 documents, 3 passages, hash\n");
    assert_eq!(folder.run_ok(["kb", "add", "s", "shop"]), "pump.md: 1 passage\n");
    assert_eq!(folder.run_ok(["kb", "show", "s", "pump.md"]), "1. pump.md\n   | The pump needs water.\n\n");
}

/// A web server. The first part of a path is the status, the second one the kind of its content.
fn web() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (head, _) = read_request(&stream);
            let page = "<title>Pump</title><h1>Care</h1><p>Close both valves.</p>";
            let answer = match head.split(' ').nth(1).unwrap() {
                "/page" => respond("200 OK", "text/html; charset=utf-8", page),
                "/notes.md" => respond("200 OK", "application/octet-stream", "# Notes\n\nOpen both valves."),
                "/photo" => respond("200 OK", "image/png", "picture"),
                "/japan" => {
                    let page = b"<meta charset=gbk><p>\x93\xfa\x96{\x8c\xea.</p>";
                    let head = respond("200 OK", "text/html; charset=Shift_JIS", "");
                    let head = head.replace("content-length: 0", &format!("content-length: {}", page.len()));
                    let _ = (&stream).write_all(&[head.as_bytes(), page].concat());
                    continue;
                }
                _ => respond("404 Not Found", "text/html", page),
            };
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    host
}

#[test]
fn addresses_of_private_hosts_must_be_allowed() {
    let (folder, host) = (Folder::new(), web());
    let address = |path: &str| format!("http://{host}/{path}");
    let (page, notes) = (address("page"), address("notes.md"));
    let refused = kb(&folder, ["add", "w", &page]);
    assert_eq!((refused.code, refused.errors()), (1, vec!["DOCUMENT_UNREADABLE"]), "{refused:#?}");
    assert!(refused.stderr.contains(&format!("--allow-private {host}")), "{refused:#?}");

    let add = |url: &str| {
        let args = ["kb", "add", "w", url, "--allow-private", &host, "--embeddings", "hash"];
        folder.redflow(args).run()
    };
    assert_eq!(add(&page).stdout, format!("{page}: 1 passage\n"));
    let shown = folder.run_ok(["kb", "show", "w", &page]);
    assert_eq!(shown, format!("1. {page} > Care\n   | # Care\n   | \n   | Close both valves.\n\n"));
    // The server knows the encoding better than the page.
    let japan = address("japan");
    assert_eq!(add(&japan).stdout, format!("{japan}: 1 passage\n"));
    assert!(folder.run_ok(["kb", "show", "w", &japan]).contains("日本語."));
    folder.write("china.html", b"<meta charset=gbk><p>\xd6\xd0\xce\xc4.</p>");
    folder.run_ok(["kb", "add", "w", "china.html"]);
    assert!(folder.run_ok(["kb", "show", "w", "china.html"]).contains("中文."));
    // The name says what it is, if the server does not.
    assert_eq!(add(&notes).stdout, format!("{notes}: 1 passage\n"));
    let listed = folder.run_ok(["kb", "list", "w"]);
    assert!(
        listed.contains(&format!("{page}\n  Pump (")) && listed.contains(&format!("{notes}\n  Notes (")),
        "{listed}"
    );
    for (path, words) in
        [("photo", "it is of no known kind"), ("gone", "the server answered with status 404")]
    {
        let output = add(&address(path));
        assert_eq!((output.code, output.errors()), (1, vec!["DOCUMENT_UNREADABLE"]), "{output:#?}");
        assert!(output.stderr.contains(words), "{output:#?}");
    }
    assert!(folder.run_ok(["kb", "list"]).starts_with("w  4 documents, 4 passages, "));
}
