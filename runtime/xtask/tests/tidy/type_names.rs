//! Refuses the name of a private type that stands in three crates. A reader would expect the same thing everywhere.

use super::all_crates;
use super::lexer::{self, Language, is_name};
use super::source::product_files;
use redflow_xtask::files;
use std::collections::BTreeMap;
use std::path::Path;

/// The most crates that may have a private type of the same name.
const MAX_CRATES: usize = 2;

const TYPE_KEYWORDS: &[&str] = &["enum", "struct", "trait", "type", "union"];

/// The keywords of items that have a block.
const BLOCK_KEYWORDS: &[&str] = &["enum", "fn", "impl", "mod", "struct", "trait", "union"];

/// The places of private types: by name, then by crate.
type Places = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// No private type name stands in three crates.
pub(crate) fn repeated_type_names(root: &Path) -> Vec<String> {
    let mut places = Places::new();
    for folder in all_crates(root) {
        for path in product_files(root, &folder) {
            let Ok(text) = files::read(root, &path) else { continue };
            add_types(&mut places, &folder, &path, &text);
        }
    }
    repeated_names(&places)
}

fn add_types(places: &mut Places, folder: &str, path: &str, text: &str) {
    let code = lexer::without_tests(&lexer::layers(Language::Rust, text).code);
    for (line, name) in private_types(&code) {
        let crates = places.entry(name.to_owned()).or_default();
        crates.entry(folder.to_owned()).or_default().push(format!("{path}:{line}"));
    }
}

fn repeated_names(places: &Places) -> Vec<String> {
    let repeated = places.iter().filter(|(_, crates)| crates.len() > MAX_CRATES);
    repeated
        .filter_map(|(name, crates)| {
            let folders: Vec<&str> = crates.keys().map(String::as_str).collect();
            let (last, others) = folders.split_last()?;
            let lines: Vec<&str> = crates.values().flatten().map(String::as_str).collect();
            Some(format!(
                "private type `{name}` stands in {} and {last}: \
                 keep it in at most two, and name the other types after what they are\n    {}",
                others.join(", "),
                lines.join("\n    ")
            ))
        })
        .collect()
}

/// The private types that the code of a file defines, with their lines.
fn private_types(code: &str) -> Vec<(usize, &str)> {
    let mut types = Vec::new();
    let mut blocks: Vec<&str> = Vec::new();
    // What stands before the next token, since the item or statement began.
    let mut item: Vec<&str> = Vec::new();
    for (index, line) in code.lines().enumerate() {
        for token in tokens(line) {
            match token {
                "{" => {
                    blocks.push(block_keyword(&item));
                    item.clear();
                }
                "}" => {
                    blocks.pop();
                    item.clear();
                }
                ";" if !has_open_bracket(&item) => item.clear(),
                _ => {
                    if is_private_type(&item, token, blocks.last().copied().unwrap_or_default()) {
                        types.push((index + 1, token));
                    }
                    item.push(token);
                }
            }
        }
    }
    types
}

/// Whether `name`, which follows the tokens of an item, is the name of a private type.
fn is_private_type(item: &[&str], name: &str, block: &str) -> bool {
    let Some((keyword, before)) = item.split_last() else { return false };
    let is_associated = *keyword == "type" && matches!(block, "impl" | "trait");
    // After `#` it is a name: `r#type`.
    let is_other = matches!(before.last().copied(), Some("pub" | "#"));
    TYPE_KEYWORDS.contains(keyword) && name.starts_with(char::is_uppercase) && !is_associated && !is_other
}

/// The keyword of the item whose block follows these tokens; empty for a block of an expression.
fn block_keyword<'a>(item: &[&'a str]) -> &'a str {
    item.iter().copied().find(|token| BLOCK_KEYWORDS.contains(token)).unwrap_or_default()
}

/// Whether a `;` after these tokens belongs to an array such as `[u8; 4]`.
fn has_open_bracket(item: &[&str]) -> bool {
    let count = |sign: &str| item.iter().filter(|token| **token == sign).count();
    count("[") > count("]")
}

/// The names and the signs of a line.
fn tokens(line: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let name_end = rest.find(|char: char| !is_name(char)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(name_end.max(first.len_utf8()));
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::{Places, add_types, private_types, repeated_names};
    use pretty_assertions::assert_eq;

    fn problems(crates: &[(&str, &str)]) -> Vec<String> {
        let mut places = Places::new();
        for (folder, text) in crates {
            add_types(&mut places, folder, &format!("{folder}/src/lib.rs"), text);
        }
        repeated_names(&places)
    }

    fn names(code: &str) -> Vec<&str> {
        private_types(code).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn names_the_crates_and_the_places() {
        let crates = [
            ("bench", "struct Row;"),
            ("runtime/cli", "enum Other {}\nenum Row {}\n"),
            ("runtime/mcp", "pub(crate) type Row = u8;"),
        ];
        let expected = "private type `Row` stands in bench, runtime/cli and runtime/mcp: \
                        keep it in at most two, and name the other types after what they are\n    \
                        bench/src/lib.rs:1\n    runtime/cli/src/lib.rs:2\n    runtime/mcp/src/lib.rs:1";
        assert_eq!(problems(&crates), [expected]);
    }

    #[test]
    fn two_crates_may_have_the_name_and_each_counts_once() {
        let crates =
            [("bench", "struct Row;"), ("runtime/cli", "struct Row;\nfn f() {\n    struct Row;\n}\n")];
        assert_eq!(problems(&crates), [""; 0]);
        let third = |text| problems(&[crates[0], crates[1], ("runtime/mcp", text)]);
        assert_eq!(third("trait Row {}").len(), 1);
        for other in [
            "pub struct Row;",
            "struct RowOfTable;",
            "// struct Row;\nconst A: &str = \"struct Row;\";",
            "#[cfg(test)]\nmod tests {\n    struct Row;\n}\n",
        ] {
            assert_eq!(third(other), [""; 0], "{other}");
        }
    }

    #[test]
    fn reads_every_way_to_define_a_private_type() {
        for code in [
            "struct Row;",
            "#[derive(Debug)]\nstruct Row<'a> {\n    r#type: &'a str,\n}",
            "pub(crate) struct Row(pub u8);",
            "pub(super) enum Row {}",
            "pub(in crate::table) trait Row {}",
            "type Row<T> = Result<T, Error>;",
            "union Row { a: u8 }",
            "mod table { type Row = u8; }",
            "impl A { fn f() -> [u8; 2] { type Row = u8; [0; 2] } }",
            "pub trait A { type B; fn f() -> impl C { struct Row; } }",
        ] {
            assert_eq!(names(code), ["Row"], "{code}");
        }
    }

    #[test]
    fn associated_types_parameters_and_names_are_not_types() {
        for code in [
            "impl A for B { type Row = u8; }",
            "impl<T: Fn()> A for [T; 2] where T: B { fn f() {} type Row = u8; }",
            "pub trait A { fn f() { g(); } type Row: B; }",
            "fn f<Row>(r#type: Row) -> impl Iterator<Item = Row> {}",
            "use a::Row;\npub fn f() -> Row { Row { union: 1 } }",
            "macro_rules! a { ($row:ident) => { struct $row; } }",
        ] {
            assert_eq!(names(code), [""; 0], "{code}");
        }
    }
}
