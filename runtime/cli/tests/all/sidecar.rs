//! `--url` against a fake sidecar: refusals, wrong answers, broken connections. The tests with a real sidecar
//! are in `serve`.

use crate::kit::{Folder, final_answer, flow, redflow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

pub(crate) const TOKEN: &str = "a-token-of-the-test";
const RUN: &str = "0197-run";

/// A request to the fake sidecar.
#[derive(Debug)]
struct Request {
    /// The method and the path.
    line: String,
    head: String,
    body: String,
}

/// A response. The connection is closed after it.
struct Reply {
    status: u16,
    kind: &'static str,
    body: String,
    /// The body is shorter than its `content-length`.
    broken: bool,
}

fn reply(status: u16, body: &Value) -> Reply {
    Reply { status, kind: "application/json", body: body.to_string(), broken: false }
}

/// A fake sidecar that answers one request per connection. The receiver gets the requests.
fn fake_sidecar(mut answer: impl FnMut(&Request) -> Reply + Send + 'static) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let Some(request) = read_request(&mut reader) else { continue };
            let Reply { status, kind, body, broken } = answer(&request);
            // The test sees the request before the client sees the response.
            let _ = sender.send(request);
            let length = if broken { body.len() + 1 } else { body.len() };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n");
            let _ = write!(reader.get_mut(), "{head}content-length: {length}\r\n\r\n{body}");
        }
    });
    (url, requests)
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
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
    Some(Request { line, head: head.to_lowercase(), body: String::from_utf8(body).unwrap() })
}

fn lines(requests: &Receiver<Request>) -> Vec<String> {
    requests.try_iter().map(|request| request.line).collect()
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

fn stream(body: String) -> Reply {
    Reply { status: 200, kind: "text/event-stream", body, broken: false }
}

/// A stream whose connection breaks.
fn broken_stream(body: String) -> Reply {
    Reply { broken: true, ..stream(body) }
}

fn started() -> Value {
    let agent = json!({"id": "a", "type": "agent-core", "name": "a"});
    json!({"runs": [{"runId": RUN, "agent": agent, "status": "running"}]})
}

#[test]
fn an_unreachable_sidecar_is_reported() {
    // The port is bound, so that no other test can listen on it.
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
        output.assert_refused(&format!(
            "error[SIDECAR_UNREACHABLE]: No sidecar answers at {url}/: nothing listens there. Is `redflow serve` \
             running there?\n   = help: redflow explain SIDECAR_UNREACHABLE\n"
        ));
        assert!(!output.stderr.contains(TOKEN), "{output:#?}");
    }
    let output = redflow(["runs", "--url", "http://sidecar.invalid"]).env("REDFLOW_TOKEN", TOKEN).run();
    output.assert_refused("warning: the token goes to http://sidecar.invalid/ as plain text; use https://");
    assert_eq!(output.errors(), ["SIDECAR_UNREACHABLE"], "{output:#?}");
}

#[test]
fn another_server_is_not_a_sidecar() {
    type Answer = fn() -> Reply;
    let rows: [(Answer, &str); 4] = [
        (
            || Reply { status: 404, kind: "text/html", body: "<h1>no</h1>".to_owned(), broken: false },
            "it answers with status 404",
        ),
        (|| reply(200, &json!({"runs": 5})), "its answer has another format"),
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
        let (url, _requests) = fake_sidecar(move |_| answer());
        let output = redflow(["runs", "--url", &url]).env("REDFLOW_TOKEN", TOKEN).run();
        output.assert_refused("error[SIDECAR_UNREACHABLE]: ");
        output.assert_refused(why);
    }
}

#[test]
fn a_refusal_is_printed_with_its_code_and_all_problems() {
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
        let (url, _requests) = fake_sidecar(move |_| reply(status, &answer));
        let output = redflow(["run", "--url", &url]).env("REDFLOW_TOKEN", TOKEN).run();
        let code = error["code"].as_str().unwrap();
        assert_eq!((output.code, *output.errors().last().unwrap()), (2, code), "{output:#?}");
        output.assert_refused(&format!("redflow explain {code}"));
        assert_eq!(output.stderr.contains("error[MODEL_MISSING]: it has no model"), code == "FLOW_REFUSED");
    }
}

#[test]
fn the_token_goes_only_to_the_sidecar() {
    let (url, requests) = fake_sidecar(|_| reply(200, &json!({"runs": []})));
    let folder = Folder::new();
    folder.write("mine", "the-token-of-a-file\n");
    #[cfg(unix)]
    std::fs::set_permissions(folder.path("mine"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    let of_data = folder.run_ok(["token"]);
    // A proxy is never used for this machine.
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
        let head = requests.recv().unwrap().head;
        assert!(
            head.contains(&format!("\r\nauthorization: bearer {}\r\n", expected.to_lowercase())),
            "{head}"
        );
    }
    // The log has no token at any level.
    let args = ["runs", "--url", &url, "--token-file", "mine", "--log", "trace"];
    let output = folder.redflow(args).run();
    assert!(output.stderr.contains("TRACE") && !output.stderr.contains("the-token-of-a-file"), "{output:#?}");
    // The token of the data directory is only for this machine.
    let output = folder.redflow(["runs", "--url", "https://sidecar.invalid"]).run();
    output.assert_refused(
        "error[UNAUTHORIZED]: There is no token for https://sidecar.invalid/: set REDFLOW_TOKEN",
    );
    let output = folder.redflow(["runs", "--url", &url, "--token-file", "none"]).run();
    output.assert_refused("error[UNAUTHORIZED]: There is no file none with a token.");
    let output = redflow(["runs", "--url", &url]).run();
    output.assert_refused("error[UNAUTHORIZED]: There is no token for http://127.0.0.1:");
    output.assert_refused("or the sidecar's data directory with --data DIR");
    let data = folder.data();
    let args = ["runs", "--url", &url, "--data", data.to_str().unwrap()];
    assert_eq!(redflow(args).run().code, 0, "--data names the directory with the token");
    redflow(["runs", "--token-file", "mine"])
        .run()
        .assert_refused("there is no sidecar to send the token to");
    redflow(["runs", "--url", "http://me:s3cret@host"])
        .run()
        .assert_refused("it must hold no name and no password");
}

#[test]
fn the_sidecar_of_the_environment_is_used_without_a_local_target() {
    let (url, requests) =
        fake_sidecar(|_| reply(404, &json!({"code": "RUN_UNKNOWN", "message": "There is no such run."})));
    let folder = Folder::with_flow(&flow(final_answer("ok"), vec![]));
    folder.run_ok(["run", "flow.json", "--quiet", "--journal", "j"]);
    let data = folder.data();
    let data = data.to_str().unwrap();
    let call = |args: &[&str]| {
        let call = folder.redflow(args.iter().copied()).env("REDFLOW_URL", &url).env("REDFLOW_TOKEN", TOKEN);
        let output = call.run();
        (output, lines(&requests))
    };
    let remote: [(&[&str], &str); 6] = [
        (&["runs"], "GET /api/runs?limit=51"),
        (
            &["runs", "list", "--limit", "5", "--status", "waiting", "--status", "failed", "--agent", "a&b"],
            "GET /api/runs?limit=6&status=waiting%2Cfailed&agent=a%26b",
        ),
        (
            &["runs", "--code", "TIMEOUT", "--prefix", "a&b", "--roots"],
            "GET /api/runs?limit=51&code=TIMEOUT&prefix=a%26b&roots=true",
        ),
        (&["runs", "show", "x/y"], "GET /api/runs/x%2Fy"),
        (&["replay", "no-file"], "POST /api/runs/no-file/replay"),
        (&["run", "--node", "a"], "POST /api/runs"),
    ];
    for (args, line) in remote {
        let (output, requests) = call(args);
        output.assert_refused("error[RUN_UNKNOWN]: There is no such run.");
        assert_eq!(requests, [line], "{args:?}");
    }
    let local: [&[&str]; 8] = [
        &["runs", "--data", data],
        &["run", "flow.json"],
        &["run", "flow.json", "--ephemeral"],
        &["run", "--resume", "all"],
        &["check", "flow.json"],
        &["replay", "j"],
        &["replay", "--all"],
        &["backup", "copy"],
    ];
    for args in local {
        let (output, requests) = call(args);
        assert_eq!((output.code, requests.len()), (0, 0), "{args:?} {output:#?}");
    }
    // A sidecar cannot remove runs.
    let (output, requests) = call(&["runs", "prune", "--keep", "0"]);
    output.assert_refused("a sidecar cannot remove runs: name its data directory with --data DIR");
    assert_eq!(requests.len(), 0);
    let (output, requests) = call(&["runs", "recount"]);
    output.assert_refused("a sidecar cannot count its runs again: stop it, and name its data directory");
    assert_eq!(requests.len(), 0);
    let conflicting: [&[&str]; 5] = [
        &["run", "flow.json", "--url", &url],
        &["run", "--resume", "all", "--url", &url],
        &["run", "--ephemeral", "--url", &url],
        &["run", "--profile", "strict", "--url", &url],
        &["replay", "--all", "--url", &url],
    ];
    for args in conflicting {
        call(args).0.assert_refused("cannot be used with");
    }
    folder
        .redflow(["runs", "events", "x", "--follow"])
        .run()
        .assert_refused("only the runs of a sidecar can be followed");
    for id in [".", ".."] {
        call(&["runs", "show", id]).0.assert_refused("error[RUN_UNKNOWN]: No run has this id");
    }
}

#[test]
fn a_run_is_followed_over_broken_connections_and_each_event_is_printed_once() {
    let mut connection = 0;
    let (url, requests) = fake_sidecar(move |request| match request.line.as_str() {
        "POST /api/runs" => reply(202, &started()),
        line if line.starts_with("GET /api/runs/0197-run/events") => {
            connection += 1;
            let [one, two, three] = three_events();
            match connection {
                // The connection breaks in the middle of an event.
                1 => broken_stream(one + &two[..two.len() / 2]),
                // The first event again, and a stream that ends before the run.
                2 => stream(": hello\n\n".to_owned() + &three_events()[0] + &two),
                3 => reply(503, &json!({"code": "STOPPING", "message": "The sidecar is stopping."})),
                _ => stream(three),
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
    let requests: Vec<Request> = requests.try_iter().collect();
    assert_eq!(requests[0].body, r#"{"node":"a","payload":{"a":1}}"#);
    let after: Vec<&str> = requests
        .iter()
        .filter_map(|request| request.line.split_once("?after="))
        .map(|found| found.1)
        .collect();
    assert_eq!(after, ["0", "1", "2", "2"]);
}

#[test]
fn events_are_followed_until_the_run_ends() {
    let (url, _requests) = fake_sidecar(|_| stream(three_events().concat()));
    let args = ["runs", "events", RUN, "--follow", "--url", &url];
    let output = redflow(args).env("REDFLOW_TOKEN", TOKEN).run();
    assert_eq!(
        (output.code, output.stdout.lines().count(), output.stderr.as_str()),
        (0, 3, ""),
        "{output:#?}"
    );
}

#[test]
fn an_interrupted_run_is_not_waited_for() {
    let (url, _requests) = fake_sidecar(|request| match request.line.as_str() {
        "POST /api/runs" => reply(202, &started()),
        line if line.contains("/events") => stream(three_events()[0].clone()),
        _ => reply(200, &detail("interrupted", &Value::Null)),
    });
    let output = redflow(["run", "--url", &url, "--json"]).env("REDFLOW_TOKEN", TOKEN).run();
    assert_eq!(output.code, 3, "{output:#?}");
    assert_eq!(output.json(), json!({"runId": RUN, "status": "interrupted"}));
    let words = format!("run {RUN} has not ended; show it with: redflow runs show {RUN} --url {url}/\n");
    assert!(output.stderr.contains(&words), "{output:#?}");
}

#[test]
fn a_start_that_reaches_no_agent_has_no_result() {
    let (url, _requests) = fake_sidecar(|_| reply(202, &json!({"runs": []})));
    let call = |args: &[&str]| {
        let args = ["run", "--url", &url].into_iter().chain(args.iter().copied());
        redflow(args).env("REDFLOW_TOKEN", TOKEN).run()
    };
    assert_eq!(call(&[]).code, 0, "an inject node need not reach an agent");
    call(&["--json"]).assert_refused("no agent was reached, so there is no result");
}

#[test]
fn a_list_is_read_page_by_page() {
    let page = |from: usize, number: usize| {
        let run = |id: usize| {
            let mut run = summary("completed");
            run["runId"] = json!(format!("run-{id}"));
            run
        };
        let runs: Vec<Value> = (from..from + number).map(run).collect();
        json!({"runs": runs, "next": format!("run-{}", from + number - 1)})
    };
    let (url, requests) = fake_sidecar(move |request| match request.line.as_str() {
        "GET /api/runs?limit=1000" => reply(200, &page(0, 1000)),
        "GET /api/runs?limit=501&before=run-999" => reply(200, &page(1000, 501)),
        other => panic!("{other}"),
    });
    let output =
        redflow(["runs", "--json", "--limit", "1500", "--url", &url]).env("REDFLOW_TOKEN", TOKEN).run();
    assert_eq!((output.code, output.stdout.lines().count()), (0, 1500), "{}", output.stderr);
    assert_eq!(output.stderr, "there are more; --limit N lists them\n");
    assert_eq!(lines(&requests).len(), 2);
}
