//! The cases that do not work so far, each with what happens. The lists can only shrink: a listed case that works fails the
//! test too. `UPDATE_GOLDEN=1` writes them again.

use std::collections::BTreeMap;
use std::path::Path;

/// The longest text of a case.
const SHOWN: usize = 600;

/// Compares what failed with the list of this name.
#[track_caller]
pub(super) fn check(list: &str, failed: BTreeMap<String, String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("live/strict/known/{list}.json"));
    let short =
        |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect();
    let failed: BTreeMap<String, String> = failed.into_iter().map(|(name, why)| (name, short(why))).collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(&failed).unwrap() + "\n").unwrap();
        return;
    }
    let known: BTreeMap<String, String> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let new: Vec<_> = failed.iter().filter(|(name, _)| !known.contains_key(*name)).collect();
    let gone: Vec<_> = known.keys().filter(|name| !failed.contains_key(*name)).collect();
    assert!(new.is_empty(), "these cases fail: {new:#?}");
    assert!(gone.is_empty(), "these cases work now; take them from {}: {gone:#?}", path.display());
}
