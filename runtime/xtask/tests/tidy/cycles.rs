//! Finds cycles between the top-level modules of a crate. A module is a file or a folder directly in `src`.

use super::lexer::{self, Language, is_name};
use super::source::product_files;
use redflow_xtask::files;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// The crates whose modules must not use each other in a circle. Add a crate as soon as its cycles are gone.
const CHECKED: &[&str] = &[
    "bench",
    "runtime/access",
    "runtime/cli",
    "runtime/contract",
    "runtime/engine",
    "runtime/flow",
    "runtime/memory",
    "runtime/nodes",
    "runtime/ports",
    "runtime/react",
    "runtime/telemetry",
    "runtime/testkit",
    "runtime/tools",
    "runtime/xtask",
];

/// The modules that each module uses, with the place of the first use.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// A file by its path and text.
type Source = (String, String);

/// No module of a checked crate uses a module that uses it, directly or through others.
pub(crate) fn module_cycles(root: &Path) -> Vec<String> {
    CHECKED.iter().flat_map(|folder| cycles(folder, &read_sources(root, folder))).collect()
}

fn read_sources(root: &Path, folder: &str) -> Vec<Source> {
    let paths = product_files(root, folder).into_iter();
    paths.filter_map(|path| Some((path.clone(), files::read(root, &path).ok()?))).collect()
}

fn cycles(folder: &str, sources: &[Source]) -> Vec<String> {
    let graph = graph(folder, sources);
    if graph.is_empty() {
        return vec![format!(
            "{folder} has no modules: correct CHECKED in runtime/xtask/tests/tidy/cycles.rs"
        )];
    }
    let mut reported: BTreeSet<&str> = BTreeSet::new();
    let mut problems = Vec::new();
    for start in graph.keys() {
        if reported.contains(start.as_str()) {
            continue;
        }
        let Some(cycle) = shortest_cycle(&graph, start) else { continue };
        let uses = cycle.iter().zip(cycle.iter().cycle().skip(1));
        let places: Vec<&str> = uses.map(|(from, to)| graph[*from][*to].as_str()).collect();
        problems.push(format!(
            "{folder}: {} → {start} is a cycle; move what they share into a module below them:\n    {}",
            cycle.join(" → "),
            places.join("\n    ")
        ));
        reported.extend(cycle);
    }
    problems
}

fn shortest_cycle<'a>(graph: &'a Graph, start: &'a str) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::new();
    let mut paths = VecDeque::from([vec![start]]);
    while let Some(path) = paths.pop_front() {
        for next in graph.get(*path.last()?)?.keys() {
            if next == start {
                return Some(path);
            }
            if seen.insert(next) {
                paths.push_back([path.as_slice(), &[next]].concat());
            }
        }
    }
    None
}

fn graph(folder: &str, sources: &[Source]) -> Graph {
    let files: Vec<(Vec<&str>, &str, String)> = sources
        .iter()
        .map(|(path, text)| {
            let code = lexer::without_tests(&lexer::layers(Language::Rust, text).code);
            (module_path(folder, path), path.as_str(), code)
        })
        .collect();
    let mut graph: Graph = BTreeMap::new();
    for top in files.iter().filter_map(|(module, ..)| module.first()) {
        graph.entry((*top).to_owned()).or_default();
    }
    let roots = files.iter().filter(|(module, ..)| module.is_empty()).map(|(.., code)| code.as_str());
    let modules_by_name = modules_by_name(roots, &graph);
    for (module, path, code) in &files {
        let Some(from) = module.first() else { continue };
        let mut names = names_after(code, "crate::");
        names.extend(names_after(code, &"super::".repeat(module.len())));
        for (offset, name) in names {
            let Some(to) = modules_by_name.get(name).filter(|to| *to != from) else { continue };
            let line = code[..offset].matches('\n').count() + 1;
            let place = format!("{path}:{line}: {from} uses {name}");
            graph.entry((*from).to_owned()).or_default().entry(to.clone()).or_insert(place);
        }
    }
    graph
}

/// The path of a file's module from the root of its crate, which is empty for `lib.rs` and `main.rs`.
fn module_path<'a>(folder: &str, path: &'a str) -> Vec<&'a str> {
    let inner = path.trim_start_matches(folder).trim_start_matches("/src/").trim_end_matches(".rs");
    let mut parts: Vec<&str> = inner.split('/').collect();
    parts.pop_if(|last| matches!(*last, "mod" | "lib" | "main"));
    parts
}

/// The module of each name at the root of a crate: modules themselves, and names that the root imports.
fn modules_by_name<'a>(roots: impl Iterator<Item = &'a str>, graph: &Graph) -> BTreeMap<String, String> {
    let mut modules = BTreeMap::new();
    for statement in roots.flat_map(|code| code.split(';')) {
        let Some((_, tree)) = statement.split_once("use ") else { continue };
        let mut names = tree.split(|char| !is_name(char)).filter(|name| !name.is_empty());
        let Some(module) = names.next().filter(|name| graph.contains_key(*name)) else { continue };
        modules.extend(names.map(|name| (name.to_owned(), module.to_owned())));
    }
    modules.extend(graph.keys().map(|module| (module.clone(), module.clone())));
    modules
}

/// The names directly behind a prefix, with their offsets: one name, or those of a `{…}` list.
fn names_after<'a>(code: &'a str, prefix: &str) -> Vec<(usize, &'a str)> {
    let starts = code
        .match_indices(prefix)
        .filter(|(start, _)| !code[..*start].ends_with(|char| is_name(char) || char == ':'));
    let mut offsets = Vec::new();
    for (start, _) in starts {
        let start = start + prefix.len();
        let mut depth = 0_u32;
        let mut before_name = true;
        for (index, char) in code[start..].char_indices() {
            match char {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ',' => before_name = depth == 1,
                _ if is_name(char) && before_name => {
                    offsets.push(start + index);
                    before_name = false;
                }
                _ => {}
            }
            if depth == 0 && (char == '}' || !before_name) {
                break;
            }
        }
    }
    let name_at = |offset: usize| code[offset..].split(|char| !is_name(char)).next().unwrap_or_default();
    offsets.into_iter().map(|offset| (offset, name_at(offset))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Source, cycles};
    use pretty_assertions::assert_eq;

    fn check(files: &[(&str, &str)], wanted: &[&str]) {
        let sources: Vec<Source> =
            files.iter().map(|(name, text)| (format!("c/src/{name}"), (*text).to_owned())).collect();
        let problems = cycles("c", &sources);
        let found: Vec<&str> =
            problems.iter().map(|problem| problem.split(" is a cycle").next().unwrap()).collect();
        assert_eq!(found, wanted, "{files:?}");
    }

    #[test]
    fn finds_modules_that_use_each_other() {
        check(&[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::X;"), ("b.rs", "fn f() {}")], &[]);
        check(&[("a.rs", "use crate::b::X;"), ("b.rs", "fn f() { crate::a::g(); }")], &["c: a → b → a"]);
        check(
            &[
                ("a.rs", "use super::b;"),
                ("b.rs", "use crate::{d, e::F};"),
                ("d.rs", ""),
                ("e.rs", "use crate::a;"),
            ],
            &["c: a → b → e → a"],
        );
    }

    #[test]
    fn a_folder_is_one_module() {
        check(
            &[
                ("a/mod.rs", "mod x; use x::X;"),
                ("a/x.rs", "use super::y; use crate::a::y;"),
                ("a/y.rs", "use super::x;"),
            ],
            &[],
        );
        check(&[("a/x.rs", "use super::super::b;"), ("b.rs", "use crate::a::X;")], &["c: a → b → a"]);
    }

    #[test]
    fn follows_names_that_the_root_exports() {
        let root = ("lib.rs", "mod a;\nmod b;\npub use a::{self, deep::Thing as Other};\n");
        check(&[root, ("a.rs", "use crate::b;"), ("b.rs", "use crate::Other;")], &["c: a → b → a"]);
        check(&[root, ("a.rs", "use crate::b;"), ("b.rs", "use crate::Unknown;")], &[]);
    }

    #[test]
    fn reads_nested_lists_and_skips_tests_strings_and_comments() {
        let list = "use crate::{\n    d::{e, f},\n    a::G,\n};\nd";
        check(&[("a.rs", "use crate::b;"), ("b.rs", list), ("d.rs", "")], &["c: a → b → a"]);
        let harmless =
            "// crate::a\nconst A: &str = \"crate::a::X\";\n#[cfg(test)]\nmod tests { use crate::a; }\n";
        check(&[("a.rs", "use crate::b;"), ("b.rs", harmless)], &[]);
    }

    #[test]
    fn names_a_crate_that_does_not_exist() {
        assert!(cycles("c", &[])[0].starts_with("c has no modules"));
    }

    #[test]
    fn names_the_place_of_each_use() {
        let sources = [("a.rs", "\nuse crate::b;"), ("b.rs", "use crate::a;")];
        let sources = sources.map(|(name, text)| (format!("c/src/{name}"), text.to_owned()));
        let problems = cycles("c", &sources);
        assert!(problems[0].ends_with("c/src/a.rs:2: a uses b\n    c/src/b.rs:1: b uses a"), "{problems:?}");
    }
}
