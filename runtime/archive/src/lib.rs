//! The archive: entries that are found by words and by meaning.
//!
//! | module | what it owns |
//! |---|---|
//! | `sqlite` | the database file, plain or encrypted: entries, their history, the text index, vectors, documents, the cache of vectors |
//! | `index` | the vectors of a collection in memory, and the search in them |
//!
//! Never makes a vector: an embedder does. Never decides what is worth storing.

mod index;
mod sqlite;

pub use sqlite::SqliteArchive;

use redflow_ports::ArchiveError;

/// The key of an encrypted archive. It wipes itself when it is dropped.
pub type Key = zeroize::Zeroizing<[u8; 32]>;

/// Where the key of an encrypted archive comes from.
pub trait KeySource: Send + Sync {
    /// The key; none if there is none.
    ///
    /// # Errors
    /// When the key cannot be read, or is no key.
    fn read(&self) -> Result<Option<Key>, ArchiveError>;

    /// Makes the key of a new archive. No other process does so at the same time.
    ///
    /// # Errors
    /// When the key cannot be stored.
    fn create(&self) -> Result<Key, ArchiveError>;

    /// What a user must do to bring a missing key back: the end of a sentence.
    fn remedy(&self) -> String;
}
