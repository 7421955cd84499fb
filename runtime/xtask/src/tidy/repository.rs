//! What the repository as a whole must not hold, and what it must describe.

use crate::{files, process};
use redflow_contract::code::{ApiCode, DiagnosticCode, RunErrorCode, StoreCode};
use serde_json::Value;
use std::path::Path;

/// Beginnings of paths that exist only on someone's machine. Split, so that this file does not name them.
const PRIVATE: &[&str] = &[
    concat!("..", "/shared"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!(":\\Us", "ers\\"),
];
const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// No file names a path of the machine it was written on.
#[must_use]
pub fn private_paths(root: &Path) -> Vec<String> {
    let texts = kept_files(root).into_iter().filter_map(|path| {
        // What is not text cannot be read by people either.
        files::read(root, &path).ok().map(|text| (path, text))
    });
    texts.flat_map(|(path, text)| private_lines(&path, &text)).collect()
}

/// The lock files pin what was downloaded, not from whose mirror.
#[must_use]
pub fn lock_files(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let paths: Vec<String> = kept_files(root)
        .into_iter()
        .filter(|path| path.ends_with("Cargo.lock") || path.ends_with("package-lock.json"))
        .collect();
    for (path, text) in files::read_all(root, paths, &mut problems) {
        let cargo = path.ends_with("Cargo.lock");
        problems.extend(if cargo { cargo_sources(&path, &text) } else { npm_sources(&path, &text) });
    }
    problems
}

/// `examples/README.md` says what each example shows.
#[must_use]
pub fn examples(root: &Path) -> Vec<String> {
    let flows: Vec<String> =
        files::list(root, "examples").into_iter().filter(|path| path.ends_with(".json")).collect();
    if flows.is_empty() {
        return Vec::new();
    }
    match files::read(root, "examples/README.md") {
        Ok(readme) => undescribed(&flows, &readme),
        Err(problem) => vec![problem],
    }
}

/// What a page says of a code that no part of the release says yet.
const RESERVED: &str = "No part of this release says it yet";

/// A test names every code, unless its page says that it is reserved.
#[must_use]
pub fn codes(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let is_test = |path: &String| {
        let is_in_tests = path.starts_with("tests/") || path.contains("/tests/");
        path.ends_with("_tests.rs") || (is_in_tests && path.ends_with(".rs"))
    };
    let all = files::list(root, "runtime").into_iter().chain(files::list(root, "tests"));
    let paths: Vec<String> = all.filter(is_test).collect();
    let tests: String =
        files::read_all(root, paths, &mut problems).into_iter().map(|(_, text)| text).collect();
    let diagnostics =
        DiagnosticCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page()));
    let errors = RunErrorCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page()));
    let stored = StoreCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page()));
    let asked = ApiCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page()));
    let all: Vec<(&str, String, &str)> = diagnostics.chain(errors).chain(stored).chain(asked).collect();
    problems.extend(untested(&all, &tests));
    problems
}

fn untested(codes: &[(&str, String, &str)], tests: &str) -> Vec<String> {
    codes
        .iter()
        .filter(|(code, variant, page)| {
            let named = tests.contains(code) || tests.contains(&format!("Code::{variant}"));
            !named && !page.contains(RESERVED)
        })
        .map(|(code, ..)| {
            format!("no test names {code}; provoke it in one, or say on its page that it is reserved")
        })
        .collect()
}

/// What git keeps or would keep; without git, what lies here.
fn kept_files(root: &Path) -> Vec<String> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    match process::read(process::program(root, "git", list)) {
        Ok(names) => names
            .split('\0')
            .filter(|name| !name.is_empty() && root.join(name).is_file())
            .map(str::to_owned)
            .collect(),
        Err(_) => files::list(root, ""),
    }
}

fn private_lines(path: &str, text: &str) -> Vec<String> {
    let names = |line: &str| PRIVATE.iter().find(|part| begins_a_path(line, part));
    let numbered = text.lines().enumerate();
    numbered
        .filter_map(|(index, line)| {
            names(line).map(|part| format!("{path}:{}: names `{part}…`, a path of one machine", index + 1))
        })
        .collect()
}

/// Whether `part` stands there at the beginning of a path, not in the middle of one or of an address.
fn begins_a_path(line: &str, part: &str) -> bool {
    line.match_indices(part).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !part.starts_with('/') || !before.is_some_and(|char| char.is_alphanumeric() || "._-}/".contains(char))
    })
}

fn cargo_sources(path: &str, text: &str) -> Vec<String> {
    let sources = text.lines().filter_map(|line| line.strip_prefix("source = \"")?.strip_suffix('"'));
    let foreign = sources.filter(|source| *source != PUBLIC_REGISTRY);
    foreign.map(|source| format!("{path}: a package comes from {source}, not from crates.io")).collect()
}

fn npm_sources(path: &str, text: &str) -> Vec<String> {
    let Ok(lock) = serde_json::from_str::<Value>(text) else {
        return vec![format!("{path}: not JSON")];
    };
    let packages = lock.get("packages").and_then(Value::as_object).into_iter().flatten();
    // A folder of this tree is no place to download from.
    let is_here = |place: &Value| place.as_str().is_some_and(|place| !place.contains(':'));
    let resolved =
        packages.filter(|(_, package)| package.get("resolved").is_some_and(|place| !is_here(place)));
    resolved
        .map(|(name, _)| {
            format!("{path}: {name} says where it was downloaded; set omit-lockfile-registry-resolved")
        })
        .collect()
}

fn undescribed(flows: &[String], readme: &str) -> Vec<String> {
    let name = |path: &String| path.trim_start_matches("examples/").to_owned();
    let missing = flows.iter().map(name).filter(|name| !readme.contains(name.as_str()));
    missing.map(|name| format!("examples/README.md does not say what {name} shows")).collect()
}

#[cfg(test)]
mod tests {
    use super::{PRIVATE, cargo_sources, npm_sources, private_lines, undescribed};

    #[test]
    fn a_code_without_a_test_is_found() {
        let codes = [
            ("TESTED", "Tested".to_owned(), ""),
            ("BY_VARIANT", "ByVariant".to_owned(), ""),
            ("LATER", "Later".to_owned(), super::RESERVED),
            ("FORGOTTEN", "Forgotten".to_owned(), ""),
        ];
        let found = super::untested(&codes, "assert TESTED; RunErrorCode::ByVariant");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("FORGOTTEN"), "{found:?}");
    }

    #[test]
    fn private_paths_are_named_with_their_line() {
        for part in PRIVATE {
            let found = private_lines("a.md", &format!("fine\nsee {part}me/notes\n"));
            assert_eq!(found.len(), 1, "{part}");
            assert!(found[0].starts_with("a.md:2: "), "{found:?}");
        }
        let page = concat!("https://example.org", "/ho", "me/ and src", "/ro", "ot/ are addresses");
        assert!(private_lines("a.md", page).is_empty());
    }

    #[test]
    fn a_package_of_another_registry_is_named() {
        let good = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        assert!(cargo_sources("Cargo.lock", good).is_empty());
        assert_eq!(cargo_sources("Cargo.lock", "source = \"sparse+https://mirror.example/\"\n").len(), 1);
        assert_eq!(cargo_sources("Cargo.lock", "source = \"git+https://git.example/x\"\n").len(), 1);
    }

    #[test]
    fn a_lock_file_that_names_a_host_is_named() {
        let bad = r#"{"packages": {"": {}, "node_modules/a": {"resolved": "https://mirror.example/a.tgz"}}}"#;
        assert_eq!(npm_sources("package-lock.json", bad).len(), 1);
        assert!(npm_sources("package-lock.json", r#"{"packages": {"node_modules/a": {}}}"#).is_empty());
        let here = r#"{"packages": {"node_modules/a": {"resolved": "../a", "link": true}}}"#;
        assert!(npm_sources("package-lock.json", here).is_empty());
        assert_eq!(npm_sources("package-lock.json", "").len(), 1);
    }

    #[test]
    fn an_example_nobody_describes_is_named() {
        let flows = ["examples/a.json".to_owned(), "examples/b.json".to_owned()];
        let problems = undescribed(&flows, "| `a.json` | shows a |");
        assert_eq!(problems, ["examples/README.md does not say what b.json shows"]);
    }
}
