//! Removes expired entries and counts the others while a sidecar runs.

use redflow_contract::archive::{Collection, EntryKind, EntryState, LONG_MEMORY_PREFIX};
use redflow_ports::{Archive, ArchiveError, EntryFilter, Measurement, Meter};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The kinds of entries that long memories have.
const MEMORY_KINDS: [EntryKind; 6] = [
    EntryKind::Episode,
    EntryKind::Fact,
    EntryKind::Preference,
    EntryKind::Decision,
    EntryKind::Summary,
    EntryKind::Log,
];

/// Removes the expired entries of an archive again and again until `stop`. An archive without a file stays without one.
pub(crate) async fn remove_expired_entries(
    archive: &dyn Archive,
    meter: &dyn Meter,
    interval: Duration,
    stop: &CancellationToken,
) {
    while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
        match archive.remove_expired().await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "expired entries of the archive were removed"),
            Err(error) => {
                tracing::warn!(code = error.code.as_str(), "expired entries stay for now: {}", error.message);
            }
        }
        if let Ok(collections) = archive.collections().await {
            let passages = collections.iter().filter(|collection| collection.name.starts_with("kb/"));
            let entries = passages.map(|collection| collection.entries).sum();
            meter.record(Measurement::ArchiveEntries { kind: EntryKind::Chunk, entries });
            for kind in MEMORY_KINDS {
                let filter = EntryFilter { kinds: vec![kind], ..EntryFilter::default() };
                if let Ok(entries) = count_in_memories(archive, &collections, filter).await {
                    meter.record(Measurement::ArchiveEntries { kind, entries });
                }
            }
            let waiting = EntryFilter { states: vec![EntryState::Quarantined], ..EntryFilter::default() };
            if let Ok(entries) = count_in_memories(archive, &collections, waiting).await {
                meter.record(Measurement::Quarantined { entries });
            }
        }
    }
}

/// How many entries of long memories there are.
async fn count_in_memories(
    archive: &dyn Archive,
    collections: &[Collection],
    filter: EntryFilter,
) -> Result<u64, ArchiveError> {
    let memories = collections.iter().filter(|collection| collection.name.starts_with(LONG_MEMORY_PREFIX));
    let mut entries = 0;
    for memory in memories {
        entries += archive.count(&memory.name, filter.clone()).await?;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::remove_expired_entries;
    use crate::context::clock;
    use redflow_archive::SqliteArchive;
    use redflow_contract::Message;
    use redflow_contract::archive::{EntryKind, EntryState};
    use redflow_ports::{Archive as _, Measurement, Meter, NewCollection, NewEntry, NoMeter};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    const OFTEN: Duration = Duration::from_millis(5);

    #[tokio::test]
    async fn expired_entries_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let archive = SqliteArchive::new(folder.path(), clock());
        let (stop, sweeper) = (CancellationToken::new(), archive.clone());
        let stopped = stop.clone();
        let sweep =
            tokio::spawn(async move { remove_expired_entries(&sweeper, &NoMeter, OFTEN, &stopped).await });
        tokio::time::sleep(OFTEN * 10).await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it makes no file");

        let name = "memory/test".to_owned();
        let (embedder, settings) = ("hash".to_owned(), Message::new());
        archive.create_collection(NewCollection { name, embedder, dimensions: 1, settings }).await.unwrap();
        let entry =
            |key: &str, expires_at| NewEntry { expires_at, ..NewEntry::new(key, EntryKind::Fact, "text") };
        let entries =
            vec![entry("old", Some(1)), entry("new", Some(clock().now() + 60_000)), entry("kept", None)];
        archive.put("memory/test", entries).await.unwrap();
        while archive.get("memory/test", "old").await.unwrap().is_some() {
            tokio::time::sleep(OFTEN).await;
        }
        for key in ["new", "kept"] {
            assert!(archive.get("memory/test", key).await.unwrap().is_some(), "{key}");
        }
        stop.cancel();
        sweep.await.unwrap();
    }

    /// The last count of entries that wait for a review, and of facts, each plus one; 0 before the first.
    #[derive(Default)]
    struct Counts {
        waiting: AtomicU64,
        facts: AtomicU64,
    }

    impl Meter for Counts {
        fn record(&self, measurement: Measurement<'_>) {
            match measurement {
                Measurement::Quarantined { entries } => self.waiting.store(entries + 1, Ordering::SeqCst),
                Measurement::ArchiveEntries { kind: EntryKind::Fact, entries } => {
                    self.facts.store(entries + 1, Ordering::SeqCst);
                }
                _ => {}
            }
        }
    }

    #[tokio::test]
    async fn entries_of_long_memories_are_counted_by_kind_and_while_they_wait() {
        let folder = tempfile::tempdir().unwrap();
        let archive = SqliteArchive::new(folder.path(), clock());
        for name in ["ltm/flow/one", "ltm/flow/two", "kb/manuals"] {
            let (embedder, settings) = ("hash".to_owned(), Message::new());
            let collection = NewCollection { name: name.to_owned(), embedder, dimensions: 1, settings };
            archive.create_collection(collection).await.unwrap();
            let entry = |key: &str, state| NewEntry { state, ..NewEntry::new(key, EntryKind::Fact, "text") };
            let turn = NewEntry::new("c", EntryKind::Episode, "text");
            let entries = vec![entry("a", EntryState::Quarantined), entry("b", EntryState::Live), turn];
            archive.put(name, entries).await.unwrap();
        }
        let (stop, sweeper, counts) =
            (CancellationToken::new(), archive.clone(), Arc::new(Counts::default()));
        let (stopped, meter) = (stop.clone(), Arc::clone(&counts));
        let sweep =
            tokio::spawn(async move { remove_expired_entries(&sweeper, &*meter, OFTEN, &stopped).await });
        let counted = async |waiting: u64, facts: u64| {
            let now = || (counts.waiting.load(Ordering::SeqCst), counts.facts.load(Ordering::SeqCst));
            while now() != (waiting + 1, facts + 1) {
                tokio::time::sleep(OFTEN).await;
            }
        };
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, counted(2, 4)).await.expect("both long memories are counted");
        archive.remove("ltm/flow/two", vec!["a".to_owned()]).await.unwrap();
        tokio::time::timeout(limit, counted(1, 3)).await.expect("it follows");
        stop.cancel();
        sweep.await.unwrap();
    }
}
