//! The text index of an encrypted collection. It is in memory only, because anyone could read its words in a file.

use super::changes::{changed_since, last_change};
use super::entries::{self, CollectionRow};
use super::entry_row::COLUMNS;
use super::seal::Db;
use super::text_index;
use rusqlite::Connection;

pub(super) struct Words {
    /// A database in memory.
    connection: Connection,
    /// The last change of the archive that is in this index.
    seq: i64,
}

impl Words {
    pub(super) fn build(db: &Db<'_>, collection: &CollectionRow) -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        // An index that fails half-way is thrown away, so it needs no journal.
        connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA journal_mode = OFF;")?;
        text_index::create_in_memory(&connection, collection.id)?;
        let seq = last_change(db)?;
        let sql = format!("SELECT {COLUMNS} FROM entry WHERE collection = ?1 ORDER BY entry.id");
        let mut statement = db.prepare_cached(&sql)?;
        let mut rows = statement.query([collection.id])?;
        let transaction = connection.unchecked_transaction()?;
        while let Some(row) = rows.next()? {
            text_index::add(&transaction, collection.id, row.get(18)?, &entries::read(db, row)?.text)?;
        }
        transaction.commit()?;
        Ok(Self { connection, seq })
    }

    /// Adds what has changed; none if the index must be built again.
    pub(super) fn update(self, db: &Db<'_>, collection: &CollectionRow) -> rusqlite::Result<Option<Self>> {
        let last = last_change(db)?;
        let Some(changed) = changed_since(db, collection.id, self.seq, last)? else { return Ok(None) };
        let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM entry WHERE id = ?1"))?;
        let transaction = self.connection.unchecked_transaction()?;
        for id in changed {
            text_index::remove_by_id(&transaction, collection.id, id)?;
            let mut rows = statement.query([id])?;
            if let Some(row) = rows.next()? {
                text_index::add(&transaction, collection.id, id, &entries::read(db, row)?.text)?;
            }
        }
        transaction.commit()?;
        Ok(Some(Self { seq: last, ..self }))
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        let pragma = |sql: &str| self.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
        usize::try_from(pragma("PRAGMA page_count") * pragma("PRAGMA page_size")).unwrap_or(0)
    }
}
