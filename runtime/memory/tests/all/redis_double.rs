//! A double of Redis, for answers that the real one gives too seldom to wait for.

use crate::kit::{build, failure, process, say};
use pretty_assertions::assert_eq;
use redflow_memory::MemorySettings;
use redflow_ports::Memory;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

/// A memory whose Redis gives these answers in turn, over and over.
fn answering(answers: &[&'static str]) -> Arc<dyn Memory> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = answers.to_vec();
    // Ends with the test's process.
    std::thread::spawn(move || {
        let mut answers = answers.iter().cycle();
        while let Ok((mut peer, _)) = listener.accept() {
            let mut asked = Vec::new();
            let mut piece = [0; 65_536];
            while let Ok(count @ 1..) = peer.read(&mut piece) {
                asked.extend_from_slice(&piece[..count]);
                if is_complete(&asked) {
                    asked.clear();
                    let answer = answers.next().unwrap_or(&"");
                    if answer.is_empty() || peer.write_all(answer.as_bytes()).is_err() {
                        break;
                    }
                }
            }
        }
    });
    let props = json!({"host": "127.0.0.1", "port": port, "timeout": 20_000});
    build(&process(MemorySettings::default()), "redis-memory", "n", props)
}

/// Whether a whole command is there: its words are counted, and so are the bytes of each.
fn is_complete(asked: &[u8]) -> bool {
    let mut rest = asked;
    let mut number = |mark: u8| -> Option<usize> {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(&rest[..end]).ok()?;
        assert_eq!(line.as_bytes()[0], mark);
        rest = &rest[end + 2..];
        let number = line[1..].parse().ok()?;
        if mark == b'$' {
            rest = rest.get(number + 2..)?;
        }
        Some(number)
    };
    let Some(words) = number(b'*') else { return false };
    (0..words).all(|_| number(b'$').is_some())
}

#[tokio::test]
async fn a_legacy_form_that_never_rests_is_given_up() {
    let legacy = "*2\r\n$6\r\nlegacy\r\n$2\r\n[]\r\n";
    let changing = failure("the key `agent:memory:s` changed while it was read");
    let memory = answering(&[legacy, "*1\r\n$7\r\nchanged\r\n"]);
    assert_eq!(memory.recall("f:s").await, Err(changing.clone()));
    // Asked to append: it is there; brought over: it is gone; appended: it is there.
    let memory = answering(&["*1\r\n$6\r\nlegacy\r\n", "*1\r\n$5\r\nturns\r\n"]);
    assert_eq!(say(&memory, "f:s", "1").await, Err(changing));
}

#[tokio::test]
async fn every_refusal_is_one_sentence_of_ours() {
    let rows = [
        ("-LOADING s3cret words\r\n", "Redis is still loading its data"),
        ("-WRONGPASS s3cret words\r\n", "Redis refused the user name or the password"),
        ("-NOAUTH s3cret words\r\n", "Redis wants a password, and the node has none"),
        ("-NOPERM s3cret words\r\n", "Redis does not let this user do what a memory does"),
        ("-OOM s3cret words\r\n", "Redis is out of memory"),
        ("-ERR s3cret words\r\n", "Redis refused the command with ERR"),
        ("-MISCONF s3cret words\r\n", "Redis refused the command with MISCONF"),
        ("-s3cret words\r\n", "Redis gave an answer that makes no sense"),
        ("*1\r\n$6\r\ns3cret\r\n", "Redis gave an answer that makes no sense"),
        ("*0\r\n", "Redis gave an answer that makes no sense"),
        ("+s3cret\r\n", "Redis gave an answer that makes no sense"),
        (":5\r\n", "Redis gave an answer that makes no sense"),
        ("s3cret\r\n", "Redis gave an answer that makes no sense"),
        // Closes the connection.
        ("", "Redis cannot be reached"),
    ];
    for (answer, expected) in rows {
        let memory = answering(&[answer]);
        assert_eq!(memory.recall("f:s").await, Err(failure(expected)), "{answer:?}");
    }
}
