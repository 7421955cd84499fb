//! What texts lose before they are stored: secrets, and characters that show nothing or turn the direction of text.

use redflow_contract::secret::mask_text;

/// A text as it may be stored, with at most this many bytes.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let visible: String = text.chars().filter_map(visible).collect();
    let masked = mask_text(&visible);
    cut(masked.trim(), most).to_owned()
}

/// The beginning of a text, of whole letters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// A character as it is stored; none if it shows nothing or turns the direction of the text after it.
fn visible(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => Some(c),
        '\u{2028}' | '\u{2029}' => Some('\n'),
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{200e}' | '\u{200f}' | '\u{61c}' => None,
        '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => None,
        '\u{e0000}'..='\u{e007f}' => None,
        c if c.is_control() => None,
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::clean;
    use pretty_assertions::assert_eq;

    #[test]
    fn secrets_and_hidden_characters_go() {
        let key = "sk-ant-api03-AbC_dEf-0123456789";
        assert_eq!(clean(&format!("My key is {key}, keep it."), 100), "My key is [redacted], keep it.");
        let code = "qT7hJmK2vBnR4tYwZxC8dF5gH1jL9pQs";
        assert_eq!(clean(&format!("the code {code} of\tmine"), 100), "the code [redacted] of\tmine");
        let address = clean("at postgres://app:s3cret@db/app now", 100);
        assert!(!address.contains("s3cret") && address.ends_with("now"), "{address}");
        assert_eq!(clean("a\u{202e}b\u{0}c\r\nd\u{2028}e\u{e0041}\u{200b}f", 100), "abc\nd\nef");
        // They join letters of some scripts, and parts of emoji.
        assert_eq!(clean("می\u{200c}خواهم 👩\u{200d}💻", 100), "می\u{200c}خواهم 👩\u{200d}💻");
    }

    #[test]
    fn a_long_text_is_cut_at_a_letter() {
        assert_eq!(clean("  äöü ", 5), "äö");
    }
}
