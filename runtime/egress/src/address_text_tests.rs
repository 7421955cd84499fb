use super::{AddressText, MAX_URL_BYTES};
use crate::Rule;
use proptest::prelude::*;

fn rule_of(text: &str) -> Option<Rule> {
    AddressText::read(text).err().map(|refusal| refusal.rule)
}

#[test]
fn drops_the_fragment_and_the_trailing_dot() {
    let read = AddressText::read("https://API.example.org.:443/a/../b?x=1#key").unwrap();
    assert_eq!(read.url.as_str(), "https://api.example.org/b?x=1");
    let read = AddressText::read("http://[2a00::1]:8080").unwrap();
    assert_eq!((read.url.as_str(), read.port), ("http://[2a00::1]:8080/", 8080));
}

#[test]
fn the_longest_address_has_2048_bytes() {
    let base = "https://example.org/";
    let longest = format!("{base}{}", "a".repeat(MAX_URL_BYTES - base.len()));
    assert_eq!(rule_of(&longest), None);
    assert_eq!(rule_of(&format!("{longest}a")), Some(Rule::Text));
}

#[test]
fn a_refusal_never_repeats_a_password() {
    for url in
        ["http://user:hunter2@example.org/", "http://example.org/ hunter2", "http://hunter2 /", "hunter2://x"]
    {
        let refusal = AddressText::read(url).unwrap_err();
        assert!(!format!("{refusal} {refusal:?}").contains("hunter2"), "{url}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// What is read is what `url` reads from the text and from the result.
    // SECURITY: egress-text
    #[test]
    fn reads_nothing_that_url_reads_in_another_way(text in "https?://[!-~]{0,12}[a-z0-9.:@%\\[\\]/?#x\\\\-]{0,24}") {
        if let Ok(read) = AddressText::read(&text) {
            let url = url::Url::parse(&text).unwrap();
            let trimmed = url.host_str().unwrap().trim_end_matches('.').trim_matches(['[', ']']).to_owned();
            let own = read.host.to_string();
            let is_same = trimmed == own || trimmed.parse::<std::net::IpAddr>().ok() == own.parse().ok();
            prop_assert!(is_same, "{} {}", trimmed, own);
            prop_assert_eq!(url.port_or_known_default(), Some(read.port));
            let again = AddressText::read(read.url.as_str()).unwrap();
            prop_assert!(again.is_same_origin(&read));
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = AddressText::read(&text);
    }
}
