use super::{Seal, junk, read, run_part, write};
use crate::failed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;
use redflow_contract::transcript::{ChatMessage, ChatRole};

fn seal(byte: u8) -> Seal {
    Seal::new(&STANDARD.encode([byte; 32])).unwrap()
}

fn turn() -> Vec<ChatMessage> {
    vec![ChatMessage::new(ChatRole::User, "my cat is Tom"), ChatMessage::new(ChatRole::Assistant, "noted")]
}

#[test]
fn a_turn_in_the_open_is_plain_json() {
    let written = write("k", "r\"1", 7, &turn(), None).unwrap();
    let text = String::from_utf8(written.clone()).unwrap();
    let expected = r#"{"v":1,"n":2,"run":"r\"1","at":7,"messages":[{"role":"user","content":"my cat is Tom"},{"role":"assistant","content":"noted"}]}"#;
    assert_eq!(text, expected);
    // The scripts look for it at this very place.
    assert!(text.starts_with(&format!("{{\"v\":1,\"n\":2,{}", run_part("r\"1"))), "{text}");
    assert_eq!(read("k", &written, None).unwrap(), turn());
    assert_eq!(read("k", &written, Some(&seal(1))).unwrap(), turn(), "a key may come later");
}

#[test]
fn a_sealed_turn_shows_nothing_and_opens_only_where_it_belongs() {
    let key = seal(1);
    let written = write("k", "r1", 7, &turn(), Some(&key)).unwrap();
    let text = String::from_utf8(written.clone()).unwrap();
    assert!(text.starts_with(r#"{"v":1,"n":2,"run":"r1","at":7,"sealed":""#), "{text}");
    assert!(!text.contains("is Tom") && !text.contains("assistant"), "{text}");
    assert_eq!(read("k", &written, Some(&key)).unwrap(), turn());
    assert_ne!(written, write("k", "r1", 7, &turn(), Some(&key)).unwrap(), "a nonce is used once");

    let closed = |key: &str| {
        failed(format!("the key `{key}` holds a turn that cannot be decrypted with this encryptionKey"))
    };
    assert_eq!(read("k", &written, Some(&seal(2))), Err(closed("k")));
    assert_eq!(read("other", &written, Some(&key)), Err(closed("other")));
    let other_run = text.replace("\"r1\"", "\"r2\"");
    assert_eq!(read("k", other_run.as_bytes(), Some(&key)), Err(closed("k")));
    let short = r#"{"v":1,"n":2,"run":"r1","at":7,"sealed":"AAAA"}"#;
    assert_eq!(read("k", short.as_bytes(), Some(&key)), Err(closed("k")));
    let no_key = failed("the key `k` is encrypted, and the node has no encryptionKey");
    assert_eq!(read("k", &written, None), Err(no_key));
}

#[test]
fn anything_else_is_not_a_conversation() {
    let junks = [
        "",
        "hello",
        "{}",
        "[]",
        r#"{"v":2,"n":0,"run":"r","at":1,"messages":[]}"#,
        r#"{"v":1,"n":1,"run":"r","at":1,"messages":[]}"#,
        r#"{"v":1,"n":0,"run":"r","at":1}"#,
        r#"{"v":1,"n":0,"run":"r","at":1,"messages":[],"sealed":""}"#,
        r#"{"v":1,"n":0,"run":"r","at":1,"messages":[],"more":1}"#,
        r#"{"v":1,"n":1,"run":"r","at":1,"messages":[{"role":"robot","content":"x"}]}"#,
        r#"{"v":1,"n":1,"run":"r","at":1,"messages":[{"role":"user"}]}"#,
    ];
    for text in junks {
        assert_eq!(read("k", text.as_bytes(), None), Err(junk("k")), "{text}");
    }
}

#[test]
fn a_key_is_32_bytes_in_base64() {
    for wrong in ["", "short", "not base64 at all!", &STANDARD.encode([0; 31]), &STANDARD.encode([0; 33])] {
        assert!(Seal::new(wrong).is_none(), "{wrong}");
    }
    assert!(
        Seal::new(&format!("{}\n", STANDARD.encode([0; 32]))).is_some(),
        "a file may end with a line feed"
    );
}
