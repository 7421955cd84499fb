//! Checks what a crate pulls in, as `cargo tree` reports it.

use redflow_xtask::process;
use std::collections::BTreeSet;
use std::path::Path;

/// Packages that do I/O or bring a runtime.
const IMPURE: &[&str] = &["tokio", "reqwest", "hyper", "axum", "rusqlite", "redis"];
/// Features of `uuid` that read a clock or make random numbers.
const IMPURE_UUID: &[&str] = &["v1", "v4", "v6", "v7", "rng", "fast-rng"];
/// Derives that only write files for developers.
const DEVELOPER_ONLY: &[&str] = &["ts-rs", "ts-rs-macros"];
/// The feature of our crates that derives schemas. The MCP library brings `schemars` for its own types.
const GENERATORS: &str = "redflow-contract feature \"codegen\"";

/// No pure crate depends on I/O, a runtime, a clock or randomness.
pub(crate) fn pure_crates(root: &Path) -> Vec<String> {
    let check = |name: &String| {
        let package = format!("redflow-{name}");
        let mut problems = check_tree(root, &package, "normal", |tree| impure_packages(&package, tree));
        problems.extend(check_tree(root, &package, "normal,features", |tree| impure_uuid(&package, tree)));
        problems
    };
    super::pure_crates(root).iter().flat_map(check).collect()
}

/// The shipped binary contains no code generators.
pub(crate) fn shipped_binary(root: &Path) -> Vec<String> {
    let mut problems =
        check_tree(root, "redflow-cli", "normal", |tree| developer_packages("redflow-cli", tree));
    problems
        .extend(check_tree(root, "redflow-cli", "normal,features", |tree| generators("redflow-cli", tree)));
    problems
}

fn check_tree(root: &Path, package: &str, edges: &str, check: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let args = ["tree", "--package", package, "--edges", edges, "--prefix", "none"];
    match process::read_cargo(root, &args) {
        Ok(tree) if tree.lines().any(|line| package_name(line) == package) => check(&tree),
        Ok(_) => vec![format!("{package}: `cargo tree` does not list it")],
        Err(problem) => vec![problem],
    }
}

fn package_name(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

fn listed<'a>(tree: &'a str, names: &[&str]) -> BTreeSet<&'a str> {
    tree.lines().map(package_name).filter(|name| names.contains(name)).collect()
}

fn impure_packages(package: &str, tree: &str) -> Vec<String> {
    let problem = |name: &str| format!("{package} is pure and must not depend on {name}");
    listed(tree, IMPURE).into_iter().map(problem).collect()
}

fn impure_uuid(package: &str, tree: &str) -> Vec<String> {
    let features: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.strip_prefix("uuid feature \"")?.split('"').next())
        .filter(|feature| IMPURE_UUID.contains(feature))
        .collect();
    let problem = |feature: &str| format!("{package} is pure and must not turn on uuid's feature {feature}");
    features.into_iter().map(problem).collect()
}

fn developer_packages(package: &str, tree: &str) -> Vec<String> {
    let problem = |name: &str| format!("{package} is shipped and must not depend on {name}");
    listed(tree, DEVELOPER_ONLY).into_iter().map(problem).collect()
}

fn generators(package: &str, tree: &str) -> Vec<String> {
    let is_on = tree.lines().any(|line| line.starts_with(GENERATORS));
    is_on.then(|| format!("{package} is shipped and must not turn on {GENERATORS}")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{developer_packages, generators, impure_packages, impure_uuid};

    #[test]
    fn names_impure_packages_once() {
        let tree = "redflow-flow v0.1.0\ntokio v1.54.0\ntokio v1.54.0 (*)\ntokio-util v0.7.0\nredis v1.8.0";
        let problems = impure_packages("redflow-flow", tree);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].ends_with("redis") && problems[1].ends_with("tokio"), "{problems:?}");
        assert!(impure_packages("redflow-flow", "redflow-flow v0.1.0\nserde v1.0.0").is_empty());
    }

    #[test]
    fn names_features_of_uuid_that_make_ids() {
        let tree = "uuid feature \"v7\"\nuuid v1.29.0\nuuid-simd v0.8.0\nahash feature \"v4\"";
        assert_eq!(impure_uuid("redflow-react", tree).len(), 1);
        assert!(impure_uuid("redflow-react", "uuid feature \"default\"\nuuid v1.29.0").is_empty());
    }

    #[test]
    fn names_code_generators_in_the_binary() {
        assert_eq!(developer_packages("redflow-cli", "redflow-cli v0.1.0\nts-rs v12.0.0").len(), 1);
        let tree = "redflow-cli v0.1.0\nredflow-contract feature \"codegen\" (*)";
        assert_eq!(generators("redflow-cli", tree).len(), 1);
        assert!(generators("redflow-cli", "redflow-contract feature \"default\"").is_empty());
        assert!(developer_packages("redflow-cli", "redflow-cli v0.1.0\nclap v4.6.0").is_empty());
    }
}
