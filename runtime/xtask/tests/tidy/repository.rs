//! Checks the repository as a whole: private paths, descriptions of examples, tests of codes, uses of phrases.

use super::tracked_files;
use redflow_contract::code::{ApiCode, ArchiveCode, DiagnosticCode, RunErrorCode, StoreCode, ToolCode};
use redflow_contract::phrases::PHRASES;
use redflow_xtask::files;
use std::collections::HashSet;
use std::path::Path;

/// Beginnings of paths that exist only on one machine. They are split so that this file does not name them.
const PRIVATE: &[&str] = &[
    concat!("..", "/shared"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!(":\\Us", "ers\\"),
];

/// No file names a path of the machine it was written on.
pub(crate) fn private_paths(root: &Path) -> Vec<String> {
    // A file that is not text holds no path that a person would read.
    let texts =
        tracked_files(root).into_iter().filter_map(|path| Some((files::read(root, &path).ok()?, path)));
    texts.flat_map(|(text, path)| private_lines(&path, &text)).collect()
}

/// `examples/README.md` says what each example shows.
pub(crate) fn examples(root: &Path) -> Vec<String> {
    match files::read(root, "examples/README.md") {
        Ok(readme) => undescribed(&files::list(root, "examples"), &readme),
        Err(problem) => vec![problem],
    }
}

/// The section of a code that no part of this release uses contains this sentence.
const RESERVED: &str = "No part of this release says it yet";

/// A test names every code, unless its section says that it is reserved.
pub(crate) fn codes(root: &Path) -> Vec<String> {
    let is_test = |path: &str| {
        let in_tests = path.starts_with("tests/") || path.starts_with("runtime/") && path.contains("/tests/");
        path.ends_with("_tests.rs") || (in_tests && path.ends_with(".rs"))
    };
    let paths = tracked_files(root).into_iter().filter(|path| is_test(path));
    let tests: String = paths.filter_map(|path| files::read(root, &path).ok()).collect();
    let mut all: Vec<(&str, String, &str)> = Vec::new();
    all.extend(DiagnosticCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page())));
    all.extend(RunErrorCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page())));
    all.extend(ToolCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page())));
    all.extend(StoreCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page())));
    all.extend(ArchiveCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page())));
    all.extend(ApiCode::ALL.iter().map(|code| (code.as_str(), format!("{code:?}"), code.page())));
    untested(&all, &tests)
}

fn untested(codes: &[(&str, String, &str)], tests: &str) -> Vec<String> {
    let is_tested =
        |code: &str, variant: &str| tests.contains(code) || tests.contains(&format!("Code::{variant}"));
    codes
        .iter()
        .filter(|(code, variant, page)| !is_tested(code, variant) && !page.contains(RESERVED))
        .map(|(code, ..)| {
            format!("no test names {code}; provoke it in one, or say in its section that it is reserved")
        })
        .collect()
}

/// Every phrase is used. Translators would work on others for nothing.
pub(crate) fn phrases(root: &Path) -> Vec<String> {
    let is_source =
        |path: &str| path.starts_with("runtime/") && path.contains("/src/") && path.ends_with(".rs");
    let paths = tracked_files(root).into_iter().filter(|path| is_source(path));
    let sources: String = paths.filter_map(|path| files::read(root, &path).ok()).collect();
    let used: HashSet<&str> = sources
        .split("phrases::")
        .filter_map(|rest| rest.split(|char: char| !char.is_alphanumeric() && char != '_').next())
        .collect();
    let unused = PHRASES.iter().filter(|phrase| !used.contains(phrase.key));
    unused
        .map(|phrase| format!("no code uses `phrases::{}`; remove it in every language", phrase.key))
        .collect()
}

/// The lines that keep the service in its own user, its own directory and few system calls.
const CONFINED: &[&str] = &[
    "User=redflow",
    "UMask=0077",
    "StateDirectory=redflow",
    "StateDirectoryMode=0700",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "AmbientCapabilities=",
    "RestrictNamespaces=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged @resources",
    "LimitCORE=0",
];

/// The systemd unit gives the sidecar one directory to write to, no capabilities and few system calls.
pub(crate) fn service_unit(root: &Path) -> Vec<String> {
    match files::read(root, "packaging/redflow.service") {
        Ok(unit) => open_settings(&unit),
        Err(problem) => vec![problem],
    }
}

fn open_settings(unit: &str) -> Vec<String> {
    let missing = CONFINED.iter().filter(|setting| !unit.lines().any(|line| line == **setting));
    missing.map(|setting| format!("packaging/redflow.service has no line `{setting}`")).collect()
}

fn private_lines(path: &str, text: &str) -> Vec<String> {
    let numbered = text.lines().enumerate();
    numbered
        .filter_map(|(index, line)| {
            let part = PRIVATE.iter().find(|part| begins_a_path(line, part))?;
            Some(format!("{path}:{}: names `{part}…`, a path of one machine", index + 1))
        })
        .collect()
}

/// Whether `part` begins a path in the line, instead of continuing a path or an address.
fn begins_a_path(line: &str, part: &str) -> bool {
    line.match_indices(part).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !part.starts_with('/') || !before.is_some_and(|char| char.is_alphanumeric() || "._-}/".contains(char))
    })
}

fn undescribed(examples: &[String], readme: &str) -> Vec<String> {
    let flows = examples.iter().filter(|path| path.ends_with(".json"));
    let names = flows.map(|path| path.trim_start_matches("examples/"));
    let missing = names.filter(|name| !readme.contains(name));
    missing.map(|name| format!("examples/README.md does not say what {name} shows")).collect()
}

#[cfg(test)]
mod tests {
    use super::{CONFINED, PRIVATE, open_settings, private_lines, undescribed, untested};

    #[test]
    fn names_a_code_without_a_test() {
        let codes = [
            ("TESTED", "Tested".to_owned(), ""),
            ("BY_VARIANT", "ByVariant".to_owned(), ""),
            ("LATER", "Later".to_owned(), super::RESERVED),
            ("FORGOTTEN", "Forgotten".to_owned(), ""),
        ];
        let problems = untested(&codes, "assert TESTED; RunErrorCode::ByVariant");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("FORGOTTEN"), "{problems:?}");
    }

    #[test]
    fn names_private_paths_with_their_line() {
        for part in PRIVATE {
            let problems = private_lines("a.md", &format!("fine\nsee {part}me/notes\n"));
            assert_eq!(problems.len(), 1, "{part}");
            assert!(problems[0].starts_with("a.md:2: "), "{problems:?}");
        }
        let page = concat!("https://example.org", "/ho", "me/ and src", "/ro", "ot/ are addresses");
        assert!(private_lines("a.md", page).is_empty());
    }

    #[test]
    fn names_a_missing_setting_of_the_service() {
        assert_eq!(open_settings(&CONFINED.join("\n")), [""; 0]);
        let unit = CONFINED.join("\n").replace("ProtectHome=yes", "ProtectHome=no");
        assert_eq!(open_settings(&unit), ["packaging/redflow.service has no line `ProtectHome=yes`"]);
    }

    #[test]
    fn names_an_example_without_a_description() {
        let files = ["README.md", "a.json", "b.json"].map(|name| format!("examples/{name}"));
        let problems = undescribed(&files, "| `a.json` | shows a |");
        assert_eq!(problems, ["examples/README.md does not say what b.json shows"]);
    }
}
