//! Checks that every promise of `SECURITY.md` has a test. A promise ends with its id: (`token-needed`). A comment directly
//! above a test, `// SECURITY: token-needed, scopes`, names the promises that the test shows. `docs/security-tests.md` lists
//! the tests of each promise.

use super::{lexer, tracked_files};
use redflow_xtask::files;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

const PROMISES: &str = "SECURITY.md";
const PAGE: &str = "docs/security-tests.md";

/// What writes the page instead of comparing it.
const UPDATE: &str = "UPDATE_GOLDEN";

/// The begin of a comment that names the promises of the test below it.
const MARKER: &str = "// SECURITY: ";

/// A test and the ids of the promises that it shows.
#[derive(Debug, PartialEq, Eq)]
struct MarkedTest {
    path: String,
    name: String,
    ids: Vec<String>,
}

/// The name of the tests of each promise, by file.
type Tests<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// Every promise has a test, every marker names promises, and the page of the tests is current.
pub(crate) fn promises(root: &Path) -> Vec<String> {
    let text = match files::read(root, PROMISES) {
        Ok(text) => text,
        Err(problem) => return vec![problem],
    };
    let (ids, mut problems) = promise_ids(&text);
    let mut tests = Vec::new();
    for path in tracked_files(root).into_iter().filter(|path| may_have_tests(path)) {
        match files::read(root, &path) {
            Ok(text) => problems.extend(marked_tests(&path, &text, &mut tests)),
            Err(problem) => problems.push(problem),
        }
    }
    problems.extend(unknown_ids(&ids, &tests));
    problems.extend(untested(&ids, &tests));
    // A page of wrong markers would only hide the problem.
    if problems.is_empty() {
        problems.extend(compare_page(root, &page(&ids, &tests)));
    }
    problems
}

fn may_have_tests(path: &str) -> bool {
    [".rs", ".ts", ".tsx", ".mts", ".mjs"].iter().any(|ending| path.ends_with(ending))
}

/// The ids in the section of the promises, in their order, and the problems of this section.
fn promise_ids(text: &str) -> (Vec<String>, Vec<String>) {
    let section = text.split_once("\n## Promises\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    // An id may begin a line.
    let section = section.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut ids: Vec<String> = Vec::new();
    let mut problems = Vec::new();
    // Several ids may share parentheses: (`exact-host`, `exact-origin`).
    for group in section.split("(`").skip(1).filter_map(|rest| Some(rest.split_once("`)")?.0)) {
        for id in group.split("`, `").filter(|id| is_id(id)) {
            if ids.iter().any(|known| known == id) {
                problems.push(format!("{PROMISES}: two promises have the id `{id}`"));
            } else {
                ids.push(id.to_owned());
            }
        }
    }
    if ids.is_empty() {
        problems.push(format!("{PROMISES}: no promise has an id"));
    }
    (ids, problems)
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-')
}

/// Adds the tests below the markers of a file; returns the markers without a test or an id.
fn marked_tests(path: &str, text: &str, tests: &mut Vec<MarkedTest>) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(list) = line.trim().strip_prefix(MARKER) else { continue };
        let ids: Vec<String> = list.split(',').map(|id| id.trim().to_owned()).collect();
        let mut below = text.lines().skip(index + 1).map(str::trim);
        let test = below.find(|line| !line.starts_with("#[") && !line.starts_with("//"));
        match test.and_then(test_name) {
            Some(name) => tests.push(MarkedTest { path: path.to_owned(), name: name.to_owned(), ids }),
            None => problems.push(format!("{path}:{}: no test is directly below the marker", index + 1)),
        }
    }
    problems
}

/// The name of the test that begins on this line: a function, a call of `test`, or a row of a table of tests.
fn test_name(line: &str) -> Option<&str> {
    for call in ["test(", "it("] {
        if let Some(rest) = line.strip_prefix(call) {
            let quote = rest.chars().next().filter(|char| "\"'`".contains(*char))?;
            return rest.get(1..)?.split_once(quote).map(|(name, _)| name);
        }
    }
    let row = line.split_once(": ").map(|(name, _)| name);
    let name = match line.split_once("fn ") {
        Some((_, rest)) => rest.split(|char: char| !lexer::is_name(char)).next(),
        None => row,
    };
    name.filter(|name| !name.is_empty() && name.chars().all(lexer::is_name))
}

fn unknown_ids(ids: &[String], tests: &[MarkedTest]) -> Vec<String> {
    let problems = |test: &MarkedTest| {
        let unknown = test.ids.iter().filter(|id| !ids.contains(id));
        unknown
            .map(|id| {
                format!("{}: `{}` shows `{id}`, which {PROMISES} does not promise", test.path, test.name)
            })
            .collect::<Vec<_>>()
    };
    tests.iter().flat_map(problems).collect()
}

fn untested(ids: &[String], tests: &[MarkedTest]) -> Vec<String> {
    let without = ids.iter().filter(|id| tests_of(id, tests).is_empty());
    without
        .map(|id| format!("{PROMISES}: no test shows `{id}`; write `{MARKER}{id}` directly above one"))
        .collect()
}

fn tests_of<'a>(id: &str, tests: &'a [MarkedTest]) -> Tests<'a> {
    let mut found = Tests::new();
    for test in tests.iter().filter(|test| test.ids.iter().any(|named| named == id)) {
        found.entry(&test.path).or_default().push(&test.name);
    }
    found
}

fn page(ids: &[String], tests: &[MarkedTest]) -> String {
    let mut out = format!(
        "# Tests of the promises\n\n\
         The tests of each promise in [SECURITY.md](../{PROMISES}), by its id. This page is made of the comments `{MARKER}ID` above\n\
         the tests: `{UPDATE}=1 cargo xtask tidy` writes it.\n\n| promise | tests |\n|---|---|\n"
    );
    for id in ids {
        let files = tests_of(id, tests);
        let cells = files.iter().map(|(path, names)| {
            let names: Vec<String> =
                names.iter().map(|name| format!("`{}`", name.replace('|', "\\|"))).collect();
            format!("{path}: {}", names.join(", "))
        });
        let _ = writeln!(out, "| `{id}` | {} |", cells.collect::<Vec<_>>().join("<br>"));
    }
    out
}

/// Compares the page, or writes it if the environment asks for that.
fn compare_page(root: &Path, wanted: &str) -> Option<String> {
    if std::env::var_os(UPDATE).is_some() {
        return std::fs::write(root.join(PAGE), wanted).err().map(|error| format!("{PAGE}: {error}"));
    }
    let is_current = files::read(root, PAGE).is_ok_and(|text| text == wanted);
    (!is_current).then(|| format!("{PAGE} is not current: run `{UPDATE}=1 cargo xtask tidy`"))
}

#[cfg(test)]
mod tests {
    use super::{MarkedTest, compare_page, marked_tests, page, promise_ids, unknown_ids, untested};

    fn ids(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn test(path: &str, name: &str, promises: &[&str]) -> MarkedTest {
        MarkedTest { path: path.to_owned(), name: name.to_owned(), ids: ids(promises) }
    }

    fn read(path: &str, text: &str) -> (Vec<MarkedTest>, Vec<String>) {
        let mut tests = Vec::new();
        let problems = marked_tests(path, text, &mut tests);
        (tests, problems)
    }

    #[test]
    fn promises_end_with_their_ids() {
        let text = "# A\n\n(`outside`)\n\n## Promises\n\nA `route` (`one`), (`THE_CODE`) and (`two`,\n`no`, `x`)\n\
                    b (`three-3`, `four`).\n\n## Limits\n\n(`later`)\n";
        assert_eq!(promise_ids(text).0, ["one", "two", "no", "x", "three-3", "four"]);
        let (_, problems) = promise_ids("\n## Promises\n\n(`one`) (`one`)\n");
        assert_eq!(problems, ["SECURITY.md: two promises have the id `one`"]);
        assert_eq!(promise_ids("# A\n").1, ["SECURITY.md: no promise has an id"]);
    }

    #[test]
    fn markers_name_the_test_below_them() {
        let rust = "// SECURITY: one, two\n#[tokio::test]\n// why\nasync fn a_test() {\n}\n";
        assert_eq!(read("a.rs", rust).0, [test("a.rs", "a_test", &["one", "two"])]);
        let row = "    // SECURITY: one\n    a_row: check::all;\n";
        assert_eq!(read("a.rs", row).0, [test("a.rs", "a_row", &["one"])]);
        let script = "// SECURITY: one\ntest(\"a page; all of it\", async (t) => {\n";
        assert_eq!(read("a.mjs", script).0, [test("a.mjs", "a page; all of it", &["one"])]);
    }

    #[test]
    fn names_a_marker_without_a_test() {
        for text in
            ["// SECURITY: one\n", "// SECURITY: one\n\nfn later() {}\n", "// SECURITY: one\nlet x = 1;\n"]
        {
            assert_eq!(read("a.rs", text).1, ["a.rs:1: no test is directly below the marker"], "{text}");
        }
    }

    #[test]
    fn names_a_promise_without_a_test_and_a_marker_without_a_promise() {
        let tests = [test("a.rs", "a_test", &["one", "other"])];
        assert_eq!(
            untested(&ids(&["one", "two"]), &tests),
            ["SECURITY.md: no test shows `two`; write `// SECURITY: two` directly above one"]
        );
        assert_eq!(
            unknown_ids(&ids(&["one", "two"]), &tests),
            ["a.rs: `a_test` shows `other`, which SECURITY.md does not promise"]
        );
    }

    #[test]
    fn the_page_lists_the_tests_of_each_promise_by_file() {
        let tests = [
            test("b.rs", "third", &["one"]),
            test("a.rs", "first", &["one", "two"]),
            test("a.rs", "a | b", &["one"]),
        ];
        let page = page(&ids(&["one", "two"]), &tests);
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            ["| `one` | a.rs: `first`, `a \\| b`<br>b.rs: `third` |", "| `two` | a.rs: `first` |"]
        );
    }

    #[test]
    fn names_a_page_that_is_not_current() {
        let folder = std::env::temp_dir().join("redflow-no-such-folder");
        let update = std::env::var_os(super::UPDATE).is_some();
        let problem = compare_page(&folder, "text").unwrap_or_default();
        assert!(update || problem.contains("is not current"), "{problem}");
    }
}
