//! The archive: entries that are found by words and by meaning.
//!
//! | module | what it owns |
//! |---|---|
//! | `sqlite` | the database file, plain or encrypted: entries, their history, the text index, vectors, documents, the cache of vectors |
//! | `index` | the vectors of a collection in memory, and the search in them |
//!
//! Never makes a vector: an embedder does. Never decides what is worth storing.
//!
//! # How a search ranks
//!
//! A search ranks the 256 closest vectors and the 256 best passages by words (BM25), or sixteen times as many as
//! were asked for if that is more. The vectors of a collection are in memory with one byte for each number. The
//! closest eighth is compared again with the exact vectors of the file. Both ranks are combined (reciprocal rank
//! fusion).
//!
//! - Words that very many passages have are left out. How many have a word is counted once and kept while the
//!   archive changes little: to count takes longer than to search.
//! - The archive reads where the words occur from FTS5 and computes BM25 itself, with the bytes of each text,
//!   which are in memory: FTS5 reads the length of each text from the file.
//! - The age of a passage does not count in its rank. Only other kinds of entries prefer newer ones.

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
