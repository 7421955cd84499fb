//! Programs as servers: what they get, and how they end.

use crate::kit::{Kit, SECRET, call, lines, program, refusal, until};
use pretty_assertions::assert_eq;
use redflow_contract::code::ToolCode;
use redflow_contract::mcp::{McpConfinement, McpServerState, McpTransport};
use redflow_contract::tool::ToolState;
use redflow_ports::{McpServers as _, ToolOutcome, ToolProvider as _};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn both_eras_work() {
    for (behaviour, version) in [("good", "2025-06-18"), ("modern", "2026-07-28")] {
        let kit = Kit::with(behaviour, json!({}));
        assert_eq!(kit.text("echo", json!({"text": "hello"})).await, "hello");
        let summary = kit.hub.list().servers.remove(0);
        assert_eq!((summary.state, summary.transport), (McpServerState::Ready, McpTransport::Stdio));
        assert_eq!(
            (summary.protocol.as_deref(), summary.confinement),
            (Some(version), Some(McpConfinement::of(None, false)))
        );
        kit.hub.stop().await;
    }
}

// SECURITY: mcp-confined
#[tokio::test]
async fn a_program_gets_only_what_is_declared() {
    let kit = Kit::with("good", json!({"env": {"OWN": "1"}, "secrets": ["TEST_SECRET"]}));
    let names = kit.text("echo", json!({"text": "environment"})).await;
    assert_eq!(names, "HOME OWN PATH TEST_SECRET TMPDIR");
    assert_eq!(kit.text("echo", json!({"text": format!("it is {SECRET}")})).await.contains(SECRET), false);
}

#[tokio::test]
async fn a_program_that_ends_at_once_gives_its_status_and_its_last_line() {
    let kit = Kit::with("exit", json!({"secrets": ["TEST_SECRET"]}));
    let begin = Instant::now();
    assert!(kit.tools().await.is_empty());
    assert!(begin.elapsed() < Duration::from_secs(9));
    let reason = kit.reason();
    assert!(reason.starts_with("The program ended with exit code 3: cannot begin with"), "{reason}");
    assert!(!reason.contains(SECRET), "{reason}");
    let summary = kit.hub.list().servers.remove(0);
    assert_eq!((summary.state, summary.code), (McpServerState::Connecting, Some(ToolCode::McpUnavailable)));
}

#[tokio::test]
async fn a_program_that_is_not_there_says_so() {
    let kit = Kit::new();
    kit.define("good", json!({"command": "/no/such/program"}));
    assert!(kit.tools().await.is_empty());
    assert!(kit.reason().contains("`/no/such/program` cannot be started"), "{}", kit.reason());
}

#[tokio::test]
async fn the_command_that_confines_gets_the_declared_paths() {
    let kit = Kit::new();
    let log = kit.file();
    // It writes its arguments, and starts what follows `--`.
    let script = kit.folder.path().join("confine");
    let text = format!(
        "#!/bin/sh\necho \"$@\" > {}\nwhile [ \"$1\" != -- ]; do shift; done; shift\nexec \"$@\"\n",
        log.display()
    );
    std::fs::write(&script, text).unwrap();
    let settings = redflow_mcp::HubSettings {
        egress: redflow_egress::Egress::new(redflow_egress::EgressPolicy::default()),
        store: kit.store.clone(),
        clock: std::sync::Arc::new(crate::kit::FixedClock),
        meter: kit.records.clone(),
        folder: Some(kit.folder.path().join("programs")),
        confine: redflow_mcp::Confiner::new(move || {
            let words = vec!["/bin/sh".into(), script.into()];
            Some(redflow_mcp::ConfineCommand { words, landlock: 7, namespaces: true })
        }),
        times: redflow_mcp::ServerTimes::default(),
    };
    let kit = Kit { hub: redflow_mcp::McpHub::new(settings), ..kit };
    kit.define("good", json!({"read": ["/usr/share/dict"], "write": ["/var/x"], "network": "none"}));
    assert_eq!(kit.text("echo", json!({"text": "x"})).await, "x");
    let own = kit.folder.path().join("programs/test");
    let expected = format!(
        "--namespaces --folder {} --read /usr/share/dict --write /var/x --network none -- {} good {}",
        own.display(),
        program(),
        log.display()
    );
    assert_eq!(lines(&log), [expected]);
    assert_eq!(kit.hub.list().servers[0].confinement, Some(McpConfinement::of(Some(7), true)));
}

/// Also a folder of an earlier version, which every user of the machine could read.
// SECURITY: data-private
#[cfg(unix)]
#[tokio::test]
async fn the_folders_of_programs_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    for are_made_before in [true, false] {
        let kit = Kit::with("good", json!({}));
        let folders = ["programs", "programs/test"].map(|name| kit.folder.path().join(name));
        for folder in folders.iter().filter(|_| are_made_before) {
            std::fs::create_dir(folder).unwrap();
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(kit.text("echo", json!({"text": "x"})).await, "x");
        for folder in &folders {
            let mode = folder.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o700, "{}", folder.display());
        }
    }
}

// SECURITY: mcp-confined
#[tokio::test]
async fn without_confinement_no_network_cannot_be_kept() {
    let kit = Kit::with("good", json!({"network": "none"}));
    assert!(kit.tools().await.is_empty());
    assert_eq!(kit.hub.list().servers[0].state, McpServerState::Blocked);
    assert!(kit.reason().contains("network: none"), "{}", kit.reason());
}

fn is_alive(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).join("exe").exists()
}

// SECURITY: mcp-effect
#[tokio::test]
async fn a_server_killed_in_a_call_leaves_the_outcome_unknown_and_is_never_called_twice() {
    let kit = Kit::with("hangs", json!({"effects": {"echo": "read"}}));
    for (name, is_read) in [("count", false), ("echo", true)] {
        let before = lines(&kit.file()).len();
        let tool = kit.tool(name).await;
        let request = call(json!({}), 30_000);
        let kill = async {
            until("the call arrives", || lines(&kit.file()).len() > before).await;
            let line = lines(&kit.file()).pop().unwrap();
            let (pid, key) = line.split_once(' ').unwrap();
            assert_eq!(key, request.idempotency_key.to_hex());
            let status = std::process::Command::new("kill").args(["-9", pid]).status().unwrap();
            assert!(status.success());
        };
        let (outcome, ()) = tokio::join!(tool.tool.call(&request), kill);
        match (is_read, outcome) {
            (false, ToolOutcome::Unknown { reason }) => assert!(reason.contains("was sent"), "{reason}"),
            (true, ToolOutcome::Returned(result)) => assert_eq!(result.code, Some(ToolCode::McpUnavailable)),
            (_, outcome) => panic!("{name}: {outcome:?}"),
        }
        // The program starts again, and the call is not made again.
        until("it is connected again", || kit.hub.list().servers[0].state == McpServerState::Ready).await;
        assert_eq!(lines(&kit.file()).len(), before + 1);
    }
    assert_eq!(*kit.records.0.lock().unwrap().first().unwrap(), "up test true");
    assert!(kit.records.0.lock().unwrap().contains(&"call test unknown".to_owned()));
    assert!(kit.records.0.lock().unwrap().contains(&"up test false".to_owned()));
}

#[tokio::test]
async fn after_five_failures_a_server_is_offline_and_calls_fail_at_once() {
    let kit = Kit::with("once", json!({}));
    let tool = kit.tool("echo").await;
    let before = kit.hub.generation();
    let pid = lines(&kit.file()).remove(0);
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    until("it is lost", || kit.hub.list().servers[0].state == McpServerState::Connecting).await;
    for _ in 0..6 {
        kit.hub.connect("test").await.unwrap();
    }
    let summary = kit.hub.list().servers.remove(0);
    assert_eq!((summary.state, summary.tools), (McpServerState::Offline, 4));
    assert_eq!(summary.reason.as_deref(), Some("The program ended with exit code 4."));
    // The tools stay, so that a run can begin and say why.
    assert!(kit.hub.generation() > before);
    assert!(kit.hub.tools().iter().all(|tool| tool.entry.state == ToolState::Offline));
    let begin = Instant::now();
    let outcome = tool.tool.call(&call(json!({}), 30_000)).await;
    let (code, text) = refusal(&outcome);
    assert_eq!(code, Some(ToolCode::McpUnavailable));
    assert!(text.contains("redflow mcp show test") && begin.elapsed() < Duration::from_secs(1), "{text}");
    // It comes back without a person.
    std::fs::remove_file(kit.file()).unwrap();
    kit.hub.connect("test").await.unwrap();
    assert_eq!(kit.text("echo", json!({"text": "back"})).await, "back");
    assert!(kit.hub.tools().iter().all(|tool| tool.entry.state == ToolState::Ready));
}

// SECURITY: mcp-confined
#[tokio::test]
async fn the_program_ends_with_the_hub_and_with_its_definition() {
    let kit = Kit::with("hangs", json!({}));
    let tool = kit.tool("count").await;
    let outcome = tool.tool.call(&call(json!({}), 300)).await;
    assert!(matches!(outcome, ToolOutcome::Unknown { .. }), "{outcome:?}");
    let pid = lines(&kit.file()).pop().unwrap().split_once(' ').unwrap().0.to_owned();
    assert!(is_alive(&pid));
    drop(tool);
    kit.define("good", json!({}));
    until("the old program ends", || !is_alive(&pid)).await;
    assert_eq!(kit.text("echo", json!({"text": "new"})).await, "new");
    kit.hub.stop().await;
    let outcome = kit.hub_tool_after_stop().await;
    assert_eq!(refusal(&outcome).0, Some(ToolCode::McpUnavailable));
}
