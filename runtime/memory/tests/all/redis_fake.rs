//! A fake Redis, for answers that the real one gives too rarely.

use crate::kit::{append_turn, build, failure, process, recall};
use pretty_assertions::assert_eq;
use redflow_memory::MemorySettings;
use redflow_ports::Memory;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

/// A memory whose Redis gives these answers in turn, again and again.
fn memory_with_answers(answers: &[&'static str]) -> Arc<dyn Memory> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = answers.to_vec();
    // The thread ends with the test process.
    std::thread::spawn(move || {
        let mut answers = answers.iter().cycle();
        while let Ok((mut peer, _)) = listener.accept() {
            let mut received = Vec::new();
            let mut piece = [0; 65_536];
            while let Ok(count @ 1..) = peer.read(&mut piece) {
                received.extend_from_slice(&piece[..count]);
                if is_complete(&received) {
                    received.clear();
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

/// Whether the bytes hold a complete command: it announces the number of its words and the bytes of each.
fn is_complete(received: &[u8]) -> bool {
    let mut rest = received;
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
async fn a_legacy_value_that_always_changes_is_given_up() {
    let legacy = "*2\r\n$6\r\nlegacy\r\n$2\r\n[]\r\n";
    let changing = failure("the key `agent:memory:s` changed while it was read");
    let memory = memory_with_answers(&[legacy, "*1\r\n$7\r\nchanged\r\n"]);
    assert_eq!(recall(&memory, "f:s").await, Err(changing.clone()));
    // The append finds a legacy value, the recall finds none, and the next append finds one again.
    let memory = memory_with_answers(&["*1\r\n$6\r\nlegacy\r\n", "*1\r\n$5\r\nturns\r\n"]);
    assert_eq!(append_turn(&memory, "f:s", "1").await, Err(changing));
}

#[tokio::test]
async fn every_refusal_is_reported_in_our_own_words() {
    let rows = [
        ("-LOADING s3cret words\r\n", "Redis is still loading its data"),
        ("-WRONGPASS s3cret words\r\n", "Redis refused the user name or the password"),
        ("-NOAUTH s3cret words\r\n", "Redis requires a password, and the node has none"),
        ("-NOPERM s3cret words\r\n", "Redis does not allow this user the commands that a memory needs"),
        ("-OOM s3cret words\r\n", "Redis is out of memory"),
        ("-ERR s3cret words\r\n", "Redis refused the command with ERR"),
        ("-MISCONF s3cret words\r\n", "Redis refused the command with MISCONF"),
        ("-s3cret words\r\n", "Redis sent an unexpected answer"),
        ("*1\r\n$6\r\ns3cret\r\n", "Redis sent an unexpected answer"),
        ("*0\r\n", "Redis sent an unexpected answer"),
        ("+s3cret\r\n", "Redis sent an unexpected answer"),
        (":5\r\n", "Redis sent an unexpected answer"),
        ("s3cret\r\n", "Redis sent an unexpected answer"),
        // An empty answer closes the connection.
        ("", "Redis cannot be reached"),
    ];
    for (answer, expected) in rows {
        let memory = memory_with_answers(&[answer]);
        assert_eq!(recall(&memory, "f:s").await, Err(failure(expected)), "{answer:?}");
    }
}
