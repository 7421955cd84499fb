//! The flow on its shelf: a file, its credentials, and what becomes of both.

use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_ports::{Credentials, FileStoreError, FlowStore, StoredFlow};
use redflow_store::FlowFile;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) const SECRET: &str = "sk-very-secret-0123456789";

/// A flow file in a data directory.
pub(crate) fn shelf(data: &Path) -> FlowFile {
    FlowFile::new(data.join("flows.json"), data.to_owned())
}

/// A flow with credentials that name it.
pub(crate) fn flow(name: &str) -> StoredFlow {
    let credentials = json!({"apiKey": format!("{SECRET}-{name}"), "more": {"ü": [1, 2.5, null]}});
    let credentials = [("n1".into(), credentials.as_object().unwrap().clone())].into();
    StoredFlow { flows: format!("[{{\"id\":\"{name}\"}}]").into_bytes(), credentials }
}

fn bare(name: &str) -> StoredFlow {
    StoredFlow { credentials: Credentials::new(), ..flow(name) }
}

/// Nothing in a shelved flow can be shown, so it is compared by hand.
#[track_caller]
pub(crate) fn is(found: Option<StoredFlow>, expected: &StoredFlow) {
    let found = found.expect("a flow");
    assert_eq!(String::from_utf8_lossy(&found.flows), String::from_utf8_lossy(&expected.flows));
    assert!(found == *expected, "other credentials");
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

#[test]
fn a_flow_comes_back_with_its_credentials() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("made").join("by us");
    let shelf = shelf(&dir);
    assert!(shelf.load().unwrap().is_none());
    assert!(!dir.exists(), "looking made something");
    shelf.save(&flow("one")).unwrap();
    is(shelf.load().unwrap(), &flow("one"));
    shelf.save(&flow("two")).unwrap();
    is(self::shelf(&dir).load().unwrap(), &flow("two"));
    let files = names(&dir);
    let expected =
        ["credentials.json", "credentials.json.bak", "credentials.key", "flows.json", "flows.json.bak"];
    assert_eq!(files, expected);
    // The flow as it was given, the one before beside it, and no secret in the open.
    assert_eq!(std::fs::read(dir.join("flows.json")).unwrap(), flow("two").flows);
    assert_eq!(std::fs::read(dir.join("flows.json.bak")).unwrap(), flow("one").flows);
    for file in files {
        let bytes = std::fs::read(dir.join(&file)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("secret"), "{file}");
        #[cfg(unix)]
        assert_eq!(mode(&dir.join(&file)), 0o600, "{file}");
    }
    // The same again is another text: nobody can tell that nothing changed.
    let before = std::fs::read(credentials(&dir)).unwrap();
    shelf.save(&flow("two")).unwrap();
    assert_ne!(std::fs::read(credentials(&dir)).unwrap(), before);
    assert_eq!(std::fs::read(dir.join("flows.json.bak")).unwrap(), flow("one").flows, "still the one before");
}

#[test]
fn without_credentials_there_is_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    shelf.save(&bare("one")).unwrap();
    shelf.save(&bare("two")).unwrap();
    assert_eq!(names(dir.path()), ["flows.json", "flows.json.bak"]);
    is(shelf.load().unwrap(), &bare("two"));
    shelf.save(&flow("three")).unwrap();
    let made = std::fs::read(key(dir.path())).unwrap();
    shelf.save(&bare("four")).unwrap();
    is(shelf.load().unwrap(), &bare("four"));
    shelf.save(&flow("five")).unwrap();
    is(shelf.load().unwrap(), &flow("five"));
    assert_eq!(std::fs::read(key(dir.path())).unwrap(), made, "one key for all of them");
}

#[test]
fn an_empty_file_is_no_flow() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    for blank in ["", "\n", " \t\r\n"] {
        std::fs::write(dir.path().join("flows.json"), blank).unwrap();
        assert!(shelf.load().unwrap().is_none(), "{blank:?}");
    }
    shelf.save(&flow("one")).unwrap();
    is(shelf.load().unwrap(), &flow("one"));
}

#[test]
fn a_flow_that_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    let file = dir.path().join("flows.json");
    std::fs::create_dir(&file).unwrap();
    refused(shelf.load(), UNUSABLE, "no regular file");
    refused(shelf.save(&flow("one")), UNUSABLE, "no regular file");
    std::fs::remove_dir(&file).unwrap();
    let large = std::fs::File::create(&file).unwrap();
    large.set_len(40 * 1024 * 1024 + 1).unwrap();
    refused(shelf.load(), UNUSABLE, "more than 41943040 bytes");
    refused(shelf.save(&flow("one")), UNUSABLE, "more than 41943040 bytes");
    assert_eq!(names(dir.path()), ["flows.json"], "nothing was made");
    let below = FlowFile::new(file.join("below"), dir.path().to_owned());
    refused(below.load(), UNUSABLE, "cannot be read");
    refused(
        FlowFile::new(dir.path().join("no/flows.json"), dir.path().into()).save(&bare("x")),
        UNUSABLE,
        "no",
    );
}

#[test]
fn what_is_too_large_to_be_read_again_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    shelf.save(&flow("one")).unwrap();
    let huge = StoredFlow { flows: vec![b' '; 40 * 1024 * 1024 + 1], ..flow("two") };
    refused(shelf.save(&huge), UNUSABLE, "larger than 41943040");
    let of = |bytes: usize, flow: StoredFlow| {
        let text = json!({"key": "x".repeat(bytes)});
        StoredFlow { credentials: [("n".into(), text.as_object().unwrap().clone())].into(), ..flow }
    };
    refused(shelf.save(&of(3 * 1024 * 1024, flow("two"))), UNUSABLE, "larger than 4194304");
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let deep = json!({"key": deep}).as_object().unwrap().clone();
    let deep = StoredFlow { credentials: [("n".into(), deep)].into(), ..flow("two") };
    refused(shelf.save(&deep), UNUSABLE, "nested too deeply");
    is(shelf.load().unwrap(), &flow("one"));
    // Large ones one after the other: each has room, though not both.
    for name in ["a", "b"] {
        let large = of(1600 * 1024, flow(name));
        shelf.save(&large).unwrap();
        is(shelf.load().unwrap(), &large);
    }
}

/// The flow file decides which credentials count: so a flow that is put back has its own again.
#[test]
fn a_flow_that_is_put_back_has_its_credentials() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    for name in ["one", "two"] {
        shelf.save(&flow(name)).unwrap();
    }
    let file = dir.path().join("flows.json");
    std::fs::copy(dir.path().join("flows.json.bak"), &file).unwrap();
    is(shelf.load().unwrap(), &flow("one"));
    // An edited one has the newest.
    std::fs::write(&file, b"[ ]").unwrap();
    is(shelf.load().unwrap(), &StoredFlow { flows: b"[ ]".to_vec(), ..flow("two") });
    // Those of long ago are gone.
    for name in ["three", "four"] {
        shelf.save(&flow(name)).unwrap();
    }
    std::fs::write(&file, flow("one").flows).unwrap();
    is(shelf.load().unwrap(), &StoredFlow { flows: flow("one").flows, ..flow("four") });
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
    // By two links, one of them relative; the file is not there yet.
    symlink("../elsewhere/link", data.join("flows.json")).unwrap();
    symlink(elsewhere.join("real.json"), elsewhere.join("link")).unwrap();
    let shelf = shelf(&data);
    assert!(shelf.load().unwrap().is_none());
    for name in ["one", "two"] {
        shelf.save(&bare(name)).unwrap();
        is(shelf.load().unwrap(), &bare(name));
    }
    assert_eq!(names(&data), ["flows.json"]);
    assert_eq!(names(&elsewhere), ["link", "real.json", "real.json.bak"]);
    assert!(data.join("flows.json").is_symlink() && elsewhere.join("link").is_symlink());
    // In a circle.
    let circle = dir.path().join("circle");
    symlink(&circle, &circle).unwrap();
    refused(FlowFile::new(circle.clone(), data.clone()).load(), UNUSABLE, "cannot be read");
    refused(FlowFile::new(circle, data).save(&bare("x")), UNUSABLE, "circle");
}

/// Whoever lets others read the flow has a reason; nobody has one for credentials.
#[cfg(unix)]
#[test]
fn a_flow_keeps_its_rights() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    shelf.save(&flow("one")).unwrap();
    set_mode(&dir.path().join("flows.json"), 0o644);
    shelf.save(&flow("two")).unwrap();
    for (file, expected) in [
        ("flows.json", 0o644),
        // A file written by hand may hold what a deploy takes out of it.
        ("flows.json.bak", 0o600),
        ("credentials.json", 0o600),
        ("credentials.json.bak", 0o600),
    ] {
        assert_eq!(mode(&dir.path().join(file)), expected, "{file}");
    }
}

#[cfg(unix)]
#[test]
fn secrets_that_others_can_reach_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    shelf.save(&flow("one")).unwrap();
    for file in [credentials(dir.path()), key(dir.path())] {
        for loose in [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666, 0o777] {
            set_mode(&file, loose);
            let mend = format!("chmod 600 {}", file.display());
            refused(shelf.load(), UNSAFE, &mend);
            refused(shelf.save(&flow("two")), UNSAFE, &mend);
        }
        set_mode(&file, 0o400);
        is(shelf.load().unwrap(), &flow("one"));
        // Not even a link to a sound one.
        let moved = dir.path().join("moved");
        std::fs::rename(&file, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &file).unwrap();
        refused(shelf.load(), UNSAFE, "no regular file");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        refused(shelf.load(), UNSAFE, "no regular file");
        refused(shelf.save(&flow("two")), UNSAFE, "no regular file");
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&moved, &file).unwrap();
        is(shelf.load().unwrap(), &flow("one"));
    }
}

/// Writes other bytes over a file for the time of a look.
fn changed(file: &Path, bytes: &[u8], look: impl FnOnce()) {
    let before = std::fs::read(file).unwrap();
    std::fs::write(file, bytes).unwrap();
    look();
    std::fs::write(file, before).unwrap();
}

#[test]
fn every_changed_byte_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    shelf.save(&flow("one")).unwrap();
    for file in [credentials(dir.path()), key(dir.path())] {
        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                changed(&file, &bytes, || {
                    drop(refused(shelf.load(), UNREADABLE, "deploy the credentials again"))
                });
            }
        }
        for keep in 0..whole.len() {
            // The line feed of a key is not part of it.
            if file == key(dir.path()) && keep + 1 == whole.len() {
                continue;
            }
            changed(&file, &whole[..keep], || drop(refused(shelf.load(), UNREADABLE, "cannot be read")));
        }
        let longer = [whole.as_slice(), b"x"].concat();
        changed(&file, &longer, || drop(refused(shelf.load(), UNREADABLE, "cannot be read")));
        let larger = vec![b'a'; 5 * 1024 * 1024];
        changed(&file, &larger, || drop(refused(shelf.load(), UNREADABLE, "too large")));
    }
    is(shelf.load().unwrap(), &flow("one"));
    let text = std::fs::read_to_string(credentials(dir.path())).unwrap();
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    changed(&credentials(dir.path()), newer.as_bytes(), || drop(refused(shelf.load(), UNREADABLE, "newer")));
}

#[test]
fn what_cannot_be_decrypted_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = shelf(dir.path());
    shelf.save(&flow("one")).unwrap();
    let kept = std::fs::read(credentials(dir.path())).unwrap();
    let lost = std::fs::read(key(dir.path())).unwrap();
    std::fs::remove_file(key(dir.path())).unwrap();
    let other = tempfile::tempdir().unwrap();
    self::shelf(other.path()).save(&flow("other")).unwrap();
    let check = |why: &str| {
        let error = refused(shelf.load(), UNREADABLE, why);
        for part in [credentials(dir.path()).display().to_string(), key(dir.path()).display().to_string()] {
            assert!(error.message.contains(&part), "{error}");
        }
        assert!(!error.message.contains(std::str::from_utf8(&lost).unwrap().trim()), "{error}");
        refused(shelf.save(&flow("two")), UNREADABLE, why);
        refused(shelf.save(&bare("two")), UNREADABLE, why);
        assert_eq!(std::fs::read(credentials(dir.path())).unwrap(), kept);
        assert_eq!(std::fs::read(dir.path().join("flows.json")).unwrap(), flow("one").flows);
    };
    check("its key is missing");
    assert!(!key(dir.path()).exists(), "a new key would hide what is wrong");
    std::fs::copy(key(other.path()), key(dir.path())).unwrap();
    check("sealed with another key");
    // With the key again everything is as it was; without the credentials there is nothing to decrypt.
    std::fs::write(key(dir.path()), &lost).unwrap();
    is(shelf.load().unwrap(), &flow("one"));
    std::fs::remove_file(key(dir.path())).unwrap();
    std::fs::remove_file(credentials(dir.path())).unwrap();
    is(shelf.load().unwrap(), &bare("one"));
    shelf.save(&flow("two")).unwrap();
    is(shelf.load().unwrap(), &flow("two"));
    assert_ne!(std::fs::read(key(dir.path())).unwrap(), lost);
}

/// What a dead process left is in nobody's way.
#[test]
fn parts_of_the_dead_are_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    for name in
        ["flows.json", "flows.json.bak", "credentials.json", "credentials.json.bak", "credentials.key"]
    {
        std::fs::write(dir.path().join(format!("{name}.part")), "half").unwrap();
    }
    let shelf = shelf(dir.path());
    for name in ["one", "two"] {
        shelf.save(&flow(name)).unwrap();
        is(shelf.load().unwrap(), &flow(name));
    }
    assert!(names(dir.path()).iter().all(|name| !name.ends_with(".part")), "{:?}", names(dir.path()));
}
