//! Seals the values of an encrypted archive, and hashes the names by which they are found.
//!
//! A value is sealed with XChaCha20-Poly1305 for its place: in another row, version or table it does not open. A name
//! is stored as HMAC-SHA-256, because a lookup needs the same bytes every time.

use crate::Key;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use rusqlite::types::{ToSql, ToSqlOutput, Type};
use rusqlite::{Connection, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Display};
use std::ops::Deref;
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;

/// The bytes that SHA-256 takes at once.
const BLOCK_BYTES: usize = 64;

/// Seals and opens values. It has no `Debug`, so it never shows its key.
pub(super) struct Seal {
    cipher: XChaCha20Poly1305,
    names: Key,
}

/// Where a value is stored.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) table: &'static str,
    /// The ids of its row, and its version. Each table uses them in its own way.
    pub(super) numbers: [i64; 4],
    /// The stored name of its row.
    pub(super) name: &'a [u8],
}

impl Place<'_> {
    fn to_bytes(self) -> Vec<u8> {
        let Self { table, numbers, name } = self;
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        [table.as_bytes(), &[0]].concat().into_iter().chain(numbers).chain(name.iter().copied()).collect()
    }
}

impl Seal {
    pub(super) fn new(key: &Key) -> Self {
        let values = hmac(key, b"redflow archive, values, version 1");
        let cipher = XChaCha20Poly1305::new((&*values).into());
        Self { cipher, names: hmac(key, b"redflow archive, names, version 1") }
    }

    fn seal(&self, plain: &[u8], place: Place<'_>) -> rusqlite::Result<Vec<u8>> {
        let seal = || {
            let mut sealed = vec![0; NONCE_BYTES];
            getrandom::fill(&mut sealed).ok()?;
            let nonce = XNonce::try_from(sealed.as_slice()).ok()?;
            let payload = Payload { msg: plain, aad: &place.to_bytes() };
            sealed.extend(self.cipher.encrypt(&nonce, payload).ok()?);
            Some(sealed)
        };
        seal().ok_or_else(|| rusqlite::Error::ToSqlConversionFailure(Box::new(NotSealed)))
    }

    fn open(&self, sealed: &[u8], place: Place<'_>) -> rusqlite::Result<Vec<u8>> {
        let open = || {
            let (nonce, cipher) = sealed.split_at_checked(NONCE_BYTES)?;
            let nonce = XNonce::try_from(nonce).ok()?;
            self.cipher.decrypt(&nonce, Payload { msg: cipher, aad: &place.to_bytes() }).ok()
        };
        open().ok_or_else(not_opened)
    }
}

/// Random numbers are missing.
#[derive(Debug)]
struct NotSealed;

impl Display for NotSealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value cannot be encrypted, because the system gives no random numbers")
    }
}

impl std::error::Error for NotSealed {}

/// A value does not open.
#[derive(Debug)]
struct NotOpened;

impl Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "an encrypted value was changed or moved; restore a backup, or move the file away and add the documents \
             again",
        )
    }
}

impl std::error::Error for NotOpened {}

fn not_opened() -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(NotOpened))
}

/// HMAC-SHA-256 (RFC 2104) with a key of 32 bytes.
fn hmac(key: &Key, text: &[u8]) -> Key {
    let block = |mask: u8| {
        let mut block = Zeroizing::new([mask; BLOCK_BYTES]);
        block.iter_mut().zip(&**key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(*block(0x36)).chain_update(text).finalize();
    let outer = Sha256::new().chain_update(*block(0x5c)).chain_update(inner).finalize();
    Zeroizing::new(outer.into())
}

/// A name as the file has it.
pub(super) enum StoredName<'a> {
    Plain(&'a str),
    Hashed(Key),
}

impl StoredName<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(name) => name.as_bytes(),
            Self::Hashed(hash) => &**hash,
        }
    }
}

impl ToSql for StoredName<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Plain(name) => name.to_sql(),
            Self::Hashed(hash) => Ok(ToSqlOutput::from(hash.as_slice())),
        }
    }
}

/// A connection to the file, and the seal of its values; none if they are stored as they are.
pub(super) struct Db<'a> {
    pub(super) connection: &'a Connection,
    pub(super) seal: Option<&'a Seal>,
}

impl Deref for Db<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Db<'_> {
    pub(super) fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// The stored form of a name. Names of other tables and scopes have other hashes.
    pub(super) fn name<'n>(&self, table: &'static str, scope: impl Display, name: &'n str) -> StoredName<'n> {
        match self.seal {
            None => StoredName::Plain(name),
            Some(seal) => {
                StoredName::Hashed(hmac(&seal.names, format!("{table}\0{scope}\0{name}").as_bytes()))
            }
        }
    }

    /// The stored form of bytes.
    pub(super) fn seal(&self, bytes: Vec<u8>, place: Place<'_>) -> rusqlite::Result<Vec<u8>> {
        match self.seal {
            None => Ok(bytes),
            Some(seal) => seal.seal(&bytes, place),
        }
    }

    /// The bytes of a column.
    pub(super) fn open(&self, row: &Row<'_>, column: usize, place: Place<'_>) -> rusqlite::Result<Vec<u8>> {
        let stored = row.get_ref(column)?.as_bytes()?;
        match self.seal {
            None => Ok(stored.to_vec()),
            Some(seal) => seal.open(stored, place),
        }
    }

    /// A value as sealed JSON.
    pub(super) fn seal_json(&self, value: &impl Serialize, place: Place<'_>) -> rusqlite::Result<Vec<u8>> {
        let json = serde_json::to_vec(value)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        self.seal(json, place)
    }

    pub(super) fn open_json<T: DeserializeOwned>(
        &self,
        row: &Row<'_>,
        column: usize,
        place: Place<'_>,
    ) -> rusqlite::Result<T> {
        serde_json::from_slice(&self.open(row, column, place)?).map_err(|_| not_opened())
    }

    /// The id of the next row of a table, by which its values are sealed. Another connection may not write meanwhile.
    pub(super) fn next_id(&self, table: &'static str) -> rusqlite::Result<i64> {
        let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?1), 0) + 1";
        self.prepare_cached(sql)?.query_row([table], |row| row.get(0))
    }
}

/// The value by which a file knows its key.
const CHECK: Place<'_> = Place { table: "seal", numbers: [0; 4], name: &[] };

/// Makes the table that only encrypted files have.
pub(super) fn create_check(connection: &Connection, seal: &Seal) -> rusqlite::Result<()> {
    connection.execute_batch("CREATE TABLE seal(check_value BLOB NOT NULL) STRICT;")?;
    connection.execute("INSERT INTO seal VALUES (?1)", [seal.seal(&[], CHECK)?])?;
    Ok(())
}

/// Whether the file was sealed with this key.
pub(super) fn has_key(connection: &Connection, seal: &Seal) -> rusqlite::Result<bool> {
    connection.query_row("SELECT check_value FROM seal", [], |row| {
        Ok(seal.open(row.get_ref(0)?.as_bytes()?, CHECK).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::hmac;
    use zeroize::Zeroizing;

    /// A value of RFC 4231 has no key of 32 bytes; Python's `hmac` made this one.
    #[test]
    fn names_are_hashed_with_hmac_sha_256() {
        let key = Zeroizing::new(std::array::from_fn(|at| at as u8));
        let hash: String = hmac(&key, b"name").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, "5cb83a91cf5f8ad4d6fc7ff41541c2328199b7af1aef712dab4158030e94d479");
    }
}
