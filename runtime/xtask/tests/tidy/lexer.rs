//! Separates code, strings and comments of a source file. Every line and column stays where it is.

/// The languages whose comments and strings differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    TypeScript,
    Toml,
}

impl Language {
    /// The language of a file, by its ending.
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path.rsplit_once('.')?.1 {
            "rs" => Some(Self::Rust),
            "ts" | "tsx" | "mts" | "mjs" => Some(Self::TypeScript),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// One file as two texts of the same shape.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    /// Comments are blank, and `_` stands for each character inside a string.
    pub(crate) code: String,
    /// Everything but the comments is blank.
    pub(crate) comments: String,
}

#[derive(Clone, Copy)]
enum Part {
    Code,
    Text,
    Comment,
}

/// Reads a file. This is a light scan and not a parser: it needs no valid source.
pub(crate) fn layers(language: Language, source: &str) -> Layers {
    let chars: Vec<char> = source.chars().collect();
    let mut lexer =
        Lexer { language, chars: &chars, at: 0, open_templates: Vec::new(), out: Layers::default() };
    while lexer.at < chars.len() {
        lexer.step();
    }
    lexer.out
}

struct Lexer<'a> {
    language: Language,
    chars: &'a [char],
    at: usize,
    /// For each `${` that is open in a template, the braces that are open inside it.
    open_templates: Vec<u32>,
    out: Layers,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        use Language::{Rust, Toml, TypeScript};
        match (self.language, self.peek(0), self.peek(1)) {
            (Rust | TypeScript, Some('/'), Some('/')) | (Toml, Some('#'), _) => {
                while self.peek(0).is_some_and(|next| next != '\n') {
                    self.take(Part::Comment);
                }
            }
            (Rust | TypeScript, Some('/'), Some('*')) => self.block_comment(),
            (Rust, Some('r'), Some('"' | '#')) if self.starts_raw_string() => self.raw_string(),
            (Rust, Some('\''), Some('\\')) => self.quoted('\''),
            // Otherwise the quote begins a lifetime.
            (Rust, Some('\''), _) if self.peek(2) == Some('\'') => self.quoted('\''),
            (TypeScript | Toml, Some('\''), _) => self.quoted('\''),
            (_, Some('"'), _) => self.quoted('"'),
            (TypeScript, Some('`'), _) => self.template(),
            (TypeScript, Some('/'), _) if self.starts_pattern() => self.quoted('/'),
            (TypeScript, Some('}'), _) if self.open_templates.last() == Some(&0) => {
                self.open_templates.pop();
                self.template();
            }
            (_, now, _) => {
                if let Some(braces) = self.open_templates.last_mut() {
                    *braces = braces.wrapping_add_signed(match now {
                        Some('{') => 1,
                        Some('}') => -1,
                        _ => 0,
                    });
                }
                self.take(Part::Code);
            }
        }
    }

    /// Moves on by one character.
    fn take(&mut self, part: Part) {
        let Some(char) = self.peek(0) else { return };
        let (code, comment) = match part {
            _ if char.is_whitespace() => (char, char),
            Part::Code => (char, ' '),
            Part::Text => ('_', ' '),
            Part::Comment => (' ', char),
        };
        self.out.code.push(code);
        self.out.comments.push(comment);
        self.at += 1;
    }

    fn block_comment(&mut self) {
        let mut depth = 0_u32;
        while let Some(now) = self.peek(0) {
            match (now, self.peek(1)) {
                ('/', Some('*')) if depth == 0 || self.language == Language::Rust => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.take(Part::Comment);
                    continue;
                }
            }
            self.take(Part::Comment);
            self.take(Part::Comment);
            if depth == 0 {
                return;
            }
        }
    }

    fn quoted(&mut self, end: char) {
        // Only a multi-line string may hold the end of a line; elsewhere that is a mistake of this scan.
        let one_line = self.language == Language::TypeScript;
        let mut in_class = false;
        self.take(Part::Code);
        while let Some(now) = self.peek(0).filter(|now| !(one_line && *now == '\n')) {
            match now {
                '[' => in_class = end == '/',
                ']' => in_class = false,
                _ if now == end && !in_class => return self.take(Part::Code),
                '\\' => self.take(Part::Text),
                _ => {}
            }
            self.take(Part::Text);
        }
    }

    /// A piece of a template: from its beginning, or from the end of an expression in it.
    fn template(&mut self) {
        self.take(Part::Code);
        while let Some(now) = self.peek(0) {
            match (now, self.peek(1)) {
                ('`', _) => return self.take(Part::Code),
                ('$', Some('{')) => {
                    self.take(Part::Code);
                    self.take(Part::Code);
                    return self.open_templates.push(0);
                }
                ('\\', _) => self.take(Part::Text),
                _ => {}
            }
            self.take(Part::Text);
        }
    }

    /// Whether a `/` begins a pattern: it does not follow a value.
    fn starts_pattern(&self) -> bool {
        let before = self.out.code.trim_end();
        before.ends_with("return")
            || !before
                .ends_with(|char: char| is_name(char) || matches!(char, ')' | ']' | '}' | '"' | '\'' | '`'))
    }

    /// `r"`, `r#"` …, with or without `b` or `c` before it; not the end of a name, not `r#name`.
    fn starts_raw_string(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).and_then(|index| self.chars.get(index));
        let in_name = |char: Option<&char>| char.is_some_and(|char| is_name(*char));
        let prefixed = matches!(before(1), Some('b' | 'c')) && !in_name(before(2));
        (prefixed || !in_name(before(1))) && self.peek(1 + self.hashes()) == Some('"')
    }

    fn hashes(&self) -> usize {
        self.chars[self.at + 1..].iter().take_while(|char| **char == '#').count()
    }

    fn raw_string(&mut self) {
        let hashes = self.hashes();
        (0..hashes + 2).for_each(|_| self.take(Part::Code));
        while let Some(now) = self.peek(0) {
            if now == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                return (0..=hashes).for_each(|_| self.take(Part::Code));
            }
            self.take(Part::Text);
        }
    }
}

/// Whether a character can stand in a name.
pub(crate) fn is_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Rust code (from [`layers`]) with every item under `#[cfg(test)]` blanked.
pub(crate) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        let (before, item) = rest.split_at(start);
        out.push_str(before);
        let end = MARK.len() + item_end(&item[MARK.len()..]);
        out.extend(item[..end].chars().map(|char| if char == '\n' { '\n' } else { ' ' }));
        rest = &item[end..];
    }
    out + rest
}

/// Where the first item of the text ends: at its `;`, or after its block.
fn item_end(text: &str) -> usize {
    let mut depth = 0_u32;
    for (index, char) in text.char_indices() {
        match char {
            '{' => depth += 1,
            ';' if depth == 0 => return index + 1,
            '}' if depth <= 1 => return index + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The lines of `code` with `word`, counted from 1. An end of the word that is a name must end a name there.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let has_word = |line: &str| {
        line.match_indices(word).any(|(start, _)| {
            let before = line[..start].ends_with(is_name);
            let after = line[start + word.len()..].starts_with(is_name);
            !(word.starts_with(is_name) && before || word.ends_with(is_name) && after)
        })
    };
    let numbered = code.lines().enumerate().filter(|(_, line)| has_word(line));
    numbered.map(|(index, _)| index + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::Language::{Rust, Toml, TypeScript};
    use super::{layers, lines_with, without_tests};
    use pretty_assertions::assert_eq;

    #[test]
    fn blanks_comments_and_strings_in_place() {
        let check = |source: &str, code: &str| assert_eq!(layers(Rust, source).code, code, "{source}");
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("x.unwrap()")"#, r#"f("__________")"#);
        check(r#"f("a\"b") "#, r#"f("____") "#);
        check("f(r#\"a\"b\"#)", "f(r#\"___\"#)");
        check("f(br\"a\\\", x)", "f(br\"__\", x)");
        check("r#type + for\"a\"", "r#type + for\"_\"");
        check("('a', '\\'', '\"', b'x', &'a str)", "('_', '__', '_', b'_', &'a str)");
        check("\"https://x\" // y", "\"_________\"     ");
        check("\"unclosed", "\"________");
        check("/* unclosed", "           ");
    }

    #[test]
    fn reads_the_strings_of_typescript() {
        let check = |source: &str, code: &str| assert_eq!(layers(TypeScript, source).code, code, "{source}");
        check("a /* b /* c */ d", "a              d");
        check("f('a\"b', \"it's\")", "f('___', \"____\")");
        check("`a ${b({c: `d`})} e` + f", "`_ ${b({c: `_`})} _` + f");
        check("x = /[/'\"]+\\//g; y / 2 / z", "x = /________/g; y / 2 / z");
        check("it('s\nnext", "it('_\nnext");
    }

    #[test]
    fn keeps_the_comments_alone() {
        assert_eq!(layers(Rust, "a // \"b\"\n/* c */ d").comments, "  // \"b\"\n/* c */  ");
        assert_eq!(layers(TypeScript, "`//` // a").comments, "     // a");
        assert_eq!(layers(Toml, "a = '#' # b").comments, "        # b");
    }

    #[test]
    fn blanks_test_items_and_keeps_the_lines() {
        let source = "a\n#[cfg(test)]\nmod tests {\n  fn f() { x }\n}\nb\n#[cfg(test)]\nmod more;\nc";
        let left = without_tests(source);
        assert_eq!(left.lines().count(), source.lines().count());
        assert_eq!(left.split_whitespace().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn finds_whole_names_only() {
        assert_eq!(lines_with("unsafe_code\nnot_unsafe\nunsafe {\n", "unsafe"), [3]);
        assert_eq!(lines_with("x.unwrap_or(1)\nx\n  .unwrap()", ".unwrap()"), [3]);
        assert_eq!(lines_with("my_panic!()\npanic!()", "panic!("), [2]);
    }
}
