use super::{AnswerText, without_thoughts};
use pretty_assertions::assert_eq;
use proptest::prelude::{prop, proptest};

const CASES: [(&str, &str); 14] = [
    ("", ""),
    ("\n Hi", "\n Hi"),
    ("<think>Hm.</think>Hi", "Hi"),
    ("\n<think>\nHm.\n</think>\n\nHi <think>there</think>", "Hi <think>there</think>"),
    ("<think></think>\n\n", ""),
    ("<think>a</think> <think>b</think>c", "c"),
    ("</think>\n\nHi", "Hi"),
    ("<think>Hm.</think></think>Hi", "Hi"),
    ("<think>without an end", ""),
    ("<think>Grüße < </think </think>ß", "ß"),
    ("<thi", "<thi"),
    ("<thinking>Hi", "<thinking>Hi"),
    ("<think>a</think> </thi", "</thi"),
    ("Hi </think>", "Hi </think>"),
];

#[test]
fn thoughts_are_not_part_of_an_answer() {
    for (text, answer) in CASES {
        assert_eq!(without_thoughts(text), answer, "{text:?}");
        let mut whole = AnswerText::new(false);
        whole.push(text);
        assert_eq!(whole.visible(), text);
        assert_eq!(whole.finish(), (text.to_owned(), None));
    }
}

#[test]
fn the_whole_text_is_kept_if_its_thoughts_end() {
    for (text, is_kept) in [("<think>a</think>b", true), ("<think>a", false), ("a", false)] {
        let mut whole = AnswerText::new(true);
        whole.push(text);
        assert_eq!(whole.finish().1, is_kept.then(|| text.to_owned()), "{text}");
    }
}

proptest! {
    #[test]
    fn the_answer_does_not_depend_on_how_it_is_split(
        parts in prop::collection::vec("(<think>|</think>|<|think|>|/|a|ß| |\n){0,3}", 0..8),
    ) {
        let mut text = AnswerText::new(true);
        let mut seen = String::new();
        for part in &parts {
            text.push(part);
            // What was seen once stays.
            assert!(text.visible().starts_with(&seen));
            seen = text.visible().to_owned();
        }
        let all = parts.concat();
        let (answer, _) = text.finish();
        assert!(answer.starts_with(&seen));
        assert_eq!(answer, without_thoughts(&all));
    }
}
