//! Finds cycles between the files of a crate, and between its top-level modules: the files and folders
//! directly in `src`. A module and its own submodules may use each other, because they are one thing in
//! several files.

use super::all_crates;
use super::lexer::{self, Language, is_name};
use super::source::product_files;
use redflow_xtask::files;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// The crates of which only the files are checked, each with the reason.
const FILES_ONLY: &[(&str, &str)] =
    &[("runtime/server", "its folders share `App`"), ("runtime/store", "its folders share the database")];

/// The crate without modules of its own: `tests` has only test programs.
const WITHOUT_MODULES: &[(&str, &str)] = &[("tests", "it has only test programs")];

/// What counts as one module.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Top,
    File,
}

/// The modules that each module uses, with the place of the first use.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// A file by its path and text.
type Source = (String, String);

/// No module of a checked crate uses a module that uses it, directly or through others.
pub(crate) fn module_cycles(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for folder in &all_crates(root) {
        if WITHOUT_MODULES.iter().any(|(name, _)| name == folder) {
            continue;
        }
        let sources = read_sources(root, folder);
        let files = cycles(folder, &sources, Level::File);
        if files.is_empty() && !FILES_ONLY.iter().any(|(name, _)| name == folder) {
            problems.extend(cycles(folder, &sources, Level::Top));
        }
        problems.extend(files);
    }
    problems
}

fn read_sources(root: &Path, folder: &str) -> Vec<Source> {
    let paths = product_files(root, folder).into_iter();
    paths.filter_map(|path| Some((path.clone(), files::read(root, &path).ok()?))).collect()
}

fn cycles(folder: &str, sources: &[Source], level: Level) -> Vec<String> {
    let graph = graph(folder, sources, level);
    if sources.is_empty() {
        return vec![format!(
            "{folder} has no sources: add it to WITHOUT_MODULES in runtime/xtask/tests/tidy/cycles.rs"
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

fn graph(folder: &str, sources: &[Source], level: Level) -> Graph {
    let files: Vec<(Vec<&str>, &str, String)> = sources
        .iter()
        .map(|(path, text)| {
            let code = lexer::without_tests(&lexer::layers(Language::Rust, text).code);
            (module_path(folder, path), path.as_str(), code)
        })
        .collect();
    let name_of = |module: &[&str]| match level {
        Level::Top => module.first().map(ToString::to_string),
        Level::File => (!module.is_empty()).then(|| module.join("::")),
    };
    let mut graph: Graph = BTreeMap::new();
    for name in files.iter().filter_map(|(module, ..)| name_of(module)) {
        graph.entry(name).or_default();
    }
    let exports: Vec<Vec<&str>> = files
        .iter()
        .filter(|(module, ..)| module.is_empty())
        .flat_map(|(.., code)| paths_after(code, "use ").into_iter().map(|(_, path)| path))
        .collect();
    let tops: BTreeSet<&str> = files.iter().filter_map(|(module, ..)| module.first().copied()).collect();
    for (module, path, code) in &files {
        let Some(from) = name_of(module) else { continue };
        for (offset, used) in used_paths(module, code) {
            let is_module = used.first().is_some_and(|first| tops.contains(first));
            let export = exports.iter().find(|export| {
                !is_module && export.len() > 1 && export.last() == used.first() && tops.contains(&export[0])
            });
            let used = [export.map_or(&[][..], |export| &export[..export.len() - 1]), &used].concat();
            let longest = (1..=used.len()).rev().filter_map(|length| name_of(&used[..length]));
            let Some(to) = longest.into_iter().find(|to| graph.contains_key(to)) else { continue };
            if to == from {
                continue;
            }
            let line = code[..offset].matches('\n').count() + 1;
            let place = format!("{path}:{line}: {from} uses {to}");
            graph.entry(from.clone()).or_default().entry(to).or_insert(place);
        }
    }
    graph
}

/// The paths that a file uses, from the root of the crate, with their offsets.
fn used_paths<'a>(module: &[&'a str], code: &'a str) -> Vec<(usize, Vec<&'a str>)> {
    let mut used = paths_after(code, "crate::");
    for (offset, path) in paths_after(code, "super::") {
        let up = 1 + path.iter().take_while(|part| **part == "super").count();
        let Some(parent) = module.len().checked_sub(up) else { continue };
        used.push((offset, [&module[..parent], &path[up - 1..]].concat()));
    }
    used
}

/// The path of a file's module from the root of its crate, which is empty for `lib.rs` and `main.rs`.
fn module_path<'a>(folder: &str, path: &'a str) -> Vec<&'a str> {
    let inner = path.trim_start_matches(folder).trim_start_matches("/src/").trim_end_matches(".rs");
    let mut parts: Vec<&str> = inner.split('/').collect();
    parts.pop_if(|last| matches!(*last, "mod" | "lib" | "main"));
    parts
}

/// The paths directly behind a prefix, with their offsets: one path, or those of a `{…}` list.
fn paths_after<'a>(code: &'a str, prefix: &str) -> Vec<(usize, Vec<&'a str>)> {
    let is_start = |start: usize| !code[..start].ends_with(|char| is_name(char) || char == ':');
    let mut paths = Vec::new();
    for (start, _) in code.match_indices(prefix).filter(|(start, _)| is_start(*start)) {
        read_tree(code, start + prefix.len(), &[], &mut paths);
    }
    paths
}

/// Reads the paths of a `use` tree that starts at an offset. Gives the offset after it.
fn read_tree<'a>(
    code: &'a str,
    offset: usize,
    before: &[&'a str],
    paths: &mut Vec<(usize, Vec<&'a str>)>,
) -> usize {
    let rest = &code[offset..];
    let offset = offset + rest.len() - rest.trim_start().len();
    if code[offset..].starts_with('{') {
        let mut at = offset + 1;
        while at < code.len() && !code[at..].starts_with('}') {
            let is_separator = code[at..].starts_with(|char: char| char == ',' || char.is_whitespace());
            at = if is_separator { at + 1 } else { read_tree(code, at, before, paths).max(at + 1) };
        }
        return at + 1;
    }
    let name = code[offset..].split(|char| !is_name(char)).next().unwrap_or_default();
    let end = offset + name.len();
    let path = [before, &[name]].concat();
    if !name.is_empty() && code[end..].starts_with("::") {
        return read_tree(code, end + 2, &path, paths);
    }
    // A new name is the one that others use.
    let renamed = code[end..].trim_start().strip_prefix("as ").map(str::trim_start);
    match renamed.map(|rest| rest.split(|char| !is_name(char)).next().unwrap_or_default()) {
        Some(alias) => {
            paths.push((offset, [&path, &[alias][..]].concat()));
            end + code[end..].find(alias).unwrap_or_default() + alias.len()
        }
        None => {
            paths.push((offset, path));
            end
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, Source, cycles};
    use pretty_assertions::assert_eq;

    fn check(files: &[(&str, &str)], wanted: &[&str]) {
        check_at(Level::Top, files, wanted);
    }

    fn check_at(level: Level, files: &[(&str, &str)], wanted: &[&str]) {
        let sources: Vec<Source> =
            files.iter().map(|(name, text)| (format!("c/src/{name}"), (*text).to_owned())).collect();
        let problems = cycles("c", &sources, level);
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
    fn finds_files_of_a_folder_that_use_each_other() {
        let files = [("a/x.rs", "use super::y::{self, Y};"), ("a/y.rs", "use crate::{a::{x::{X, Z}}};")];
        check_at(Level::File, &files, &["c: a::x → a::y → a::x"]);
        check(&files, &[]);
        let files = [("a/x.rs", "use crate::b;"), ("a/y.rs", ""), ("b.rs", "use crate::a::y::Y;")];
        check_at(Level::File, &files, &[]);
        check(&files, &["c: a → b → a"]);
    }

    #[test]
    fn follows_names_that_the_root_exports() {
        let root = ("lib.rs", "mod a;\nmod b;\npub use a::{self, deep::Thing as Other};\n");
        check(&[root, ("a.rs", "use crate::b;"), ("b.rs", "use crate::Other;")], &["c: a → b → a"]);
        check(&[root, ("a.rs", "use crate::b;"), ("b.rs", "use crate::Unknown;")], &[]);
        check_at(
            Level::File,
            &[root, ("a/deep.rs", "use crate::b;"), ("b.rs", "use crate::Other;")],
            &["c: a::deep → b → a::deep"],
        );
        // A module counts more than another thing with its name.
        let root = ("lib.rs", "mod a;\nmod b;\nuse std::b;\n");
        check(&[root, ("a.rs", "use crate::b;"), ("b.rs", "use crate::a;")], &["c: a → b → a"]);
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
        assert!(cycles("c", &[], Level::Top)[0].starts_with("c has no sources"));
    }

    #[test]
    fn names_the_place_of_each_use() {
        let sources = [("a.rs", "\nuse crate::b;"), ("b.rs", "use crate::a;")];
        let sources = sources.map(|(name, text)| (format!("c/src/{name}"), text.to_owned()));
        let problems = cycles("c", &sources, Level::Top);
        assert!(problems[0].ends_with("c/src/a.rs:2: a uses b\n    c/src/b.rs:1: b uses a"), "{problems:?}");
    }
}
