//! `redflow kb --url`: the same commands as on a data directory, with the knowledge bases of a sidecar.

use crate::kb::{LEXICAL, lines, manuals};
use crate::kb_embedders::{Act, KEY, Server, model, read_request, respond, shop};
use crate::kit::{Folder, Output};
use crate::serve::SidecarProcess;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn kb(sidecar: &SidecarProcess, args: &[&str]) -> Output {
    let args: Vec<&str> = ["kb"].iter().chain(args).copied().collect();
    sidecar.run_remote(&args)
}

/// The same command on the data directory of the sidecar.
fn local_kb(sidecar: &SidecarProcess, args: &[&str]) -> Output {
    sidecar.folder.redflow(["kb"].iter().chain(args).copied()).run()
}

#[cfg(unix)]
#[test]
fn the_commands_print_the_same_as_without_a_sidecar() {
    let sidecar = SidecarProcess::start_in(manuals());
    let none = kb(&sidecar, &["list"]);
    assert_eq!((none.code, none.stderr), (0, format!("no knowledge bases in {}/\n", sidecar.url)));
    let dry = kb(&sidecar, &["add", "m", "manuals", "--dry-run"]);
    assert_eq!(dry, local_kb(&sidecar, &["add", "m", "manuals", "--dry-run"]));
    assert!(dry.stderr.contains("\nm: 5 documents to add, 6 passages to embed, about "), "{dry:#?}");
    assert!(!sidecar.folder.data().join("archive.db").exists());

    let added = kb(&sidecar, &["add", "m", "manuals", "--tag", "manual"]);
    let stdout = "contact.json: 1 passage\npump.md: 2 passages\nshop/prices.csv: 1 passage\n\
                  shop/refund.txt: 1 passage\nwarranty.html: 1 passage\n";
    let stderr = format!(
        "warning: 1 link not followed\n1 file of other kinds left out\n{LEXICAL}m: 5 documents added, 6 passages\n"
    );
    assert_eq!(added, Output { code: 0, stdout: stdout.to_owned(), stderr });
    let origin = &lines(&kb(&sidecar, &["list", "m", "--json"]))[1]["origin"];
    assert_eq!(*origin, json!(sidecar.folder.path("manuals/pump.md").canonicalize().unwrap()));

    for args in [
        &["list"][..],
        &["list", "--json"],
        &["list", "m"],
        &["list", "m", "--json"],
        &["show", "m", "pump.md"],
        &["show", "m", "pump.md", "--json"],
        &["search", "m", "reset the pump", "--limit", "2"],
        &["search", "m", "valve", "--tag", "unused"],
        &["search", "m", "valve", "--min-score", "2"],
        &["search", "m", " "],
        &["add", "m", "manuals", "--tag", "manual"],
        &["add", "m", "manuals", "--tag", "manual", "--json"],
        &["add", "m", "manuals", "--embeddings", "ollama"],
        &["add", "a b", "manuals"],
        &["add", "..", "manuals"],
        &["add", "m", "manuals", "--tag", ""],
        &["list", "nobody"],
        &["search", "nobody", "x"],
        &["show", "m", "nothing.md"],
        &["remove", "m", "nothing.md"],
        &["remove", "nobody"],
        &["reindex", "nobody"],
    ] {
        let (there, here) = (kb(&sidecar, args), local_kb(&sidecar, args));
        assert_eq!(there, here, "{args:?}");
        assert!(!here.stdout.is_empty() || !here.stderr.is_empty(), "{args:?}");
    }
    let words = lines(&kb(&sidecar, &["search", "m", "VALVE", "--mode", "lexical", "--json"]));
    assert_eq!((words.len(), &words[0]["metadata"]["document"]), (1, &json!("shop/prices.csv")));

    let reindexed = kb(&sidecar, &["reindex", "m", "--embeddings", "hash", "--json"]);
    let expected = json!({"document": "m", "status": "added", "passages": 6, "embedded": 6, "tokens": 0});
    assert_eq!((reindexed.json(), reindexed.stderr.as_str()), (expected, LEXICAL));
    let removed = kb(&sidecar, &["remove", "m", "shop/refund.txt"]);
    assert_eq!(removed, Output { code: 0, stdout: String::new(), stderr: String::new() });
    assert_eq!(sidecar.folder.run_ok(["kb", "list"]), "m  4 documents, 5 passages, hash\n");
    assert_eq!(kb(&sidecar, &["remove", "m"]).code, 0);
    kb(&sidecar, &["remove", "m"]).assert_refused("error[COLLECTION_UNKNOWN]: ");
}

/// Lists are read page by page.
#[test]
fn a_sidecar_lists_more_than_a_page() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docs")).unwrap();
    for number in 0..1_001 {
        folder.write(&format!("docs/{number:04}.txt"), "text");
    }
    folder
        .write("long.md", (0..250).map(|number| format!("# Part {number}\n\nText.\n\n")).collect::<String>());
    folder.run_ok(["kb", "add", "d", "docs", "long.md"]);
    let sidecar = SidecarProcess::start_in(folder);
    for args in [&["list", "d", "--json"][..], &["show", "d", "long.md", "--json"]] {
        let there = kb(&sidecar, args);
        assert_eq!(there, local_kb(&sidecar, args), "{args:?}");
        assert!(there.stdout.lines().count() > 200, "{args:?}");
    }
}

#[test]
fn a_wrong_document_keeps_no_other_out() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docs")).unwrap();
    folder.write("docs/good.md", "A good document.");
    folder.write("docs/binary.txt", b"text\0\x01\x02");
    folder.write("docs/damaged.pdf", "%PDF-1.7\nnothing");
    folder.write("docs/empty.md", "");
    let large = std::fs::File::create(folder.path("docs/large.log")).unwrap();
    large.set_len(2 << 30).unwrap();
    let sidecar = SidecarProcess::start_in(folder);
    let there = kb(&sidecar, &["add", "d", "docs", "--json"]);
    let outcome = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        (text("document"), text("status"), text("code"))
    };
    let row = |name: &str, status: &str, code: &str| (name.to_owned(), status.to_owned(), code.to_owned());
    let expected = [
        row("binary.txt", "failed", "DOCUMENT_UNREADABLE"),
        row("damaged.pdf", "failed", "DOCUMENT_UNREADABLE"),
        row("empty.md", "failed", "DOCUMENT_UNREADABLE"),
        row("good.md", "added", ""),
        row("large.log", "failed", "DOCUMENT_TOO_LARGE"),
    ];
    assert_eq!((there.code, lines(&there).iter().map(outcome).collect::<Vec<_>>()), (1, expected.to_vec()));
    let args = ["add", "d", "docs"];
    assert_eq!(kb(&sidecar, &args), local_kb(&sidecar, &args));
}

/// A sidecar can be set to smaller bodies.
#[test]
fn a_document_that_a_sidecar_does_not_take_keeps_no_other_out() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("docs")).unwrap();
    folder.write("docs/a.txt", "word ".repeat(100_000));
    folder.write("docs/b.txt", "text");
    folder.write("redflow.toml", "[server]\nmax_body_bytes = 100000\n");
    let config = folder.path("redflow.toml");
    let sidecar = SidecarProcess::start_with_env(folder, &[("REDFLOW_CONFIG", config.to_str().unwrap())]);
    let added = kb(&sidecar, &["add", "d", "docs"]);
    assert_eq!((added.code, added.stdout.as_str()), (1, "b.txt: 1 passage\n"), "{added:#?}");
    assert_eq!(added.errors(), ["BODY_TOO_LARGE"], "{added:#?}");
}

// SECURITY: knowledge-key
#[test]
fn a_sidecar_checks_the_token() {
    let folder = manuals();
    // Made before the sidecar starts: waiting for a new token would count as many wrong ones, whose rate is limited.
    let token_of =
        |name: &str, scope: &str| folder.run_ok(["token", "add", name, "--scope", scope]).trim().to_owned();
    let (reader, writer) = (token_of("reader", "read"), token_of("writer", "deploy"));
    let sidecar = SidecarProcess::start_in(folder);
    assert_eq!(kb(&sidecar, &["add", "m", "manuals"]).code, 0);
    let with_token = |token: &str, args: &[&str]| {
        let args = ["kb"].iter().chain(args).copied().chain(["--url", &sidecar.url]);
        sidecar.folder.redflow(args).env("REDFLOW_TOKEN", token).run()
    };
    let reads: [&[&str]; 4] =
        [&["list"], &["list", "m"], &["show", "m", "pump.md"], &["search", "m", "pump"]];
    let writes: [&[&str]; 4] = [
        &["add", "m", "manuals", "--tag", "new"],
        &["reindex", "m"],
        &["remove", "m", "pump.md"],
        &["remove", "m"],
    ];
    for args in reads.iter().chain(&writes) {
        let refused = with_token("not-the-token-of-the-sidecar", args);
        refused.assert_refused("error[UNAUTHORIZED]: ");
        assert!(!refused.stderr.contains("not-the-token"), "{refused:#?}");
    }
    for args in reads {
        assert_eq!(with_token(&reader, args).code, 0, "{args:?}");
    }
    for args in writes {
        with_token(&reader, args).assert_refused("error[FORBIDDEN]: ");
    }
    for args in writes {
        let done = with_token(&writer, args);
        assert_eq!(done.code, 0, "{done:#?}");
    }
}

#[test]
fn a_sidecar_that_is_not_there_is_reported() {
    // The port is bound, so that no other test can listen on it.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", held.local_addr().unwrap());
    let folder = manuals();
    for args in [
        &["list"][..],
        &["list", "m"],
        &["show", "m", "x.md"],
        &["search", "m", "x"],
        &["add", "m", "manuals/pump.md"],
        &["remove", "m"],
        &["remove", "m", "x.md"],
        &["reindex", "m"],
    ] {
        let args = ["kb"].iter().chain(args).copied().chain(["--url", &url]);
        let output = folder.redflow(args).env("REDFLOW_TOKEN", "a-token-of-this-test").run();
        output.assert_refused("error[SIDECAR_UNREACHABLE]: ");
    }
    assert!(!folder.data().join("archive.db").exists());
    // The environment can name it; `--data` comes first.
    let list = |args: &[&str]| {
        let call = folder.redflow(["kb", "list"].iter().chain(args).copied());
        call.env("REDFLOW_URL", &url).env("REDFLOW_TOKEN", "a-token-of-this-test").run()
    };
    list(&[]).assert_refused("error[SIDECAR_UNREACHABLE]: ");
    assert_eq!(list(&["--data", folder.data().to_str().unwrap()]).code, 0);
    folder.redflow(["kb", "list", "--token-file", "t"]).run().assert_refused("name one with --url URL");
}

/// The sidecar makes the vectors, with the key of its own environment.
#[test]
fn the_vectors_are_made_by_the_sidecar() {
    let server = Server::start(|_| Act::Answer);
    let sidecar = SidecarProcess::start_with_env(shop(), &[("OPENAI_API_KEY", KEY)]);
    let options = model(&server);
    let add: Vec<&str> = ["add", "s", "shop"].iter().chain(&options).copied().collect();
    let dry: Vec<&str> = add.iter().copied().chain(["--dry-run"]).collect();
    let estimate = kb(&sidecar, &dry);
    assert!(
        estimate.stderr.starts_with("s: 3 documents to add, 3 passages to embed, about "),
        "{estimate:#?}"
    );
    assert_eq!(server.texts(), [] as [&str; 0]);
    let added = kb(&sidecar, &add);
    assert!(added.stdout.starts_with("pump.md: 1 passage, 1 embedded, 10 tokens\n"), "{added:#?}");
    assert_eq!(added.stderr, "s: 3 documents added, 3 passages, 30 tokens\n");
    assert_eq!(server.texts()[1], "refund\nA refund takes 30 days.");
    // Later commands need no options.
    let found = kb(&sidecar, &["search", "s", "How do I get my money back?", "--json"]).json();
    assert_eq!(found["metadata"]["document"], "refund.md");
    assert_eq!(server.texts(), ["How do I get my money back?"]);

    let other = kb(&sidecar, &["add", "s", "shop", "--embeddings", "hash"]);
    other.assert_refused(&format!("error[EMBEDDER_MISMATCH]: The vectors of `s` come from {}", server.id()));
    assert_eq!(server.texts(), [] as [&str; 0]);
    let back = kb(&sidecar, &["reindex", "s", "--embeddings", "hash"]);
    assert_eq!((back.stdout.as_str(), back.stderr.as_str()), ("s: 3 passages\n", LEXICAL));
    assert_eq!(sidecar.folder.run_ok(["kb", "list"]), "s  3 documents, 3 passages, hash\n");

    // The key of the client is not used.
    let without = SidecarProcess::start_in(shop());
    let args = ["kb", "add", "s", "shop", "--embeddings", "openai", "--url", &without.url];
    let failed = without.folder.redflow(args).env("OPENAI_API_KEY", KEY).run();
    failed.assert_refused("error[EMBEDDINGS_FAILED]: the embeddings have no key");
}

/// A caller that may change knowledge bases must not get the keys of the sidecar.
// SECURITY: knowledge-key
#[test]
fn a_key_goes_to_no_address_that_a_request_names() {
    // All requests to other machines go through this proxy.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = shop();
    folder.write("proxy.toml", format!("[http]\nproxy = \"http://{}\"\n", listener.local_addr().unwrap()));
    let config = folder.path("proxy.toml");
    let (sender, heads) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (head, _) = read_request(&stream);
            let answer = respond("401 Unauthorized", "application/json", "{}");
            let _ = (&stream).write_all(answer.as_bytes());
            let _ = sender.send(head);
        }
    });
    let env = [
        ("OPENAI_API_KEY", KEY),
        ("AZURE_OPENAI_API_KEY", KEY),
        ("REDFLOW_CONFIG", config.to_str().unwrap()),
    ];
    let sidecar = SidecarProcess::start_with_env(folder, &env);
    for (embeddings, more) in
        [("openai", &[][..]), ("azure", &["--deployment", "d"]), ("ollama", &[]), ("auto", &[])]
    {
        let options = ["--embeddings", embeddings, "--base-url", "http://embeddings.example/v1"];
        let args: Vec<&str> = ["add", "s", "shop"].iter().chain(&options).chain(more).copied().collect();
        kb(&sidecar, &args).assert_refused("error[EMBEDDINGS_FAILED]: ");
        let head = heads.recv_timeout(PATIENCE).unwrap();
        assert!(head.starts_with("POST http://embeddings.example/"), "{head}");
        assert!(!head.contains(KEY), "{head}");
    }
}

/// An embedding server that never answers. It tells when a request has come, and when its connection was closed.
fn silent_server() -> (String, std::sync::mpsc::Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, events) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                read_request(&stream);
                let _ = sender.send("asked");
                let _ = stream.read(&mut [0; 16]);
                let _ = sender.send("closed");
            });
        }
    });
    (url, events)
}

/// Ctrl-C ends the command, and a client that is gone ends the work of the sidecar. Nothing is half stored.
// SECURITY: knowledge-key
#[cfg(unix)]
#[test]
fn a_client_that_goes_stops_the_work() {
    let (url, events) = silent_server();
    let sidecar = SidecarProcess::start_in(shop());
    sidecar.folder.run_ok(["kb", "add", "known", "shop"]);
    let options = ["--embeddings", "openai", "--base-url", &url, "--embedding-model", "m"];
    let add = ["kb", "add", "s", "shop"];
    let reindex = ["kb", "reindex", "known"];
    for (command, signal) in [(&add[..], "-INT"), (&add, "-KILL"), (&reindex, "-INT"), (&reindex, "-KILL")] {
        let args = command.iter().chain(&options).copied().chain(["--url", &sidecar.url]);
        let mut running = sidecar.folder.redflow(args).spawn();
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), "asked");
        let id = running.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let ended = running.0.wait().unwrap();
        assert_eq!(ended.code(), (signal == "-INT").then_some(1), "{command:?}");
        assert_eq!(events.recv_timeout(PATIENCE).unwrap(), "closed", "{command:?} {signal}");
    }
    assert_eq!(kb(&sidecar, &["list"]).stdout, "known  3 documents, 3 passages, hash\n");
    // The sidecar still takes work.
    assert_eq!(kb(&sidecar, &["add", "s", "shop"]).code, 0);
}

/// A sidecar that stops does not wait for an embedder.
#[cfg(unix)]
#[test]
fn a_sidecar_that_stops_ends_its_work() {
    let (url, events) = silent_server();
    let mut sidecar = SidecarProcess::start_in(shop());
    let options = ["--embeddings", "openai", "--base-url", &url, "--embedding-model", "m"];
    let args = ["kb", "add", "s", "shop"].iter().chain(&options).copied().chain(["--url", &sidecar.url]);
    let running = sidecar.folder.redflow(args).spawn();
    assert_eq!(events.recv_timeout(PATIENCE).unwrap(), "asked");
    let began = std::time::Instant::now();
    sidecar.stop();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let mut running = running;
    assert_eq!(running.0.wait().unwrap().code(), Some(2));
    let mut stderr = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert!(stderr.contains("error[STOPPING]: "), "{stderr}");
    assert_eq!(local_kb(&sidecar, &["list"]).stdout, "");
}

#[test]
fn several_clients_add_at_once() {
    let folder = Folder::new();
    let numbers = 0..6;
    for number in numbers.clone() {
        std::fs::create_dir(folder.path(&format!("part{number}"))).unwrap();
        for document in 0..5 {
            folder.write(&format!("part{number}/p{number}-{document}.md"), format!("Document {document}."));
        }
        // A large body has a slot of its own while it arrives.
        folder.write(&format!("part{number}/large{number}.txt"), "word ".repeat(80_000));
    }
    let sidecar = SidecarProcess::start_in(folder);
    std::thread::scope(|scope| {
        for number in numbers {
            let sidecar = &sidecar;
            scope.spawn(move || {
                let output = kb(sidecar, &["add", "all", &format!("part{number}")]);
                assert_eq!(output.code, 0, "{output:#?}");
            });
        }
    });
    let list = kb(&sidecar, &["list", "--json"]).json();
    assert_eq!((&list["documents"], &list["name"]), (&json!(36), &json!("all")), "{list}");
}
