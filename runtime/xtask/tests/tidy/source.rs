//! Checks what source files hold: their length, panics, and calls that reach the system.

use super::lexer::{self, Language};
use super::{check_files, check_paths};
use redflow_xtask::files;
use std::path::Path;

const MAX_LINES: usize = 500;
const MAX_TEST_LINES: usize = 1500;
const GENERATED: &[&str] = &["bindings/src/types.ts"];

/// Parts of the standard library that reach the system. Clippy bans the calls that tests do not need either.
/// These are the calls that tests do need (golden files, `UPDATE_GOLDEN`).
const SYSTEM: &[&str] = &["std::fs", "std::env", "std::net", "std::process", "std::thread"];

/// The crates whose requests go to addresses that others choose.
const GUARDED: &[&str] = &["tools"];

/// Ways to the network that no rule of egress guards.
const UNGUARDED: &[&str] =
    &["std::net", "tokio::net", "reqwest", "hyper", "hyper_util", "ureq", "SystemResolver", "TcpDialler"];

/// Clippy denies these too, but it does not see code of other platforms and of features that are off.
const PANICS: &[&str] =
    &[".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!(", "unsafe"];

/// No file has over 500 lines of code, and no test file over 1500.
pub(crate) fn short_files(root: &Path) -> Vec<String> {
    check_files(root, is_source, |path, text| too_long(path, text).into_iter().collect())
}

/// Nothing outside tests can take the process down.
pub(crate) fn no_panics(root: &Path) -> Vec<String> {
    let paths =
        files::folders(root, "runtime").iter().flat_map(|folder| product_files(root, folder)).collect();
    check_paths(root, paths, panics)
}

/// The pure crates use no files, environment, network, processes or threads.
pub(crate) fn pure_code(root: &Path) -> Vec<String> {
    let paths = super::pure_crates(root)
        .iter()
        .flat_map(|name| product_files(root, &format!("runtime/{name}")))
        .collect();
    check_paths(root, paths, system_calls)
}

/// Tools reach the network through egress alone.
pub(crate) fn guarded_code(root: &Path) -> Vec<String> {
    let paths = GUARDED.iter().flat_map(|name| product_files(root, &format!("runtime/{name}"))).collect();
    check_paths(root, paths, unguarded_requests)
}

/// The Rust files of a crate without its tests.
pub(super) fn product_files(root: &Path, folder: &str) -> Vec<String> {
    let mut paths = files::list(root, &format!("{folder}/src"));
    paths.retain(|path| path.ends_with(".rs") && !is_test(path));
    paths
}

fn is_source(path: &str) -> bool {
    matches!(Language::of(path), Some(Language::Rust | Language::TypeScript)) && !GENERATED.contains(&path)
}

fn is_test(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    name.ends_with("_tests.rs")
        || name == "tests.rs"
        || name.contains(".test.")
        || folder.split('/').any(|part| part == "tests" || part == "test")
}

fn too_long(path: &str, text: &str) -> Option<String> {
    let lines = count_lines(Language::of(path)?, text);
    let max = if is_test(path) { MAX_TEST_LINES } else { MAX_LINES };
    (lines > max).then(|| format!("{path} has {lines} lines of code; {max} is the limit: split it"))
}

/// Lines of code: neither empty nor only a comment.
fn count_lines(language: Language, text: &str) -> usize {
    lexer::layers(language, text).code.lines().filter(|line| !line.trim().is_empty()).count()
}

fn panics(path: &str, text: &str) -> Vec<String> {
    find_words(path, text, PANICS, "return an error instead")
}

fn system_calls(path: &str, text: &str) -> Vec<String> {
    find_words(path, text, SYSTEM, "this crate is pure; pass what it needs as an argument")
}

fn unguarded_requests(path: &str, text: &str) -> Vec<String> {
    find_words(path, text, UNGUARDED, "a model may choose the address; use redflow_egress::Egress")
}

fn find_words(path: &str, text: &str, words: &[&str], advice: &str) -> Vec<String> {
    let code = lexer::without_tests(&lexer::layers(Language::Rust, text).code);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for word in words {
        found.extend(lexer::lines_with(&code, word).into_iter().map(|line| (line, *word)));
    }
    found.sort_unstable();
    found.into_iter().map(|(line, word)| format!("{path}:{line}: `{word}`: {advice}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        Language, count_lines, is_source, is_test, panics, system_calls, too_long, unguarded_requests,
    };

    #[test]
    fn names_files_that_are_too_long() {
        let lines = |count: usize| "x();\n".repeat(count) + "\n// more\n/* and\nmore */\n";
        for path in ["runtime/flow/src/lib.rs", "bridge/src/index.ts"] {
            assert_eq!(too_long(path, &lines(500)), None);
            assert!(too_long(path, &lines(501)).is_some_and(|text| text.contains("501 lines")));
        }
        for path in ["runtime/flow/tests/all.rs", "runtime/flow/src/edge_tests.rs", "bindings/test/a.test.ts"]
        {
            assert_eq!(too_long(path, &lines(1500)), None);
            assert!(too_long(path, &lines(1501)).is_some());
        }
    }

    #[test]
    fn tells_sources_and_tests_apart() {
        assert!(is_source("runtime/flow/src/lib.rs") && is_source("bench/src/main.rs"));
        assert!(is_source("console/src/page.tsx") && is_source("bindings/scripts/check-output.mjs"));
        assert!(!is_source("bindings/src/types.ts") && !is_source("README.md"));
        assert!(!is_test("runtime/flow/src/contests.rs") && !is_test("runtime/testkit/src/lib.rs"));
    }

    #[test]
    fn counts_only_lines_of_code() {
        let rust = "//! doc\n\nfn f() { // why\n    /* no\n    no */\n    g(\"\n text\n\n\");\n}\n";
        assert_eq!(count_lines(Language::Rust, rust), 5);
        let script = "/**\n * why\n */\nlet a = 1; // b\n\n// c\n/* d */\nlet e;";
        assert_eq!(count_lines(Language::TypeScript, script), 2);
    }

    #[test]
    fn names_every_way_to_panic_with_its_line() {
        for word in ["x.unwrap()", "x.expect(\"y\")", "panic!(\"y\")", "todo!()", "unsafe { x }"] {
            let problems = panics("a.rs", &format!("fn f() {{\n    {word};\n}}\n"));
            assert_eq!(problems.len(), 1, "{word}");
            assert!(problems[0].starts_with("a.rs:2: "), "{problems:?}");
        }
        assert_eq!(panics("a.rs", "unimplemented!(); unreachable!()").len(), 2);
    }

    #[test]
    fn tests_comments_and_strings_may_name_panics() {
        let source = "// x.unwrap()\nconst A: &str = \"panic!(\";\nfn f() { x.unwrap_or(1) }\n\
                      #[cfg(test)]\nmod tests {\n    fn g() { x.unwrap() }\n}\n";
        assert!(panics("a.rs", source).is_empty());
    }

    #[test]
    fn names_calls_that_reach_the_system() {
        assert_eq!(system_calls("a.rs", "use std::fs;\nlet x = std::env::var(\"A\");").len(), 2);
        assert!(system_calls("a.rs", "use std::fmt;\nlet x = env!(\"A\");").is_empty());
        let tests = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert!(system_calls("a.rs", tests).is_empty());
    }

    #[test]
    fn names_requests_that_pass_egress_by() {
        let source =
            "use tokio::net::TcpStream;\nlet client = reqwest::Client::new();\nhyper::Request::new(());";
        assert_eq!(unguarded_requests("a.rs", source).len(), 3);
        assert!(unguarded_requests("a.rs", "use redflow_egress::Egress;\nuse http::HeaderMap;").is_empty());
    }
}
