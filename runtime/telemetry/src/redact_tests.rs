use super::{RedactionLevel, Redactor};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use secrecy::SecretString;
use std::sync::LazyLock;

fn redactor(level: RedactionLevel) -> Redactor {
    Redactor::new(level, &[]).unwrap()
}

const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl";

/// Text with a secret, and the redacted text.
const SECRETS: &[(&str, &str)] = &[
    ("key sk-abcdEFGH12345678 used", "key [redacted] used"),
    ("sk-ant-api03-AbC_dEf-0123456789", "[redacted]"),
    ("sk-proj-AbCdEf0123456789", "[redacted]"),
    ("Authorization: Bearer abcDEF123.456", "Authorization: [redacted]"),
    ("authorization=Basic dXNlcjpwYXNz", "authorization=[redacted]"),
    ("sent Bearer abcdefgh12345678 to it", "sent Bearer [redacted] to it"),
    ("basic dXNlcjpwYXNzd29yZA==", "basic [redacted]"),
    ("x-api-key: 0a1b2c3d", "x-api-key: [redacted]"),
    ("api-key: abc", "api-key: [redacted]"),
    ("API key: abc", "API key: [redacted]"),
    ("AKIAIOSFODNN7EXAMPLE is", "[redacted] is"),
    ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "[redacted]"),
    ("github_pat_11ABCDEFG0123456789_abcdefgh", "[redacted]"),
    ("AIzaSyA0123456789abcdefghijklmnopqrstu", "[redacted]"),
    ("xoxb-123456789012-abcdefGHIJ", "[redacted]"),
    ("password=hunter2", "password=[redacted]"),
    ("password = hunter2, user = bob", "password = [redacted], user = bob"),
    ("PASSWORD='two words' next", "PASSWORD='[redacted]' next"),
    (r#"password="two \" words" next"#, r#"password="[redacted]" next"#),
    (r#"{"apiKey":"abc","n":1}"#, r#"{"apiKey":"[redacted]","n":1}"#),
    (r#"{\"apiKey\":\"a b\",\"n\":1}"#, r#"{\"apiKey\":\"[redacted]\",\"n\":1}"#),
    (r#"{"pin": 1234}"#, r#"{"pin": [redacted]}"#),
    (r#"{"credentials": {"user": "a", "x": "b"}, "n": 1}"#, r#"{"credentials": [redacted], "n": 1}"#),
    ("url?a=1&access_token=abc&b=2", "url?a=1&access_token=[redacted]&b=2"),
    ("x=password=abc", "x=password=[redacted]"),
    ("Cookie: a=1; b=2", "Cookie: [redacted]"),
    (r#"password: Some("a b"), n: 1"#, "password: [redacted], n: 1"),
    ("token => abc", "token => [redacted]"),
    ("https://a:b@h, https://c:d@h", "https://a:[redacted]@h, https://c:[redacted]@h"),
    ("redis://:s3cret@localhost:6379/0", "redis://:[redacted]@localhost:6379/0"),
    ("https://bob:p@ss@host/path", "https://bob:[redacted]@host/path"),
    ("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\nE\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"),
    (r"-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n", r"[redacted]\n"),
    ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted]"),
];

/// Text with personal data, and the redacted text.
const PERSONAL: &[(&str, &str)] = &[
    ("mail bob.smith+x@mail.example.com now", "mail [email] now"),
    ("<jörg@müller.de>", "<[email]>"),
    ("call +49 30 1234567.", "call [phone]."),
    ("+1 (555) 123-4567", "[phone]"),
    ("+4915112345678", "[phone]"),
    ("(555) 123-4567", "[phone]"),
    ("555-123-4567", "[phone]"),
    ("tel:555.123.4567", "tel:[phone]"),
    ("01 23 45 67 89", "[phone]"),
    ("020 7946 0958", "[phone]"),
    ("0171/1234567", "[phone]"),
    ("phone=+44 20 7946 0958, n=1", "phone=[phone], n=1"),
    ("+49 30 1234567 2026-11-15", "[phone] 2026-11-15"),
    ("+4915112345678(555) 123-4567", "[phone][phone]"),
    ("4111 1111 1111 1111", "[card]"),
    ("4111-1111-1111-1111 ok", "[card] ok"),
    ("card=4111111111111111", "card=[card]"),
    ("3782 822463 10005", "[card]"),
    ("5555555555554444.", "[card]."),
    ("DE89370400440532013000", "[iban]"),
    ("DE89 3704 0044 0532 0130 00", "[iban]"),
    ("to GB82 WEST 1234 5698 7654 32 NEXT", "to [iban] NEXT"),
    ("XK05 1212 0123 4567 8906 THEN", "[iban] THEN"),
];

/// Text that must stay unchanged.
const HARMLESS: &[&str] = &[
    "",
    "run 0190c8a4-7b1e-7cc3-98c4-dc0c0c07398f ended",
    "00000000-0000-0000-0000-000000000000",
    "12345678-1234-1234-1234-123456789012",
    "40000000-4444-4444-4444-111111111111",
    "2026-11-15T08:08:38.123456Z",
    "2026-11-15T08:08:38.123456789+01:00",
    "2026-11-15 08:08:38",
    "01-02-2026 12:30:45",
    "15.11.2026 08:08",
    "at 1763194118123 ms",
    "1763194118123456789",
    "1763194118123456",
    "promptTokens=123 maxTokens: 4096 tokens=17",
    r#"{"inputTokens":12,"output_tokens":5}"#,
    "gen_ai.usage.input_tokens=12",
    "123456789 bytes, 1234567890 more, 12345678901234567890",
    "0.4111111111111111",
    "3.14159265358979",
    "1e+123456789",
    "1234 5678 9012 3456",
    "4111 1111 1111 1112",
    "4111111111111112",
    "DE89370400440532013001",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "d41d8cd98f00b204e9800998ecf8427e",
    "https://example.com:8443/a/b?x=1&y=2#z",
    "http://127.0.0.1:4318/v1/traces",
    "connect to 192.168.100.200:6379 or [2001:db8::1]:80",
    "basic authentication and bearer authentication failed",
    "the token was refused",
    "task-0123456789abcdef disk-0123456789",
    "password=${DB_PASSWORD} token=null secret=\"\"",
    "publicKey=abc keyPrefix: x author=bob",
    "eyJ is no token, nor is sk-1",
    "version 1.2.3-4567 of 100 200 300",
    "user@localhost",
    "WARN redflow_server::auth: refused, std::token::x",
    "agent=support outcome=completed took=1.5s",
    "[redacted] [email] [phone] [card] [iban]",
];

// SECURITY: log-redacted
#[test]
fn secrets_are_redacted() {
    for level in [RedactionLevel::Secrets, RedactionLevel::All] {
        let redactor = redactor(level);
        for (text, expected) in SECRETS {
            assert_eq!(redactor.redact(text), *expected, "{text}");
        }
        assert_eq!(redactor.redact(&format!("jwt {JWT} end")), "jwt [redacted] end");
        assert_eq!(redactor.level(), level);
    }
}

// SECURITY: log-redacted
#[test]
fn personal_data_is_redacted() {
    let (all, secrets) = (redactor(RedactionLevel::All), redactor(RedactionLevel::Secrets));
    for (text, expected) in PERSONAL {
        assert_eq!(all.redact(text), *expected, "{text}");
        assert_eq!(secrets.redact(text), *text);
    }
}

#[test]
fn other_text_is_unchanged() {
    let redactor = redactor(RedactionLevel::All);
    for text in HARMLESS {
        assert_eq!(redactor.redact(text), *text);
    }
}

#[test]
fn level_off_redacts_nothing() {
    let redactor = Redactor::new(RedactionLevel::Off, &[SecretString::from("known-secret")]).unwrap();
    let off = |text: &str| assert_eq!(redactor.redact(text), text);
    SECRETS.iter().chain(PERSONAL).for_each(|(text, _)| off(text));
    off("known-secret");
}

// SECURITY: log-redacted
#[test]
fn known_secrets_are_redacted_wherever_they_occur() {
    let known = ["open sesame", "open sesame, please", "a\"b\\c", "red", "redacted", "$1.*"];
    let known: Vec<SecretString> = known.into_iter().map(SecretString::from).collect();
    let redactor = Redactor::new(RedactionLevel::Secrets, &known).unwrap();
    for (text, expected) in [
        ("xopen sesamex", "x[redacted]x"),
        ("say open sesame, please!", "say [redacted]!"),
        (r#"raw a"b\c"#, "raw [redacted]"),
        (r#"{"m":"a\"b\\c"}"#, r#"{"m":"[redacted]"}"#),
        ("a$1.*b", "a[redacted]b"),
        // Too short, or part of a placeholder.
        ("red redacted", "red redacted"),
    ] {
        assert_eq!(redactor.redact(text), expected);
    }
    assert_eq!(format!("{redactor:?}"), "Redactor { level: Secrets, .. }");
}

// SECURITY: log-redacted
#[test]
fn too_many_known_secrets_are_refused() {
    let known = [SecretString::from("x".repeat(super::MAX_KNOWN_BYTES + 1))];
    let refused = Redactor::new(RedactionLevel::All, &known).unwrap_err();
    assert_eq!(refused, "the known secrets are too many or too long to search for");
}

#[test]
fn levels_parse_their_own_names() {
    assert_eq!(RedactionLevel::default(), RedactionLevel::All);
    for level in RedactionLevel::ALL {
        assert_eq!(RedactionLevel::parse(level.as_str()), Some(*level));
    }
    assert_eq!(RedactionLevel::parse("some"), None);
}

/// Each of these makes a careless matcher start again at every character. The assertions do not print the
/// text of one mebibyte.
// SECURITY: log-redacted
#[test]
fn hostile_lines_of_a_mebibyte_are_redacted_in_time() {
    const SIZE: usize = 1 << 20;
    let redactor = redactor(RedactionLevel::All);
    let filled = |piece: &str| piece.repeat(SIZE / piece.len());
    for piece in ["1", "1 ", "x://a:", "eyJ", "a."] {
        let text = filled(piece);
        assert!(redactor.redact(&text) == text, "{piece}");
    }
    for (text, expected) in [
        (format!("{}@example.com", filled("a")), "[email]"),
        (filled("-----BEGIN PRIVATE KEY"), "[redacted]"),
        (format!("password={}", filled("{[")), "password=[redacted]"),
        (format!("password=\"{}", filled("\\")), "password=\"[redacted]"),
        (format!("x://a:{}@h", filled("b@")), "x://a:[redacted]@h"),
    ] {
        assert!(redactor.redact(&text) == expected, "{expected}");
    }
    let keys = redactor.redact(&filled("sk-0123456789 ")).into_owned();
    assert!(keys == "[redacted] ".repeat(SIZE / 14));
}

/// Text that resembles secrets and personal data.
fn hostile() -> impl Strategy<Value = String> {
    let bait = SECRETS.iter().chain(PERSONAL).map(|(text, _)| *text).chain(HARMLESS.iter().copied());
    let pieces = "password token key = : => \" ' \\ \\\" { } [ ] ( ) , ; @ . - + / :// sk- eyJ 0 1 12 4111 Bearer basic \
                  a.b é \n ${ [redacted] [redacted [email] Cookie DE89 -----BEGIN";
    let bait: Vec<&str> = bait.chain(pieces.split(' ')).chain([" "]).collect();
    let piece = prop_oneof![
        prop::sample::select(bait).prop_map(str::to_owned),
        "[ -~]{0,6}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

static BOTH: LazyLock<[Redactor; 2]> =
    LazyLock::new(|| [redactor(RedactionLevel::Secrets), redactor(RedactionLevel::All)]);

proptest! {
    // SECURITY: log-redacted
    #[test]
    fn redacting_twice_changes_nothing(text in hostile()) {
        for redactor in &*BOTH {
            let once = redactor.redact(&text).into_owned();
            let twice = redactor.redact(&once).into_owned();
            proptest::prop_assert_eq!(twice, once, "{}", text);
        }
    }
}
