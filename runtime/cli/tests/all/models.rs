//! `redflow models test`, and runs with a live model, against a server in the test.

use crate::kit::{Folder, final_answer, port3, redflow, with};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

const KEY: &str = "sk-test-very-secret";

/// A provider that gives every request this answer. The receiver gets the requests.
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

fn model_answer(text: &str) -> Value {
    let message = json!({"role": "assistant", "content": text});
    json!({"model": "gpt-real", "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10}})
}

fn ok() -> Value {
    model_answer(r#"{"action":"final","message":"ok","confidence":1,"tool":null,"input":null}"#)
}

#[test]
fn a_working_model_passes_the_test() {
    let (address, requests) = provider("200 OK", &ok());
    let base = format!("baseURL={address}");
    let args = ["models", "test", "--type", "openai-model", "--set", &base, "--set", "model=gpt-x"];
    let output = redflow(args).env("OPENAI_API_KEY", KEY).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(
        output.stdout.starts_with("openai-model `gpt-x` answered with a valid action in "),
        "{output:#?}"
    );
    let lines = output.stdout.lines().collect::<Vec<_>>();
    assert_eq!(
        lines[1],
        format!(
            "  asked    {address}/chat/completions, Chat Completions, JSON by a schema, at most 16384 tokens"
        )
    );
    // A name of a known family: the newest one.
    assert_eq!(lines[2], "  server   context window of 1050000 tokens");
    // The second call found out that the answer does not depend on the schema.
    assert!(lines[3].starts_with("  schema   the server ignores it"), "{output:#?}");
    assert!(lines[4].starts_with("  used     1000 tokens read, 10 written, "), "{output:#?}");
    assert!(lines[5].starts_with("  price    not known; set `inputPrice`"), "{output:#?}");
    assert!(lines[6].starts_with("  answer   {\"action\":\"final\",\"message\":\"ok\""), "{output:#?}");
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1"), "{request}");
    assert!(request.contains(&format!("authorization: Bearer {KEY}")), "{request}");

    // A key of another provider, named by its variable.
    let own = args.into_iter().chain(["--set", "apiKey=${MY_KEY}"]);
    while requests.try_recv().is_ok() {}
    assert_eq!(redflow(own).env("MY_KEY", "another-key-1").run().code, 0);
    assert!(requests.recv().unwrap().contains("authorization: Bearer another-key-1"));

    let output = redflow(args.into_iter().chain(["--json"])).run();
    let report = output.json();
    assert_eq!(report["sent"]["responseFormat"], "json_schema");
    assert_eq!(
        [&report["ok"], &report["type"], &report["model"], &report["answeredBy"], &report["provider"]],
        [&json!(true), &json!("openai-model"), &json!("gpt-x"), &json!("gpt-real"), &json!("openai")]
    );
}

#[test]
fn a_problem_is_reported_in_one_sentence() {
    let wrong_key = json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), "code": "invalid_api_key"}});
    for (status, answer, words) in [
        ("401 Unauthorized", wrong_key, "INVALID_CREDENTIALS: OpenAI's interface (127.0.0.1:"),
        ("404 Not Found", json!({"error": {"code": "model_not_found"}}), "MODEL_NOT_FOUND: "),
        ("429 Too Many", json!({"error": {"code": "insufficient_quota"}}), "QUOTA_EXCEEDED: "),
        ("200 OK", model_answer("Hello!"), "INVALID_JSON: the answer is not a valid action"),
        ("200 OK", json!([]), "MODEL_ERROR: "),
    ] {
        let (address, _requests) = provider(status, &answer);
        let base = format!("baseURL={address}");
        let call =
            redflow(["models", "test", "--type", "openai-model", "--set", &base]).env("OPENAI_API_KEY", KEY);
        let output = call.run();
        assert_eq!(output.code, 1, "{output:#?}");
        assert!(output.stdout.lines().next().unwrap().contains(words), "{output:#?}");
        assert!(output.stdout.contains("\n  asked    http://127.0.0.1:"), "{output:#?}");
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
fn a_model_that_cannot_be_called_is_refused() {
    let test = |args: &[&str]| redflow(["models", "test"].into_iter().chain(args.iter().copied())).run();
    test(&[]).assert_refused("<NODE|--type <TYPE>>");
    test(&["--type", "openai-model"]).assert_refused("set the environment variable OPENAI_API_KEY");
    test(&["--type", "agent-core"])
        .assert_refused("`agent-core` is not a type of model; there are scripted-model, openai-model");
    test(&["--type", "model.of.mine"]).assert_refused("this build cannot run the type `model.of.mine`");
    test(&["--type", "openai-model", "--set", "apiKey=sk-1"])
        .assert_refused("everyone on this machine can read `apiKey`");
    test(&["--type", "openai-model", "--set", "model"]).assert_refused("a --set is NAME=VALUE");
    test(&["--type", "openai-model", "--set", "temperature=hot"]).assert_refused("`temperature` must be");
    test(&["--type", "openai-model", "--set", "temperature=9"]).assert_refused("`temperature` must be");
    // A variable that is not set gives no key.
    test(&["--type", "openai-model", "--set", "apiKey=${NO_SUCH_KEY}"]).assert_refused("it has no key");
    test(&["model", "--flow", "examples/live-openai.json"]).assert_refused("it has no key");
    test(&["m"]).assert_refused("name the flow of the node with --flow FILE");
    test(&["m", "--flow", "no-such.json"]).assert_refused("the flow no-such.json cannot be used");
    test(&["nobody", "--flow", "examples/plain-answer.json"]).assert_refused("has no node `nobody`");
    test(&["agent", "--flow", "examples/plain-answer.json"])
        .assert_refused("`agent` is not a model but a `agent-core`");
    assert_eq!(test(&["model", "--flow", "examples/plain-answer.json"]).code, 0);
}

/// A flow with a model at this address and its key in the credentials.
fn flow(address: &str, more: Value) -> Value {
    let own =
        json!({"type": "openai-model", "baseURL": address, "model": "gpt-x", "credentials": {"apiKey": KEY}});
    crate::kit::flow_with(final_answer("unused"), "m", with(own, more))
}

#[test]
fn the_price_of_the_node_wins_over_a_configuration_in_the_data_directory() {
    let (address, _requests) = provider("200 OK", &ok());
    let typed = json!({"inputPrice": 1, "outputPrice": 100});
    // The price at the node, the file in the data directory, and the cost that is printed.
    for (more, file, cost) in [
        (&typed, true, "cost 0.002000"),
        (&json!({}), true, "cost 0.002100"),
        (&json!({}), false, "cost unknown"),
    ] {
        let folder = Folder::with_flow(&flow(&address, more.clone()));
        std::fs::create_dir(folder.path("data")).unwrap();
        if file {
            folder.write("data/redflow.toml", "[prices.\"gpt-*\"]\ninput = 2.0\noutput = 10.0\n");
        }
        let output = folder.redflow(["run", "flow.json", "--data", "data", "--metrics", "m.txt"]).run();
        assert_eq!(output.code, 0, "{output:#?}");
        assert!(output.stderr.contains(&format!("10 written, {cost}")), "{cost} {output:#?}");
        let metrics = folder.read("m.txt");
        let unpriced = r#"redflow_unpriced_calls_total{provider="openai",model="gpt-x"} 1"#;
        assert_eq!(metrics.contains(unpriced), cost.ends_with("unknown"), "{metrics}");
        assert_eq!(metrics.contains("redflow_cost_total{"), !cost.ends_with("unknown"), "{metrics}");
    }
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
fn models_share_the_key_of_a_config_node() {
    const SHARED: &str = "sk-shared-very-secret";
    let (address, requests) = provider("200 OK", &ok());
    let key = json!({"id": "k", "type": "openai-key", "credentials": {"apiKey": SHARED}});
    let with_key = |more: Value| {
        let mut nodes = flow(&address, with(json!({"keyNode": "k", "credentials": {}}), more));
        nodes.as_array_mut().unwrap().push(key.clone());
        nodes
    };
    let folder = Folder::with_flow(&with_key(json!({})));
    let args = ["run", "flow.json", "--log", "trace", "--journal", "j", "--json"];
    let output = folder.redflow(args).env("OPENAI_API_KEY", KEY).run();
    assert_eq!((output.code, &port3(&output)["payload"]), (0, &json!("ok")), "{output:#?}");
    assert!(requests.recv().unwrap().contains(&format!("authorization: Bearer {SHARED}")));
    for text in [&folder.read("j"), &output.stdout, &output.stderr] {
        assert!(!text.contains(SHARED), "{text}");
    }
    let journal = folder.read("j");
    assert!(journal.contains(r#""keyNode":"k""#), "the plan names the key node: {journal}");
    assert_eq!(folder.redflow(["replay", "j"]).run().code, 0);
    // A test of the model takes it, too.
    let output = folder.redflow(["models", "test", "m", "--flow", "flow.json"]).run();
    let tested: Vec<String> = requests.try_iter().collect();
    assert!(output.code == 0 && !tested.is_empty(), "{output:#?}");
    assert!(tested.iter().all(|request| request.contains(&format!("authorization: Bearer {SHARED}"))));
    assert!(!format!("{output:?}").contains(SHARED), "{output:#?}");
    // The model's own key takes precedence.
    folder.write("flow.json", with_key(json!({"credentials": {"apiKey": KEY}})).to_string());
    assert_eq!(folder.redflow(["run", "flow.json", "--ephemeral"]).run().code, 0);
    assert!(requests.recv().unwrap().contains(&format!("authorization: Bearer {KEY}")));
    // Without its key node the agent is refused, and no request is made.
    folder.write("flow.json", with_key(json!({"keyNode": "gone"})).to_string());
    let output = folder.redflow(["run", "flow.json", "--ephemeral"]).run();
    assert!(output.code != 0 && output.stderr.contains("EDGE_TARGET_MISSING"), "{output:#?}");
    assert!(requests.try_recv().is_err());
}

// SECURITY: log-redacted
#[test]
fn no_key_is_logged_at_any_level() {
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
fn a_wrong_configuration_stops_the_command() {
    let folder = Folder::with_flow(&flow("http://127.0.0.1:1/v1", json!({})));
    folder.write("bad.toml", "[htp]\nproxy = 1\n");
    folder
        .redflow(["run", "flow.json", "--config", "bad.toml"])
        .run()
        .assert_refused("is wrong in line 1: unknown field `htp`");
    folder
        .redflow(["check", "flow.json"])
        .env("REDFLOW_CONFIG", "none.toml")
        .run()
        .assert_refused("none.toml cannot be read");
    folder.redflow(["check", "flow.json", "--log", "what=ever=x"]).run().assert_refused("");
    let output = folder.redflow(["run", "flow.json", "--ephemeral", "--metrics", "no/such/folder"]).run();
    output.assert_refused("the metrics cannot be written");
    assert!(!output.stderr.contains("▶"), "nothing ran: {output:#?}");
}

#[test]
fn a_message_that_only_clears_the_memory_succeeds() {
    let text = std::fs::read_to_string(crate::kit::repository().join("examples/memory-buffer.json")).unwrap();
    let mut flow: Value = serde_json::from_str(&text).unwrap();
    let ask = flow.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "ask").unwrap();
    ask["payload"] = json!("");
    ask["props"] = json!([{"p": "payload"}, {"p": "memory", "v": "clear", "vt": "str"}]);
    let folder = Folder::with_flow(&flow);
    let output = folder.redflow(["run", "flow.json", "--ephemeral"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("First turn cleared the conversation"), "{output:#?}");
    // An unreachable memory cannot be cleared.
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
fn a_failed_memory_is_logged_in_quiet_mode() {
    let output = redflow(["run", "examples/memory-redis.json", "--ephemeral", "--quiet"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("the memory failed; the run goes on without it"), "{output:#?}");
}

#[test]
fn one_iteration_is_shown_with_the_response_as_it_was_sent() {
    let mut answer = ok();
    answer["usage"]["prompt_tokens_details"] = json!({"cached_tokens": 900});
    answer["echo"] = json!(KEY);
    let (address, _requests) = provider("200 OK", &answer);
    for debug in [true, false] {
        let mut nodes = flow(&address, json!({}));
        let agent = nodes.as_array_mut().unwrap().iter_mut().find(|node| node["type"] == "agent-core");
        agent.unwrap()["debug"] = json!(debug);
        let folder = Folder::with_flow(&nodes);
        let run = folder.redflow(["run", "flow.json"]).run();
        assert!(run.stderr.contains("1000 tokens read (900 from the cache), 10 written"), "{run:#?}");
        let id = folder.only_run();
        let text = folder.run_ok(["runs", "show", &id, "--iteration", "1"]);
        assert!(text.starts_with("iteration 1\nmodel     gpt-real\n"), "{text}");
        assert!(
            text.contains("\nused      1000 tokens read (900 from the cache), 10 written, cost unknown\n"),
            "{text}"
        );
        assert!(text.contains("\nanswer\n{\"action\":\"final\",\"message\":\"ok\""), "{text}");
        assert!(text.contains("\noutput\nok\n"), "{text}");
        // The key of the flow is not shown, although the provider sent it back.
        let raw = answer.to_string().replace(KEY, "[redacted]");
        assert_eq!(text.ends_with(&format!("\nresponse as it was sent\n{raw}\n")), debug, "{text}");
        let detail = folder.run_ok(["runs", "show", &id, "--iteration", "1", "--json"]);
        let detail: Value = serde_json::from_str(&detail).unwrap();
        assert_eq!(detail["raw"]["text"], if debug { json!(raw) } else { Value::Null });
        assert_eq!(detail["usage"]["cachedTokens"], json!(900));
        assert!(!folder.run_ok(["runs", "export", &id]).contains(KEY));
        let missing = folder.redflow(["runs", "show", &id, "--iteration", "2"]).run();
        missing.assert_refused("the run has no iteration 2");
    }
}

#[test]
fn the_test_of_a_model_says_what_it_costs() {
    let (address, _requests) = provider("200 OK", &ok());
    let folder = Folder::with_flow(&json!([]));
    folder.write(
        "redflow.toml",
        "[prices.\"gpt-*\"]\ninput = 2.0\noutput = 10.0\ncached = 0.2\ncache_write = 2.5\n",
    );
    let base = format!("baseURL={address}");
    let args = ["models", "test", "--type", "openai-model", "--set", &base, "--set", "model=gpt-x"];
    let config = ["--config", "redflow.toml"];
    let text = folder.run_ok(args.into_iter().chain(config));
    let price = "  price    2 for a million tokens read, 10 written, 0.2 from the cache, 2.5 stored in it (set in the configuration)\n";
    assert!(text.contains(price), "{text}");
    let report = folder.run_ok(args.into_iter().chain(config).chain(["--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        report["price"],
        json!({"source": "configuration", "input": 2.0, "output": 10.0, "cached": 0.2, "cacheWrite": 2.5})
    );
    let typed = ["--set", "inputPrice=0", "--set", "outputPrice=0"];
    let text = folder.run_ok(args.into_iter().chain(config).chain(typed));
    assert!(text.contains("  price    0 for a million tokens read, 0 written (set at the node)\n"), "{text}");
    assert!(folder.run_ok(args).contains("  price    not known; "));
}

#[test]
fn a_test_of_a_model_warns_about_settings_that_its_type_does_not_know() {
    let test = |more: &[&str]| {
        let (address, _requests) = provider("200 OK", &ok());
        let base = format!("baseURL={address}");
        let args = ["models", "test", "--type", "openai-model", "--set", &base, "--set", "model=gpt-x"];
        let output = redflow(args.iter().chain(more).copied()).env("OPENAI_API_KEY", KEY).run();
        assert_eq!(output.code, 0, "{output:#?}");
        output
    };
    for more in [&[][..], &["--json"]] {
        let unknown = ["--set", "temprature=1", "--set", "topK=40"];
        let output = test(&[&unknown[..], more].concat());
        for text in [
            "warning: `openai-model` has no property `temprature`, so it has no effect: did you mean `temperature`?",
            "warning: `openai-model` has no property `topK`, so it has no effect: only other types of models have it",
        ] {
            assert!(output.stderr.contains(text), "{output:#?}");
        }
        assert!(!output.stdout.contains("warning"), "{output:#?}");
    }
    let output = test(&["--set", "temperature=1"]);
    assert!(!output.stderr.contains("warning"), "{output:#?}");
}
