//! Checks the spelling of pages, the editor's English texts and comments. It is British: licence, behaviour.

use super::check_files;
use super::lexer::{self, Language};
use redflow_xtask::files;
use std::collections::BTreeSet;
use std::path::Path;
use typos_vars::Category;

/// Words that are right here although the dictionary refuses them, one to a line.
const OUR_WORDS: &str = "spelling-words.txt";

/// Every word is spelled right.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let ours = match files::read(root, OUR_WORDS) {
        Ok(text) => our_words(&text),
        Err(problem) => return vec![problem],
    };
    check_files(
        root,
        |path| path.ends_with(".md") || path.contains("/locales/en-US/") || Language::of(path).is_some(),
        |path, text| misspellings(path, text, &ours),
    )
}

fn our_words(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_lowercase).collect()
}

fn misspellings(path: &str, text: &str, ours: &BTreeSet<String>) -> Vec<String> {
    let comments = Language::of(path).map(|language| lexer::layers(language, text).comments);
    let prose = without_code(comments.as_deref().unwrap_or(text));
    let lines = prose.lines().enumerate();
    lines
        .flat_map(|(index, line)| words(line).map(move |word| (index + 1, word)))
        .filter(|(_, word)| !ours.contains(&word.to_lowercase()))
        .filter_map(|(line, word)| {
            let right = corrections(word)?.join("` or `");
            Some(format!("{path}:{line}: `{word}`: write `{right}`, or add the word to {OUR_WORDS}"))
        })
        .collect()
}

/// The text with fenced blocks, inline code and addresses blanked.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_block = false;
    for line in text.lines() {
        let is_fence = line.trim_start_matches(['/', '!', '*', ' ']).starts_with("```");
        in_block ^= is_fence;
        if !in_block && !is_fence {
            // The `_` makes a word that touches inline code a name.
            let prose = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
            let words = prose.split(' ').filter(|word| !word.contains("://"));
            out.extend(words.flat_map(|word| [word, " "]));
        }
        out.push('\n');
    }
    out
}

/// The words of a line. Names of code, which have digits, `_` or inner capitals, are none.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let tokens = line.split(|char: char| !lexer::is_name(char));
    tokens.filter(|token| {
        let mut chars = token.chars();
        chars.next().is_some_and(char::is_alphabetic) && chars.all(char::is_lowercase)
    })
}

/// The right spellings of a word that is wrong.
fn corrections(word: &str) -> Option<&'static [&'static str]> {
    if let Some(corrections) = typos_dict::WORD.find(&word.into()) {
        return Some(corrections);
    }
    let (categories, variants) = typos_vars::VARS.find(&word.into())?.first()?;
    let is_british = categories & Category::BritishIse as u8 != 0;
    (!is_british).then(|| typos_vars::corrections(Category::BritishIse, **variants))
}

#[cfg(test)]
mod tests {
    use super::{misspellings, our_words};

    fn check(path: &str, text: &str) -> Vec<String> {
        misspellings(path, text, &our_words("# why\nFoor\n"))
    }

    #[test]
    fn names_a_wrong_word_with_its_line_and_the_right_one() {
        let problems = check("a.md", "# A page\n\nIt recieves a foor.\n");
        assert_eq!(problems, ["a.md:3: `recieves`: write `receives`, or add the word to spelling-words.txt"]);
    }

    #[test]
    fn asks_for_british_spelling() {
        assert!(check("a.md", "The color")[0].contains("write `colour`"));
        assert_eq!(check("a.md", "The colour of a licence"), [""; 0]);
    }

    #[test]
    fn reads_only_the_comments_of_sources() {
        let problems = check("a.rs", "let recieve = \"recieve\"; // recieve\n/// recieve\n");
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(check("a.ts", "const color = 'teh' /* the `color` */").len(), 0);
        assert_eq!(check("Cargo.toml", "recieve = \"#recieve\" # recieve").len(), 1);
    }

    #[test]
    fn skips_code_addresses_and_names() {
        let page =
            "`recieve` <https://example.org/recieve> recieve_all recieveAll `t`eh\n\n```sh\nrecieve\n```\n";
        assert_eq!(check("a.md", page), [""; 0]);
        assert_eq!(check("a.rs", "//! ```\n//! recieve\n//! ```\n"), [""; 0]);
    }
}
