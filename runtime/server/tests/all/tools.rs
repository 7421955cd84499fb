//! `/api/tools`, `/api/agents` and their older paths: scopes, lists, calls, the log and hostile requests.

use crate::client::{PATIENCE, Request};
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow, plain_flow, token, tool_flow};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A flow whose agent calls the calculator with each of these texts, then answers.
fn sums(texts: &[&str]) -> Value {
    let call = |text: &&str| json!({"action": "tool", "tool": "act", "input": {"expression": text}, "confidence": 1});
    let mut replies: Vec<Value> = texts.iter().map(call).collect();
    replies.push(json!({"action": "final", "message": "done"}));
    flow(json!(replies), &[("act", "calculator-tool")])
}

fn stream(sidecar: &TestSidecar, id: &str) -> Request {
    let request = sidecar.request("GET", &format!("/api/tools/{id}/calls"));
    request.token(TOKEN).header("accept", "text/event-stream")
}

/// The complete calls in a stream so far.
fn streamed(bytes: &[u8]) -> Vec<(String, Value)> {
    let text = String::from_utf8_lossy(bytes);
    let Some((_, body)) = text.split_once("\r\n\r\n") else { return Vec::new() };
    // Each part is a chunk of its own, so a chunk header may stand before it.
    let parts = body.split("id: ").skip(1).filter_map(|part| part.split_once("\ndata: "));
    parts
        .filter_map(|(id, data)| {
            let (data, _) = data.split_once("\n\n")?;
            Some((id.to_owned(), serde_json::from_str(data).unwrap()))
        })
        .collect()
}

#[tokio::test]
async fn the_log_of_a_tool_has_who_input_output_class_latency_and_tries() {
    let sidecar = TestSidecar::start(sums(&["6 * 7", "1 / 0"])).await;
    let started = sidecar.run(json!({"payload": "?"})).await;
    let run = started["runs"][0]["runId"].as_str().unwrap();
    let list = sidecar.get("/api/tools/builtin.act/calls").await.ok(200);
    let calls = list["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &list["next"]), (2, &Value::Null));
    for (place, call) in calls.iter().enumerate() {
        let mut call = call.clone();
        let fields = call.as_object_mut().unwrap();
        assert!(fields.remove("at").unwrap().is_u64() && fields.remove("durationMs").unwrap().is_u64());
        let failed = place == 0;
        if failed {
            assert!(fields.remove("error").unwrap().as_str().unwrap().contains("Division by zero"));
        } else {
            assert_eq!(fields.remove("output").unwrap()["result"], 42);
        }
        let expression = if failed { "1 / 0" } else { "6 * 7" };
        let expected = json!({
            "id": "builtin.act", "tool": "act", "runId": run, "callId": format!("{run}:{}", 2 - place),
            "agent": {"instance": "local", "nodeId": "agent"}, "by": "token:main", "effect": "read",
            "input": {"expression": expression}, "success": !failed, "tries": 1,
        });
        assert_eq!(call, expected);
    }
    // The name of a tool is as good as its id.
    assert_eq!(sidecar.get("/api/tools/act/calls").await.ok(200), list);
}

#[tokio::test]
async fn pages_of_calls_meet_without_a_gap() {
    let sidecar = TestSidecar::start(sums(&["1", "2", "3"])).await;
    for _ in 0..3 {
        sidecar.run(json!({"payload": "?"})).await;
    }
    let all = sidecar.get("/api/tools/act/calls?limit=200").await.ok(200)["calls"].clone();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 9);
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = sidecar.get(&format!("/api/tools/act/calls?limit=2{before}")).await.ok(200);
        let calls = page["calls"].as_array().unwrap();
        assert!((1..=2).contains(&calls.len()));
        seen.extend(calls.iter().cloned());
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, *all);
    for wrong in ["limit=0", "limit=201", "limit=x", "limit=-1", "other=1"] {
        sidecar.get(&format!("/api/tools/act/calls?{wrong}")).await.refused(400, "REQUEST_INVALID");
    }
    sidecar.get("/api/tools/act/calls?before=nonsense").await.refused(410, "CURSOR_UNKNOWN");
    sidecar.get("/api/tools/no.such/calls").await.refused(404, "NOT_FOUND");
}

/// A removed tool is not there any more, but its calls are. So are those of a run that was removed.
#[tokio::test]
async fn the_calls_of_a_removed_tool_stay() {
    let sidecar = TestSidecar::start(sums(&["6 * 7"])).await;
    sidecar.run(json!({"payload": "?"})).await;
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": [], "revision": revision})).await.ok(200);
    sidecar.get("/api/tools/builtin.act").await.refused(404, "NOT_FOUND");
    let calls = sidecar.get("/api/tools/builtin.act/calls").await.ok(200)["calls"].clone();
    assert_eq!((calls.as_array().unwrap().len(), &calls[0]["output"]["result"]), (1, &json!(42)));
    stream(&sidecar, "builtin.act").send().await.refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_stream_has_each_call_as_it_ends_and_continues() {
    let sidecar = TestSidecar::start(sums(&["6 * 7", "1 / 0"])).await;
    let open = async |last: Option<&str>| {
        let request = stream(&sidecar, "builtin.act");
        let request = last.map_or(request.clone(), |last| request.header("last-event-id", last));
        let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
        tcp.write_all(&request.text()).await.unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("\r\n\r\n") {
            assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
        }
        (tcp, seen)
    };
    let (mut tcp, mut seen) = open(None).await;
    sidecar.run(json!({"payload": "?"})).await;
    while streamed(&seen).len() < 2 {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    let calls = streamed(&seen);
    let mut listed = sidecar.get("/api/tools/act/calls").await.ok(200)["calls"].as_array().unwrap().clone();
    listed.reverse();
    assert_eq!(calls.iter().map(|(_, call)| call.clone()).collect::<Vec<_>>(), listed);
    // After a lost connection the rest comes, each call once.
    let (mut tcp, mut seen) = open(Some(&calls[0].0)).await;
    while streamed(&seen).is_empty() {
        assert!(timeout(PATIENCE, tcp.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
    }
    assert_eq!(streamed(&seen), calls[1..]);
    stream(&sidecar, "act").header("last-event-id", "x").send().await.refused(410, "CURSOR_UNKNOWN");
}

#[tokio::test]
async fn the_first_event_says_who_started_a_run() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let guest = token(sidecar.dir.path(), "guest", &[Scope::Run], 1);
    let request =
        || sidecar.request("POST", "/api/runs").token(&guest).json(json!({"payload": "?", "wait": true}));
    let answer = eventually("the token is known", || async {
        let answer = request().send().await;
        (answer.status == 200).then_some(answer)
    });
    let run = answer.await.ok(200)["runs"][0]["runId"].as_str().unwrap().to_owned();
    let by = async |run: &str| {
        sidecar.get(&format!("/api/runs/{run}/events")).await.ok(200)[0]["event"]["by"].clone()
    };
    assert_eq!(by(&run).await, "token:guest");
    let own = sidecar.run(json!({"payload": "?"})).await["runs"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(by(&own).await, "token:main");
}

#[tokio::test]
async fn an_agent_shows_its_tools_its_memory_and_what_it_has_done() {
    let mut nodes = sums(&["6 * 7", "1 / 0"]);
    nodes[2]["wires"][2] = json!(["memory"]);
    nodes.as_array_mut().unwrap().push(
        json!({"id": "memory", "type": "buffer-memory", "z": "tab", "name": "Notes", "wires": [["agent"]]}),
    );
    let sidecar = TestSidecar::start(nodes).await;
    for _ in 0..2 {
        sidecar.run(json!({"payload": "?"})).await;
    }
    let state = eventually("both runs are counted", || async {
        let state = sidecar.get("/api/agents/agent/state").await.ok(200);
        (state["calls"] == json!([{"tool": "act", "calls": 4, "failed": 2}])).then_some(state)
    })
    .await;
    assert_eq!((&state["agent"]["ready"], &state["runs"]), (&json!(true), &json!(2)));
    assert_eq!((&state["memory"]["recalls"], &state["memory"]["node"]["id"]), (&json!(2), &json!("memory")));
    let tools: Vec<&Value> = state["tools"].as_array().unwrap().iter().map(|tool| &tool["id"]).collect();
    assert_eq!(tools, ["builtin.act"]);
    assert_eq!(sidecar.get("/internal/agent-node/state?agent=agent").await.ok(200), state);
    sidecar.get("/internal/agent-node/state").await.refused(400, "REQUEST_INVALID");
    for unknown in ["/api/agents/model/state", "/api/agents/agent/state?instance=other"] {
        sidecar.get(unknown).await.refused(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn the_older_paths_do_the_same() {
    let sidecar = TestSidecar::start(tool_flow("calculator-tool")).await;
    let started =
        sidecar.post("/internal/agent-node/input", json!({"payload": "?", "wait": true})).await.ok(200);
    assert_eq!(started["runs"][0]["status"], "completed");
    let list = sidecar.get("/api/tools").await.ok(200);
    assert_eq!(list["tools"][0]["id"], "builtin.act");
    for body in [json!({}), json!({"query": "builtin."})] {
        assert_eq!(sidecar.post("/internal/agent-node/tool", body).await.ok(200), list);
    }
    let none = sidecar.post("/internal/agent-node/tool", json!({"query": "weather."})).await.ok(200);
    assert_eq!(none["tools"], json!([]));
    for wrong in [json!({"query": 1}), json!({"query": "", "more": 1}), json!({"input": {}})] {
        sidecar.post("/internal/agent-node/tool", wrong).await.refused(400, "BODY_INVALID");
    }
}

#[tokio::test]
async fn ids_from_strangers_are_only_looked_up() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for id in ["a%2Fb", "..%2f..%2ftools", "%2e%2e", "%00", "a.b%20c", "%E2%80%AE", "*", &"x".repeat(5000)] {
        for path in [format!("/api/tools/{id}"), format!("/api/tools/{id}/calls")] {
            sidecar.get(&path).await.refused(404, "NOT_FOUND");
        }
        sidecar.post(&format!("/api/tools/{id}/call"), json!({"input": {}})).await.refused(404, "NOT_FOUND");
        let removed = sidecar.request("DELETE", &format!("/api/tools/{id}")).token(TOKEN).send().await;
        removed.refused(404, "NOT_FOUND");
    }
    sidecar.get("/api/tools/%FF").await.refused(400, "REQUEST_INVALID");
    sidecar.get("/api/tools/a/b").await.refused(404, "ROUTE_UNKNOWN");
}

/// The definition of a tool that returns its input.
fn weather() -> Value {
    json!({
        "id": "weather.current", "kind": "http", "description": "The weather now",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "url": "https://weather.example/{{input.city}}",
    })
}

async fn delete(sidecar: &TestSidecar, id: &str) -> crate::client::Reply {
    sidecar.request("DELETE", &format!("/api/tools/{id}")).token(TOKEN).send().await
}

fn ids(list: &Value) -> Vec<&str> {
    list["tools"].as_array().unwrap().iter().map(|tool| tool["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_tool_is_registered_called_logged_and_removed() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let entry = sidecar.post("/api/tools", weather()).await.ok(201);
    let shown = |entry: &Value| {
        let keys = ["id", "name", "origin", "provider", "effect", "state"];
        keys.map(|key| entry[key].as_str().unwrap().to_owned())
    };
    let expected = ["weather.current", "weather__current", "manifest", "registered", "read", "ready"];
    assert_eq!(shown(&entry), expected);
    let list = sidecar.get("/api/tools").await.ok(200);
    assert_eq!(ids(&list), ["builtin.calculator", "weather.current"]);
    assert_eq!(sidecar.get("/api/tools/weather.current").await.ok(200), entry);
    assert_eq!(sidecar.get("/api/tools/weather__current").await.ok(200), entry);

    let call =
        async |input: Value| sidecar.post("/api/tools/weather.current/call", json!({"input": input})).await;
    let done = call(json!({"city": "Bern"})).await.ok(200);
    assert_eq!((&done["success"], &done["output"]), (&json!(true), &json!({"city": "Bern"})));
    assert_eq!(
        (&done["by"], &done["tries"], &done["effect"]),
        (&json!("token:main"), &json!(1), &json!("read"))
    );
    let failed = call(json!({"city": "Bern", "fail": 1})).await.ok(200);
    assert_eq!((&failed["success"], &failed["error"]), (&json!(false), &json!("it was told to fail")));
    for wrong in [json!({}), json!({"city": 1})] {
        call(wrong).await.refused(422, "TOOL_INPUT_INVALID");
    }
    let calls = eventually("both calls are in the log", || async {
        let calls = sidecar.get("/api/tools/weather.current/calls").await.ok(200)["calls"].clone();
        (calls.as_array().unwrap().len() == 2).then_some(calls)
    })
    .await;
    assert_eq!(calls, json!([failed, done]));
    // The older path registers too, and a new definition replaces the old one.
    let mut other = weather();
    other["description"] = json!("Another text");
    let replaced = sidecar.post("/internal/agent-node/tool", other).await.ok(201);
    assert_ne!(replaced["digest"], entry["digest"]);

    // A registered tool is there after a restart.
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(sidecar.get("/api/tools/weather.current").await.ok(200), replaced);
    assert_eq!(delete(&sidecar, "weather.current").await.status, 204);
    assert_eq!(ids(&sidecar.get("/api/tools").await.ok(200)), ["builtin.calculator"]);
    delete(&sidecar, "weather.current").await.refused(404, "NOT_FOUND");
    delete(&sidecar, "builtin.calculator").await.refused(409, "TOOL_CONFLICT");
}

#[tokio::test]
async fn a_node_of_the_flow_can_be_called_outside_a_run() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let call = async |input: Value| {
        sidecar.post("/api/tools/builtin.calculator/call", json!({"input": input})).await
    };
    assert_eq!(call(json!({"expression": "6*7"})).await.ok(200)["output"]["result"], 42);
    call(json!({"expression": 1})).await.refused(422, "TOOL_INPUT_INVALID");
}

#[tokio::test]
async fn only_an_admin_registers_and_only_a_runner_calls() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push((scope, token(sidecar.dir.path(), scope.as_str(), &[scope], 1)));
    }
    for (scope, token) in &tokens {
        eventually("the token is known", || async {
            let status = sidecar.request("GET", "/api/tools").token(token).send().await.status;
            (status == 200).then_some(())
        })
        .await;
        let send = async |method: &str, path: &str, body: Option<Value>| {
            let request = sidecar.request(method, path).token(token);
            body.map_or(request.clone(), |body| request.json(body)).send().await.status
        };
        let call = Some(json!({"input": {"expression": "1"}}));
        let statuses = [
            send("GET", "/api/tools/builtin.calculator", None).await,
            send("GET", "/api/tools/builtin.calculator/calls", None).await,
            send("POST", "/internal/agent-node/tool", Some(json!({}))).await,
            send("POST", "/api/tools/builtin.calculator/call", call).await,
            send("POST", "/api/tools", Some(weather())).await,
            send("POST", "/internal/agent-node/tool", Some(weather())).await,
            send("DELETE", "/api/tools/weather.current", None).await,
        ];
        let expected = match scope {
            Scope::Read | Scope::Deploy => [200, 200, 200, 403, 403, 403, 403],
            Scope::Run => [200, 200, 200, 200, 403, 403, 403],
            Scope::Admin => [200, 200, 200, 200, 201, 201, 204],
        };
        assert_eq!(statuses, expected, "{scope:?}");
    }
}

#[tokio::test]
async fn a_wrong_definition_is_refused_with_every_problem() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let refused = async |change: Value| {
        let mut tool = weather();
        for (key, value) in change.as_object().unwrap() {
            tool[key] = value.clone();
        }
        let reply = sidecar.post("/api/tools", tool).await;
        reply.refused(422, "TOOL_REFUSED");
        reply.json()
    };
    for change in [
        json!({"id": "weather"}),
        json!({"id": "../weather.current"}),
        json!({"id": "mcp.weather"}),
        json!({"kind": "shell"}),
        json!({"url": "https://{{input.city}}/"}),
        json!({"url": "file:///etc/passwd"}),
        json!({"inputSchema": []}),
        json!({"inputSchema": {"type": "no such type"}}),
        json!({"more": 1}),
        json!({"timeoutMs": 0}),
    ] {
        let report = refused(change.clone()).await["report"].clone();
        assert_eq!(report["diagnostics"][0]["code"], "MANIFEST_INVALID", "{change}: {report}");
    }
    let report = refused(json!({"id": "weather", "url": "ftp://x", "more": 1})).await["report"].clone();
    assert!(report["diagnostics"].as_array().unwrap().len() >= 3, "{report}");
    sidecar.post("/api/tools", json!({})).await.refused(422, "TOOL_REFUSED");
    let large = json!({"id": "a.b", "description": "x".repeat(40_000_000)});
    sidecar.post("/api/tools", large).await.refused(413, "BODY_TOO_LARGE");
    let deep = sidecar.request("POST", "/api/tools").token(TOKEN).header("content-type", "application/json");
    let text = "{\"a\":".repeat(500) + "1" + &"}".repeat(500);
    deep.bytes(text.into_bytes()).send().await.refused(400, "BODY_INVALID");
    assert_eq!(ids(&sidecar.get("/api/tools").await.ok(200)), ["builtin.calculator"]);
    assert!(!sidecar.dir.path().join("tools.d").exists());
}

/// The manifest is live within a second. One with problems changes nothing, and the problems are shown.
// SECURITY: manifest
#[tokio::test]
async fn the_manifest_and_its_policy_are_live() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let write = |manifest: &Value| {
        let file = sidecar.dir.path().join("tools.json");
        std::fs::write(file.with_extension("new"), manifest.to_string()).unwrap();
        std::fs::rename(file.with_extension("new"), file).unwrap();
    };
    let until = async |condition: &str, check: &dyn Fn(&Value) -> bool| {
        eventually(condition, || async {
            let list = sidecar.get("/api/tools").await.ok(200);
            check(&list).then_some(list)
        })
        .await
    };
    let call = async || {
        sidecar.post("/api/tools/weather.current/call", json!({"input": {"city": "Bern"}})).await.ok(200)
    };
    let deny = json!([{"deny": ["weather.*"], "roles": ["guests"]}]);
    let roles = json!({"guests": {"tokens": ["main"]}});
    write(&json!({"tools": [weather()]}));
    let list = until("the tool is there", &|list| ids(list).contains(&"weather.current")).await;
    assert_eq!(call().await["success"], true);
    sidecar.post("/api/tools", weather()).await.refused(409, "TOOL_CONFLICT");
    let mut twin = weather();
    twin["id"] = json!("Weather.Current");
    sidecar.post("/api/tools", twin).await.refused(409, "TOOL_CONFLICT");
    delete(&sidecar, "weather.current").await.refused(409, "TOOL_CONFLICT");

    write(&json!({"tools": [weather()], "policy": deny, "roles": roles}));
    let generation = list["generation"].as_u64();
    until("the policy is there", &|list| list["generation"].as_u64() > generation).await;
    let denied = call().await;
    let seen = (&denied["success"], &denied["code"], &denied["tries"]);
    assert_eq!(seen, (&json!(false), &json!("TOOL_DENIED"), &json!(0)));

    write(&json!({"tools": [weather(), weather()]}));
    let list = until("the problems are shown", &|list| !list["problems"].is_null()).await;
    assert_eq!(list["problems"][0]["code"], "MANIFEST_INVALID");
    assert_eq!(call().await["code"], "TOOL_DENIED");
    write(&json!({}));
    until("the tools are gone", &|list| list["problems"].is_null() && ids(list) == ["builtin.calculator"])
        .await;
}

/// Sends a call that holds, and waits until it has begun.
async fn held_call(sidecar: &TestSidecar, name: &str) -> (TcpStream, std::path::PathBuf) {
    let hold = sidecar.dir.path().join(name);
    let body = json!({"input": {"city": "Bern", "hold": hold}});
    let request = sidecar.request("POST", "/api/tools/weather.current/call").token(TOKEN).json(body);
    let mut tcp = TcpStream::connect(sidecar.addr).await.unwrap();
    tcp.write_all(&request.text()).await.unwrap();
    eventually("the call has begun", || async { hold.exists().then_some(()) }).await;
    (tcp, hold)
}

/// A call is made and logged, even if its client has disconnected.
#[tokio::test]
async fn a_call_is_logged_when_its_client_hangs_up() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.post("/api/tools", weather()).await.ok(201);
    let (tcp, hold) = held_call(&sidecar, "hold").await;
    drop(tcp);
    // The sidecar learns meanwhile that the client is gone.
    for _ in 0..20 {
        sidecar.get("/api/tools").await.ok(200);
    }
    std::fs::remove_file(hold).unwrap();
    let calls = eventually("the call is in the log", || async {
        let calls = sidecar.get("/api/tools/weather.current/calls").await.ok(200)["calls"].clone();
        (calls != json!([])).then_some(calls)
    })
    .await;
    assert_eq!((&calls[0]["success"], &calls[0]["by"]), (&json!(true), &json!("token:main")));
}

#[tokio::test]
async fn a_call_that_the_stop_interrupts_is_logged_as_unknown() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.post("/api/tools", weather()).await.ok(201);
    let (tcp, _) = held_call(&sidecar, "hold").await;
    let (gone, _) = held_call(&sidecar, "other").await;
    drop(gone);
    let dir = sidecar.stop().await;
    drop(tcp);
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let calls = sidecar.get("/api/tools/weather.current/calls").await.ok(200)["calls"].clone();
    assert_eq!(calls.as_array().unwrap().len(), 2, "{calls}");
    for call in calls.as_array().unwrap() {
        assert_eq!((&call["success"], &call["input"]["city"]), (&json!(false), &json!("Bern")));
        assert!(call["error"].as_str().unwrap().contains("unknown whether the call took effect"), "{call}");
    }
}

/// Calls of disconnected clients are limited too. Others wait for them.
#[tokio::test]
async fn calls_at_the_same_time_are_limited() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.post("/api/tools", weather()).await.ok(201);
    let mut held = Vec::new();
    for number in 0..64 {
        held.push(held_call(&sidecar, &format!("hold{number}")).await.1);
    }
    let body = json!({"input": {"city": "Bern"}});
    let mut waiting = Box::pin(sidecar.post("/api/tools/weather.current/call", body));
    // Others are served meanwhile.
    for _ in 0..20 {
        let other = sidecar.get("/api/tools");
        match futures::future::select(&mut waiting, Box::pin(other)).await {
            futures::future::Either::Left(_) => panic!("the call did not wait"),
            futures::future::Either::Right((reply, _)) => assert_eq!(reply.status, 200),
        }
    }
    for hold in held {
        std::fs::remove_file(hold).unwrap();
    }
    assert_eq!(waiting.await.ok(200)["success"], true);
}

#[tokio::test]
async fn nothing_is_registered_while_the_manifest_has_problems() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let mut other = weather();
    other["id"] = json!("weather.old");
    sidecar.post("/api/tools", other).await.ok(201);
    std::fs::write(sidecar.dir.path().join("tools.json"), "{\"tools\": 5}").unwrap();
    let reply = sidecar.post("/api/tools", weather()).await;
    reply.refused(422, "TOOL_REFUSED");
    let problem = reply.json();
    assert_eq!(problem["report"]["diagnostics"][0]["code"], "MANIFEST_INVALID");
    assert!(problem["message"].as_str().unwrap().contains("The manifest has errors"), "{problem}");
    assert!(!sidecar.dir.path().join("tools.d/weather.current.json").exists());
    // A tool can be removed all the same.
    assert_eq!(delete(&sidecar, "weather.old").await.status, 204);
    sidecar.get("/api/tools/weather.old").await.refused(404, "NOT_FOUND");
}

/// Two tabs may have tools with the same name.
#[tokio::test]
async fn one_of_several_tools_with_an_id_is_chosen() {
    let mut nodes = plain_flow();
    let mut copies = plain_flow();
    for node in copies.as_array_mut().unwrap() {
        let text = node.to_string();
        let mut copy: Value = serde_json::from_str(&text).unwrap();
        for name in ["tab", "ask", "agent", "model", "result", "calculator"] {
            let text = copy.to_string();
            let text = text.replace(&format!("\"{name}\""), &format!("\"{name}2\""));
            copy = serde_json::from_str(&text).unwrap();
        }
        copy["type"] = node["type"].clone();
        if !copy["toolName"].is_null() {
            copy["toolName"] = json!("calculator");
        }
        if !copy["allowedTools"].is_null() {
            copy["allowedTools"] = json!(["calculator"]);
        }
        copy["maxIterations"] = node["maxIterations"].clone();
        nodes.as_array_mut().unwrap().push(copy);
    }
    let sidecar = TestSidecar::start(nodes).await;
    let path = "/api/tools/builtin.calculator";
    let body = json!({"input": {"expression": "6*7"}});
    for reply in [sidecar.get(path).await, sidecar.post(&format!("{path}/call"), body.clone()).await] {
        reply.refused(409, "TOOL_CONFLICT");
        let message = reply.json()["message"].as_str().unwrap().to_owned();
        for query in ["`node=calculator&instance=local`", "`node=calculator2&instance=local`"] {
            assert!(message.contains(query), "{message}");
        }
    }
    for query in ["node=calculator2", "node=calculator2&instance=local"] {
        assert_eq!(sidecar.get(&format!("{path}?{query}")).await.ok(200)["provider"], "calculator2");
        let called = sidecar.post(&format!("{path}/call?{query}"), body.clone()).await.ok(200);
        assert_eq!(called["output"]["result"], 42);
    }
    sidecar.get(&format!("{path}?instance=home")).await.refused(404, "NOT_FOUND");
    sidecar.get(&format!("{path}?other=1")).await.refused(400, "REQUEST_INVALID");
    sidecar.get(&format!("{path}/calls")).await.ok(200);
}
