use super::{NewTurn, decode, decode_summary, encode, encode_summary, not_a_conversation, run_field};
use crate::cipher::{TurnCipher, user_digest};
use crate::failure::memory_error;
use crate::stored_turn::StoredTurn;
use crate::trim::Size;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_ports::Summary;

fn cipher(byte: u8) -> TurnCipher {
    TurnCipher::new(&STANDARD.encode([byte; 32])).unwrap()
}

fn messages() -> Vec<ChatMessage> {
    vec![ChatMessage::new(ChatRole::User, "my cat is Tom"), ChatMessage::new(ChatRole::Assistant, "noted")]
}

fn turn<'a>(run: &'a str, messages: &'a [ChatMessage], tags: &'a [String]) -> NewTurn<'a> {
    NewTurn { run, at: 7, user: Some("Ada"), tags, messages }
}

fn stored(run: &str, bytes: usize) -> StoredTurn {
    let size = Size { turns: 1, messages: 2, bytes, tokens: 9 + 6 };
    let (user, tags) = (Some("Ada".to_owned()), vec!["pets".to_owned()]);
    StoredTurn { run: run.into(), user, tags, messages: messages(), size }
}

#[test]
fn a_plain_turn_is_json() {
    let tags = ["pets".to_owned()];
    let written = encode("k", turn("r\"1", &messages(), &tags), None).unwrap();
    let text = String::from_utf8(written.clone()).unwrap();
    let expected = r#"{"v":2,"n":2,"t":15,"run":"r\"1","at":7,"user":"Ada","tags":["pets"],"messages":[{"role":"user","content":"my cat is Tom"},{"role":"assistant","content":"noted"}]}"#;
    assert_eq!(text, expected);
    // The scripts expect the run at exactly this place.
    assert!(text.starts_with(&format!("{{\"v\":2,\"n\":2,\"t\":15,{}", run_field("r\"1"))), "{text}");
    assert_eq!(decode("k", &written, None).unwrap(), stored("r\"1", written.len()));
    assert_eq!(
        decode("k", &written, Some(&cipher(1))).unwrap().messages,
        messages(),
        "a key may be added later"
    );
    let unknown = NewTurn { user: None, tags: &[], ..turn("r", &[], &tags) };
    let text = String::from_utf8(encode("k", unknown, None).unwrap()).unwrap();
    assert_eq!(text, r#"{"v":2,"n":0,"t":0,"run":"r","at":7,"messages":[]}"#);
}

#[test]
fn turns_of_version_1_are_read() {
    let plain = r#"{"v":1,"n":2,"run":"r1","at":7,"messages":[{"role":"user","content":"my cat is Tom"},{"role":"assistant","content":"noted"}]}"#;
    let expected = StoredTurn { user: None, tags: Vec::new(), ..stored("r1", plain.len()) };
    assert_eq!(decode("k", plain.as_bytes(), None).unwrap(), expected);
    let sealed = cipher(1).encrypt(&serde_json::to_vec(&messages()).unwrap(), br#"["k","r1"]"#).unwrap();
    let sealed = format!(r#"{{"v":1,"n":2,"run":"r1","at":7,"sealed":"{sealed}"}}"#);
    assert_eq!(decode("k", sealed.as_bytes(), Some(&cipher(1))).unwrap().messages, messages());
}

#[test]
fn an_encrypted_turn_hides_its_text_and_opens_only_in_its_list_and_run() {
    let (key, tags, messages) = (cipher(1), ["pets".to_owned()], messages());
    let written = encode("k", turn("r1", &messages, &tags), Some(&key)).unwrap();
    let text = String::from_utf8(written.clone()).unwrap();
    assert!(text.starts_with(r#"{"v":2,"n":2,"t":15,"run":"r1","at":7,"sealed":""#), "{text}");
    for word in ["is Tom", "assistant", "Ada", "pets"] {
        assert!(!text.contains(word), "{text}");
    }
    assert_eq!(decode("k", &written, Some(&key)).unwrap(), stored("r1", written.len()));
    let again = encode("k", turn("r1", &messages, &tags), Some(&key)).unwrap();
    assert_ne!(written, again, "each nonce is used once");

    let undecryptable = |key: &str| {
        memory_error(format!("the key `{key}` holds a turn that cannot be decrypted with this encryptionKey"))
    };
    assert_eq!(decode("k", &written, Some(&cipher(2))), Err(undecryptable("k")));
    assert_eq!(decode("other", &written, Some(&key)), Err(undecryptable("other")));
    let other_run = text.replace("\"r1\"", "\"r2\"");
    assert_eq!(decode("k", other_run.as_bytes(), Some(&key)), Err(undecryptable("k")));
    let short = r#"{"v":2,"n":2,"t":1,"run":"r1","at":7,"sealed":"AAAA"}"#;
    assert_eq!(decode("k", short.as_bytes(), Some(&key)), Err(undecryptable("k")));
    let older = text.replace(r#""v":2,"n":2,"t":15,"#, r#""v":1,"n":2,"#);
    assert_eq!(decode("k", older.as_bytes(), Some(&key)), Err(not_a_conversation("k")));
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
        r#"{"v":3,"n":0,"t":0,"run":"r","at":1,"messages":[]}"#,
        r#"{"v":2,"n":0,"run":"r","at":1,"messages":[]}"#,
        r#"{"v":2,"n":0,"t":0,"run":"r","at":1,"user":5,"messages":[]}"#,
        r#"{"v":2,"n":0,"t":0,"run":"r","at":1,"user":"u","sealed":"AAAA"}"#,
        r#"{"v":1,"n":0,"t":0,"run":"r","at":1,"messages":[]}"#,
        r#"{"v":1,"n":0,"run":"r","at":1,"user":"u","messages":[]}"#,
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
fn a_summary_opens_only_at_its_place() {
    let summary = Summary { text: "Ada has a cat".to_owned(), until: "r1".into() };
    let plain = encode_summary("k", "", &summary, None).unwrap();
    assert_eq!(String::from_utf8(plain.clone()).unwrap(), r#"{"v":1,"text":"Ada has a cat"}"#);
    assert_eq!(decode_summary("k", "", "r1", &plain, None).unwrap(), summary);
    let key = cipher(1);
    let sealed = encode_summary("k", "", &summary, Some(&key)).unwrap();
    assert!(!String::from_utf8_lossy(&sealed).contains("cat"));
    assert_eq!(decode_summary("k", "", "r1", &sealed, Some(&key)).unwrap(), summary);
    for (key_name, fields, until) in [("other", "", "r1"), ("k", "", "r2"), ("k", ":f", "r1")] {
        assert!(
            decode_summary(key_name, fields, until, &sealed, Some(&key)).is_err(),
            "{key_name} {fields} {until}"
        );
    }
    assert!(decode_summary("k", "", "r1", &sealed, None).is_err());
    for odd in ["", "{}", r#"{"v":2,"text":"x"}"#, r#"{"v":1,"text":"x","sealed":"y"}"#] {
        assert_eq!(
            decode_summary("k", "", "r1", odd.as_bytes(), None),
            Err(not_a_conversation("k")),
            "{odd}"
        );
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

#[test]
fn the_digest_of_a_user_depends_on_the_key() {
    let digests = [user_digest("Ada", None), user_digest("Ada", Some(&cipher(1)))];
    assert_ne!(digests[0], digests[1]);
    assert_ne!(digests[1], user_digest("Ada", Some(&cipher(2))));
    assert_ne!(digests[1], user_digest("Bob", Some(&cipher(1))));
    assert_eq!(digests[1], user_digest("Ada", Some(&cipher(1))));
}
