//! The jobs of a worker. They run behind its limits, and may panic.

mod html;
mod pdf;

pub use html::HtmlText;
pub(crate) use html::read_html;
pub use pdf::PdfText;
pub(crate) use pdf::read_pdf;

/// The longest title, in characters.
const MAX_TITLE_CHARACTERS: usize = 500;

/// A title on one line. None: there is no text in it.
fn clean_title(title: &str) -> Option<String> {
    let mut line = String::new();
    for word in title.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let title: String = line.chars().take(MAX_TITLE_CHARACTERS).collect();
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::{MAX_TITLE_CHARACTERS, clean_title};

    #[test]
    fn a_title_is_one_bounded_line() {
        assert_eq!(clean_title(" The\n  pump\tmanual\0 ").as_deref(), Some("The pump manual"));
        assert_eq!(clean_title(" \n\u{0}"), None);
        let long = clean_title(&"ä".repeat(2000)).unwrap();
        assert_eq!(long.chars().count(), MAX_TITLE_CHARACTERS);
    }
}
