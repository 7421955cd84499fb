//! Removes expired entries and counts the others while a sidecar runs.

use redflow_contract::archive::EntryKind;
use redflow_ports::{Archive, Measurement, Meter};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::remove_expired_entries;
    use crate::context::clock;
    use redflow_archive::SqliteArchive;
    use redflow_contract::Message;
    use redflow_contract::archive::EntryKind;
    use redflow_ports::{Archive as _, NewCollection, NewEntry, NoMeter};
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
}
