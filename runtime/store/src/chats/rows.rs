//! Chat histories in the database.
//!
//! Owns their tables: the items of each chat, and the limits on them. Never decides what goes into one
//! transaction.

use super::limits::{MAX_BYTES_PER_CHAT, MAX_CHATS};
use super::queue::QueuedChatItem;
use crate::removed_runs::RemovedRuns;
use redflow_contract::chat::ChatItem;
use redflow_contract::id::NodeId;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashSet;

/// Bytes of all chats. The newest item is stored in any case.
const MAX_BYTES: i64 = 256 * 1024 * 1024;

/// The number of the last item; 0 if there is none.
pub(crate) fn last_number(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(id), 0) FROM chat_items", [], |row| row.get(0))
}

/// Appends an item and removes items beyond the limits: all of it or nothing.
pub(crate) fn append(connection: &Connection, item: &QueuedChatItem) -> rusqlite::Result<()> {
    let run = |sql: &str| connection.prepare_cached(sql)?.execute([]).map(drop);
    run("SAVEPOINT chat")?;
    let inserted = insert(connection, item);
    if inserted.is_err() {
        // After some errors SQLite has rolled back everything already.
        let _ = run("ROLLBACK TO chat");
    }
    let released = run("RELEASE chat");
    inserted.and(released)
}

fn insert(connection: &Connection, item: &QueuedChatItem) -> rusqlite::Result<()> {
    let chat: i64 = connection
        .prepare_cached(
            "INSERT INTO chats(node, used, bytes) VALUES (?1, ?2, 0)
             ON CONFLICT(node) DO UPDATE SET used = max(used, ?2) RETURNING id",
        )?
        .query_row(params![item.node.as_str(), item.number], |row| row.get(0))?;
    let bytes = i64::try_from(item.json.len()).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO chat_items(id, chat, item, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![item.number, chat, item.item_id, bytes, item.json])?;
    let bytes = remove_oldest(connection, chat, item.max_items)?;
    connection.prepare_cached("UPDATE chats SET bytes = ?2 WHERE id = ?1")?.execute([chat, bytes])?;
    while is_over_limit(connection)? {
        let oldest = "SELECT id FROM chats WHERE id <> ?1 ORDER BY used LIMIT 1";
        let oldest = connection.prepare_cached(oldest)?.query_row([chat], |row| row.get(0)).optional()?;
        let Some(oldest) = oldest else { break };
        remove_chat(connection, oldest)?;
    }
    Ok(())
}

/// Removes the oldest items of a chat. Returns the bytes of those that stay.
fn remove_oldest(connection: &Connection, chat: i64, max_items: usize) -> rusqlite::Result<i64> {
    let max_bytes = i64::try_from(MAX_BYTES_PER_CHAT).unwrap_or(i64::MAX);
    let mut statement =
        connection.prepare_cached("SELECT id, bytes FROM chat_items WHERE chat = ?1 ORDER BY id DESC")?;
    let mut rows = statement.query([chat])?;
    let (mut count, mut bytes) = (0, 0_i64);
    while let Some(row) = rows.next()? {
        let (id, item_bytes): (i64, i64) = (row.get(0)?, row.get(1)?);
        if count >= max_items || (count > 0 && bytes.saturating_add(item_bytes) > max_bytes) {
            connection
                .prepare_cached("DELETE FROM chat_items WHERE chat = ?1 AND id <= ?2")?
                .execute([chat, id])?;
            break;
        }
        count += 1;
        bytes = bytes.saturating_add(item_bytes);
    }
    Ok(bytes)
}

fn is_over_limit(connection: &Connection) -> rusqlite::Result<bool> {
    let (chats, bytes): (i64, i64) = connection
        .prepare_cached("SELECT count(*), coalesce(sum(bytes), 0) FROM chats")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(usize::try_from(chats).is_ok_and(|chats| chats > MAX_CHATS) || bytes > MAX_BYTES)
}

pub(crate) fn clear(connection: &Connection, node: &NodeId) -> rusqlite::Result<()> {
    let find = "SELECT id FROM chats WHERE node = ?1";
    let chat = connection.prepare_cached(find)?.query_row([node.as_str()], |row| row.get(0)).optional()?;
    chat.map_or(Ok(()), |chat| remove_chat(connection, chat))
}

fn remove_chat(connection: &Connection, chat: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM chat_items WHERE chat = ?1")?.execute([chat])?;
    connection.prepare_cached("DELETE FROM chats WHERE id = ?1")?.execute([chat])?;
    Ok(())
}

/// The ids of all items.
pub(crate) fn item_ids(connection: &Connection) -> rusqlite::Result<HashSet<String>> {
    connection.prepare("SELECT item FROM chat_items")?.query_map([], |row| row.get(0))?.collect()
}

/// Removes the items of removed runs. An item that cannot be read stays: nothing tells whose it is.
pub(crate) fn forget(connection: &Connection, removed: &RemovedRuns) -> rusqlite::Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    let chats: Vec<i64> = connection
        .prepare("SELECT id FROM chats")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for chat in chats {
        let mut read =
            connection.prepare_cached("SELECT id, body FROM chat_items WHERE chat = ?1 ORDER BY id")?;
        let rows = read.query_map([chat], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>()?;
        let readable = rows.iter().filter_map(|(id, json)| Some((*id, serde_json::from_str(json).ok()?)));
        let (ids, items): (Vec<i64>, Vec<ChatItem>) = readable.unzip();
        let selected = removed.select_items(&items);
        let mut selected = ids.iter().zip(selected).filter(|(_, selected)| *selected).peekable();
        if selected.peek().is_none() {
            continue;
        }
        for (id, _) in selected {
            connection.prepare_cached("DELETE FROM chat_items WHERE id = ?1")?.execute([id])?;
        }
        connection
            .prepare_cached(
                "UPDATE chats SET bytes = (SELECT coalesce(sum(bytes), 0) FROM chat_items WHERE chat = ?1)
                 WHERE id = ?1",
            )?
            .execute([chat])?;
    }
    let empty = "DELETE FROM chats WHERE id NOT IN (SELECT chat FROM chat_items)";
    connection.execute(empty, []).map(drop)
}

/// The items of a chat as JSON, oldest first.
pub(crate) fn items(connection: &Connection, node: &NodeId) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT body FROM chat_items WHERE chat = (SELECT id FROM chats WHERE node = ?1) ORDER BY id",
    )?;
    statement.query_map([node.as_str()], |row| row.get(0))?.collect()
}

/// The newest item of each chat as JSON, with its node; the chat that was used last comes first.
pub(crate) fn latest(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT node, body FROM chats
         JOIN chat_items ON chat_items.id = (SELECT max(id) FROM chat_items WHERE chat = chats.id)
         ORDER BY used DESC LIMIT ?1",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    statement.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
