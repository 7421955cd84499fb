//! Chats in the database.
//!
//! Owns their tables: which item is in which chat, and what goes when there is too much. Never decides what goes
//! into one transaction.

use crate::chat_lines::ChatLine;
use crate::chats::{MAX_BYTES_OF_ONE, MAX_CHATS};
use crate::error;
use crate::read::Tables;
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;
use redflow_ports::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

/// How many bytes of all chats are kept. The newest item is kept in any case.
const MAX_BYTES: i64 = 256 * 1024 * 1024;

/// The number of what was said last; 0 if nothing was.
pub(crate) fn last(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(id), 0) FROM chat_items", [], |row| row.get(0))
}

/// Writes an item, and forgets what is too much then: all of that or nothing.
pub(crate) fn say(connection: &Connection, line: &ChatLine) -> rusqlite::Result<()> {
    let run = |sql: &str| connection.prepare_cached(sql)?.execute([]).map(drop);
    run("SAVEPOINT chat")?;
    let said = write(connection, line);
    if said.is_err() {
        // After some errors everything is rolled back already.
        let _ = run("ROLLBACK TO chat");
    }
    let released = run("RELEASE chat");
    said.and(released)
}

fn write(connection: &Connection, line: &ChatLine) -> rusqlite::Result<()> {
    let chat: i64 = connection
        .prepare_cached(
            "INSERT INTO chats(node, used, bytes) VALUES (?1, ?2, 0)
             ON CONFLICT(node) DO UPDATE SET used = max(used, ?2) RETURNING id",
        )?
        .query_row(params![line.node.as_str(), line.number], |row| row.get(0))?;
    let bytes = i64::try_from(line.body.len()).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO chat_items(id, chat, item, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![line.number, chat, line.item_id, bytes, line.body])?;
    let bytes = forget_oldest(connection, chat, line.keeps)?;
    connection.prepare_cached("UPDATE chats SET bytes = ?2 WHERE id = ?1")?.execute([chat, bytes])?;
    while has_too_many(connection)? {
        let oldest = "SELECT id FROM chats WHERE id <> ?1 ORDER BY used LIMIT 1";
        let oldest = connection.prepare_cached(oldest)?.query_row([chat], |row| row.get(0)).optional()?;
        let Some(oldest) = oldest else { break };
        remove(connection, oldest)?;
    }
    Ok(())
}

/// Leaves the newest items of a chat; how many bytes they have.
fn forget_oldest(connection: &Connection, chat: i64, keeps: usize) -> rusqlite::Result<i64> {
    let most = i64::try_from(MAX_BYTES_OF_ONE).unwrap_or(i64::MAX);
    let mut statement =
        connection.prepare_cached("SELECT id, bytes FROM chat_items WHERE chat = ?1 ORDER BY id DESC")?;
    let mut rows = statement.query([chat])?;
    let (mut kept, mut bytes) = (0, 0_i64);
    while let Some(row) = rows.next()? {
        let (id, more): (i64, i64) = (row.get(0)?, row.get(1)?);
        if kept >= keeps || (kept > 0 && bytes.saturating_add(more) > most) {
            connection
                .prepare_cached("DELETE FROM chat_items WHERE chat = ?1 AND id <= ?2")?
                .execute([chat, id])?;
            break;
        }
        kept += 1;
        bytes = bytes.saturating_add(more);
    }
    Ok(bytes)
}

fn has_too_many(connection: &Connection) -> rusqlite::Result<bool> {
    let (chats, bytes): (i64, i64) = connection
        .prepare_cached("SELECT count(*), coalesce(sum(bytes), 0) FROM chats")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(usize::try_from(chats).is_ok_and(|chats| chats > MAX_CHATS) || bytes > MAX_BYTES)
}

/// Forgets a chat.
pub(crate) fn clear(connection: &Connection, node: &NodeId) -> rusqlite::Result<()> {
    let find = "SELECT id FROM chats WHERE node = ?1";
    let chat = connection.prepare_cached(find)?.query_row([node.as_str()], |row| row.get(0)).optional()?;
    chat.map_or(Ok(()), |chat| remove(connection, chat))
}

fn remove(connection: &Connection, chat: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM chat_items WHERE chat = ?1")?.execute([chat])?;
    connection.prepare_cached("DELETE FROM chats WHERE id = ?1")?.execute([chat])?;
    Ok(())
}

/// What was said in a chat, oldest first.
pub(crate) fn said(tables: &Tables<'_>, node: &NodeId) -> Result<Vec<ChatItem>, StoreError> {
    let ask = || {
        let mut statement = tables.connection().prepare_cached(
            "SELECT body FROM chat_items WHERE chat = (SELECT id FROM chats WHERE node = ?1) ORDER BY id",
        )?;
        statement.query_map([node.as_str()], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    };
    let bodies = ask().map_err(|why| tables.told(&why))?;
    let read = |body: &String| serde_json::from_str(body);
    let items: Result<_, _> = bodies.iter().map(read).collect();
    // The library's words may quote what was said.
    items.map_err(|_| error::damaged(tables.dir(), &"something that was said in a chat is unreadable"))
}
