//! The archive: entries that are found by words and by meaning.
//!
//! | module | what it owns |
//! |---|---|
//! | `sqlite` | the database file: entries, their history, the text index, vectors, documents, the cache of vectors |
//! | `index` | the vectors of a collection in memory, and the search in them |
//!
//! Never makes a vector: an embedder does. Never decides what is worth storing.

mod index;
mod sqlite;

pub use sqlite::SqliteArchive;
