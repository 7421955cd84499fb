use super::{ExistingFile, decode_node_red, encode_node_red, encrypt, place_node_red};
use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_ports::Credentials;
use serde_json::{Value, json};

const SECRET: &str = "s3cret";
const VECTOR: &str = r#"{"$":"000102030405060708090a0b0c0d0e0feEkjBItXl8Lu+ielZcyknqJuyW48kSI="}"#;

fn credentials(value: Value) -> Credentials {
    serde_json::from_value(value).unwrap()
}

#[track_caller]
fn invalid(bytes: &[u8], secret: Option<&str>) -> String {
    let error = decode_node_red(bytes, secret).map(drop).unwrap_err();
    assert_eq!(error.code, ProblemCode::Api(ApiCode::CredentialsFileInvalid), "{error}");
    assert!(!error.message.contains("abc"), "{error}");
    error.message
}

// SECURITY: credentials-exchange
#[test]
fn the_format_is_that_of_node_red() {
    let plain = br#"{"n1":{"apiKey":"abc"}}"#.to_vec();
    let iv: [u8; 16] = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let text = encrypt(zeroize::Zeroizing::new(plain), SECRET, iv);
    assert_eq!(json!({"$": text}).to_string(), VECTOR);
    let read = decode_node_red(VECTOR.as_bytes(), Some(SECRET)).unwrap();
    assert_eq!(read.credentials, credentials(json!({"n1": {"apiKey": "abc"}})));
    assert_eq!((read.odd_nodes, read.empty_values), (0, 0));
}

// SECURITY: credentials-exchange
#[test]
fn a_written_file_can_be_read_again() {
    let many: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("node {n}.ü"), json!({"password": "p".repeat(n + 1), "n": n}))).collect();
    let all = credentials(many.into());
    for secret in [None, Some(SECRET), Some("ü 日本"), Some("0123456789abcdef0123456789abcdef")] {
        let written = encode_node_red(&all, secret).unwrap();
        assert_eq!(decode_node_red(&written, secret).unwrap().credentials, all, "{secret:?}");
        if let Some(secret) = secret {
            assert!(!String::from_utf8_lossy(&written).contains("password"));
            invalid(&written, None);
            invalid(&written, Some(&format!("{secret} ")));
            // Each file has a random start value, so no two are equal.
            assert_ne!(*encode_node_red(&all, Some(secret)).unwrap(), *written);
        }
    }
    let none = encode_node_red(&Credentials::new(), Some(SECRET)).unwrap();
    assert!(decode_node_red(&none, Some(SECRET)).unwrap().credentials.is_empty());
}

// SECURITY: credentials-exchange
#[test]
fn other_files_are_refused() {
    let message = invalid(VECTOR.as_bytes(), None);
    assert!(message.contains("no secret was given"), "{message}");
    assert!(invalid(VECTOR.as_bytes(), Some("S3cret")).contains("the secret is another one"));
    for odd in [
        "",
        "abc",
        "[]",
        "null",
        r#"[{"id":"n1","type":"abc"}]"#,
        r#"{"flows":[],"rev":"abc"}"#,
        r#"{"$":1}"#,
        r#"{"$":""}"#,
        r#"{"$":"abc"}"#,
        r#"{"$":"000102030405060708090a0b0c0d0e0f"}"#,
        r#"{"$":"000102030405060708090a0b0c0d0e0f!abc"}"#,
        r#"{"$":"+00102030405060708090a0b0c0d0e0feEkjBItXl8Lu"}"#,
        "{\"$\":\"0001020304050607üüüüüüüüeEkjBItXl8Lu\"}",
        r#"{"n1":{"a":"abc"},"n1":{"a":"abc"}}"#,
    ] {
        invalid(odd.as_bytes(), Some(SECRET));
    }
    let deep = format!(r#"{{"n1":{{"a":{}1{}}}}}"#, "[".repeat(200), "]".repeat(200));
    invalid(deep.as_bytes(), None);
    invalid(&vec![b' '; super::MAX_NODE_RED_BYTES + 1], None);
}

// SECURITY: credentials-exchange
#[test]
fn values_that_are_not_credentials_are_counted_and_left_out() {
    let plain =
        json!({"n1": {"a": "abc", "b": "__PWRD__", "c": "", "d": null, "e": true}, "n2": {"a": "__PWRD__"}});
    let read = decode_node_red(plain.to_string().as_bytes(), Some("not needed")).unwrap();
    assert_eq!(read.credentials, credentials(json!({"n1": {"a": "abc", "e": true}})));
    assert_eq!((read.odd_nodes, read.empty_values), (0, 4));
    let odd = json!({"n1": "abc", "n2": ["abc"], "n3": {"a": "abc"}}).to_string();
    let encrypted = json!({"$": encrypt(odd.into_bytes().into(), SECRET, [7; 16])}).to_string();
    let read = decode_node_red(encrypted.as_bytes(), Some(SECRET)).unwrap();
    assert_eq!((read.odd_nodes, read.credentials.len()), (2, 1));
}

// SECURITY: credentials-exchange
#[test]
fn a_file_is_private_and_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flows_cred.json");
    place_node_red(&path, b"one", ExistingFile::Keep).unwrap();
    let error = place_node_red(&path, b"two", ExistingFile::Keep).unwrap_err();
    assert_eq!(error.code, ProblemCode::Store(StoreCode::DataUnusable));
    assert!(error.message.contains("--force"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    }
    place_node_red(&path, b"two", ExistingFile::Replace).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    place_node_red(&dir.path().join("none").join("x"), b"x", ExistingFile::Keep).unwrap_err();
}
