//! Tools and prompts of MCP servers: in the registry, in runs, and in resumed runs.

use crate::kit::{
    Buffered, EngineTest, Setup, agent_with_tool, build, debug, ends, final_answer, inject, model,
    model_double, node, only_message, tool_call, with,
};
use crate::mcp_double::{McpDouble, changed, foreign_tools, mcp_tool};
use crate::registry::{calls, codes, define, first_fact, flow, manifest, tool};
use pretty_assertions::assert_eq;
use redflow_contract::digest::Digest;
use redflow_contract::id::RunId;
use redflow_contract::manifest::Manifest;
use redflow_contract::mcp::MAX_MCP_SERVERS;
use redflow_engine::{Registry, RunEnd, RunReport, StartOrder};
use redflow_ports::RegisteredServer;
use serde_json::{Value, json};
use std::sync::Arc;

/// A setup whose registry has these MCP servers.
pub(crate) fn setup(mcp: &Arc<McpDouble>) -> Setup {
    let mcp: Arc<McpDouble> = Arc::clone(mcp);
    Setup { registry: Arc::new(Registry::with_mcp(mcp)), ..Setup::default() }
}

/// Connected MCP servers with two tools of `files` and one of `web`.
pub(crate) fn servers() -> Arc<McpDouble> {
    let mcp = McpDouble::new(true);
    mcp.set_tools(vec![
        mcp_tool("mcp.web.fetch", json!("fetched")),
        mcp_tool("mcp.files.write", json!("written")),
        mcp_tool("mcp.files.read", json!("read")),
    ]);
    mcp
}

/// The ids of the tools of a run.
pub(crate) fn tool_ids(test: &EngineTest, run: &str) -> Vec<String> {
    let fact = first_fact(test, run);
    let tools = fact["fact"]["spec"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["id"].as_str().or(tool["name"].as_str()).unwrap().to_owned()).collect()
}

/// Sends the agent `a` a message.
pub(crate) async fn send_message(test: &EngineTest, message: Value) -> Vec<RunReport> {
    let message = message.as_object().cloned();
    let order = StartOrder { node: Some("a".into()), message, ..StartOrder::default() };
    test.start(order).await.unwrap().reports.await.unwrap()
}

/// An AI agent with a system prompt, and perhaps a `registry-tool` with these ids.
pub(crate) fn ai_flow(prompt: &str, ids: Option<Value>) -> Value {
    let tools = if ids.is_some() { json!(["t"]) } else { json!([]) };
    let mut flow = json!([
        inject(&["a"]),
        with(
            node("a", "ai-agent", json!([[], []])),
            json!({"model": "m", "tools": tools, "systemPrompt": prompt})
        ),
        model("m", json!(["done"])),
    ]);
    if let Some(ids) = ids {
        let tool = with(node("t", "registry-tool", json!([])), json!({"ids": ids}));
        flow.as_array_mut().unwrap().push(tool);
    }
    flow
}

#[tokio::test]
async fn the_registry_has_the_tools_of_the_servers_and_reads_them_when_they_change() {
    let mcp = servers();
    let registry = Registry::with_mcp(Arc::clone(&mcp) as _);
    let snapshot = registry.snapshot();
    let ids = |registry: &Registry| -> Vec<String> {
        registry.snapshot().entries().into_iter().map(|entry| entry.id).collect()
    };
    assert_eq!(ids(&registry), ["mcp.files.read", "mcp.files.write", "mcp.web.fetch"]);
    assert_eq!(snapshot.tool("mcp.files.read").unwrap().entry.name, "mcp__files__read");
    assert_eq!(snapshot.find("mcp__web__fetch").unwrap().entry.id, "mcp.web.fetch");
    for _ in 0..5 {
        assert_eq!(registry.snapshot().generation(), snapshot.generation());
    }
    assert_eq!(mcp.state().reads, 1, "nothing has changed");
    // The manifest does not remove them, and they do not remove its tools.
    crate::doubles::set_recorder(crate::recorder::EventRecorder::new(0));
    define(&registry, &manifest(&[tool("weather.current", json!({}))]));
    let mut tools = foreign_tools();
    tools.extend([mcp_tool("mcp.files.list", json!(1)), mcp_tool("mcp.files.list", json!(2))]);
    mcp.set_tools(tools);
    assert_eq!(ids(&registry), ["mcp.files.list", "weather.current"], "no foreign id, and each id once");
    assert_eq!(registry.snapshot().tool("weather.current").unwrap().entry.provider, "manifest");
    assert!(registry.snapshot().generation() > snapshot.generation());
    define(&registry, &manifest(&[]));
    assert_eq!(ids(&registry), ["mcp.files.list"]);
}

/// What the client has cut no longer follows the schema. It has checked the whole output before.
#[tokio::test(start_paused = true)]
async fn an_output_that_the_client_has_cut_is_given_to_the_model() {
    let mcp = McpDouble::new(true);
    let cut = json!({"text": "{\"content\":\"xx", "truncated": true, "bytes": 200_000});
    let schema = json!({"type": "object", "required": ["content"]});
    let read =
        changed(&mcp_tool("mcp.files.read", cut.clone()), |entry| entry.output_schema = Some(schema.clone()));
    mcp.set_tools(vec![read]);
    let test = setup(&mcp).start_engine(&flow(json!(["mcp.files.read"]), &[("mcp__files__read", json!({}))]));
    assert_eq!(calls(&test).await[0]["output"], cut);
    assert_eq!(codes(&test), ["ok 1"]);
    // The journal says what the tool promises.
    let fact = first_fact(&test, "run-1");
    assert_eq!(fact["fact"]["spec"]["tools"][0]["outputSchema"], schema);
}

#[tokio::test]
async fn the_manifest_and_commands_define_servers() {
    let mcp = McpDouble::new(true);
    let registry = Registry::with_mcp(Arc::clone(&mcp) as _);
    let added = |name: &str, server: Value| RegisteredServer { name: name.to_owned(), server: Ok(server) };
    let program = || json!({"command": "npx"});
    let servers = json!({"mcp": {"files": program(), "web": {"url": "https://example.org/mcp"}}});
    let load = |manifest: Value, added: Vec<RegisteredServer>| {
        registry.load_values(Ok(manifest), Vec::new(), added, None, &|_| None)
    };
    let problems = load(servers.clone(), vec![added("docs", program()), added("files", program())]);
    assert_eq!(problems, Ok(Vec::new()), "the manifest replaces `files` without a problem");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    assert_eq!(mcp.state().defined, [(names(&["docs", "files", "web"]), names(&["docs"]))]);
    // A server with a problem is left out.
    let unreadable = RegisteredServer { name: "x".to_owned(), server: Err(Vec::new()) };
    let wrong = vec![
        added("docs", json!({"command": "npx", "url": "https://example.org/"})),
        added("FILES", program()),
        added("a.b", program()),
        unreadable,
    ];
    let found = load(servers.clone(), wrong).unwrap();
    let places: Vec<_> = found.iter().map(|problem| problem.file.clone().unwrap()).collect();
    assert_eq!(places, ["mcp.d/docs.json", "mcp.d/FILES.json", "mcp.d/a.b.json"]);
    assert!(
        found.iter().all(|problem| problem.code.as_str() == "MANIFEST_INVALID" && !problem.help.is_empty())
    );
    assert_eq!(mcp.state().defined.last(), Some(&(names(&["files", "web"]), Vec::new())));
    // There are at most so many in all.
    let many = (0..MAX_MCP_SERVERS - 1).map(|number| added(&format!("s{number}"), program())).collect();
    let found = load(servers, many).unwrap();
    assert_eq!((found.len(), mcp.state().defined.last().unwrap().0.len()), (1, MAX_MCP_SERVERS));
    // A manifest with a problem changes nothing.
    let before = mcp.state().defined.len();
    let found = load(json!({"mcp": {"files": {}, "a b": program()}}), Vec::new()).unwrap_err();
    let pointers: Vec<_> = found.iter().map(|problem| problem.pointer.clone().unwrap()).collect();
    assert_eq!(
        (pointers, mcp.state().defined.len()),
        (vec!["/mcp/files".to_owned(), "/mcp/a b".to_owned()], before)
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_calls_tools_of_a_server_by_pattern_id_or_name() {
    let read = ("mcp__files__read", json!({}));
    let rows = [
        (json!(["mcp.files.*"]), vec!["mcp.files.read", "mcp.files.write"]),
        (json!(["mcp.files.read"]), vec!["mcp.files.read"]),
        (json!(["mcp__files__read"]), vec!["mcp.files.read"]),
        (json!(["*"]), vec!["mcp.files.read", "mcp.files.write", "mcp.web.fetch"]),
    ];
    for (ids, expected) in rows {
        let test = setup(&servers()).start_engine(&flow(ids.clone(), std::slice::from_ref(&read)));
        assert_eq!(calls(&test).await[0]["output"], "read", "{ids}");
        assert_eq!(tool_ids(&test, "run-1"), expected, "{ids}");
    }
    let test = setup(&servers()).start_engine(&flow(json!(["mcp.files.delete"]), &[]));
    assert_eq!(ends(&test.fire().await), ["run-1 a refused TOOL_UNAVAILABLE"]);
}

#[tokio::test(start_paused = true)]
async fn the_policy_knows_the_server_of_a_tool() {
    let script = [("mcp__files__read", json!({})), ("mcp__web__fetch", json!({}))];
    let rows = [
        (json!([{"deny": ["*"], "servers": ["files"]}]), ["TOOL_DENIED 0", "ok 1"]),
        (json!([{"deny": ["mcp.web.*"]}]), ["ok 1", "TOOL_DENIED 0"]),
        (json!([{"deny": ["*"], "servers": ["other"]}]), ["ok 1", "ok 1"]),
    ];
    for (policy, expected) in rows {
        let test = setup(&servers()).start_engine(&flow(json!(["mcp.*"]), &script));
        let manifest: Manifest = serde_json::from_value(json!({"policy": policy})).unwrap();
        define(&test.registry, &manifest);
        calls(&test).await;
        assert_eq!(codes(&test), expected, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_of_servers_reach_no_journal() {
    let secret = "tok-12345678901234567890";
    let mcp = McpDouble::new(true);
    mcp.state().secret = Some(secret.to_owned());
    mcp.set_tools(vec![mcp_tool("mcp.files.read", json!({"echo": secret}))]);
    mcp.set_prompt("docs", "leaky", &format!("The token is {secret}."));
    let test = setup(&mcp).start_engine(&flow(json!(["mcp.files.*"]), &[("mcp__files__read", json!({}))]));
    assert_ne!(calls(&test).await[0]["output"]["echo"], secret);
    let ai = setup(&mcp).start_engine(&ai_flow("mcp:docs/leaky", None));
    assert_eq!(ends(&ai.fire().await), ["run-1 a completed"]);
    for test in [test, ai] {
        assert!(!test.store.journal(&RunId::from("run-1")).contains(secret));
    }
}

/// Runs until the call of a tool hangs, crashes, and resumes with these tools, which the server has after a while.
async fn after_a_crash(second: Vec<redflow_ports::ProvidedTool>) -> (Vec<String>, String) {
    let flow = json!([
        inject(&["a"]),
        with(agent_with_tool("a", "m", &["d"]), json!({"allowedTools": ["mcp.files.*"]})),
        model_double("m", json!([tool_call("mcp__files__read", json!({})), final_answer("done")]), json!({})),
        with(node("t", "registry-tool", json!([])), json!({"ids": ["mcp.files.*"]})),
        debug("d", "payload"),
    ]);
    let mcp = McpDouble::new(true);
    let slow = changed(&mcp_tool("mcp.files.read", json!("hangs")), |entry| entry.timeout_ms = 60_000);
    mcp.set_tools(vec![slow]);
    let store = setup(&mcp).start_engine(&flow).crash_after(1, Buffered::Survives).await;
    let mcp = McpDouble::new(false);
    let test = setup(&mcp).restart(&flow, &store);
    let connects = async {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        mcp.set_tools(second);
        mcp.set_ready(true);
    };
    let (reports, ()) = tokio::join!(test.recover(), connects);
    assert_eq!(mcp.state().waits[0], (vec!["files".to_owned()], Vec::new()));
    let message = only_message(&reports);
    let call = &message["envelope"]["tools"]["history"][0];
    let text = call["error"].as_str().map_or_else(|| call["output"].to_string(), str::to_owned);
    (codes(&test), format!("{}: {text}", ends(&reports)[0]))
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_waits_for_the_server_and_calls_only_the_tool_that_it_began_with() {
    let same = mcp_tool("mcp.files.read", json!("made"));
    let other = changed(&same, |entry| entry.digest = Digest::of(b"other"));
    let rows = [
        (vec![same], "ok 1", "\"made\""),
        (vec![other], "TOOL_CHANGED 1", "The tool `mcp.files.read` has changed since the run began."),
        (vec![], "TOOL_UNAVAILABLE 1", "The tool `mcp.files.read` is no longer there."),
    ];
    for (second, code, text) in rows {
        let found = after_a_crash(second).await;
        assert_eq!(found, (vec![code.to_owned()], format!("run-1 a completed: {text}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_of_a_server_is_the_system_prompt_of_the_first_fact() {
    let mcp = McpDouble::new(true);
    mcp.set_prompt("docs", "review", "You review texts.");
    let test = setup(&mcp).start_engine(&ai_flow("mcp:docs/review", None));
    let prompt = |run: &str| first_fact(&test, run)["fact"]["spec"]["converse"]["systemPrompt"].clone();
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    // The text is the server's at the time of the run; replay reads the one of the journal.
    mcp.set_prompt("docs", "review", "You check texts.");
    assert_eq!(ends(&test.fire().await), ["run-2 a completed"]);
    assert_eq!((prompt("run-1"), prompt("run-2")), (json!("You review texts."), json!("You check texts.")));
}

#[tokio::test(start_paused = true)]
async fn a_missing_or_too_long_prompt_refuses_the_run() {
    let mcp = McpDouble::new(true);
    mcp.set_prompt("docs", "long", &"x".repeat(65_537));
    mcp.set_prompt("docs", "most", &"x".repeat(65_536));
    let text = |reports: &[RunReport]| only_message(reports)["payload"]["error"]["message"].clone();
    for (prompt, reason) in [
        ("mcp:docs/none", "the server is not connected or has no such prompt"),
        ("mcp:docs/long", "it has 65537 bytes; at most 65536 are allowed"),
    ] {
        let test = setup(&mcp).start_engine(&ai_flow(prompt, None));
        let reports = test.fire().await;
        assert_eq!(ends(&reports), ["run-1 a refused MCP_UNAVAILABLE"], "{prompt}");
        let name = prompt.rsplit('/').next().unwrap();
        let expected = format!(
            "The system prompt is the prompt `{name}` of the MCP server `docs`, but {reason}. See `redflow mcp show docs`."
        );
        assert!(only_message(&reports).to_string().contains(&expected), "{:#}", text(&reports));
    }
    let test = setup(&mcp).start_engine(&ai_flow("mcp:docs/most", None));
    assert_eq!(ends(&test.fire().await), ["run-1 a completed"]);
    // A build without MCP servers has no prompts either.
    let test = EngineTest::new(&ai_flow("mcp:docs/review", None));
    assert_eq!(ends(&test.fire().await), ["run-1 a refused MCP_UNAVAILABLE"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_names_the_servers_of_its_run() {
    let flow = json!([
        inject(&["a"]),
        with(
            node("a", "ai-agent", json!([["d"], []])),
            json!({"model": "m", "tools": ["calc", "t"], "outputFormat": "text"})
        ),
        model("m", json!(["done"])),
        crate::kit::calculator(),
        with(node("t", "registry-tool", json!([])), json!({"ids": ["mcp.*", "weather.*"]})),
        debug("d", "mcp"),
    ]);
    let test = setup(&servers()).start_engine(&flow);
    define(&test.registry, &manifest(&[tool("weather.current", json!({}))]));
    let all = ["calculator", "mcp.files.read", "mcp.files.write", "mcp.web.fetch", "weather.current"];
    let rows = [
        (json!(null), all.to_vec()),
        (json!("web"), vec!["calculator", "mcp.web.fetch", "weather.current"]),
        (json!(["web"]), vec!["calculator", "mcp.web.fetch", "weather.current"]),
        (json!(["web", "files"]), all.to_vec()),
        (json!([]), vec!["calculator", "weather.current"]),
    ];
    for (number, (named, expected)) in (1..).zip(rows) {
        let reports = send_message(&test, json!({"payload": "go", "mcp": named})).await;
        assert_eq!(ends(&reports), [format!("run-{number} a completed")], "{named}");
        assert_eq!(tool_ids(&test, &format!("run-{number}")), expected, "{named}");
        assert_eq!(only_message(&reports)["mcp"], named, "the property stays");
    }
    let most: Vec<String> = (0..33).map(|number| format!("s{number}")).collect();
    let unknown = "`msg.mcp` names the MCP server `mail`, but the agent has no tool of it.";
    let wrong = "`msg.mcp` must be the name of an MCP server, or a list of at most 32 names.";
    let rows = [
        (json!("mail"), "TOOL_UNAVAILABLE", unknown),
        (json!(["files", "mail"]), "TOOL_UNAVAILABLE", unknown),
        (json!(7), "CONFIG_INVALID", wrong),
        (json!(""), "CONFIG_INVALID", wrong),
        (json!(["files", 7]), "CONFIG_INVALID", wrong),
        (json!(["mcp.files"]), "CONFIG_INVALID", wrong),
        (json!({"files": true}), "CONFIG_INVALID", wrong),
        (json!(most), "CONFIG_INVALID", wrong),
    ];
    for (number, (named, code, text)) in (6..).zip(rows) {
        let reports = send_message(&test, json!({"payload": "go", "mcp": named})).await;
        assert_eq!(ends(&reports), [format!("run-{number} a refused {code}")], "{named}");
        assert!(only_message(&reports).to_string().contains(text), "{named}");
    }
}

/// A message may come from an agent that uses a server.
#[tokio::test(start_paused = true)]
async fn an_agent_without_a_server_ignores_the_names() {
    let flow = ai_flow("You help.", Some(json!(["weather.*"])));
    let test = setup(&McpDouble::new(true)).start_engine(&flow);
    define(&test.registry, &manifest(&[tool("weather.current", json!({}))]));
    for named in [json!("files"), json!(7)] {
        let reports = send_message(&test, json!({"payload": "go", "mcp": named})).await;
        assert!(ends(&reports)[0].ends_with("a completed"), "{reports:#?}");
    }
    assert_eq!(tool_ids(&test, "run-1"), ["weather.current"]);
}

#[tokio::test]
async fn a_deploy_says_which_servers_are_unknown() {
    let mcp = McpDouble::new(true);
    let registry = Registry::with_mcp(Arc::clone(&mcp) as _);
    crate::doubles::set_recorder(crate::recorder::EventRecorder::new(0));
    let manifest = json!({"mcp": {"files": {"command": "npx"}}});
    registry.load_values(Ok(manifest), Vec::new(), Vec::new(), None, &|_| None).unwrap();
    let ids = json!(["mcp.files.*", "mcp.mail.*", "mcp.mail.send", "mcp.*", "weather.current"]);
    let mut flow = ai_flow("mcp:docs/review", Some(ids));
    let context = json!([{"server": "files", "resource": "a"}, {"server": "wiki", "resource": "b"}]);
    flow[1]["memory"] = json!("l");
    let memory = with(node("l", "long-memory", json!([])), json!({"context": context, "shortMemory": "s"}));
    flow.as_array_mut().unwrap().extend([node("s", "buffer-memory", json!([])), memory]);
    let notices = build(&flow).unknown_servers(&*mcp);
    let found: Vec<String> = notices
        .iter()
        .map(|notice| {
            let node = notice.node.as_ref().unwrap();
            let (code, pointer) = (notice.code.as_str(), notice.pointer.as_deref().unwrap());
            format!("{} {pointer} {code}: {}", node.id, notice.message)
        })
        .collect();
    let text = |server: &str| format!("the manifest has no MCP server `{server}`: nothing of it can be used");
    let expected = [("t /ids/1", "mail"), ("a /systemPrompt", "docs"), ("l /context/1/server", "wiki")];
    let expected = expected.map(|(place, server)| format!("{place} MCP_SERVER_UNKNOWN: {}", text(server)));
    assert_eq!(found, expected);
}

/// An agent for one thing adds `finish_step` itself, and would not offer another tool of that name.
#[tokio::test(start_paused = true)]
async fn no_tool_of_a_server_has_the_name_of_the_answering_tool() {
    let schema = json!({"type": "object", "properties": {}});
    for (type_name, props, name) in [
        ("ai-simple-agent", json!({}), "Finish_Step"),
        ("ai-agent", json!({"outputSchema": schema}), "final_answer"),
    ] {
        let agent = with(node("a", type_name, json!([["d"], []])), json!({"model": "m", "tools": ["t"]}));
        let flow = json!([
            inject(&["a"]),
            with(agent, props),
            model("m", json!(["done"])),
            with(node("t", "registry-tool", json!([])), json!({"ids": ["mcp.files.*"]})),
            debug("d", "payload"),
        ]);
        let mcp = McpDouble::new(true);
        mcp.set_tools(vec![changed(&mcp_tool("mcp.files.end", json!(1)), |entry| {
            entry.name = name.to_owned()
        })]);
        let reports = setup(&mcp).start_engine(&flow).fire().await;
        assert_eq!(ends(&reports), ["run-1 a refused CONFIG_INVALID"], "{type_name}");
        let RunEnd::Refused { error, .. } = &reports[0].end else { panic!("{reports:?}") };
        assert!(error.message.starts_with("The tool `mcp.files.end` is called"), "{}", error.message);
    }
}
