//! When the files of tools are read, with a store whose files the test sets.

use super::{PutError, ToolDefinitions};
use pretty_assertions::assert_eq;
use redflow_contract::diagnostic::Diagnostic;
use redflow_flow::check_tool;
use redflow_ports::{FileStoreError, ManifestStamp, ManifestStore, RegisteredServer, RegisteredTool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The files of a test.
#[derive(Default)]
struct Files {
    manifest: Mutex<(u32, Value)>,
    tools: Mutex<BTreeMap<String, Value>>,
    /// Says that a read has begun, and holds it until the other side is dropped.
    hold: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Files {
    fn write(&self, manifest: Value) {
        let mut file = self.manifest.lock().unwrap();
        *file = (file.0 + 1, manifest);
    }
}

impl ManifestStore for Files {
    fn stamp(&self) -> ManifestStamp {
        ManifestStamp(self.manifest.lock().unwrap().0.to_string())
    }

    fn read(&self) -> Result<Value, Vec<Diagnostic>> {
        if let Some((begun, hold)) = self.hold.lock().unwrap().take() {
            begun.send(()).unwrap();
            let _ = hold.recv();
        }
        Ok(self.manifest.lock().unwrap().1.clone())
    }

    fn registered(&self) -> Vec<RegisteredTool> {
        let tools = self.tools.lock().unwrap();
        tools.iter().map(|(id, tool)| RegisteredTool { id: id.clone(), tool: Ok(tool.clone()) }).collect()
    }

    fn servers(&self) -> Vec<RegisteredServer> {
        Vec::new()
    }

    fn put_server(&self, _: &str, _: &Value) -> Result<(), FileStoreError> {
        Ok(())
    }

    fn remove_server(&self, _: &str) -> Result<bool, FileStoreError> {
        Ok(false)
    }

    fn put(&self, id: &str, tool: &Value) -> Result<(), FileStoreError> {
        self.tools.lock().unwrap().insert(id.to_owned(), tool.clone());
        Ok(())
    }

    fn remove(&self, id: &str) -> Result<bool, FileStoreError> {
        Ok(self.tools.lock().unwrap().remove(id).is_some())
    }
}

fn tool(id: &str) -> Value {
    json!({"id": id, "kind": "http", "description": "A tool", "inputSchema": {"type": "object"},
           "url": "https://a.example/"})
}

fn definitions(manifest: Value) -> (Arc<Files>, Arc<ToolDefinitions>) {
    let files = Arc::new(Files::default());
    files.write(manifest);
    let definitions = ToolDefinitions::new(files.clone(), Arc::default(), |_| None, None);
    definitions.load().unwrap();
    (files, definitions)
}

fn ids(definitions: &ToolDefinitions) -> Vec<String> {
    definitions.registry.snapshot().entries().into_iter().map(|entry| entry.id).collect()
}

fn put(definitions: &ToolDefinitions, id: &str) -> Result<(), PutError> {
    definitions.put(&check_tool(&tool(id)).unwrap(), &tool(id))
}

/// An editor empties the file before it writes it. An empty file is a valid manifest without a policy.
#[test]
fn a_manifest_that_is_being_written_is_not_read() {
    let (files, definitions) = definitions(json!({"tools": [tool("a.b")]}));
    let seen = definitions.look(None);
    files.write(Value::Null);
    let seen = definitions.look(Some(&seen));
    // Neither does a registration read it.
    put(&definitions, "c.d").unwrap();
    assert_eq!(ids(&definitions), ["a.b", "c.d"]);
    assert!(definitions.remove("c.d").unwrap());
    files.write(json!({"tools": [tool("a.c")]}));
    let seen = definitions.look(Some(&seen));
    assert_eq!(ids(&definitions), ["a.b"]);
    definitions.look(Some(&seen));
    assert_eq!(ids(&definitions), ["a.c"]);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_read_later() {
    let (files, definitions) = definitions(json!({"tools": [tool("a.b")]}));
    files.write(Value::Null);
    let seen = definitions.look(None);
    let (begun, has_begun) = channel();
    let (release, hold) = channel::<()>();
    *files.hold.lock().unwrap() = Some((begun, hold));
    let seen = std::thread::scope(|scope| {
        let look = scope.spawn(|| definitions.look(Some(&seen)));
        has_begun.recv().unwrap();
        files.write(json!({"tools": [tool("a.c")]}));
        drop(release);
        look.join().unwrap()
    });
    assert_eq!(ids(&definitions), ["a.b"]);
    definitions.look(Some(&seen));
    assert_eq!(ids(&definitions), ["a.c"]);
}

#[test]
fn the_problems_are_shown_while_the_files_are_read() {
    let (files, definitions) = definitions(Value::Null);
    let (begun, has_begun) = channel();
    let (release, hold) = channel::<()>();
    *files.hold.lock().unwrap() = Some((begun, hold));
    std::thread::scope(|scope| {
        scope.spawn(|| definitions.load());
        has_begun.recv().unwrap();
        let (shown, problems) = channel();
        let shows = Arc::clone(&definitions);
        std::thread::spawn(move || shown.send(shows.problems().len()));
        let problems = problems.recv_timeout(Duration::from_secs(20));
        drop(release);
        assert_eq!(problems, Ok(0));
    });
}

#[test]
fn a_registered_tool_gets_no_name_of_another() {
    let (files, definitions) = definitions(json!({"tools": [tool("a.b.c")]}));
    for id in ["a__b.c", "A.b.C", "a.b.c"] {
        assert!(
            matches!(put(&definitions, id), Err(PutError::Conflict(other)) if other.id == "a.b.c"),
            "{id}"
        );
    }
    assert!(files.tools.lock().unwrap().is_empty());
    // The manifest got the name later: its tool stays.
    put(&definitions, "d.e").unwrap();
    put(&definitions, "f__g.h").unwrap();
    put(&definitions, "f.g").unwrap();
    files.put("f.g.h", &tool("f.g.h")).unwrap();
    files.write(json!({"tools": [tool("D.E")]}));
    definitions.load().unwrap();
    assert_eq!(ids(&definitions), ["D.E", "f.g", "f.g.h"]);
    let problems = definitions.problems();
    let files: Vec<_> = problems.iter().map(|problem| problem.file.as_deref().unwrap()).collect();
    assert_eq!(files, ["tools.d/d.e.json", "tools.d/f__g.h.json"]);
    assert!(problems[0].message.contains("`D.E`"), "{problems:?}");
}
