//! Agents that use servers which are not ours, over stdio: files, everything, memory.

use crate::kit::{Home, agent, folder, output, server, stdio_server};
use serde_json::{Value, json};

/// The results of the tool calls in the payload of an AI Agent, which must all have succeeded.
#[track_caller]
fn results(message: &Value) -> Vec<&Value> {
    let calls =
        message["payload"]["metadata"]["toolCalls"].as_array().unwrap_or_else(|| panic!("{message:#}"));
    let data = |call: &'_ Value| call["result"]["success"] == true;
    assert!(calls.iter().all(data), "{message:#}");
    calls.iter().map(|call| &call["result"]["data"]).collect()
}

#[test]
fn an_agent_writes_and_reads_files_of_a_filesystem_server() {
    let files = tempfile::tempdir().unwrap();
    // The server compares paths without links.
    let root = files.path().canonicalize().unwrap();
    let (note, text) = (root.join("note.txt"), "Milk, eggs and 42 candles");
    let shown = root.display().to_string();
    let servers = json!({"files": stdio_server(&[&server("filesystem"), &shown], json!({"write": [root], "network": "none"}))});
    let calls = [
        ("mcp__files__write_file", json!({"path": note, "content": text})),
        ("mcp__files__read_text_file", json!({"path": note})),
        ("mcp__files__list_directory", json!({"path": root})),
    ];
    for home in Home::both(servers, &agent("files", &calls, "Written.")) {
        let message = home.run_agent();
        assert_eq!(std::fs::read_to_string(&note).unwrap(), text);
        let results = results(&message);
        assert!(results[1].to_string().contains(text), "{message:#}");
        assert!(results[2].to_string().contains("note.txt"), "{message:#}");
        assert_eq!(message["payload"]["response"], "Written.");
        std::fs::remove_file(&note).unwrap();
    }
}

/// The server is confined: it cannot write where its definition does not say so, even if its own arguments do.
#[cfg(target_os = "linux")]
#[test]
fn a_filesystem_server_stays_in_the_folders_of_its_definition() {
    let files = tempfile::tempdir().unwrap();
    let root = files.path().canonicalize().unwrap();
    // With namespaces it would not even see a folder that it may not read.
    let read = json!({"read": [folder().join("node_modules"), root]});
    let servers = json!({"files": stdio_server(&[&server("filesystem"), &root.display().to_string()], read)});
    let calls = [("mcp__files__write_file", json!({"path": root.join("note.txt"), "content": "x"}))];
    for home in Home::both(servers, &agent("files", &calls, "Tried.")) {
        let message = home.run_agent();
        assert!(!root.join("note.txt").exists());
        let call = &message["payload"]["metadata"]["toolCalls"][0];
        assert_eq!(call["result"]["success"], false, "{message:#}");
    }
}

#[test]
fn an_agent_uses_the_tools_of_the_everything_server() {
    let servers = json!({"all": stdio_server(&[&server("everything")], json!({}))});
    let calls = [
        ("mcp__all__echo", json!({"message": "Grüße"})),
        ("mcp__all__get-sum", json!({"a": 20, "b": 22})),
        ("mcp__all__get-structured-content", json!({"location": "New York"})),
        ("mcp__all__get-tiny-image", json!({})),
        ("mcp__all__trigger-long-running-operation", json!({"duration": 1, "steps": 2})),
    ];
    for home in Home::both(servers, &agent("all", &calls, "Done.")) {
        let message = home.run_agent();
        let results = results(&message);
        assert!(results[0].to_string().contains("Grüße"), "{message:#}");
        assert!(results[1].to_string().contains("42"), "{message:#}");
        assert!(results[2].to_string().contains("temperature"), "{message:#}");
        // An image is named, not copied into the transcript.
        let image = results[3].to_string();
        assert!(image.contains("image/png") && image.contains("sha256"), "{image}");
        assert!(!image.contains("iVBORw0KGgo"), "{image}");
        assert!(results[4].to_string().contains("completed"), "{message:#}");
    }
}

#[test]
fn an_agent_asks_for_what_a_memory_server_kept_in_another_run() {
    let store = tempfile::tempdir().unwrap();
    let file = store.path().join("memory.jsonl");
    let more = json!({"env": {"MEMORY_FILE_PATH": file}, "write": [store.path()], "network": "none"});
    let servers = json!({"graph": stdio_server(&[&server("memory")], more)});
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["likes analytical engines"]});
    let calls = [("mcp__graph__create_entities", json!({"entities": [entity]}))];
    let home = Home::new(servers, &agent("graph", &calls, "Kept."));
    results(&home.run_agent());
    let calls = [("mcp__graph__search_nodes", json!({"query": "engines"}))];
    std::fs::write(home.path("flow.json"), agent("graph", &calls, "Found.").to_string()).unwrap();
    let message = home.run_agent();
    assert!(results(&message)[0].to_string().contains("Ada"), "{message:#}");
    // Both runs replay without the server.
    std::fs::write(home.path("data/tools.json"), "{}").unwrap();
    output(home.redflow(&["replay", "--all"]));
}
