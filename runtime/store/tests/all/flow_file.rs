//! The flow file and its credentials.

use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_ports::{Credentials, FileStoreError, FlowStore, StoredFlow};
use redflow_store::FlowFile;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) const SECRET: &str = "sk-very-secret-0123456789";

/// A flow file in a data directory.
pub(crate) fn flow_file(data: &Path) -> FlowFile {
    FlowFile::new(data.join("flows.json"), data.to_owned())
}

/// A flow with credentials that name it.
pub(crate) fn flow(name: &str) -> StoredFlow {
    let credentials = json!({"apiKey": format!("{SECRET}-{name}"), "more": {"ü": [1, 2.5, null]}});
    let credentials = [("n1".into(), credentials.as_object().unwrap().clone())].into();
    StoredFlow { flows: format!("[{{\"id\":\"{name}\"}}]").into_bytes(), credentials }
}

fn without_credentials(name: &str) -> StoredFlow {
    StoredFlow { credentials: Credentials::new(), ..flow(name) }
}

/// A stored flow has no `Debug`, because it holds secrets; so this compares the parts.
#[track_caller]
pub(crate) fn assert_flow(stored: Option<StoredFlow>, expected: &StoredFlow) {
    let stored = stored.expect("a flow");
    assert_eq!(String::from_utf8_lossy(&stored.flows), String::from_utf8_lossy(&expected.flows));
    assert!(stored == *expected, "other credentials");
}

#[track_caller]
fn refused<T>(result: Result<T, FileStoreError>, code: ProblemCode, words: &str) -> FileStoreError {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(words), "no `{words}` in {error}");
    assert!(error.message.ends_with('.'), "{error}");
    assert!(!error.message.contains(SECRET), "{error}");
    error
}

const UNUSABLE: ProblemCode = ProblemCode::Store(StoreCode::DataUnusable);
const UNSAFE: ProblemCode = ProblemCode::Api(ApiCode::SecretFileUnsafe);
const UNREADABLE: ProblemCode = ProblemCode::Api(ApiCode::CredentialsUnreadable);

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn credentials(dir: &Path) -> PathBuf {
    dir.join("credentials.json")
}

fn key(dir: &Path) -> PathBuf {
    dir.join("credentials.key")
}

// SECURITY: credentials-encrypted
#[test]
fn a_flow_comes_back_with_its_credentials() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("made").join("by us");
    let flows = flow_file(&dir);
    assert!(flows.load().unwrap().is_none());
    assert!(!dir.exists(), "reading created something");
    flows.save(&flow("one")).unwrap();
    assert_flow(flows.load().unwrap(), &flow("one"));
    flows.save(&flow("two")).unwrap();
    assert_flow(flow_file(&dir).load().unwrap(), &flow("two"));
    let files = names(&dir);
    let expected =
        ["credentials.json", "credentials.json.bak", "credentials.key", "flows.json", "flows.json.bak"];
    assert_eq!(files, expected);
    // The flow unchanged, the previous one beside it, and no secret in plain text.
    assert_eq!(std::fs::read(dir.join("flows.json")).unwrap(), flow("two").flows);
    assert_eq!(std::fs::read(dir.join("flows.json.bak")).unwrap(), flow("one").flows);
    for file in files {
        let bytes = std::fs::read(dir.join(&file)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"), "{file}");
        #[cfg(unix)]
        assert_eq!(mode(&dir.join(&file)), 0o600, "{file}");
    }
    // The same credentials are encrypted differently: a reader cannot see that nothing changed.
    let before = std::fs::read(credentials(&dir)).unwrap();
    flows.save(&flow("two")).unwrap();
    assert_ne!(std::fs::read(credentials(&dir)).unwrap(), before);
    assert_eq!(
        std::fs::read(dir.join("flows.json.bak")).unwrap(),
        flow("one").flows,
        "still the previous flow"
    );
}

#[test]
fn without_credentials_there_is_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&without_credentials("one")).unwrap();
    flows.save(&without_credentials("two")).unwrap();
    assert_eq!(names(dir.path()), ["flows.json", "flows.json.bak"]);
    assert_flow(flows.load().unwrap(), &without_credentials("two"));
    flows.save(&flow("three")).unwrap();
    let first_key = std::fs::read(key(dir.path())).unwrap();
    flows.save(&without_credentials("four")).unwrap();
    assert_flow(flows.load().unwrap(), &without_credentials("four"));
    flows.save(&flow("five")).unwrap();
    assert_flow(flows.load().unwrap(), &flow("five"));
    assert_eq!(std::fs::read(key(dir.path())).unwrap(), first_key, "the key stays");
}

#[test]
fn an_empty_file_is_no_flow() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    for blank in ["", "\n", " \t\r\n"] {
        std::fs::write(dir.path().join("flows.json"), blank).unwrap();
        assert!(flows.load().unwrap().is_none(), "{blank:?}");
    }
    flows.save(&flow("one")).unwrap();
    assert_flow(flows.load().unwrap(), &flow("one"));
}

#[test]
fn an_unreadable_flow_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    let file = dir.path().join("flows.json");
    std::fs::create_dir(&file).unwrap();
    refused(flows.load(), UNUSABLE, "no regular file");
    refused(flows.save(&flow("one")), UNUSABLE, "no regular file");
    std::fs::remove_dir(&file).unwrap();
    let large = std::fs::File::create(&file).unwrap();
    large.set_len(40 * 1024 * 1024 + 1).unwrap();
    refused(flows.load(), UNUSABLE, "more than 41943040 bytes");
    refused(flows.save(&flow("one")), UNUSABLE, "more than 41943040 bytes");
    assert_eq!(names(dir.path()), ["flows.json"], "nothing was created");
    let below = FlowFile::new(file.join("below"), dir.path().to_owned());
    refused(below.load(), UNUSABLE, "cannot be read");
    refused(
        FlowFile::new(dir.path().join("no/flows.json"), dir.path().into()).save(&without_credentials("x")),
        UNUSABLE,
        "no",
    );
}

#[test]
fn flows_that_could_not_be_read_again_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&flow("one")).unwrap();
    let huge = StoredFlow { flows: vec![b' '; 40 * 1024 * 1024 + 1], ..flow("two") };
    refused(flows.save(&huge), UNUSABLE, "larger than 41943040");
    let of = |bytes: usize, flow: StoredFlow| {
        let text = json!({"key": "x".repeat(bytes)});
        StoredFlow { credentials: [("n".into(), text.as_object().unwrap().clone())].into(), ..flow }
    };
    refused(flows.save(&of(3 * 1024 * 1024, flow("two"))), UNUSABLE, "larger than 4194304");
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let deep = json!({"key": deep}).as_object().unwrap().clone();
    let deep = StoredFlow { credentials: [("n".into(), deep)].into(), ..flow("two") };
    refused(flows.save(&deep), UNUSABLE, "nested too deeply");
    assert_flow(flows.load().unwrap(), &flow("one"));
    // Two large flows after each other: each one fits, but not both together.
    for name in ["a", "b"] {
        let large = of(1600 * 1024, flow(name));
        flows.save(&large).unwrap();
        assert_flow(flows.load().unwrap(), &large);
    }
}

/// The flow file decides which credentials count: so a restored flow gets its own again.
#[test]
fn a_restored_flow_gets_its_credentials_back() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    for name in ["one", "two"] {
        flows.save(&flow(name)).unwrap();
    }
    let file = dir.path().join("flows.json");
    std::fs::copy(dir.path().join("flows.json.bak"), &file).unwrap();
    assert_flow(flows.load().unwrap(), &flow("one"));
    // An edited flow gets the newest credentials.
    std::fs::write(&file, b"[ ]").unwrap();
    assert_flow(flows.load().unwrap(), &StoredFlow { flows: b"[ ]".to_vec(), ..flow("two") });
    // Older credentials are removed.
    for name in ["three", "four"] {
        flows.save(&flow(name)).unwrap();
    }
    std::fs::write(&file, flow("one").flows).unwrap();
    assert_flow(flows.load().unwrap(), &StoredFlow { flows: flow("one").flows, ..flow("four") });
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[test]
fn a_link_is_followed_and_stays() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
    std::fs::create_dir(&data).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    // Two links, one of them relative, to a file that does not exist yet.
    symlink("../elsewhere/link", data.join("flows.json")).unwrap();
    symlink(elsewhere.join("real.json"), elsewhere.join("link")).unwrap();
    let flows = flow_file(&data);
    assert!(flows.load().unwrap().is_none());
    for name in ["one", "two"] {
        flows.save(&without_credentials(name)).unwrap();
        assert_flow(flows.load().unwrap(), &without_credentials(name));
    }
    assert_eq!(names(&data), ["flows.json"]);
    assert_eq!(names(&elsewhere), ["link", "real.json", "real.json.bak"]);
    assert!(data.join("flows.json").is_symlink() && elsewhere.join("link").is_symlink());
    // A link to itself.
    let circle = dir.path().join("circle");
    symlink(&circle, &circle).unwrap();
    refused(FlowFile::new(circle.clone(), data.clone()).load(), UNUSABLE, "cannot be read");
    refused(FlowFile::new(circle, data).save(&without_credentials("x")), UNUSABLE, "circle");
}

/// A user may let others read the flow, but never the credentials.
#[cfg(unix)]
#[test]
fn a_flow_file_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&flow("one")).unwrap();
    set_mode(&dir.path().join("flows.json"), 0o644);
    flows.save(&flow("two")).unwrap();
    for (file, expected) in [
        ("flows.json", 0o644),
        // A file written by hand may hold credentials, which a deploy takes out of it.
        ("flows.json.bak", 0o600),
        ("credentials.json", 0o600),
        ("credentials.json.bak", 0o600),
    ] {
        assert_eq!(mode(&dir.path().join(file)), expected, "{file}");
    }
}

// SECURITY: secret-file
#[cfg(unix)]
#[test]
fn secrets_that_others_can_reach_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&flow("one")).unwrap();
    for file in [credentials(dir.path()), key(dir.path())] {
        for loose in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666, 0o777] {
            set_mode(&file, loose);
            let remedy = format!("chmod 600 {}", file.display());
            refused(flows.load(), UNSAFE, &remedy);
            refused(flows.save(&flow("two")), UNSAFE, &remedy);
        }
        set_mode(&file, 0o400);
        assert_flow(flows.load().unwrap(), &flow("one"));
        // A link is refused too, even one to a sound file.
        let moved = dir.path().join("moved");
        std::fs::rename(&file, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &file).unwrap();
        refused(flows.load(), UNSAFE, "no regular file");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        refused(flows.load(), UNSAFE, "no regular file");
        refused(flows.save(&flow("two")), UNSAFE, "no regular file");
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&moved, &file).unwrap();
        assert_flow(flows.load().unwrap(), &flow("one"));
    }
}

// SECURITY: secret-file
#[cfg(unix)]
#[test]
fn secrets_of_another_user_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&flow("one")).unwrap();
    for file in [credentials(dir.path()), key(dir.path())] {
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&file).unwrap());
        let remedy = format!("belongs to another user: run `chown $(id -u) {}`", file.display());
        // Only root can change the owner of a file.
        if std::os::unix::fs::chown(&file, Some(owner + 12_345), None).is_err() {
            assert_ne!(owner, 0);
            return;
        }
        refused(flows.load(), UNSAFE, &remedy);
        refused(flows.save(&flow("two")), UNSAFE, &remedy);
        std::os::unix::fs::chown(&file, Some(owner), None).unwrap();
        assert_flow(flows.load().unwrap(), &flow("one"));
    }
}

/// Replaces the bytes of a file while `check` runs.
fn with_changed_file(file: &Path, bytes: &[u8], check: impl FnOnce()) {
    let before = std::fs::read(file).unwrap();
    std::fs::write(file, bytes).unwrap();
    check();
    std::fs::write(file, before).unwrap();
}

// SECURITY: credentials-intact
#[test]
fn every_changed_byte_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&flow("one")).unwrap();
    for file in [credentials(dir.path()), key(dir.path())] {
        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                with_changed_file(&file, &bytes, || {
                    drop(refused(flows.load(), UNREADABLE, "deploy the credentials again"))
                });
            }
        }
        for keep in 0..whole.len() {
            // The line feed of a key is not part of it.
            if file == key(dir.path()) && keep + 1 == whole.len() {
                continue;
            }
            with_changed_file(&file, &whole[..keep], || {
                drop(refused(flows.load(), UNREADABLE, "cannot be read"))
            });
        }
        let longer = [whole.as_slice(), b"x"].concat();
        with_changed_file(&file, &longer, || drop(refused(flows.load(), UNREADABLE, "cannot be read")));
        let larger = vec![b'a'; 5 * 1024 * 1024];
        with_changed_file(&file, &larger, || drop(refused(flows.load(), UNREADABLE, "too large")));
    }
    assert_flow(flows.load().unwrap(), &flow("one"));
    let text = std::fs::read_to_string(credentials(dir.path())).unwrap();
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    with_changed_file(&credentials(dir.path()), newer.as_bytes(), || {
        drop(refused(flows.load(), UNREADABLE, "newer"))
    });
}

// SECURITY: credentials-intact
#[test]
fn credentials_that_cannot_be_decrypted_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow_file(dir.path());
    flows.save(&flow("one")).unwrap();
    let stored = std::fs::read(credentials(dir.path())).unwrap();
    let lost = std::fs::read(key(dir.path())).unwrap();
    std::fs::remove_file(key(dir.path())).unwrap();
    let other = tempfile::tempdir().unwrap();
    flow_file(other.path()).save(&flow("other")).unwrap();
    let check = |why: &str| {
        let error = refused(flows.load(), UNREADABLE, why);
        for part in [credentials(dir.path()).display().to_string(), key(dir.path()).display().to_string()] {
            assert!(error.message.contains(&part), "{error}");
        }
        assert!(!error.message.contains(std::str::from_utf8(&lost).unwrap().trim()), "{error}");
        refused(flows.save(&flow("two")), UNREADABLE, why);
        refused(flows.save(&without_credentials("two")), UNREADABLE, why);
        assert_eq!(std::fs::read(credentials(dir.path())).unwrap(), stored);
        assert_eq!(std::fs::read(dir.path().join("flows.json")).unwrap(), flow("one").flows);
    };
    check("its key is missing");
    assert!(!key(dir.path()).exists(), "a new key would hide the problem");
    std::fs::copy(key(other.path()), key(dir.path())).unwrap();
    check("sealed with another key");
    // With the old key everything works again; without the credentials file there is nothing to decrypt.
    std::fs::write(key(dir.path()), &lost).unwrap();
    assert_flow(flows.load().unwrap(), &flow("one"));
    std::fs::remove_file(key(dir.path())).unwrap();
    std::fs::remove_file(credentials(dir.path())).unwrap();
    assert_flow(flows.load().unwrap(), &without_credentials("one"));
    flows.save(&flow("two")).unwrap();
    assert_flow(flows.load().unwrap(), &flow("two"));
    assert_ne!(std::fs::read(key(dir.path())).unwrap(), lost);
}

/// Part files of a process that died do no harm.
#[test]
fn part_files_of_dead_processes_are_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    for name in
        ["flows.json", "flows.json.bak", "credentials.json", "credentials.json.bak", "credentials.key"]
    {
        std::fs::write(dir.path().join(format!("{name}.part")), "half").unwrap();
    }
    let flows = flow_file(dir.path());
    for name in ["one", "two"] {
        flows.save(&flow(name)).unwrap();
        assert_flow(flows.load().unwrap(), &flow(name));
    }
    assert!(names(dir.path()).iter().all(|name| !name.ends_with(".part")), "{:?}", names(dir.path()));
}
