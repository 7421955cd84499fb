//! The UI storage: encrypted, limited, saved completely or not at all.

use pretty_assertions::assert_eq;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use redflow_ports::{FileStoreError, FlowStore as _, UiStorage};
use redflow_store::{MemoryUiStorage, UiStorageFile};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

type Items = BTreeMap<String, Value>;

fn items(pairs: &[(&str, Value)]) -> Items {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()
}

fn example_items() -> Items {
    let odd = [("", json!("empty")), ("../../etc/passwd", json!(1)), ("__proto__", json!({"a": [null]}))];
    let mut all = items(&odd);
    all.extend(items(&[("node-credentials:m", json!({"apiKey": "sk-secret"})), ("n\0ul", json!("\u{0}"))]));
    all
}

#[track_caller]
fn refused<T>(result: Result<T, FileStoreError>, code: ApiCode) -> String {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.code, ProblemCode::Api(code), "{error}");
    assert!(!error.message.contains("sk-"), "{error}");
    error.message
}

fn names(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

// SECURITY: ui-storage
#[test]
fn stored_values_come_back_and_are_not_in_plain_text() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let storage = UiStorageFile::new(&dir);
    assert_eq!(storage.load().unwrap(), Items::new());
    assert!(!dir.exists());
    storage.save(&example_items()).unwrap();
    assert_eq!(storage.load().unwrap(), example_items());
    assert_eq!(UiStorageFile::new(&dir).load().unwrap(), example_items());
    // Whatever the keys are, there are two files, and both hide the values.
    assert_eq!(names(&dir), ["credentials.key", "storage.json"]);
    for name in names(&dir) {
        let text = std::fs::read_to_string(dir.join(&name)).unwrap();
        assert!(!text.contains("sk-secret") && !text.contains("node-credentials"), "{name}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(dir.join(&name)).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    // Removed values leave nothing behind.
    storage.save(&Items::new()).unwrap();
    assert_eq!(storage.load().unwrap(), Items::new());
    assert_eq!(names(&dir), ["credentials.key", "storage.json"]);
}

// SECURITY: ui-storage
#[test]
fn the_storage_shares_its_key_with_the_credentials_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let storage = UiStorageFile::new(dir.path());
    storage.save(&example_items()).unwrap();
    let key = std::fs::read(dir.path().join("credentials.key")).unwrap();
    let flow_file = crate::flow_file::flow_file(dir.path());
    flow_file.save(&crate::flow_file::flow("one")).unwrap();
    assert_eq!(std::fs::read(dir.path().join("credentials.key")).unwrap(), key);
    crate::flow_file::assert_flow(flow_file.load().unwrap(), &crate::flow_file::flow("one"));
    assert_eq!(storage.load().unwrap(), example_items());
    // A file that was sealed for another purpose does not open.
    std::fs::copy(dir.path().join("credentials.json"), dir.path().join("storage.json")).unwrap();
    refused(storage.load(), ApiCode::CredentialsUnreadable);
}

#[test]
fn an_unreadable_file_is_reported_and_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let storage = UiStorageFile::new(dir.path());
    storage.save(&example_items()).unwrap();
    let file = dir.path().join("storage.json");
    let whole = std::fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let message = refused(storage.load(), ApiCode::CredentialsUnreadable);
        assert!(
            message.contains("storage.json") && message.contains("enter the credentials there again"),
            "{message}"
        );
        refused(storage.save(&Items::new()), ApiCode::CredentialsUnreadable);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    std::fs::write(&file, &whole).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        refused(storage.load(), ApiCode::SecretFileUnsafe);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    }
    assert_eq!(storage.load().unwrap(), example_items());
}

// SECURITY: ui-storage
#[test]
fn the_storage_enforces_its_limits() {
    let dir = tempfile::tempdir().unwrap();
    let storages: [&dyn UiStorage; 2] = [&UiStorageFile::new(dir.path()), &MemoryUiStorage::default()];
    for storage in storages {
        storage.save(&example_items()).unwrap();
        let numbered = |count: usize, value: Value| -> Items {
            (0..count).map(|number| (number.to_string(), value.clone())).collect()
        };
        let large = |bytes: usize| Value::from("x".repeat(bytes - 2));
        let too_much = [
            numbered(1_001, json!("sk-")),
            items(&[(&"k".repeat(257), json!("sk-"))]),
            items(&[("k", large(256 * 1024 + 1))]),
            numbered(17, large(256 * 1024 - 100)),
        ];
        for all in &too_much {
            refused(storage.save(all), ApiCode::StorageFull);
            assert_eq!(storage.load().unwrap(), example_items());
        }
        let enough = [
            numbered(1_000, json!("sk-")),
            items(&[(&"k".repeat(256), json!("sk-"))]),
            items(&[("k", large(256 * 1024))]),
            numbered(16, large(256 * 1024 - 100)),
        ];
        for all in &enough {
            storage.save(all).unwrap();
            assert_eq!(storage.load().unwrap(), *all);
        }
        storage.save(&example_items()).unwrap();
    }
}

#[test]
fn values_that_could_not_be_read_again_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let storage = UiStorageFile::new(dir.path());
    storage.save(&example_items()).unwrap();
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    refused(storage.save(&items(&[("deep", deep)])), ApiCode::StorageFull);
    assert_eq!(storage.load().unwrap(), example_items());
}

/// At whatever step the process dies, the file holds the old values or the new ones.
#[cfg(unix)]
#[test]
fn a_save_is_complete_or_has_no_effect_when_the_process_is_killed() {
    use crate::processes::kill_at;
    for (point, is_new) in [("whole_file.written=1", false), ("whole_file.placed=1", true)] {
        let dir = tempfile::tempdir().unwrap();
        let storage = UiStorageFile::new(dir.path());
        storage.save(&example_items()).unwrap();
        kill_at(point, "save storage", dir.path());
        let expected = if is_new { new_items() } else { example_items() };
        assert_eq!(storage.load().unwrap(), expected, "{point}");
        storage.save(&example_items()).unwrap();
        assert_eq!(names(dir.path()), ["credentials.key", "storage.json"], "{point}");
    }
}

#[cfg(unix)]
fn new_items() -> Items {
    items(&[("after", json!(1))])
}

/// The role of the second process; see `processes::role`.
#[cfg(unix)]
pub(crate) fn save_new_items(dir: &Path) {
    UiStorageFile::new(dir).save(&new_items()).unwrap();
}
