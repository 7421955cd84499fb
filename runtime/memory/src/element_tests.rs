use super::{TurnCipher, decode, encode, not_a_conversation, run_field};
use crate::failure::memory_error;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;
use redflow_contract::transcript::{ChatMessage, ChatRole};

fn cipher(byte: u8) -> TurnCipher {
    TurnCipher::new(&STANDARD.encode([byte; 32])).unwrap()
}

fn turn() -> Vec<ChatMessage> {
    vec![ChatMessage::new(ChatRole::User, "my cat is Tom"), ChatMessage::new(ChatRole::Assistant, "noted")]
}

#[test]
fn a_plain_turn_is_json() {
    let written = encode("k", "r\"1", 7, &turn(), None).unwrap();
    let text = String::from_utf8(written.clone()).unwrap();
    let expected = r#"{"v":1,"n":2,"run":"r\"1","at":7,"messages":[{"role":"user","content":"my cat is Tom"},{"role":"assistant","content":"noted"}]}"#;
    assert_eq!(text, expected);
    // The scripts expect the run at exactly this place.
    assert!(text.starts_with(&format!("{{\"v\":1,\"n\":2,{}", run_field("r\"1"))), "{text}");
    assert_eq!(decode("k", &written, None).unwrap(), turn());
    assert_eq!(decode("k", &written, Some(&cipher(1))).unwrap(), turn(), "a key may be added later");
}

#[test]
fn an_encrypted_turn_hides_its_text_and_opens_only_in_its_list_and_run() {
    let key = cipher(1);
    let written = encode("k", "r1", 7, &turn(), Some(&key)).unwrap();
    let text = String::from_utf8(written.clone()).unwrap();
    assert!(text.starts_with(r#"{"v":1,"n":2,"run":"r1","at":7,"sealed":""#), "{text}");
    assert!(!text.contains("is Tom") && !text.contains("assistant"), "{text}");
    assert_eq!(decode("k", &written, Some(&key)).unwrap(), turn());
    assert_ne!(written, encode("k", "r1", 7, &turn(), Some(&key)).unwrap(), "each nonce is used once");

    let undecryptable = |key: &str| {
        memory_error(format!("the key `{key}` holds a turn that cannot be decrypted with this encryptionKey"))
    };
    assert_eq!(decode("k", &written, Some(&cipher(2))), Err(undecryptable("k")));
    assert_eq!(decode("other", &written, Some(&key)), Err(undecryptable("other")));
    let other_run = text.replace("\"r1\"", "\"r2\"");
    assert_eq!(decode("k", other_run.as_bytes(), Some(&key)), Err(undecryptable("k")));
    let short = r#"{"v":1,"n":2,"run":"r1","at":7,"sealed":"AAAA"}"#;
    assert_eq!(decode("k", short.as_bytes(), Some(&key)), Err(undecryptable("k")));
    let no_key = memory_error("the key `k` is encrypted, and the node has no encryptionKey");
    assert_eq!(decode("k", &written, None), Err(no_key));
}

#[test]
fn other_values_are_not_a_conversation() {
    let values = [
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
    for text in values {
        assert_eq!(decode("k", text.as_bytes(), None), Err(not_a_conversation("k")), "{text}");
    }
}

#[test]
fn a_key_is_32_bytes_in_base64() {
    for wrong in ["", "short", "not base64 at all!", &STANDARD.encode([0; 31]), &STANDARD.encode([0; 33])] {
        assert!(TurnCipher::new(wrong).is_none(), "{wrong}");
    }
    assert!(
        TurnCipher::new(&format!("{}\n", STANDARD.encode([0; 32]))).is_some(),
        "a file may end with a line feed"
    );
}
