//! `cargo xtask codegen`: writes the files that are generated from the contract's types and from the wires.
//!
//! Owns the list of generated files. What they contain is decided in the contract and in `redflow-models`.

#![allow(clippy::print_stdout, reason = "the command writes to a terminal")]

mod models_page;

use redflow_contract::{codegen, openapi};
use redflow_xtask::{Failure, files, switches};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

const TYPES: &str = "bindings/src/types.ts";
const OPENAPI: &str = "schemas/openapi.json";
const NODES: &str = "schemas/nodes.json";
const SIDECAR_TYPES: &str = "node-red-bridge/src/sidecar-types.ts";
const PHRASES: &str = "node-red-bridge/src/editor/locales/en-US/phrases.json";
const HTTP_STATUSES: &str = "node-red-bridge/src/http-statuses.ts";
const DOCS: &str = "docs/nodes.md";
/// A person writes it, except the list of nodes.
const MANIFEST: &str = "node-red-bridge/package.json";
const SCHEMA_END: &str = ".schema.json";
/// Schemas that a person writes.
const BY_HAND: &[&str] = &["agent-core.react"];

/// Files by their path from the root.
type Files = BTreeMap<String, String>;

/// How a file on disk differs from the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Drift {
    Missing,
    Differs,
    /// The contract generates no such file.
    Stale,
}

/// Writes the generated files, or with `--check` only compares them.
///
/// # Errors
/// If a file cannot be read or written, or `--check` finds a difference.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [check] = switches(args, ["--check"])?;
    if check {
        let problems = problems(root)?;
        if problems.is_empty() {
            println!("The generated files are current.");
            return Ok(ExitCode::SUCCESS);
        }
        let list = problems.join("\n  ");
        let message = format!("the generated files are not current; run `cargo xtask codegen`\n  {list}");
        return Err(Failure::Failed(message));
    }
    let expected = expected(root)?;
    let drifted = drift(&expected, &on_disk(root)?);
    write(root, &expected, &drifted)?;
    for (path, drift) in &drifted {
        println!("{} {path}", if *drift == Drift::Stale { "removed" } else { "wrote  " });
    }
    if drifted.is_empty() {
        println!("Nothing to do: the generated files are current.");
    }
    Ok(ExitCode::SUCCESS)
}

/// One sentence for each difference between the contract and the files on disk.
///
/// # Errors
/// If a file cannot be read.
pub fn problems(root: &Path) -> Result<Vec<String>, String> {
    let drifted = drift(&expected(root)?, &on_disk(root)?);
    Ok(drifted.iter().map(|(path, drift)| problem(path, *drift)).collect())
}

fn problem(path: &str, drift: Drift) -> String {
    match drift {
        Drift::Missing => format!("{path} is missing"),
        Drift::Differs => format!("{path} differs from the contract"),
        Drift::Stale => format!("{path} is no longer generated"),
    }
}

/// The files that the contract generates.
fn expected(root: &Path) -> Result<Files, String> {
    let schemas = codegen::schemas();
    let others = [
        (TYPES, codegen::typescript()),
        (OPENAPI, openapi::openapi()),
        (NODES, codegen::nodes()),
        (SIDECAR_TYPES, codegen::sidecar_types()),
        (PHRASES, codegen::phrases()),
        (HTTP_STATUSES, codegen::http_statuses()),
        (DOCS, codegen::docs()),
    ];
    let schemas = schemas.into_iter().map(|(name, text)| (format!("schemas/{name}"), text));
    let others = others.map(|(path, text)| (path.to_owned(), text));
    Ok(schemas.chain(others).chain(manifest(root)?).chain(models_page(root)?).collect())
}

/// The page about models with current tables.
fn models_page(root: &Path) -> Result<Option<(String, String)>, String> {
    if !root.join(models_page::PAGE).exists() {
        return Ok(None);
    }
    let text = models_page::with_tables(&files::read(root, models_page::PAGE)?)?;
    Ok(Some((models_page::PAGE.to_owned(), text)))
}

/// The manifest of the palette with all node types. Those that it has keep their order, which the palette shows.
fn manifest(root: &Path) -> Result<Option<(String, String)>, String> {
    if !root.join(MANIFEST).exists() {
        return Ok(None);
    }
    let text = files::read(root, MANIFEST)?;
    let mut manifest: Value = serde_json::from_str(&text).map_err(|error| format!("{MANIFEST}: {error}"))?;
    if let Some(nodes) = manifest.pointer_mut("/node-red/nodes").and_then(Value::as_object_mut) {
        let types = codegen::palette_types();
        nodes.retain(|name, _| types.contains(&name.as_str()));
        for name in types {
            nodes.entry(name).or_insert_with(|| format!("dist/nodes/{name}.js").into());
        }
    }
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| format!("{MANIFEST}: {error}"))?;
    Ok(Some((MANIFEST.to_owned(), text + "\n")))
}

/// The generated files on disk, without those that a person writes.
fn on_disk(root: &Path) -> Result<Files, String> {
    let by_hand: BTreeSet<String> =
        BY_HAND.iter().map(|name| format!("schemas/{name}{SCHEMA_END}")).collect();
    let schemas = files::list(root, "schemas");
    let ours = schemas.into_iter().filter(|path| path.ends_with(SCHEMA_END) && !by_hand.contains(path));
    let others =
        [TYPES, OPENAPI, NODES, SIDECAR_TYPES, PHRASES, HTTP_STATUSES, DOCS, MANIFEST, models_page::PAGE];
    let others = others.map(str::to_owned).into_iter().filter(|path| root.join(path).exists());
    ours.chain(others).map(|path| Ok((path.clone(), files::read(root, &path)?))).collect()
}

fn drift(expected: &Files, actual: &Files) -> BTreeMap<String, Drift> {
    let wanted = expected.iter().filter_map(|(path, text)| match actual.get(path) {
        None => Some((path.clone(), Drift::Missing)),
        Some(now) if now != text => Some((path.clone(), Drift::Differs)),
        Some(_) => None,
    });
    let stale = actual.keys().filter(|path| !expected.contains_key(*path));
    wanted.chain(stale.map(|path| (path.clone(), Drift::Stale))).collect()
}

/// Writes or removes the files that drifted, and no others.
fn write(root: &Path, expected: &Files, drifted: &BTreeMap<String, Drift>) -> Result<(), String> {
    for (path, drift) in drifted {
        let file = root.join(path);
        let result = match (drift, expected.get(path)) {
            (Drift::Missing | Drift::Differs, Some(text)) => file
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::write(&file, text)),
            _ => std::fs::remove_file(&file),
        };
        result.map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Drift, Files, drift, expected, on_disk, write};
    use pretty_assertions::assert_eq;

    fn files(list: &[(&str, &str)]) -> Files {
        list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn reports_every_kind_of_drift() {
        let expected = files(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let actual = files(&[("a", "1"), ("b", "two"), ("d", "4")]);
        let drifted: Vec<_> = drift(&expected, &actual).into_iter().collect();
        let wanted = [("b", Drift::Differs), ("c", Drift::Missing), ("d", Drift::Stale)];
        assert_eq!(drifted, wanted.map(|(path, drift)| (path.to_owned(), drift)));
        assert!(drift(&expected, &expected).is_empty());
    }

    #[test]
    fn writing_removes_the_drift_and_keeps_schemas_written_by_hand() {
        let folder = tempfile::tempdir().unwrap();
        let by_hand = folder.path().join("schemas/agent-core.react.schema.json");
        std::fs::create_dir_all(folder.path().join("schemas")).unwrap();
        std::fs::write(&by_hand, "by hand").unwrap();
        std::fs::write(folder.path().join("schemas/README.md"), "a page").unwrap();
        std::fs::write(folder.path().join("schemas/gone.schema.json"), "{}").unwrap();

        std::fs::create_dir_all(folder.path().join("node-red-bridge")).unwrap();
        let manifest = folder.path().join("node-red-bridge/package.json");
        let nodes =
            r#"{"name": "palette", "node-red": {"nodes": {"chat-node": "mine.js", "gone": "gone.js"}}}"#;
        std::fs::write(&manifest, nodes).unwrap();

        let expected = expected(folder.path()).unwrap();
        let before = drift(&expected, &on_disk(folder.path()).unwrap());
        assert_eq!(before.get("schemas/gone.schema.json"), Some(&Drift::Stale));
        assert_eq!(before.get("bindings/src/types.ts"), Some(&Drift::Missing));
        write(folder.path(), &expected, &before).unwrap();

        assert!(drift(&expected, &on_disk(folder.path()).unwrap()).is_empty());
        let manifest: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(manifest).unwrap()).unwrap();
        let nodes: Vec<_> = manifest["node-red"]["nodes"].as_object().unwrap().iter().collect();
        assert_eq!(nodes[0], (&"chat-node".to_owned(), &"mine.js".into()));
        assert_eq!(nodes[1], (&"agent-core".to_owned(), &"dist/nodes/agent-core.js".into()));
        assert!(nodes.iter().all(|(name, _)| *name != "gone"));
        assert_eq!(std::fs::read_to_string(by_hand).unwrap(), "by hand");
        assert!(folder.path().join("schemas/README.md").exists());
    }
}
