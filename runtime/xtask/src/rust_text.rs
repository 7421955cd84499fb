//! Rust source as text: what is code, what is a comment or a string, what is a test.
//!
//! A light scan for the invariants, not a parser: it keeps every line where it is and blanks what does not
//! count.

/// The source with comments blanked and the insides of string and character literals replaced by `_`.
pub(crate) fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut scan = Scan { chars: &chars, at: 0, out: String::with_capacity(source.len()) };
    while scan.at < chars.len() {
        scan.step();
    }
    scan.out
}

struct Scan<'a> {
    chars: &'a [char],
    at: usize,
    out: String,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (Some('/'), Some('/')) => {
                while self.peek(0).is_some_and(|next| next != '\n') {
                    self.replace(' ');
                }
            }
            (Some('/'), Some('*')) => self.block_comment(),
            (Some('"'), _) => self.quoted('"'),
            (Some('r'), Some('"' | '#')) if self.starts_raw_string() => self.raw_string(),
            (Some('\''), Some('\\')) => self.quoted('\''),
            (Some('\''), Some(_)) if self.peek(2) == Some('\'') => self.quoted('\''),
            _ => self.keep(),
        }
    }

    fn keep(&mut self) {
        self.out.extend(self.peek(0));
        self.at += 1;
    }

    /// Moves on over one character; only the ends of lines stay.
    fn replace(&mut self, with: char) {
        match self.peek(0) {
            Some(space) if space.is_whitespace() => self.out.push(space),
            Some(_) => self.out.push(with),
            None => {}
        }
        self.at += 1;
    }

    fn block_comment(&mut self) {
        let mut depth = 0_u32;
        while let Some(now) = self.peek(0) {
            let pair = (now, self.peek(1));
            if pair == ('/', Some('*')) || pair == ('*', Some('/')) {
                depth = if now == '/' { depth + 1 } else { depth - 1 };
                self.replace(' ');
            }
            self.replace(' ');
            if depth == 0 {
                return;
            }
        }
    }

    fn quoted(&mut self, end: char) {
        self.keep();
        while let Some(now) = self.peek(0) {
            if now == end {
                self.keep();
                return;
            }
            if now == '\\' {
                self.replace('_');
            }
            self.replace('_');
        }
    }

    /// `r"`, `r#"` …, with or without `b` or `c` before it; not the end of a name, not `r#name`.
    fn starts_raw_string(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).and_then(|index| self.chars.get(index));
        let in_name = |char: Option<&char>| char.is_some_and(|char| char.is_alphanumeric() || *char == '_');
        let prefixed = matches!(before(1), Some('b' | 'c')) && !in_name(before(2));
        (prefixed || !in_name(before(1))) && self.peek(1 + self.hashes()) == Some('"')
    }

    fn hashes(&self) -> usize {
        self.chars[self.at + 1..].iter().take_while(|char| **char == '#').count()
    }

    fn raw_string(&mut self) {
        let hashes = self.hashes();
        (0..hashes + 2).for_each(|_| self.keep());
        while let Some(now) = self.peek(0) {
            if now == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')) {
                (0..=hashes).for_each(|_| self.keep());
                return;
            }
            self.replace('_');
        }
    }
}

/// Code (from [`code_only`]) with every item under `#[cfg(test)]` blanked.
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

/// Where the item ends that the text begins with: at its `;`, or after its block.
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

/// Lines of code: neither empty nor only a comment.
pub(crate) fn count_lines(source: &str) -> usize {
    code_only(source).lines().filter(|line| !line.trim().is_empty()).count()
}

/// The numbers of the lines of `code` on which `word` stands: as it is if it ends in a bracket or begins
/// with a dot, else only as a whole name.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let is_name = |char: char| char.is_alphanumeric() || char == '_';
    let opens = word.starts_with(is_name);
    let closes = word.ends_with(is_name);
    let stands = |line: &str| {
        line.match_indices(word).any(|(start, _)| {
            let before = line[..start].chars().next_back().is_some_and(is_name);
            let after = line[start + word.len()..].chars().next().is_some_and(is_name);
            !(opens && before || closes && after)
        })
    };
    let numbered = code.lines().enumerate().filter(|(_, line)| stands(line));
    numbered.map(|(index, _)| index + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::{code_only, count_lines, lines_with, without_tests};
    use pretty_assertions::assert_eq;

    #[test]
    fn comments_and_strings_are_blanked_in_place() {
        let check = |source: &str, code: &str| assert_eq!(code_only(source), code, "{source}");
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
    fn test_items_are_blanked_and_lines_stay() {
        let source = "a\n#[cfg(test)]\nmod tests {\n  fn f() { x }\n}\nb\n#[cfg(test)]\nmod more;\nc";
        let left = without_tests(source);
        assert_eq!(left.lines().count(), source.lines().count());
        assert_eq!(left.split_whitespace().collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn only_lines_of_code_count() {
        let source = "//! doc\n\nfn f() { // why\n    /* no\n    no */\n    g(\"\n text\n\n\");\n}\n";
        assert_eq!(count_lines(source), 5);
    }

    #[test]
    fn names_match_whole() {
        assert_eq!(lines_with("unsafe_code\nnot_unsafe\nunsafe {\n", "unsafe"), [3]);
        assert_eq!(lines_with("x.unwrap_or(1)\nx\n  .unwrap()", ".unwrap()"), [3]);
        assert_eq!(lines_with("my_panic!()\npanic!()", "panic!("), [2]);
    }
}
