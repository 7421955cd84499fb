//! What a UI stores: sealed, bounded, whole or not at all.

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

fn some() -> Items {
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

#[test]
fn what_is_stored_comes_back_and_is_not_in_the_open() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let drawer = UiStorageFile::new(&dir);
    assert_eq!(drawer.load().unwrap(), Items::new());
    assert!(!dir.exists());
    drawer.save(&some()).unwrap();
    assert_eq!(drawer.load().unwrap(), some());
    assert_eq!(UiStorageFile::new(&dir).load().unwrap(), some());
    // Whatever keys are called, there are two files, and they say nothing.
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
    // What is forgotten leaves nothing behind.
    drawer.save(&Items::new()).unwrap();
    assert_eq!(drawer.load().unwrap(), Items::new());
    assert_eq!(names(&dir), ["credentials.key", "storage.json"]);
}

#[test]
fn it_shares_its_key_with_the_credentials_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let drawer = UiStorageFile::new(dir.path());
    drawer.save(&some()).unwrap();
    let key = std::fs::read(dir.path().join("credentials.key")).unwrap();
    let shelf = crate::flow_file::shelf(dir.path());
    shelf.save(&crate::flow_file::flow("one")).unwrap();
    assert_eq!(std::fs::read(dir.path().join("credentials.key")).unwrap(), key);
    crate::flow_file::is(shelf.load().unwrap(), &crate::flow_file::flow("one"));
    assert_eq!(drawer.load().unwrap(), some());
    // What was sealed as the one does not open as the other.
    std::fs::copy(dir.path().join("credentials.json"), dir.path().join("storage.json")).unwrap();
    refused(drawer.load(), ApiCode::CredentialsUnreadable);
}

#[test]
fn what_cannot_be_read_is_told_and_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let drawer = UiStorageFile::new(dir.path());
    drawer.save(&some()).unwrap();
    let file = dir.path().join("storage.json");
    let whole = std::fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let said = refused(drawer.load(), ApiCode::CredentialsUnreadable);
        assert!(
            said.contains("storage.json") && said.contains("enter the credentials there again"),
            "{said}"
        );
        refused(drawer.save(&Items::new()), ApiCode::CredentialsUnreadable);
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    std::fs::write(&file, &whole).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        refused(drawer.load(), ApiCode::SecretFileUnsafe);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    }
    assert_eq!(drawer.load().unwrap(), some());
}

#[test]
fn there_is_so_much_room_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let drawers: [&dyn UiStorage; 2] = [&UiStorageFile::new(dir.path()), &MemoryUiStorage::default()];
    for drawer in drawers {
        drawer.save(&some()).unwrap();
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
            refused(drawer.save(all), ApiCode::StorageFull);
            assert_eq!(drawer.load().unwrap(), some());
        }
        let enough = [
            numbered(1_000, json!("sk-")),
            items(&[(&"k".repeat(256), json!("sk-"))]),
            items(&[("k", large(256 * 1024))]),
            numbered(16, large(256 * 1024 - 100)),
        ];
        for all in &enough {
            drawer.save(all).unwrap();
            assert_eq!(drawer.load().unwrap(), *all);
        }
        drawer.save(&some()).unwrap();
    }
}

#[test]
fn what_could_not_be_read_again_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let drawer = UiStorageFile::new(dir.path());
    drawer.save(&some()).unwrap();
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    refused(drawer.save(&items(&[("deep", deep)])), ApiCode::StorageFull);
    assert_eq!(drawer.load().unwrap(), some());
}

/// At whatever step a process dies: what was stored before, or what is stored now.
#[cfg(unix)]
#[test]
fn killed_while_it_stores() {
    use crate::processes::killed_at;
    for (point, is_new) in [("whole_file.written=1", false), ("whole_file.placed=1", true)] {
        let dir = tempfile::tempdir().unwrap();
        let drawer = UiStorageFile::new(dir.path());
        drawer.save(&some()).unwrap();
        killed_at(point, "store", dir.path());
        let expected = if is_new { after() } else { some() };
        assert_eq!(drawer.load().unwrap(), expected, "{point}");
        drawer.save(&some()).unwrap();
        assert_eq!(names(dir.path()), ["credentials.key", "storage.json"], "{point}");
    }
}

#[cfg(unix)]
fn after() -> Items {
    items(&[("after", json!(1))])
}

/// What a second process does here; see `processes::role`.
#[cfg(unix)]
pub(crate) fn store(dir: &Path) {
    UiStorageFile::new(dir).save(&after()).unwrap();
}
