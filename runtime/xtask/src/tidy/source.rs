//! What source files may hold.

use super::PURE;
use crate::{files, rust_text};
use std::path::Path;

const MOST_LINES: usize = 500;
const MOST_TEST_LINES: usize = 1500;
const GENERATED: &[&str] = &["bindings/src/types.ts"];
const TYPESCRIPT: &[&str] = &[".ts", ".tsx", ".mts", ".mjs"];

const PANICS: &[&str] =
    &[".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!(", "unsafe"];
/// Parts of the standard library that reach outside. Clippy bans the calls that tests have no use for either;
/// here are those that tests do use (golden files, `UPDATE_GOLDEN`).
const OUTSIDE: &[&str] = &["std::fs", "std::env", "std::net", "std::process", "std::thread"];

/// No file over 500 lines of code, no test file over 1500.
#[must_use]
pub fn short_files(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let paths: Vec<String> = files::list(root, "").into_iter().filter(|path| is_source(path)).collect();
    for (path, text) in files::read_all(root, paths, &mut problems) {
        problems.extend(too_long(&path, &text));
    }
    problems
}

/// Nothing outside tests that can take the process down.
#[must_use]
pub fn no_panics(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for folder in files::folders(root, "runtime") {
        for (path, text) in product_code(root, &folder, &mut problems) {
            problems.extend(panics(&path, &text));
        }
    }
    problems
}

/// The pure crates touch neither files nor the environment, the network, processes or threads.
#[must_use]
pub fn pure_code(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for name in PURE {
        for (path, text) in product_code(root, &format!("runtime/{name}"), &mut problems) {
            problems.extend(reaches_outside(&path, &text));
        }
    }
    problems
}

fn product_code(root: &Path, folder: &str, problems: &mut Vec<String>) -> Vec<(String, String)> {
    let paths = files::list(root, &format!("{folder}/src"));
    let ours = paths.into_iter().filter(|path| path.ends_with(".rs") && !is_test(path)).collect();
    files::read_all(root, ours, problems)
}

fn is_source(path: &str) -> bool {
    let ours = ["runtime/", "bench/", "tests/"].iter().any(|folder| path.starts_with(folder));
    let rust = path.ends_with(".rs") && ours;
    let script = TYPESCRIPT.iter().any(|end| path.ends_with(end)) && !GENERATED.contains(&path);
    rust || script
}

fn is_test(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    name.ends_with("_tests.rs")
        || name == "tests.rs"
        || name.contains(".test.")
        || folder.split('/').any(|part| part == "tests" || part == "test")
}

fn too_long(path: &str, text: &str) -> Option<String> {
    let lines = if path.ends_with(".rs") { rust_text::count_lines(text) } else { script_lines(text) };
    let most = if is_test(path) { MOST_TEST_LINES } else { MOST_LINES };
    (lines > most).then(|| format!("{path} has {lines} lines of code; {most} is the limit: split it"))
}

/// Lines of code of a TypeScript file: a comment counts as one only if it has its lines for itself.
fn script_lines(text: &str) -> usize {
    let mut in_comment = false;
    let mut count = 0;
    for line in text.lines().map(str::trim) {
        let begins = line.starts_with("/*");
        let comment = in_comment || begins || line.starts_with("//") || line.is_empty();
        if in_comment || begins {
            in_comment = !line.contains("*/");
        }
        count += usize::from(!comment);
    }
    count
}

fn named(path: &str, text: &str, words: &[&str], why: &str) -> Vec<String> {
    let code = rust_text::without_tests(&rust_text::code_only(text));
    let of_word = |word: &&str| {
        let lines = rust_text::lines_with(&code, word);
        lines.into_iter().map(|line| (line, format!("{path}:{line}: `{word}`: {why}"))).collect::<Vec<_>>()
    };
    let mut found: Vec<(usize, String)> = words.iter().flat_map(of_word).collect();
    found.sort();
    found.into_iter().map(|(_, problem)| problem).collect()
}

fn panics(path: &str, text: &str) -> Vec<String> {
    named(path, text, PANICS, "return an error instead")
}

fn reaches_outside(path: &str, text: &str) -> Vec<String> {
    named(path, text, OUTSIDE, "this crate is pure; what it needs comes in with its arguments")
}

#[cfg(test)]
mod tests {
    use super::{is_source, is_test, panics, reaches_outside, script_lines, too_long};

    #[test]
    fn long_files_are_named() {
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
    fn sources_and_tests_are_told_apart() {
        assert!(is_source("runtime/flow/src/lib.rs") && is_source("bench/src/main.rs"));
        assert!(is_source("console/src/page.tsx") && is_source("bindings/scripts/check-output.mjs"));
        assert!(!is_source("bindings/src/types.ts") && !is_source("README.md"));
        assert!(!is_test("runtime/flow/src/contests.rs") && !is_test("runtime/testkit/src/lib.rs"));
    }

    #[test]
    fn script_comments_do_not_count() {
        assert_eq!(script_lines("/**\n * why\n */\nlet a = 1; // b\n\n// c\n/* d */\nlet e;"), 2);
    }

    #[test]
    fn every_way_to_panic_is_named_with_its_line() {
        for word in ["x.unwrap()", "x.expect(\"y\")", "panic!(\"y\")", "todo!()", "unsafe { x }"] {
            let problems = panics("a.rs", &format!("fn f() {{\n    {word};\n}}\n"));
            assert_eq!(problems.len(), 1, "{word}");
            assert!(problems[0].starts_with("a.rs:2: "), "{problems:?}");
        }
        assert_eq!(panics("a.rs", "unimplemented!(); unreachable!()").len(), 2);
    }

    #[test]
    fn tests_comments_and_texts_may_speak_of_panics() {
        let source = "// x.unwrap()\nconst A: &str = \"panic!(\";\nfn f() { x.unwrap_or(1) }\n\
                      #[cfg(test)]\nmod tests {\n    fn g() { x.unwrap() }\n}\n";
        assert!(panics("a.rs", source).is_empty());
    }

    #[test]
    fn reaching_outside_is_named() {
        assert_eq!(reaches_outside("a.rs", "use std::fs;\nlet x = std::env::var(\"A\");").len(), 2);
        assert!(reaches_outside("a.rs", "use std::fmt;\nlet x = env!(\"A\");").is_empty());
        let tests = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert!(reaches_outside("a.rs", tests).is_empty());
    }
}
