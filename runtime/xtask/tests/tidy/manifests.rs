//! Checks the manifests: lints, which crate may depend on which, versions.

use super::lexer::{self, Language};
use super::{all_crates, check_paths};
use redflow_xtask::files;
use serde_json::Value;
use std::path::Path;
use toml::Table;

/// The crates of the workspace that each crate may use: only crates below it. `None` allows all.
const LAYERS: &[(&str, Option<&[&str]>)] = &[
    ("contract", Some(&[])),
    ("json-schema", Some(&[])),
    ("flow", Some(&["contract", "json-schema"])),
    ("machine", Some(&["contract", "json-schema"])),
    ("converse", Some(&["contract", "json-schema", "machine"])),
    ("react", Some(&["contract", "json-schema", "machine"])),
    ("strategies", Some(&["contract", "converse", "machine", "react"])),
    ("egress", Some(&[])),
    ("worker", Some(&[])),
    ("ports", Some(&["contract"])),
    ("nodes", Some(&["contract", "ports"])),
    ("models", Some(&["contract", "ports"])),
    ("knowledge", Some(&["contract", "ports"])),
    ("tools", Some(&["contract", "egress", "knowledge", "ports"])),
    ("archive", Some(&["contract", "ports"])),
    ("mcp", Some(&["contract", "egress", "json-schema", "ports"])),
    ("memory", Some(&["contract", "ports"])),
    ("long-memory", Some(&["contract", "knowledge", "ports"])),
    ("store", Some(&["contract", "ports"])),
    ("telemetry", Some(&["contract", "ports"])),
    ("engine", Some(&["contract", "ports", "machine", "flow"])),
    ("access", Some(&["contract"])),
    ("node-red", Some(&["contract"])),
    ("server", Some(&["contract", "ports", "engine", "flow", "strategies", "access", "node-red"])),
    ("testkit", Some(&["contract", "ports"])),
    ("cli", None),
    ("codegen", None),
    ("faults", None),
    ("fuzz", None),
    ("bench", None),
    ("tests", None),
    ("xtask", Some(&[])),
];

/// The npm packages that are released with the workspace.
const NPM_PACKAGES: &[&str] = &["bindings", "node-red-bridge"];

/// Every crate uses the workspace's lints.
pub(crate) fn lints(root: &Path) -> Vec<String> {
    check_manifests(root, |path, manifest| missing_lints(path, manifest).into_iter().collect())
}

/// No crate uses a crate that is not below it.
pub(crate) fn layers(root: &Path) -> Vec<String> {
    check_manifests(root, upward_dependencies)
}

/// ARCHITECTURE.md has a row for every crate.
pub(crate) fn descriptions(root: &Path) -> Vec<String> {
    match files::read(root, "ARCHITECTURE.md") {
        Ok(page) => undescribed(&super::crates(root), &page),
        Err(problem) => vec![problem],
    }
}

fn undescribed(crates: &[String], page: &str) -> Vec<String> {
    let missing = crates.iter().filter(|name| !page.contains(&format!("\n| `{name}` |")));
    missing.map(|name| format!("ARCHITECTURE.md has no row for {name}")).collect()
}

/// Dependencies that no source names: the build script of the command line shares a file of the contract.
const UNNAMED: &[(&str, &str)] = &[("runtime/cli/Cargo.toml", "flate2")];

/// Sources name every dependency of their crate.
pub(crate) fn used_dependencies(root: &Path) -> Vec<String> {
    let sources = |path: &str| {
        let folder = path.trim_end_matches("Cargo.toml");
        let paths = files::list(root, folder.trim_end_matches('/')).into_iter();
        let own = paths.filter(|path| path.ends_with(".rs"));
        own.filter_map(|path| files::read(root, &path).ok()).collect::<String>()
    };
    check_manifests(root, |path, manifest| unused(path, manifest, &sources(path)))
}

fn unused(path: &str, manifest: &Table, sources: &str) -> Vec<String> {
    let layers = lexer::layers(Language::Rust, sources);
    let is_unused = |name: &&str| {
        let (is_known, word) = (UNNAMED.contains(&(path, name)), name.replace('-', "_"));
        // An example in a comment uses a crate by a path.
        let in_example = || !lexer::lines_with(&layers.comments, &format!("{word}::")).is_empty();
        !is_known && lexer::lines_with(&layers.code, &word).is_empty() && !in_example()
    };
    let names = dependencies(manifest).into_iter().filter(is_unused);
    names.map(|name| format!("{path}: no source names `{name}`: remove it")).collect()
}

/// The npm packages have the workspace's version.
pub(crate) fn versions(root: &Path) -> Vec<String> {
    let wanted = match workspace_version(root) {
        Ok(wanted) => wanted,
        Err(problem) => return vec![problem],
    };
    let paths_of =
        |folder: &&str| ["package.json", "package-lock.json"].map(|name| format!("{folder}/{name}"));
    let paths = NPM_PACKAGES.iter().flat_map(paths_of).collect();
    check_paths(root, paths, |path, package| other_version(&wanted, path, package).into_iter().collect())
}

fn workspace_version(root: &Path) -> Result<String, String> {
    let manifest = parse("Cargo.toml", &files::read(root, "Cargo.toml")?)?;
    let version = manifest.get("workspace").and_then(|table| table.get("package")?.get("version")?.as_str());
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml: the workspace has no version".to_owned())
}

fn check_manifests(root: &Path, check: impl Fn(&str, &Table) -> Vec<String>) -> Vec<String> {
    let paths = all_crates(root).iter().map(|folder| format!("{folder}/Cargo.toml")).collect();
    check_paths(root, paths, |path, text| match parse(path, text) {
        Ok(manifest) => check(path, &manifest),
        Err(problem) => vec![problem],
    })
}

fn parse(path: &str, text: &str) -> Result<Table, String> {
    text.parse().map_err(|error| format!("{path}: {error}"))
}

fn missing_lints(path: &str, manifest: &Table) -> Option<String> {
    let uses_lints = manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
    (uses_lints != Some(true)).then(|| format!("{path}: add `[lints]` with `workspace = true`"))
}

/// Our crates among the normal and build dependencies, also those of one target only.
fn own_dependencies(manifest: &Table) -> Vec<&str> {
    let names = dependencies_of(manifest, &["dependencies", "build-dependencies"]);
    names.into_iter().filter_map(|name| name.strip_prefix("redflow-")).collect()
}

/// All dependencies, also those of tests.
fn dependencies(manifest: &Table) -> Vec<&str> {
    dependencies_of(manifest, &["dependencies", "build-dependencies", "dev-dependencies"])
}

fn dependencies_of<'a>(manifest: &'a Table, kinds: &[&str]) -> Vec<&'a str> {
    let targets = manifest.get("target").and_then(|targets| targets.as_table());
    let tables = targets.into_iter().flat_map(Table::values).filter_map(|target| target.as_table());
    let mut names: Vec<&str> = [manifest]
        .into_iter()
        .chain(tables)
        .flat_map(|table| kinds.iter().map(|kind| table.get(*kind)))
        .filter_map(|dependencies| dependencies?.as_table())
        .flat_map(Table::keys)
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn upward_dependencies(path: &str, manifest: &Table) -> Vec<String> {
    let name = path.trim_end_matches("/Cargo.toml").rsplit('/').next().unwrap_or_default();
    let Some((_, allowed)) = LAYERS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{path}: add the crate to LAYERS in runtime/xtask/tests/tidy/manifests.rs")];
    };
    let Some(allowed) = allowed else { return Vec::new() };
    let upward = own_dependencies(manifest).into_iter().filter(|used| !allowed.contains(used));
    upward.map(|used| format!("{path}: {name} must not use {used}; dependencies point down")).collect()
}

fn other_version(wanted: &str, path: &str, package: &str) -> Option<String> {
    let json: Value = serde_json::from_str(package).unwrap_or_default();
    let version = json.get("version").and_then(Value::as_str).unwrap_or("none");
    (version != wanted).then(|| format!("{path}: version {version}, but the workspace has {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::{missing_lints, other_version, own_dependencies, undescribed, unused, upward_dependencies};

    #[test]
    fn names_a_crate_without_the_lints() {
        for bad in ["[package]\nname = \"a\"", "[lints.rust]\nworkspace = true", "[lints]\nworkspace = false"]
        {
            assert!(missing_lints("a/Cargo.toml", &bad.parse().unwrap()).is_some(), "{bad}");
        }
        let good = "[package]\n\n[lints]\nworkspace = true\n".parse().unwrap();
        assert_eq!(missing_lints("a/Cargo.toml", &good), None);
    }

    #[test]
    fn reads_every_spelling_of_a_dependency() {
        let text = "[dependencies]\nredflow-a.workspace = true\nredflow-b = { workspace = true }\n\
                    \"redflow-c\" = \"1\"\nserde = \"1\"\n# redflow-x = \"1\"\n\n\
                    [build-dependencies]\nredflow-d=\"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nredflow-e.workspace = true\n\
                    [dependencies.redflow-f]\nworkspace = true\nfeatures = [\"x\"]\n\
                    [dev-dependencies]\nredflow-y.workspace = true\n";
        assert_eq!(own_dependencies(&text.parse().unwrap()), ["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn names_a_dependency_that_points_up() {
        let uses = |name: &str, used: &str| {
            let manifest = format!("[dependencies]\nredflow-{used}.workspace = true\n");
            upward_dependencies(&format!("runtime/{name}/Cargo.toml"), &manifest.parse().unwrap())
        };
        for (name, used) in [
            ("contract", "flow"),
            ("react", "flow"),
            ("tools", "engine"),
            ("models", "tools"),
            ("engine", "cli"),
            ("engine", "react"),
        ] {
            assert_eq!(uses(name, used).len(), 1, "{name} → {used}");
        }
        for (name, used) in
            [("flow", "contract"), ("engine", "machine"), ("cli", "tools"), ("faults", "testkit")]
        {
            assert!(uses(name, used).is_empty(), "{name} → {used}");
        }
        assert!(uses("no-such-crate", "contract")[0].contains("LAYERS"));
    }

    #[test]
    fn names_a_crate_without_a_row() {
        let crates = ["a", "b"].map(str::to_owned);
        assert_eq!(undescribed(&crates, "| crate |\n| `a` | pure |\n"), ["ARCHITECTURE.md has no row for b"]);
    }

    #[test]
    fn names_a_dependency_that_no_source_uses() {
        let manifest = "[dependencies]\na-b = \"1\"\nc = \"1\"\n[dev-dependencies]\nd = \"1\"\ne = \"1\"\n"
            .parse()
            .unwrap();
        let sources = "use a_b::X;\n// c is a word\n/// e::h();\nfn f() { d::g(); }";
        assert_eq!(unused("m", &manifest, sources), ["m: no source names `c`: remove it"]);
    }

    #[test]
    fn names_a_package_with_another_version() {
        assert_eq!(other_version("0.1.0", "p", r#"{"version": "0.1.0"}"#), None);
        assert!(other_version("0.1.0", "p", r#"{"version": "0.2.0"}"#).is_some());
        assert!(other_version("0.1.0", "p", "{}").is_some());
        assert!(other_version("0.1.0", "p", "").is_some());
    }
}
