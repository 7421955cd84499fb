//! What is kept about MCP servers: the pins of their tools as files, and tokens as one encrypted file.
//!
//! Owns the names of these files and their limits. Never takes an unreadable file for an empty one: then a changed
//! definition would count as the first one.

use super::sealed_file::{FileKind, SealedFile};
use super::whole_file::{self, ReadError};
use crate::directory::Directory;
use crate::error;
use crate::private_file::private_file;
use redflow_contract::digest::Digest;
use redflow_contract::mcp::{McpPins, is_mcp_name};
use redflow_ports::{FileStoreError, McpStore};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The most bytes of the pins of a server.
pub const MAX_PIN_BYTES: usize = 2 * 1024 * 1024;

/// The most servers with pins.
pub const MAX_PINNED_SERVERS: usize = 2_000;

/// The most bytes of the host in `NAME@HOST`.
const MAX_HOST_BYTES: usize = 300;

/// The longest file name without its ending. A longer one is cut, and ends with a digest.
const MAX_FILE_NAME: usize = 200;

/// What is left of a longer file name.
const CUT_FILE_NAME: usize = 120;

/// The most servers with tokens, and the most bytes of a key, of tokens and of all of it.
const MAX_TOKENS: usize = 1_000;
const MAX_KEY_BYTES: usize = 1_024;
const MAX_TOKEN_BYTES: usize = 64 * 1024;
const MAX_TOKENS_BYTES: usize = 4 * 1024 * 1024;

/// How long a change waits for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(2);

static KIND: FileKind = FileKind {
    purpose: b"redflow tokens of MCP servers, version 1",
    // The base64 of the sealed text is a third longer.
    max_bytes: MAX_TOKENS_BYTES / 3 * 4 + 1024,
    unreadable: error::mcp_tokens_unreadable,
};

type StoredTokens = BTreeMap<String, String>;

/// A file with pins. It names its server, because some file systems do not tell `Files` from `files`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinFile {
    server: String,
    pins: McpPins,
}

/// The pins in `mcp/pins/` and the tokens in `mcp-tokens.json` of a data directory.
#[derive(Debug)]
pub struct McpFiles {
    data: PathBuf,
    tokens: SealedFile,
    /// Held while a file is written, beside the lock between processes.
    writing: Mutex<()>,
}

impl McpFiles {
    /// The files in this data directory. Reads and creates nothing yet.
    #[must_use]
    pub fn new(data: &Path) -> Self {
        let tokens = SealedFile::new(data, "mcp-tokens.json", &KIND);
        Self { data: data.to_owned(), tokens, writing: Mutex::new(()) }
    }

    fn folder(&self) -> PathBuf {
        self.data.join("mcp").join("pins")
    }

    fn pin_file(&self, server: &str) -> Result<PathBuf, FileStoreError> {
        let name = file_name(server).ok_or_else(|| {
            error::file_unreadable(&self.folder(), &"the name of the server cannot be the name of a file")
        })?;
        Ok(self.folder().join(name + ".json"))
    }

    /// Keeps other processes and threads from writing, until it is dropped.
    fn lock(&self) -> Result<(MutexGuard<'_, ()>, File), FileStoreError> {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        Directory::at(&self.folder()).and_then(|folder| folder.create()).map_err(error::to_file_error)?;
        let path = self.data.join("mcp").join("lock");
        let mut options = private_file();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(|error| error::file_not_written(&path, &error))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok((writing, file)),
                Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_TIMEOUT => {
                    std::thread::park_timeout(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(error::file_unreadable(&path, &"another process holds it; try again"));
                }
                Err(TryLockError::Error(error)) => return Err(error::file_not_written(&path, &error)),
            }
        }
    }

    fn read_tokens(&self) -> Result<StoredTokens, FileStoreError> {
        let Some(plain) = self.tokens.read()? else { return Ok(StoredTokens::new()) };
        serde_json::from_slice(&plain).map_err(|_| self.tokens.unreadable("it holds something else"))
    }
}

impl McpStore for McpFiles {
    fn pins(&self, server: &str) -> Result<McpPins, FileStoreError> {
        let path = self.pin_file(server)?;
        let unreadable = |reason: &str| error::mcp_pins_unreadable(&path, reason);
        let content = match whole_file::read(&path, MAX_PIN_BYTES) {
            Ok(None) => return Ok(McpPins::default()),
            Ok(Some(content)) => content.bytes,
            Err(ReadError::System(error)) => return Err(unreadable(&error.to_string())),
            Err(ReadError::NotAFile) => return Err(unreadable("it is no regular file")),
            Err(ReadError::TooLarge) => return Err(unreadable("it is too large")),
        };
        let file: PinFile = serde_json::from_slice(&content).map_err(|_| unreadable("it was changed"))?;
        if file.server == server { Ok(file.pins) } else { Err(unreadable("it belongs to another server")) }
    }

    fn set_pins(&self, server: &str, pins: &McpPins) -> Result<(), FileStoreError> {
        let path = self.pin_file(server)?;
        let text = pin_text(server, pins)?;
        let _lock = self.lock()?;
        if !path.exists() && count_files(&self.folder()) >= MAX_PINNED_SERVERS {
            return Err(too_many_servers());
        }
        whole_file::replace(&path, &text, None).map_err(|error| error::file_not_written(&path, &error))
    }

    fn tokens(&self, key: &str) -> Result<Option<String>, FileStoreError> {
        Ok(self.read_tokens()?.remove(key))
    }

    fn set_tokens(&self, key: &str, tokens: Option<&str>) -> Result<(), FileStoreError> {
        if tokens.is_none() && !self.tokens.path().exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let mut all = self.read_tokens()?;
        change_tokens(&mut all, key, tokens)?;
        let plain = serialize_tokens(&all)?;
        let bytes = self.tokens.seal(&plain)?;
        self.tokens.replace(self.tokens.path(), &bytes)
    }
}

/// The name of the file of a server, without its ending; none if the server has no such name. Every byte that could mean
/// something to a file system is escaped, so two servers never have one file.
fn file_name(server: &str) -> Option<String> {
    let (name, host) = server.split_once('@').map_or((server, None), |(name, host)| (name, Some(host)));
    if !is_mcp_name(name) || host.is_some_and(|host| host.is_empty() || host.len() > MAX_HOST_BYTES) {
        return None;
    }
    let mut escaped = String::new();
    for byte in server.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@') {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    if escaped.len() > MAX_FILE_NAME {
        escaped.truncate(CUT_FILE_NAME);
        let _ = write!(escaped, "~{}", Digest::of(server.as_bytes()).to_hex());
    }
    Some(escaped)
}

fn pin_text(server: &str, pins: &McpPins) -> Result<Vec<u8>, FileStoreError> {
    let file = PinFile { server: server.to_owned(), pins: pins.clone() };
    let full = |limit: String| error::storage_full(&limit);
    let text = serde_json::to_vec_pretty(&file).map_err(|error| full(error.to_string()))?;
    if text.len() > MAX_PIN_BYTES {
        return Err(full(format!("the pins of a server have at most {MAX_PIN_BYTES} bytes")));
    }
    // JSON that is nested too deeply could be written, but never be read again.
    serde_json::from_slice::<PinFile>(&text)
        .map_err(|_| full("definitions are nested less deeply".to_owned()))?;
    Ok(text)
}

fn too_many_servers() -> FileStoreError {
    error::storage_full(&format!("at most {MAX_PINNED_SERVERS} servers have pins"))
}

fn count_files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| entries.flatten().count())
}

fn change_tokens(all: &mut StoredTokens, key: &str, tokens: Option<&str>) -> Result<(), FileStoreError> {
    let Some(tokens) = tokens else {
        all.remove(key);
        return Ok(());
    };
    if key.len() > MAX_KEY_BYTES {
        return Err(error::storage_full(&format!("the key of tokens has at most {MAX_KEY_BYTES} bytes")));
    }
    if tokens.len() > MAX_TOKEN_BYTES {
        return Err(error::storage_full(&format!("tokens have at most {MAX_TOKEN_BYTES} bytes")));
    }
    if !all.contains_key(key) && all.len() >= MAX_TOKENS {
        return Err(error::storage_full(&format!("at most {MAX_TOKENS} servers have tokens")));
    }
    all.insert(key.to_owned(), tokens.to_owned());
    Ok(())
}

fn serialize_tokens(all: &StoredTokens) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
    let full = || error::storage_full(&format!("all tokens together have at most {MAX_TOKENS_BYTES} bytes"));
    let plain = serde_json::to_vec(all).map(Zeroizing::new).map_err(|_| full())?;
    if plain.len() > MAX_TOKENS_BYTES { Err(full()) } else { Ok(plain) }
}

/// The pins and tokens in memory, for as long as the process lives. They have the same limits as the files.
#[derive(Debug, Default)]
pub struct MemoryMcpStore {
    pins: Mutex<BTreeMap<String, McpPins>>,
    tokens: Mutex<StoredTokens>,
}

impl McpStore for MemoryMcpStore {
    fn pins(&self, server: &str) -> Result<McpPins, FileStoreError> {
        let pins = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(pins.get(server).cloned().unwrap_or_default())
    }

    fn set_pins(&self, server: &str, pins: &McpPins) -> Result<(), FileStoreError> {
        pin_text(server, pins)?;
        let mut all = self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(server) && all.len() >= MAX_PINNED_SERVERS {
            return Err(too_many_servers());
        }
        all.insert(server.to_owned(), pins.clone());
        Ok(())
    }

    fn tokens(&self, key: &str) -> Result<Option<String>, FileStoreError> {
        Ok(self.tokens.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn set_tokens(&self, key: &str, tokens: Option<&str>) -> Result<(), FileStoreError> {
        let mut all = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = all.clone();
        change_tokens(&mut changed, key, tokens)?;
        serialize_tokens(&changed)?;
        *all = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_FILE_NAME, MAX_HOST_BYTES, file_name};

    #[test]
    fn a_server_has_a_file_of_its_own() {
        assert_eq!(file_name("git-hub_1").as_deref(), Some("git-hub_1"));
        assert_eq!(file_name("m@api.example.com").as_deref(), Some("m@api.example.com"));
        assert_eq!(file_name("m@[::1]:8080").as_deref(), Some("m@%5B%3A%3A1%5D%3A8080"));
        assert_eq!(file_name("m@../../x").as_deref(), Some("m@..%2F..%2Fx"));
        assert_ne!(file_name("m@a%2F"), file_name("m@a/"));
        let long = |last: &str| file_name(&format!("m@{}{last}", "/".repeat(MAX_HOST_BYTES - 1))).unwrap();
        assert_ne!(long("a"), long("b"));
        assert!(long("a").len() <= MAX_FILE_NAME, "{}", long("a").len());
        for none in [
            "",
            ".",
            "..",
            "a/b",
            "a.b",
            "a\0",
            "@host",
            "m@",
            "../x@host",
            &format!("m@{}", "x".repeat(301)),
        ] {
            assert_eq!(file_name(none), None, "{none:?}");
        }
    }
}
