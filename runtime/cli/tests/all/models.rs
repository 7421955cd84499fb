//! `redflow models test`, and runs that ask a live model: against a server of the test's own.

use crate::kit::{Folder, final_answer, port3, redflow, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

const KEY: &str = "sk-test-very-secret";

/// A provider that answers every request like this; gives the heads and bodies it was sent.
fn provider(status: &'static str, answer: &Value) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    let answer = answer.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
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
            sender.send(format!("{head}{}", String::from_utf8(body).unwrap())).unwrap();
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
            let answer = format!("{head}content-length: {}\r\n\r\n{answer}", answer.len());
            let _ = reader.get_mut().write_all(answer.as_bytes());
        }
    });
    (address, requests)
}

fn says(text: &str) -> Value {
    let message = json!({"role": "assistant", "content": text});
    json!({"model": "gpt-real", "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10}})
}

fn ok() -> Value {
    says(r#"{"action":"final","message":"ok","confidence":1,"tool":null,"input":null}"#)
}

#[test]
fn a_model_that_is_there() {
    let (address, requests) = provider("200 OK", &ok());
    let base = format!("baseURL={address}");
    let args = ["models", "test", "--type", "openai-model", "--set", &base, "--set", "model=gpt-x"];
    let output = redflow(args).env("OPENAI_API_KEY", KEY).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(
        output.stdout.starts_with("openai-model `gpt-x` answered with a valid action in "),
        "{output:#?}"
    );
    assert!(output.stdout.ends_with(" ms, 1000 tokens read, 10 written\n"), "{output:#?}");
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {KEY}")), "{request}");

    // A key for another provider, by the name of its variable.
    let own = args.into_iter().chain(["--set", "apiKey=${MY_KEY}"]);
    assert_eq!(redflow(own).env("MY_KEY", "another-key-1").run().code, 0);
    assert!(requests.recv().unwrap().contains("authorization: Bearer another-key-1"));

    let output = redflow(args.into_iter().chain(["--json"])).run();
    let report = output.json();
    assert_eq!(
        [&report["ok"], &report["type"], &report["model"], &report["answeredBy"], &report["provider"]],
        [&json!(true), &json!("openai-model"), &json!("gpt-x"), &json!("gpt-real"), &json!("openai")]
    );
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let wrong_key = json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), "code": "invalid_api_key"}});
    for (status, answer, words) in [
        ("401 Unauthorized", wrong_key, "INVALID_CREDENTIALS: OpenAI's interface (127.0.0.1:"),
        ("404 Not Found", json!({"error": {"code": "model_not_found"}}), "MODEL_NOT_FOUND: "),
        ("429 Too Many", json!({"error": {"code": "insufficient_quota"}}), "QUOTA_EXCEEDED: "),
        ("200 OK", says("Hello!"), "INVALID_JSON: it answered, but not with a valid action"),
        ("200 OK", json!([]), "MODEL_ERROR: "),
    ] {
        let (address, _requests) = provider(status, &answer);
        let base = format!("baseURL={address}");
        let call =
            redflow(["models", "test", "--type", "openai-model", "--set", &base]).env("OPENAI_API_KEY", KEY);
        let output = call.run();
        assert_eq!((output.code, output.stdout.lines().count()), (1, 1), "{output:#?}");
        assert!(output.stdout.contains(words), "{output:#?}");
        assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY), "{output:#?}");
    }
    let args = [
        "models",
        "test",
        "--type",
        "openai-model",
        "--set",
        "baseURL=http://127.0.0.1:1/v1",
        "--set",
        "maxRetries=0",
    ];
    let output = redflow(args).run();
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("PROVIDER_UNAVAILABLE: "), "{output:#?}");
    assert!(output.stdout.contains("could not be reached: nothing listens there"), "{output:#?}");
}

#[test]
fn what_cannot_even_be_asked() {
    let test = |args: &[&str]| redflow(["models", "test"].into_iter().chain(args.iter().copied())).run();
    test(&[]).refused("<NODE|--type <TYPE>>");
    test(&["--type", "openai-model"]).refused("set the environment variable OPENAI_API_KEY");
    test(&["--type", "agent-core"])
        .refused("`agent-core` is no type of model; there are scripted-model, openai-model");
    test(&["--type", "model.of.mine"]).refused("this build cannot run the type `model.of.mine`");
    test(&["--type", "openai-model", "--set", "apiKey=sk-1"]).refused("is seen by everyone on this machine");
    test(&["--type", "openai-model", "--set", "model"]).refused("a --set is NAME=VALUE");
    test(&["--type", "openai-model", "--set", "temperature=hot"]).refused("`temperature` must be");
    test(&["--type", "openai-model", "--set", "temperature=9"]).refused("`temperature` must be");
    // A variable that is not set is no key.
    test(&["--type", "openai-model", "--set", "apiKey=${NO_SUCH_KEY}"]).refused("it has no key");
    test(&["model", "--flow", "examples/live-openai.json"]).refused("it has no key");
    test(&["m"]).refused("name the flow of the node with --flow FILE");
    test(&["m", "--flow", "no-such.json"]).refused("the flow no-such.json cannot be used");
    test(&["nobody", "--flow", "examples/plain-answer.json"]).refused("has no node `nobody`");
    test(&["agent", "--flow", "examples/plain-answer.json"])
        .refused("`agent` is no model but a `agent-core`");
    assert_eq!(test(&["model", "--flow", "examples/plain-answer.json"]).code, 0);
}

/// A flow whose model is at this address, with its key in the credentials.
fn flow(address: &str, more: Value) -> Value {
    let own =
        json!({"type": "openai-model", "baseURL": address, "model": "gpt-x", "credentials": {"apiKey": KEY}});
    crate::kit::flow_with(final_answer("unused"), "m", with(own, more))
}

#[test]
fn a_run_with_a_live_model_its_cost_and_its_metrics() {
    let (address, _requests) = provider("200 OK", &ok());
    let folder = Folder::with_flow(&flow(&address, json!({})));
    folder.write("redflow.toml", "[prices.\"gpt-*\"]\ninput = 2.0\noutput = 10.0\n");
    let args =
        ["run", "flow.json", "--config", "redflow.toml", "--metrics", "m.txt", "--journal", "j", "--json"];
    let output = folder.redflow(args).run();
    assert_eq!((output.code, &port3(&output)["payload"]), (0, &json!("ok")), "{output:#?}");
    let journal = folder.read("j");
    assert!(journal.contains(r#""usage":{"inputTokens":1000,"outputTokens":10,"cost":0.0021}"#), "{journal}");
    assert!(journal.contains(r#""model":"gpt-real""#), "{journal}");
    assert!(output.stderr.contains("1000 tokens read, 10 written, cost 0.002100"), "{output:#?}");
    let metrics = folder.read("m.txt");
    for line in [
        r#"redflow_tokens_total{provider="openai",model="gpt-x",kind="input"} 1000"#,
        r#"redflow_cost_total{provider="openai",model="gpt-x"} 0.0021"#,
        "# EOF",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
    }
    for text in [&journal, &metrics, &output.stdout, &output.stderr] {
        assert!(!text.contains(KEY), "{text}");
    }
    assert_eq!(folder.redflow(["replay", "j"]).run().code, 0);
}

#[test]
fn no_key_reaches_a_log_however_much_is_logged() {
    let echo =
        json!({"error": {"message": format!("Bearer {KEY} is wrong"), "type": "authentication_error"}});
    let (address, _requests) = provider("401 Unauthorized", &echo);
    let folder = Folder::with_flow(&flow(&address, json!({})));
    let output = folder.redflow(["run", "flow.json", "--log", "trace", "--journal", "j", "--json"]).run();
    assert_eq!((output.code, &port3(&output)["payload"]["code"]), (1, &json!("INVALID_CREDENTIALS")));
    assert!(output.stderr.contains("TRACE"), "{output:#?}");
    for text in [&folder.read("j"), &output.stdout, &output.stderr] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_stops_everything() {
    let folder = Folder::with_flow(&flow("http://127.0.0.1:1/v1", json!({})));
    folder.write("bad.toml", "[htp]\nproxy = 1\n");
    folder
        .redflow(["run", "flow.json", "--config", "bad.toml"])
        .run()
        .refused("is wrong in line 1: unknown field `htp`");
    folder
        .redflow(["check", "flow.json"])
        .env("REDFLOW_CONFIG", "none.toml")
        .run()
        .refused("none.toml cannot be read");
    folder.redflow(["check", "flow.json", "--log", "what=ever=x"]).run().refused("");
    let output = folder.redflow(["run", "flow.json", "--ephemeral", "--metrics", "no/such/folder"]).run();
    output.refused("the metrics cannot be written");
    assert!(!output.stderr.contains("▶"), "nothing ran: {output:#?}");
}

#[test]
fn a_message_that_only_clears_is_no_failure() {
    let text = std::fs::read_to_string(crate::kit::repository().join("examples/memory-buffer.json")).unwrap();
    let mut flow: Value = serde_json::from_str(&text).unwrap();
    let ask = flow.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "ask").unwrap();
    ask["payload"] = json!("");
    ask["props"] = json!([{"p": "payload"}, {"p": "memory", "v": "clear", "vt": "str"}]);
    let folder = Folder::with_flow(&flow);
    let output = folder.redflow(["run", "flow.json", "--ephemeral"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("First turn forgot the conversation"), "{output:#?}");
    // A memory that cannot be reached could not forget.
    for node in flow.as_array_mut().unwrap() {
        if node["id"] == "memory" {
            node["type"] = json!("redis-memory");
        }
    }
    folder.write("flow.json", flow.to_string());
    let output = folder.redflow(["run", "flow.json", "--ephemeral"]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["MEMORY_ERROR"]), "{output:#?}");
}

#[test]
fn a_memory_that_fails_is_heard_of_also_without_a_timeline() {
    let output = redflow(["run", "examples/memory-redis.json", "--ephemeral", "--quiet"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("the memory failed; the run goes on without it"), "{output:#?}");
}
