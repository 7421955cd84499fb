//! Refuses names that say nothing to a stranger: metaphors, bare participles and pronouns.

use super::lexer::{self, Language};
use super::{check_files, tracked_files};
use std::path::Path;

/// A name that may not come back, and what to say instead.
type Word = (&'static str, &'static str);

/// No identifier or path of code has these names.
const NAMES: &[Word] = &[
    ("Asked", "the noun of what is requested, such as `Request` or `Query`"),
    ("Begun", "the noun of what began, such as `StartedRun`"),
    ("ChatBook", "`ChatHistory`"),
    ("Drawer", "`UiStorage`"),
    ("FlowShelf", "`FlowStore`"),
    ("Hands", "`EffectContext`"),
    ("Heard", "the noun of what is received, such as `Message` or `Response`"),
    ("InForce", "`ActiveFlow`"),
    ("Keep::Now", "`Durability::Synced`"),
    ("Keep::Soon", "`Durability::Buffered`"),
    ("Made", "the noun of what was made"),
    ("Making", "`EngineParts`, or the noun of what is made"),
    ("Onlooker", "`FlowObserver`"),
    ("Reins", "`RunContext`"),
    ("Said", "the noun of what was printed or sent, such as `Output` or `Payload`"),
    ("ShelvedFlow", "`StoredFlow`"),
    ("Told", "the noun of what is reported, such as `Durability` or `Report`"),
    ("Wish", "`ResumeIntent`"),
    ("Workshop", "`FlowBuilder`"),
];

/// No type has these names. A variant or the type of another crate may: `Rule::Move`, `Step::Done`.
const TYPES: &[Word] = &[
    ("Beside", "`Attached`, or what is attached"),
    ("Done", "the noun of the result, such as `Outcome`"),
    ("Door", "`Access`"),
    ("Found", "the noun of what is searched for"),
    ("House", "what it contains, such as `Instances`"),
    ("Kept", "the noun of what is stored"),
    ("Move", "`FlowStep`"),
    ("Nobody", "what it replaces, such as `NoObserver`"),
    ("Shelf", "`Store`, or what is stored"),
    ("Shown", "the noun of what is displayed"),
    ("Taken", "the noun of what is received"),
    ("Trail", "`Origin`"),
    ("Wanted", "the noun of what is requested, such as `Options`"),
    ("Whose", "`Owner`"),
];

/// No function has these names.
const FUNCTIONS: &[Word] = &[
    ("asked", "a verb: `request`, `ask`, `read`"),
    ("heard", "a verb: `receive`, `parse`"),
    ("said", "a verb: `print`, `parse`, `format`"),
    ("shown", "a verb: `display`, `format`"),
    ("tell", "a verb: `report`, `send`, `print`"),
    ("told", "a verb: `report`, `describe`, `from_error`"),
];

/// No crate, folder or file of code has these names.
const FILES: &[Word] = &[
    ("beside", "`attached`"),
    ("board", "`editor_notices`"),
    ("door", "`access`"),
    ("drawer", "`ui_storage`"),
    ("in_force", "`active_flow`"),
    ("leaving", "`output`"),
    ("loose", "`lenient`"),
    ("onlook", "`observe`"),
    ("said", "`payloads`"),
    ("shelf", "`flow_store`"),
    ("tell", "`run_detail`"),
    ("told", "the noun of what is reported, such as `node-definition`"),
    ("tool_chain", "`flow_tools`"),
    ("trail", "`origin`"),
    ("walk", "`route`"),
    ("workshop", "`flow_builder`"),
];

const TYPE_KEYWORDS: &[&str] = &["class", "enum", "interface", "struct", "trait", "type", "union"];
const FUNCTION_KEYWORDS: &[&str] = &["fn", "function"];

/// No source of Rust or TypeScript uses a forbidden name.
pub(crate) fn forbidden_names(root: &Path) -> Vec<String> {
    let mut problems = check_files(root, is_code, forbidden_identifiers);
    problems.extend(
        tracked_files(root).iter().filter(|path| is_code(path)).flat_map(|path| forbidden_path(path)),
    );
    problems
}

fn is_code(path: &str) -> bool {
    matches!(Language::of(path), Some(Language::Rust | Language::TypeScript))
}

fn forbidden_identifiers(path: &str, text: &str) -> Vec<String> {
    let Some(language) = Language::of(path) else { return Vec::new() };
    let code = lexer::layers(language, text).code;
    let mut found: Vec<(usize, Word)> = Vec::new();
    for word in NAMES {
        found.extend(lexer::lines_with(&code, word.0).into_iter().map(|line| (line, *word)));
    }
    let mut find_definitions = |words: &[Word], keywords: &[&str]| {
        for (word, keyword) in
            words.iter().flat_map(|word| keywords.iter().map(move |keyword| (word, keyword)))
        {
            let definition = format!("{keyword} {}", word.0);
            found.extend(lexer::lines_with(&code, &definition).into_iter().map(|line| (line, *word)));
        }
    };
    find_definitions(TYPES, TYPE_KEYWORDS);
    find_definitions(FUNCTIONS, FUNCTION_KEYWORDS);
    found.sort_unstable();
    found
        .into_iter()
        .map(|(line, (word, instead))| format!("{path}:{line}: `{word}`: say {instead}"))
        .collect()
}

fn forbidden_path(path: &str) -> Vec<String> {
    let parts = path.split('/').map(|part| part.split('.').next().unwrap_or_default().replace('-', "_"));
    let words = parts.filter_map(|part| FILES.iter().find(|(word, _)| *word == part));
    words.map(|(word, instead)| format!("{path}: `{word}`: say {instead}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{forbidden_identifiers, forbidden_path};

    #[test]
    fn names_the_line_the_word_and_what_to_say_instead() {
        let problems = forbidden_identifiers("a.rs", "fn f() {}\n\nlet x: Reins = Keep::Soon;\n");
        assert_eq!(
            problems,
            ["a.rs:3: `Keep::Soon`: say `Durability::Buffered`", "a.rs:3: `Reins`: say `RunContext`"]
        );
        assert_eq!(forbidden_identifiers("a.mts", "import type { Told } from './a.mjs';").len(), 1);
    }

    #[test]
    fn whole_identifiers_count_and_strings_and_comments_do_not() {
        let source = "// Told\nconst A: &str = \"Told\";\nstruct ToldTwice; let reins = Keep::Sooner;\n";
        assert_eq!(forbidden_identifiers("a.rs", source), [""; 0]);
        assert_eq!(forbidden_identifiers("a.ts", "const a = `Told ${Told}`;").len(), 1);
        assert_eq!(forbidden_identifiers("a.md", "Told"), [""; 0]);
    }

    #[test]
    fn participles_may_be_variants_but_not_types() {
        assert_eq!(forbidden_identifiers("a.rs", "enum Step { Done, Move }\nStep::Done => {}"), [""; 0]);
        for source in ["pub(crate) struct Done;", "enum Done {}", "type Done = u8;"] {
            assert_eq!(forbidden_identifiers("a.rs", source).len(), 1, "{source}");
        }
        assert_eq!(forbidden_identifiers("a.ts", "export interface Kept {}").len(), 1);
    }

    #[test]
    fn functions_are_verbs() {
        assert_eq!(forbidden_identifiers("a.rs", "pub fn tell<T>(it: T) {}").len(), 1);
        assert_eq!(forbidden_identifiers("a.ts", "export async function told() {}").len(), 1);
        assert_eq!(forbidden_identifiers("a.rs", "fn tell_all() {}"), [""; 0]);
    }

    #[test]
    fn crates_folders_and_files_have_plain_names_too() {
        for path in
            ["runtime/door/src/lib.rs", "runtime/server/src/beside/mod.rs", "src/told.ts", "a/tool-chain.mjs"]
        {
            assert_eq!(forbidden_path(path).len(), 1, "{path}");
        }
        assert_eq!(forbidden_path("runtime/walker/src/outdoor.rs"), [""; 0]);
        assert_eq!(forbidden_path("src/walk.rs"), ["src/walk.rs: `walk`: say `route`"]);
    }
}
