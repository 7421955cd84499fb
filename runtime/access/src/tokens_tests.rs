use super::{MAIN, Tokens, add, list, main_token, remove, rotate};
use crate::secret_file;
use pretty_assertions::assert_eq;
use redflow_contract::api::{ApiError, ProblemCode, Scope};
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::console::TokenEntry;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn write(path: &Path, text: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, text).unwrap();
    chmod(path, 0o600);
}

#[cfg(unix)]
fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
fn chmod(_path: &Path, _mode: u32) {}

fn code(result: Result<impl Sized, ApiError>) -> Option<ProblemCode> {
    result.err().map(|error| error.code)
}

fn accepts(tokens: &Tokens, text: &str, now: u64) -> Option<String> {
    tokens.find(text, now).map(|token| token.name.to_string())
}

const UNSAFE: Option<ProblemCode> = Some(ProblemCode::Api(ApiCode::SecretFileUnsafe));
const INVALID: Option<ProblemCode> = Some(ProblemCode::Api(ApiCode::RequestInvalid));

// SECURITY: token-digest, guess-limit
#[test]
fn the_main_token_is_made_once_and_only_its_owner_can_read_it() {
    let data = folder();
    let tokens = Tokens::open(data.path(), None).unwrap();
    let token = main_token(data.path()).unwrap();
    assert_eq!(tokens.main().unwrap().expose_secret(), token.expose_secret());
    assert_eq!(
        Tokens::open(data.path(), None).unwrap().main().unwrap().expose_secret(),
        token.expose_secret()
    );
    assert!(token.expose_secret().starts_with("rf_") && token.expose_secret().len() == 46);
    let text = std::fs::read_to_string(data.path().join("token")).unwrap();
    assert_eq!(text, format!("{}\n", token.expose_secret()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(data.path().join("token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
    let accepted = tokens.find(token.expose_secret(), 0).unwrap();
    assert_eq!((&*accepted.name, &*accepted.scopes), (MAIN, [Scope::Admin].as_slice()));
    for wrong in
        ["", "rf_", &token.expose_secret()[..45], &format!("{}x", token.expose_secret()), &"x".repeat(600)]
    {
        assert!(tokens.find(wrong, 0).is_none(), "{wrong}");
    }
    let left: Vec<_> =
        std::fs::read_dir(data.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "token" || name == "tokens.lock"), "{left:?}");
}

#[test]
fn concurrent_first_readers_get_the_same_token() {
    let data = folder();
    let texts: Vec<String> = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| main_token(data.path()).unwrap().expose_secret().to_owned()))
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert!(texts.iter().all(|text| *text == texts[0]));
}

// SECURITY: guess-limit
#[test]
fn a_token_of_the_environment_replaces_the_main_one() {
    let data = folder();
    let chosen = SecretString::from("0123456789abcdef");
    let tokens = Tokens::open(data.path(), Some(chosen.clone())).unwrap();
    assert!(!data.path().join("token").exists());
    assert_eq!(accepts(&tokens, chosen.expose_secret(), 0).as_deref(), Some(MAIN));
    // A file that is written later does not change that.
    let file = main_token(data.path()).unwrap();
    assert_eq!(accepts(&tokens, file.expose_secret(), 5000), None);
    assert_eq!(accepts(&tokens, chosen.expose_secret(), 10_000).as_deref(), Some(MAIN));
    for bad in ["", "0123456789abcde", "0123456789 abcdef", "0123456789äbcdef", &"x".repeat(513)] {
        let refused = Some(ProblemCode::Api(ApiCode::ConfigFileInvalid));
        assert_eq!(code(Tokens::open(data.path(), Some(bad.into()))), refused, "{bad}");
        assert_eq!(code(Tokens::ephemeral(Some(bad.into()))), refused, "{bad}");
    }
}

#[test]
fn an_ephemeral_token_is_in_memory_only() {
    let tokens = Tokens::ephemeral(None).unwrap();
    let token = tokens.main().unwrap();
    assert_eq!(accepts(&tokens, token.expose_secret(), 0).as_deref(), Some(MAIN));
    assert!(!format!("{tokens:?}").contains(token.expose_secret()));
    let chosen = Tokens::ephemeral(Some("0123456789abcdef".into())).unwrap();
    assert_eq!(accepts(&chosen, "0123456789abcdef", 0).as_deref(), Some(MAIN));
}

// SECURITY: token-digest
#[test]
fn further_tokens_are_made_listed_and_removed() {
    let data = folder();
    let reader = add(data.path(), "reader", &[Scope::Read], 7).unwrap();
    let worker = add(data.path(), "ci.worker-2_x", &[Scope::Deploy, Scope::Run, Scope::Run], 8).unwrap();
    let entry = |name: &str, scopes: &[Scope], created_at| TokenEntry {
        name: name.to_owned(),
        scopes: scopes.to_vec(),
        created_at: Some(created_at),
        is_own: false,
    };
    assert_eq!(
        list(data.path()).unwrap(),
        [entry("reader", &[Scope::Read], 7), entry("ci.worker-2_x", &[Scope::Run, Scope::Deploy], 8)]
    );
    let text = std::fs::read_to_string(data.path().join("tokens.json")).unwrap();
    assert!(!text.contains(reader.expose_secret()) && text.contains("\"createdAt\": 7"), "{text}");

    let tokens = Tokens::open(data.path(), None).unwrap();
    assert_eq!(accepts(&tokens, reader.expose_secret(), 0).as_deref(), Some("reader"));
    assert_eq!(&*tokens.find(worker.expose_secret(), 0).unwrap().scopes, [Scope::Run, Scope::Deploy]);

    assert_eq!(code(add(data.path(), "reader", &[Scope::Read], 9)), INVALID);
    assert_eq!(code(add(data.path(), "nothing", &[], 9)), INVALID);
    for name in ["", "main", "a b", "ä", "a/b", &"x".repeat(65)] {
        assert_eq!(code(add(data.path(), name, &[Scope::Read], 9)), INVALID, "{name}");
    }
    remove(data.path(), "reader").unwrap();
    assert_eq!(code(remove(data.path(), "reader")), Some(ProblemCode::Api(ApiCode::NotFound)));
    assert_eq!(list(data.path()).unwrap().len(), 1);
}

#[test]
fn at_most_256_further_tokens_are_allowed() {
    let data = folder();
    let stored = |n: usize| serde_json::json!({"name": format!("t{n}"), "scopes": ["read"], "hash": "0".repeat(64), "createdAt": 0});
    let full: Vec<_> = (0..256).map(stored).collect();
    write(&data.path().join("tokens.json"), serde_json::to_string(&full).unwrap().as_bytes());
    assert_eq!(list(data.path()).unwrap().len(), 256);
    assert_eq!(code(add(data.path(), "one-more", &[Scope::Read], 0)), INVALID);
}

// SECURITY: token-removed
#[test]
fn changes_of_the_files_are_noticed_within_a_second() {
    let data = folder();
    let tokens = Tokens::open(data.path(), None).unwrap();
    let first = tokens.main().unwrap();
    assert!(tokens.find(first.expose_secret(), 10_000).is_some());
    let second = rotate(data.path()).unwrap();
    let reader = add(data.path(), "reader", &[Scope::Read], 7).unwrap();
    // The files are not checked again yet.
    assert!(tokens.find(first.expose_secret(), 10_999).is_some());
    assert!(tokens.find(second.expose_secret(), 10_999).is_none());
    assert!(tokens.find(first.expose_secret(), 11_000).is_none());
    assert!(tokens.find(second.expose_secret(), 11_000).is_some());
    assert_eq!(accepts(&tokens, reader.expose_secret(), 11_000).as_deref(), Some("reader"));
    remove(data.path(), "reader").unwrap();
    // A clock that was set back also causes a check.
    assert!(tokens.find(reader.expose_secret(), 9000).is_none());
    std::fs::remove_file(data.path().join("token")).unwrap();
    assert!(tokens.find(second.expose_secret(), 12_000).is_none());
}

// SECURITY: secret-file
#[cfg(unix)]
#[test]
fn a_file_that_becomes_unsafe_is_ignored_until_it_is_safe_again() {
    let data = folder();
    let reader = add(data.path(), "reader", &[Scope::Read], 7).unwrap();
    let tokens = Tokens::open(data.path(), None).unwrap();
    let main = tokens.main().unwrap();
    chmod(&data.path().join("token"), 0o644);
    assert!(tokens.find(main.expose_secret(), 1000).is_none());
    assert!(tokens.find(reader.expose_secret(), 1000).is_some(), "the other file is still safe");
    chmod(&data.path().join("tokens.json"), 0o620);
    assert!(tokens.find(reader.expose_secret(), 2000).is_none());
    chmod(&data.path().join("token"), 0o600);
    chmod(&data.path().join("tokens.json"), 0o400);
    assert!(
        tokens.find(main.expose_secret(), 3000).is_some()
            && tokens.find(reader.expose_secret(), 3000).is_some()
    );
}

// SECURITY: secret-file
#[cfg(unix)]
#[test]
fn files_that_other_users_can_read_are_refused_with_a_remedy() {
    for mode in [0o640, 0o604, 0o620, 0o602, 0o601, 0o777] {
        let data = folder();
        let path = data.path().join("token");
        main_token(data.path()).unwrap();
        chmod(&path, mode);
        let error = Tokens::open(data.path(), None).unwrap_err();
        assert_eq!(Some(error.code), UNSAFE, "{mode:o}");
        assert!(error.message.contains(&format!("chmod 600 {}", path.display())), "{}", error.message);
        assert!(error.message.contains(&format!("mode 0{mode:o}")), "{}", error.message);
        // A new file is a safe one.
        rotate(data.path()).unwrap();
        Tokens::open(data.path(), None).unwrap();
    }
    let data = folder();
    add(data.path(), "reader", &[Scope::Read], 7).unwrap();
    chmod(&data.path().join("tokens.json"), 0o640);
    assert_eq!(code(Tokens::open(data.path(), None)), UNSAFE);
    assert_eq!(code(list(data.path())), UNSAFE);
    assert_eq!(code(add(data.path(), "other", &[Scope::Read], 7)), UNSAFE);
}

// SECURITY: secret-file
#[cfg(unix)]
#[test]
fn a_file_of_another_user_is_refused() {
    let data = folder();
    main_token(data.path()).unwrap();
    let mut path = data.path().join("token");
    // Only root can change the owner of a file. Other users can try a file of root.
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
        path = "/etc/passwd".into();
    }
    let error = secret_file::read(&path, 1 << 20).unwrap_err();
    assert_eq!(Some(error.code), UNSAFE);
    assert!(error.message.contains("belongs to another user"), "{}", error.message);
}

// SECURITY: log-tokens
#[cfg(unix)]
#[test]
fn the_log_explains_a_rejected_token_without_repeating_it() {
    use std::sync::{Arc, Mutex};
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (data, lines) = (folder(), Lines::default());
    let tokens = Tokens::open(data.path(), None).unwrap();
    let main = tokens.main().unwrap();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(log, || {
        assert!(tokens.find(main.expose_secret(), 1000).is_some());
        chmod(&data.path().join("token"), 0o644);
        assert!(tokens.find(main.expose_secret(), 2000).is_none());
        // Once, not with every request.
        assert!(tokens.find(main.expose_secret(), 4000).is_none());
    });
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert_eq!(log.matches("ERROR").count(), 1, "{log}");
    assert!(log.contains("SECRET_FILE_UNSAFE") && log.contains("chmod 600"), "{log}");
    assert!(!log.contains(main.expose_secret()), "{log}");
}

// SECURITY: secret-file
#[cfg(unix)]
#[test]
fn a_token_file_must_be_a_regular_file() {
    use std::os::unix::fs::symlink;
    let data = folder();
    let path = data.path().join("token");
    let elsewhere = data.path().join("elsewhere");
    write(&elsewhere, b"rf_0123456789abcdef\n");
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(code(main_token(data.path())), UNSAFE);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(code(main_token(data.path())), UNSAFE);
    std::fs::remove_dir(&path).unwrap();
    // Opening a pipe would wait for a writer.
    let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap();
    assert!(made.success());
    assert_eq!(code(main_token(data.path())), UNSAFE);
}

// SECURITY: guess-limit
#[test]
fn malformed_files_are_refused() {
    let data = folder();
    let main = data.path().join("token");
    let texts: [&[u8]; 7] = [
        b"",
        b"\n",
        b"too-short\n",
        b"0123456789abcdef\n0123456789abcdef\n",
        b" 0123456789abcdef",
        b"0123456789abcdef\xff\n",
        &[b'x'; 600],
    ];
    for text in texts {
        write(&main, text);
        let error = Tokens::open(data.path(), None).unwrap_err();
        assert_eq!(Some(error.code), UNSAFE, "{text:?}");
        assert!(!error.message.contains("0123456789abcdef"), "{}", error.message);
    }
    write(&main, b"0123456789abcdef\r\n");
    Tokens::open(data.path(), None).unwrap();

    let further = data.path().join("tokens.json");
    let hash = "0".repeat(64);
    let one = |fields: &str| format!("[{{{fields}}}]");
    let texts = [
        String::new(),
        "{}".to_owned(),
        "[1]".to_owned(),
        one(&format!(r#""name":"a","scopes":["read"],"hash":"{hash}""#)),
        one(&format!(r#""name":"a","scopes":["read"],"hash":"{hash}","createdAt":1,"more":1"#)),
        one(&format!(r#""name":"a","scopes":["write"],"hash":"{hash}","createdAt":1"#)),
        one(&format!(r#""name":"a","scopes":[],"hash":"{hash}","createdAt":1"#)),
        one(&format!(r#""name":"main","scopes":["read"],"hash":"{hash}","createdAt":1"#)),
        one(r#""name":"a","scopes":["read"],"hash":"00","createdAt":1"#),
        format!(
            r#"[{{"name":"a","scopes":["read"],"hash":"{hash}","createdAt":1}},{{"name":"a","scopes":["read"],"hash":"{hash}","createdAt":1}}]"#
        ),
        " ".repeat(300_000),
    ];
    for text in texts {
        write(&further, text.as_bytes());
        let error = Tokens::open(data.path(), None).unwrap_err();
        assert_eq!(Some(error.code), UNSAFE, "{text:.100}");
        assert!(!error.message.contains(&hash), "{}", error.message);
    }
    write(
        &further,
        one(&format!(r#""name":"a","scopes":["read"],"hash":"{hash}","createdAt":1"#)).as_bytes(),
    );
    Tokens::open(data.path(), None).unwrap();
}

#[test]
fn reports_a_directory_that_is_missing_or_not_writable() {
    let data = folder();
    let missing = data.path().join("missing");
    assert_eq!(code(main_token(&missing)), Some(ProblemCode::Store(StoreCode::DataUnusable)));
    assert_eq!(code(rotate(&missing)), Some(ProblemCode::Store(StoreCode::DataUnusable)));
    // A folder where the new file would be written.
    std::fs::create_dir(data.path().join("token.new")).unwrap();
    assert!(matches!(code(main_token(data.path())), Some(ProblemCode::Store(_))));
}

#[test]
fn a_half_written_file_of_a_crash_is_replaced() {
    let data = folder();
    std::fs::write(data.path().join("token.new"), "rf_ha").unwrap();
    let token = main_token(data.path()).unwrap();
    assert_eq!(token.expose_secret().len(), 46);
    assert!(!data.path().join("token.new").exists());
}

// SECURITY: log-tokens
#[test]
fn the_main_token_is_masked_in_texts() {
    let chosen = || Some("Correct-Horse-Battery".to_owned().into());
    let data = folder();
    write(&data.path().join("token"), b"correct-horse-battery\n");
    let all = [
        Tokens::ephemeral(chosen()).unwrap(),
        Tokens::open(folder().path(), chosen()).unwrap(),
        Tokens::open(data.path(), None).unwrap(),
    ];
    for tokens in all {
        for (text, masked) in [
            ("no `é` token", "no `é` token"),
            ("correct-hors", "[redacted]"),
            ("correct-hor", "correct-hor"),
            ("`ACorrect-Horse-Battery.example`", "`A[redacted].example`"),
            ("correct-correct-horse-batteryé CORRECT-HORSE-BAT", "correct-[redacted]é [redacted]"),
        ] {
            assert_eq!(tokens.mask(text), masked);
        }
    }
}
