use super::{Console, EMBEDDED, SMALL_PAGE, digest};
use crate::console::names::{INDEX, NAMES};
use flate2::read::GzDecoder;
use pretty_assertions::assert_eq;
use std::io::Read as _;

// SECURITY: console-page
#[test]
fn the_embedded_console_is_complete_or_absent() {
    let names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
    assert!(names.is_empty() || names == NAMES, "{names:?}");
}

// SECURITY: console-page
#[test]
fn the_digest_covers_names_and_content() {
    let original = digest(&[("a", b"1"), ("b", b"2")]);
    assert_eq!(original.len(), 16);
    assert_eq!(digest(&[("a", b"1"), ("b", b"2")]), original);
    for other in
        [&[("a", &b"1"[..]), ("b", b"3")][..], &[("a", b"1"), ("c", b"2")], &[("a", b"12"), ("b", b"")]]
    {
        assert_ne!(digest(other), original, "{other:?}");
    }
}

// SECURITY: console-page
#[test]
fn the_page_refers_to_its_files_by_the_digest() {
    for console in [Console::embedded(), Console::new(SMALL_PAGE)] {
        let page = std::str::from_utf8(&console.page).unwrap();
        assert!(page.contains(&format!("console/{}/console.js", console.digest)), "{page}");
        assert!(!page.contains("{digest}"));
        // A page below another path works too.
        assert!(!page.contains("=\"/"), "{page}");
        assert!(console.find(INDEX).is_none() && console.find("console.css").is_some());
    }
}

// SECURITY: console-page
#[test]
fn gzip_gives_the_same_bytes() {
    let console = Console::new(SMALL_PAGE);
    let file = console.find("console.js").unwrap();
    let (compressed, mut plain) = (file.gzip(), Vec::new());
    GzDecoder::new(&compressed[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, file.bytes);
    assert!(compressed.len() < plain.len());
    // It is compressed once.
    assert_eq!(file.gzip().as_ptr(), compressed.as_ptr());
}
