//! HTML documents: ordinary ones and hostile ones.

use crate::kit::{SHORT, read_html, read_html_within};
use pretty_assertions::assert_eq;
use redflow_worker::{HtmlText, MAX_JOB_BYTES, WorkerError};

fn markdown(html: &str) -> String {
    read_html(html).unwrap().markdown
}

#[test]
fn a_page_becomes_markdown() {
    let page = "<!doctype html><html><head><title>The  pump &amp;\n its care</title><style>b{}</style></head><body>\
        <nav><a href='/'>Home</a></nav>\
        <h1>Pump</h1><p>Caf&eacute; &lt;3 &#x1F600; with <b>bold</b> and <a href='https://example.org/a'>a link</a>.</p>\
        <ul><li>one</li><li>two</li></ul>\
        <table><thead><tr><th>part</th><th>size</th></tr></thead><tbody><tr><td>bolt</td><td>8</td></tr></tbody></table>\
        <script>alert('no')</script><noscript>no</noscript><template>no</template><svg><text>no</text></svg>\
        <iframe src='x'>no</iframe></body></html>";
    let HtmlText { title, markdown } = read_html(page).unwrap();
    assert_eq!(title.as_deref(), Some("The pump & its care"));
    for part in ["# Pump", "Café", "😀", "**bold**", "[a link](https://example.org/a)", "one", "two", "bolt"]
    {
        assert!(markdown.contains(part), "{part} is not in {markdown}");
    }
    assert!(markdown.contains("| part | size |"), "{markdown}");
    for noise in ["alert", "Home", "no", "b{}", "The  pump"] {
        assert!(!markdown.contains(noise), "{noise} is in {markdown}");
    }
}

#[test]
fn a_page_needs_no_title_and_no_text() {
    assert_eq!(read_html("").unwrap(), HtmlText { title: None, markdown: String::new() });
    assert_eq!(read_html("plain").unwrap(), HtmlText { title: None, markdown: "plain".to_owned() });
    assert_eq!(read_html("<title> </title>").unwrap().title, None);
}

#[test]
fn only_the_first_title_counts() {
    let page = "<title>first</title><p>a</p><svg><title>picture</title></svg><title>second</title>";
    let HtmlText { title, markdown } = read_html(page).unwrap();
    assert_eq!((title.as_deref(), markdown.as_str()), (Some("first"), "a"));
}

#[test]
fn bytes_that_are_not_utf_8_are_replaced() {
    let page = b"<meta charset='iso-8859-1'><p>caf\xe9 \xff\xfe end</p>".to_vec();
    assert_eq!(read_html(page).unwrap().markdown, "caf\u{fffd} \u{fffd}\u{fffd} end");
    let with_mark = b"\xef\xbb\xbf<p>a</p>".to_vec();
    assert_eq!(read_html(with_mark).unwrap().markdown, "a");
}

#[test]
fn broken_markup_is_read_as_browsers_do() {
    assert_eq!(markdown("<p>one<p>two<b>three"), "one\n\ntwo**three**");
    for page in ["<", "<!", "<!--", "<a", "<a href=", "</", "&#xffffffff;", "<table><tr><td>", "\0\0<p>\0"] {
        assert!(read_html(page).is_ok(), "{page:?}");
    }
}

/// A result or an error, in time: which one depends on the machine.
fn survives(page: String) {
    match read_html_within(SHORT, page) {
        Ok(_) | Err(WorkerError::Ended | WorkerError::TimedOut | WorkerError::Unreadable(_)) => {}
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_million_nested_elements_end_in_time() {
    survives("<div>".repeat(1_000_000));
}

#[test]
fn other_nested_elements_end_in_time() {
    for tag in ["<b>", "<table><tr><td>", "<blockquote>", "<ul><li>", "<a href=x>", "<font>"] {
        survives(tag.repeat(100_000));
    }
}

#[test]
fn some_hundred_nested_elements_are_read() {
    let page = format!("{}deep{}", "<div>".repeat(400), "</div>".repeat(400));
    assert_eq!(markdown(&page), "deep");
}

#[test]
fn a_large_attribute_is_read() {
    let page = format!("<p title='{}'>small</p>", "x".repeat(30 << 20));
    assert_eq!(markdown(&page), "small");
}

#[test]
fn large_scripts_and_many_tags_end_in_time() {
    survives(format!("<script>{}</script><p>a", "<!--<script>".repeat(1_000_000)));
    survives("<script>".repeat(1_000_000));
    survives("<p>&amp;".repeat(1_000_000));
    survives("<br>".repeat(1_000_000));
}

#[test]
fn a_document_that_is_too_large_starts_no_process() {
    assert_eq!(read_html(vec![b'a'; MAX_JOB_BYTES + 1]), Err(WorkerError::TooLarge));
}
