//! What the manifests say: lints, which crate may depend on which, versions.

use crate::files;
use serde_json::Value;
use std::path::Path;

/// Which crates of the workspace a crate may use: the doors open downward only. `None`: any.
const DOORS: &[(&str, Option<&[&str]>)] = &[
    ("contract", Some(&[])),
    ("flow", Some(&["contract"])),
    ("react", Some(&["contract"])),
    ("ports", Some(&["contract"])),
    ("nodes", Some(&["contract", "ports"])),
    ("models", Some(&["contract", "ports"])),
    ("tools", Some(&["contract", "ports"])),
    ("memory", Some(&["contract", "ports"])),
    ("store", Some(&["contract", "ports"])),
    ("telemetry", Some(&["contract", "ports"])),
    ("engine", Some(&["contract", "ports", "react", "flow"])),
    ("access", Some(&["contract"])),
    ("node-red", Some(&["contract"])),
    ("server", Some(&["contract", "ports", "engine", "flow", "react", "access", "node-red"])),
    ("testkit", Some(&["contract", "ports", "flow", "react"])),
    ("cli", None),
    ("bench", None),
    ("tests", None),
    ("xtask", None),
];

/// The npm packages that are released with the workspace.
const NPM_PACKAGES: &[&str] = &["bindings", "node-red-bridge"];

/// Every crate takes the workspace's lints.
#[must_use]
pub fn lints(root: &Path) -> Vec<String> {
    each_manifest(root, |path, text| takes_lints(path, text).into_iter().collect())
}

/// No crate uses one that is not below it.
#[must_use]
pub fn doors(root: &Path) -> Vec<String> {
    each_manifest(root, closed_doors)
}

/// The npm packages carry the workspace's version.
#[must_use]
pub fn versions(root: &Path) -> Vec<String> {
    let manifest = match files::read(root, "Cargo.toml") {
        Ok(manifest) => manifest,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    let paths = NPM_PACKAGES
        .iter()
        .flat_map(|folder| ["package.json", "package-lock.json"].map(|name| format!("{folder}/{name}")));
    let texts = files::read_all(root, paths.collect(), &mut problems);
    problems.extend(texts.iter().filter_map(|(path, package)| other_version(&manifest, path, package)));
    problems
}

fn each_manifest(root: &Path, judge: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let crates = files::folders(root, "runtime").into_iter().chain(["bench".to_owned(), "tests".to_owned()]);
    let paths = crates.map(|folder| format!("{folder}/Cargo.toml")).collect();
    for (path, text) in files::read_all(root, paths, &mut problems) {
        problems.extend(judge(&path, &text));
    }
    problems
}

/// The lines of a manifest with the table each stands in, such as `dependencies`.
fn lines_by_table(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut table = "";
    text.lines().map(str::trim).filter_map(move |line| {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => {
                table = name;
                Some((table, ""))
            }
            None => (!line.is_empty() && !line.starts_with('#')).then_some((table, line)),
        }
    })
}

fn takes_lints(path: &str, text: &str) -> Option<String> {
    let takes = lines_by_table(text)
        .any(|(table, line)| table == "lints" && line.replace(' ', "") == "workspace=true");
    (!takes).then(|| format!("{path}: add `[lints]` with `workspace = true`"))
}

/// The crates of ours in `[dependencies]` and `[build-dependencies]`, also those of one target only.
fn own_dependencies(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (table, line) in lines_by_table(text) {
        let kind = |name: &str| name == "dependencies" || name == "build-dependencies";
        let parts: Vec<&str> = table.split('.').collect();
        let key = match parts.as_slice() {
            [.., last] if kind(last) => line.split(['.', '=', ' ']).next().unwrap_or_default(),
            // `[dependencies.redflow-flow]`
            [.., last, name] if kind(last) && line.is_empty() => name,
            _ => continue,
        };
        found.extend(key.trim_matches('"').strip_prefix("redflow-"));
    }
    found
}

fn closed_doors(path: &str, text: &str) -> Vec<String> {
    let name = path.trim_end_matches("/Cargo.toml").rsplit('/').next().unwrap_or_default();
    let Some((_, allowed)) = DOORS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{path}: give the crate a row in DOORS (runtime/xtask/src/tidy/manifests.rs)")];
    };
    let Some(allowed) = allowed else { return Vec::new() };
    let closed = own_dependencies(text).into_iter().filter(|used| !allowed.contains(used));
    closed.map(|used| format!("{path}: {name} must not use {used}; doors open downward only")).collect()
}

fn workspace_version(manifest: &str) -> Option<&str> {
    lines_by_table(manifest)
        .filter(|(table, _)| *table == "workspace.package")
        .find_map(|(_, line)| line.strip_prefix("version")?.split('"').nth(1))
}

fn other_version(manifest: &str, path: &str, package: &str) -> Option<String> {
    let wanted = workspace_version(manifest);
    let json: Value = serde_json::from_str(package).unwrap_or_default();
    let found = json.get("version").and_then(Value::as_str);
    (wanted.is_none() || wanted != found).then(|| {
        let say = |version: Option<&str>| version.unwrap_or("none").to_owned();
        format!("{path}: version {}, but the workspace has {}", say(found), say(wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::{closed_doors, other_version, own_dependencies, takes_lints};

    #[test]
    fn a_crate_without_the_lints_is_named() {
        for bad in ["[package]\nname = \"a\"", "[lints.rust]\nworkspace = true", "[lints]\nworkspace = false"]
        {
            assert!(takes_lints("a/Cargo.toml", bad).is_some(), "{bad}");
        }
        assert_eq!(takes_lints("a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n"), None);
    }

    #[test]
    fn every_spelling_of_a_dependency_is_read() {
        let text = "[dependencies]\nredflow-a.workspace = true\nredflow-b = { workspace = true }\n\
                    \"redflow-c\" = \"1\"\nserde = \"1\"\n# redflow-x = \"1\"\n\n[build-dependencies]\nredflow-d=\"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nredflow-e.workspace = true\n\
                    [dependencies.redflow-f]\nworkspace = true\nfeatures = [\"x\"]\n\
                    [dev-dependencies]\nredflow-y.workspace = true\n";
        assert_eq!(own_dependencies(text), ["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn a_door_that_opens_upward_is_named() {
        let uses = |name: &str, used: &str| {
            closed_doors(
                &format!("runtime/{name}/Cargo.toml"),
                &format!("[dependencies]\nredflow-{used}.workspace = true\n"),
            )
        };
        for (name, used) in [
            ("contract", "flow"),
            ("react", "flow"),
            ("tools", "engine"),
            ("models", "tools"),
            ("engine", "cli"),
        ] {
            assert_eq!(uses(name, used).len(), 1, "{name} → {used}");
        }
        for (name, used) in
            [("flow", "contract"), ("engine", "react"), ("cli", "tools"), ("xtask", "contract")]
        {
            assert!(uses(name, used).is_empty(), "{name} → {used}");
        }
        assert!(uses("no-such-crate", "contract")[0].contains("DOORS"));
    }

    #[test]
    fn a_version_of_its_own_is_named() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\n";
        assert_eq!(other_version(manifest, "p", r#"{"version": "0.1.0"}"#), None);
        assert!(other_version(manifest, "p", r#"{"version": "0.2.0"}"#).is_some());
        assert!(other_version(manifest, "p", "{}").is_some());
        assert!(other_version("", "p", "{}").is_some());
    }
}
