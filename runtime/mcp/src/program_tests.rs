use super::{CheckedLines, KEPT_STDERR_BYTES, LOGGED_LINES_PER_SECOND, LogLimit, LogLine, MAX_MESSAGE_BYTES};
use pretty_assertions::assert_eq;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;

async fn read(sent: &[u8]) -> (Vec<u8>, bool) {
    let too_long = Arc::new(AtomicBool::new(false));
    let mut bytes = Vec::new();
    CheckedLines::new(sent, Arc::clone(&too_long)).read_to_end(&mut bytes).await.unwrap();
    (bytes, too_long.load(Ordering::Relaxed))
}

#[tokio::test]
async fn lines_arrive_whole_and_repaired() {
    let sent = b"one\n\n{\"result\":{\"_meta\":{},\"tools\":[]}}\nhalf";
    assert_eq!(read(sent).await, (b"one\n\n{\"result\":{\"tools\":[]}}\n".to_vec(), false));
}

#[tokio::test]
async fn a_line_without_an_end_ends_the_stream() {
    let mut sent = b"one\n".to_vec();
    sent.extend(std::iter::repeat_n(b'x', MAX_MESSAGE_BYTES));
    assert_eq!(read(&sent).await, (b"one\n".to_vec(), false), "as many bytes are allowed");
    sent.push(b'x');
    assert_eq!(read(&sent).await, (b"one\n".to_vec(), true));
}

#[test]
fn only_whole_lines_are_logged() {
    let mut line = LogLine::default();
    assert!(line.complete(b"the secret is hunt").is_empty());
    assert_eq!(line.complete(b"er2\n\n two \nthr"), ["the secret is hunter2", "two"]);
    assert!(line.complete(&vec![b'x'; KEPT_STDERR_BYTES]).is_empty());
    assert_eq!(line.complete(b"x\nnext\n"), ["next"], "a line that is too long is left out");
}

#[test]
fn some_lines_of_each_second_are_logged() {
    let begin = Instant::now();
    let mut limit = LogLimit { second: begin, logged: 0 };
    let mut logged = |millis: u64| {
        let now = begin + Duration::from_millis(millis);
        (0..1_000).filter(|_| limit.admits(now)).count()
    };
    let most = LOGGED_LINES_PER_SECOND as usize;
    assert_eq!(
        [logged(0), logged(999), logged(1_000), logged(1_500), logged(60_000)],
        [most, 0, most, 0, most]
    );
}
