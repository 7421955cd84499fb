//! `--url` against a peer that says what a test wants: refusals, nonsense, broken connections. What a real sidecar
//! answers is in `served`.

use crate::kit::{Folder, final_answer, flow, redflow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

pub(crate) const TOKEN: &str = "a-token-of-the-test";
const RUN: &str = "0197-run";

/// A request that came in.
#[derive(Debug)]
struct Asked {
    /// Method and path.
    line: String,
    head: String,
    body: String,
}

/// An answer; the connection is closed after it.
struct Reply {
    status: u16,
    kind: &'static str,
    body: String,
    /// Whether it breaks off where more was promised.
    broken: bool,
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply { status, kind: "application/json", body: body.to_string(), broken: false }
}

/// A peer that answers request after request, each on a connection of its own, and tells what it was asked.
fn peer(mut answer: impl FnMut(&Asked) -> Reply + Send + 'static) -> (String, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let Some(request) = read(&mut reader) else { continue };
            let Reply { status, kind, body, broken } = answer(&request);
            // Whoever asked is not told anything before the test could see that it did.
            let _ = sender.send(request);
            let length = if broken { body.len() + 1 } else { body.len() };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n");
            let _ = write!(reader.get_mut(), "{head}content-length: {length}\r\n\r\n{body}");
        }
    });
    (url, asked)
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let line = head.split(" HTTP").next().unwrap().to_owned();
    Some(Asked { line, head: head.to_lowercase(), body: String::from_utf8(body).unwrap() })
}

fn lines(asked: &Receiver<Asked>) -> Vec<String> {
    asked.try_iter().map(|asked| asked.line).collect()
}

fn summary(status: &str) -> Value {
    json!({"runId": RUN, "agent": {"instance": "local", "nodeId": "a"}, "name": "a", "status": status,
        "startedAt": 1, "delivered": true})
}

fn detail(status: &str, result: &Value) -> Value {
    json!({"summary": summary(status), "events": [], "calls": [], "result": result})
}

fn event(seq: u32, event: Value) -> String {
    let event = json!({"runId": RUN, "seq": seq, "at": seq, "agent": {"instance": "local", "nodeId": "a"}, "event": event});
    format!("id: {seq}\ndata: {event}\n\n")
}

fn three_events() -> [String; 3] {
    let end = json!({"type": "run_finished", "completed": true, "stopReason": "final_answer", "iterations": 1, "durationMs": 5});
    [
        event(1, json!({"type": "run_started", "name": "a", "maxIterations": 5, "tools": []})),
        event(2, json!({"type": "memory_recalled", "messages": 3})),
        event(3, end),
    ]
}

fn stream(body: String, broken: bool) -> Reply {
    Reply { status: 200, kind: "text/event-stream", body, broken }
}

fn started() -> Value {
    let agent = json!({"id": "a", "type": "agent-core", "name": "a"});
    json!({"runs": [{"runId": RUN, "agent": agent, "status": "running"}]})
}

#[test]
fn a_sidecar_that_is_not_there() {
    // Held, so that no other test listens there, and not listened at.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", held.local_addr().unwrap());
    let folder = Folder::with_flow(&flow(final_answer("ok"), vec![]));
    for args in [
        ["runs"].as_slice(),
        &["runs", "show", RUN],
        &["runs", "events", RUN],
        &["runs", "export", RUN],
        &["runs", "cancel", RUN],
        &["runs", "resolve", RUN, "--done"],
        &["replay", RUN],
        &["check", "flow.json"],
        &["run"],
        &["token", "--browser"],
    ] {
        let args = args.iter().copied().chain(["--url", &url]);
        let output = folder.redflow(args).env("REDFLOW_TOKEN", TOKEN).run();
        output.refused(&format!(
            "error[SIDECAR_UNREACHABLE]: No sidecar answers at {url}/: nothing listens there. Is `redflow serve` \
             running there?\n   = help: redflow explain SIDECAR_UNREACHABLE\n"
        ));
        assert!(!output.stderr.contains(TOKEN), "{output:#?}");
    }
    let output = redflow(["runs", "--url", "http://sidecar.invalid"]).env("REDFLOW_TOKEN", TOKEN).run();
    output.refused("warning: the token goes to http://sidecar.invalid/ as plain text; use https://");
    assert_eq!(output.errors(), ["SIDECAR_UNREACHABLE"], "{output:#?}");
}

#[test]
fn something_else_that_answers_is_no_sidecar() {
    type Answer = fn() -> Reply;
    let rows: [(Answer, &str); 4] = [
        (
            || Reply { status: 404, kind: "text/html", body: "<h1>no</h1>".to_owned(), broken: false },
            "it answers with status 404",
        ),
        (|| reply(200, &json!({"runs": 5})), "its answer is not what was asked for"),
        (
            || Reply { status: 301, kind: "text/html", body: String::new(), broken: false },
            "it answers with status 301",
        ),
        (
            || Reply { broken: true, ..reply(200, &json!({"runs": []})) },
            "the connection was lost before the answer ended",
        ),
    ];
    for (answer, why) in rows {
        let (url, _asked) = peer(move |_| answer());
        let output = redflow(["runs", "--url", &url]).env("REDFLOW_TOKEN", TOKEN).run();
        output.refused("error[SIDECAR_UNREACHABLE]: ");
        output.refused(why);
    }
}

#[test]
fn a_refusal_is_told_with_its_code_and_every_problem() {
    let diagnostic = json!({"code": "MODEL_MISSING", "severity": "error", "message": "it has no model", "help": "Wire one.",
        "node": {"id": "a", "type": "agent-core", "name": "a"}});
    let report = json!({"ok": false, "diagnostics": [diagnostic], "omitted": {}});
    let rows = [
        (401, json!({"code": "UNAUTHORIZED", "message": "The token is not known."})),
        (403, json!({"code": "FORBIDDEN", "message": "The token may not do this."})),
        (429, json!({"code": "RATE_LIMITED", "message": "Too many."})),
        (422, json!({"code": "FLOW_REFUSED", "message": "It has errors.", "report": report})),
        (422, json!({"code": "NODE_NOT_STARTABLE", "message": "It is a debug node."})),
        (507, json!({"code": "DATA_FULL", "message": "The disk is full."})),
    ];
    for (status, error) in rows {
        let answer = error.clone();
        let (url, _asked) = peer(move |_| reply(status, &answer));
        let output = redflow(["run", "--url", &url]).env("REDFLOW_TOKEN", TOKEN).run();
        let code = error["code"].as_str().unwrap();
        assert_eq!((output.code, *output.errors().last().unwrap()), (2, code), "{output:#?}");
        output.refused(&format!("redflow explain {code}"));
        assert_eq!(output.stderr.contains("error[MODEL_MISSING]: it has no model"), code == "FLOW_REFUSED");
    }
}

#[test]
fn the_token_goes_to_the_sidecar_and_to_nobody_else() {
    let (url, asked) = peer(|_| reply(200, &json!({"runs": []})));
    let folder = Folder::new();
    folder.write("mine", "the-token-of-a-file\n");
    #[cfg(unix)]
    std::fs::set_permissions(folder.path("mine"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let of_data = folder.well(["token"]);
    // A proxy, wherever it comes from, is not for this machine.
    folder.write("proxy.toml", "[http]\nproxy = \"http://127.0.0.1:1\"\n");
    let rows: [(&[&str], Option<&str>, &str); 4] = [
        (&["--token-file", "mine"], None, "the-token-of-a-file"),
        (&["--token-file", "mine"], Some(TOKEN), "the-token-of-a-file"),
        (&[], Some(TOKEN), TOKEN),
        (&["--config", "proxy.toml"], None, of_data.trim_end()),
    ];
    for (args, in_env, expected) in rows {
        let args = ["runs", "--url", &url].into_iter().chain(args.iter().copied());
        let call = folder
            .redflow(args)
            .env("HTTP_PROXY", "http://127.0.0.1:1")
            .env("REDFLOW_TOKEN", in_env.unwrap_or(""));
        let output = call.run();
        assert_eq!((output.code, output.stderr), (0, format!("no runs in {url}/\n")));
        let head = asked.recv().unwrap().head;
        assert!(
            head.contains(&format!("\r\nauthorization: bearer {}\r\n", expected.to_lowercase())),
            "{head}"
        );
    }
    // However much is logged.
    let args = ["runs", "--url", &url, "--token-file", "mine", "--log", "trace"];
    let output = folder.redflow(args).run();
    assert!(output.stderr.contains("TRACE") && !output.stderr.contains("the-token-of-a-file"), "{output:#?}");
    // That of the data directory is for this machine alone.
    let output = folder.redflow(["runs", "--url", "https://sidecar.invalid"]).run();
    output.refused("error[UNAUTHORIZED]: There is no token for https://sidecar.invalid/: set REDFLOW_TOKEN");
    let output = folder.redflow(["runs", "--url", &url, "--token-file", "none"]).run();
    output.refused("error[UNAUTHORIZED]: There is no file none with a token.");
    let output = redflow(["runs", "--url", &url]).run();
    output.refused("error[UNAUTHORIZED]: There is no token for http://127.0.0.1:");
    output.refused("or the sidecar's data directory with --data DIR");
    let data = folder.data();
    let args = ["runs", "--url", &url, "--data", data.to_str().unwrap()];
    assert_eq!(redflow(args).run().code, 0, "--data says where the token is");
    redflow(["runs", "--token-file", "mine"]).run().refused("there is no sidecar to give the token to");
    redflow(["runs", "--url", "http://me:s3cret@host"]).run().refused("it must hold no name and no password");
}

#[test]
fn the_address_of_the_environment_counts_where_nothing_is_named_here() {
    let (url, asked) =
        peer(|_| reply(404, &json!({"code": "RUN_UNKNOWN", "message": "There is no such run."})));
    let folder = Folder::with_flow(&flow(final_answer("ok"), vec![]));
    folder.well(["run", "flow.json", "--quiet", "--journal", "j"]);
    let data = folder.data();
    let data = data.to_str().unwrap();
    let call = |args: &[&str]| {
        let call = folder.redflow(args.iter().copied()).env("REDFLOW_URL", &url).env("REDFLOW_TOKEN", TOKEN);
        let output = call.run();
        (output, lines(&asked))
    };
    let elsewhere: [(&[&str], &str); 5] = [
        (&["runs"], "GET /api/runs?limit=51"),
        (
            &["runs", "list", "--limit", "5", "--status", "waiting", "--status", "failed", "--agent", "a&b"],
            "GET /api/runs?limit=6&status=waiting%2Cfailed&agent=a%26b",
        ),
        (&["runs", "show", "x/y"], "GET /api/runs/x%2Fy"),
        (&["replay", "no-file"], "POST /api/runs/no-file/replay"),
        (&["run", "--node", "a"], "POST /api/runs"),
    ];
    for (args, line) in elsewhere {
        let (output, asked) = call(args);
        output.refused("error[RUN_UNKNOWN]: There is no such run.");
        assert_eq!(asked, [line], "{args:?}");
    }
    let here: [&[&str]; 8] = [
        &["runs", "--data", data],
        &["run", "flow.json"],
        &["run", "flow.json", "--ephemeral"],
        &["run", "--resume", "all"],
        &["check", "flow.json"],
        &["replay", "j"],
        &["replay", "--all"],
        &["backup", "copy"],
    ];
    for args in here {
        let (output, asked) = call(args);
        assert_eq!((output.code, asked.len()), (0, 0), "{args:?} {output:#?}");
    }
    // What is removed must be named: it is not what the address leads to.
    let (output, asked) = call(&["runs", "prune", "--keep", "0"]);
    output.refused("runs are removed where they are kept: name the data directory with --data DIR");
    assert_eq!(asked.len(), 0);
    let conflicting: [&[&str]; 5] = [
        &["run", "flow.json", "--url", &url],
        &["run", "--resume", "all", "--url", &url],
        &["run", "--ephemeral", "--url", &url],
        &["run", "--profile", "strict", "--url", &url],
        &["replay", "--all", "--url", &url],
    ];
    for args in conflicting {
        call(args).0.refused("cannot be used with");
    }
    folder
        .redflow(["runs", "events", "x", "--follow"])
        .run()
        .refused("only a sidecar's runs can be followed");
    for id in [".", ".."] {
        call(&["runs", "show", id]).0.refused("error[RUN_UNKNOWN]: This is the id of no run");
    }
}

#[test]
fn a_run_is_followed_across_broken_connections_and_each_event_is_shown_once() {
    let mut connection = 0;
    let (url, asked) = peer(move |asked| match asked.line.as_str() {
        "POST /api/runs" => reply(202, &started()),
        line if line.starts_with("GET /api/runs/0197-run/events") => {
            connection += 1;
            let [one, two, three] = three_events();
            match connection {
                // Cut in the middle of an event.
                1 => stream(one + &two[..two.len() / 2], true),
                // The same again, and an end of the stream that is not that of the run.
                2 => stream(": hello\n\n".to_owned() + &three_events()[0] + &two, false),
                3 => reply(503, &json!({"code": "STOPPING", "message": "The sidecar is stopping."})),
                _ => stream(three, false),
            }
        }
        _ => reply(200, &detail("completed", &json!({"payload": "the answer"}))),
    });
    let args = ["run", "--url", &url, "--node", "a", "--input", "{\"a\":1}"];
    let output = redflow(args).env("REDFLOW_TOKEN", TOKEN).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "the answer\n"), "{output:#?}");
    for words in ["▶ a ", "3 messages recalled", "✔ completed"] {
        assert_eq!(output.stderr.matches(words).count(), 1, "{words}: {output:#?}");
    }
    let asked: Vec<Asked> = asked.try_iter().collect();
    assert_eq!(asked[0].body, r#"{"node":"a","payload":{"a":1}}"#);
    let after: Vec<&str> =
        asked.iter().filter_map(|asked| asked.line.split_once("?after=")).map(|found| found.1).collect();
    assert_eq!(after, ["0", "1", "2", "2"]);
}

#[test]
fn events_are_followed_until_the_run_is_over() {
    let (url, _asked) = peer(|_| stream(three_events().concat(), false));
    let args = ["runs", "events", RUN, "--follow", "--url", &url];
    let output = redflow(args).env("REDFLOW_TOKEN", TOKEN).run();
    assert_eq!(
        (output.code, output.stdout.lines().count(), output.stderr.as_str()),
        (0, 3, ""),
        "{output:#?}"
    );
}

#[test]
fn a_run_that_nobody_drives_any_more_is_not_waited_for() {
    let (url, _asked) = peer(|asked| match asked.line.as_str() {
        "POST /api/runs" => reply(202, &started()),
        line if line.contains("/events") => stream(three_events()[0].clone(), false),
        _ => reply(200, &detail("interrupted", &Value::Null)),
    });
    let output = redflow(["run", "--url", &url, "--json"]).env("REDFLOW_TOKEN", TOKEN).run();
    assert_eq!(output.code, 3, "{output:#?}");
    assert_eq!(output.json(), json!({"runId": RUN, "status": "interrupted"}));
    let words = format!("run {RUN} is not over; look at it with: redflow runs show {RUN} --url {url}/\n");
    assert!(output.stderr.contains(&words), "{output:#?}");
}

#[test]
fn nothing_that_was_reached_is_no_result() {
    let (url, _asked) = peer(|_| reply(202, &json!({"runs": []})));
    let call = |args: &[&str]| {
        let args = ["run", "--url", &url].into_iter().chain(args.iter().copied());
        redflow(args).env("REDFLOW_TOKEN", TOKEN).run()
    };
    assert_eq!(call(&[]).code, 0, "an inject node need not reach an agent");
    call(&["--json"]).refused("no agent was reached, so there is no result");
}

#[test]
fn a_list_is_put_together_from_its_pages() {
    let page = |from: usize, number: usize, next: bool| {
        let run = |id: usize| {
            let mut run = summary("completed");
            run["runId"] = json!(format!("run-{id}"));
            run
        };
        let runs: Vec<Value> = (from..from + number).map(run).collect();
        let mut page = json!({"runs": runs});
        if next {
            page["next"] = json!(format!("run-{}", from + number - 1));
        }
        page
    };
    let (url, asked) = peer(move |asked| match asked.line.as_str() {
        "GET /api/runs?limit=1000" => reply(200, &page(0, 1000, true)),
        "GET /api/runs?limit=501&before=run-999" => reply(200, &page(1000, 501, true)),
        other => panic!("{other}"),
    });
    let output =
        redflow(["runs", "--json", "--limit", "1500", "--url", &url]).env("REDFLOW_TOKEN", TOKEN).run();
    assert_eq!((output.code, output.stdout.lines().count()), (0, 1500), "{}", output.stderr);
    assert_eq!(output.stderr, "there are more; --limit N lists them\n");
    assert_eq!(lines(&asked).len(), 2);
}
