//! The file that keeps browser sessions over a restart. It holds fingerprints only.

use crate::fingerprint::Fingerprint;
use crate::sessions::Session;
use crate::{lock, secret_file};
use redflow_contract::Millis;
use redflow_contract::api::ApiError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The largest file, with room for every session that may be open.
const MAX_BYTES: u64 = 64 * 1024;

/// The ending of a file that could not be read.
const SET_ASIDE: &str = "broken";

/// A session as the file has it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredSession {
    hash: String,
    token_name: String,
    binding: String,
    number: u64,
    opened_at: Millis,
    last_used: Millis,
}

impl StoredSession {
    fn new(session: &Session) -> Self {
        Self {
            hash: session.fingerprint.to_hex(),
            token_name: session.token_name.to_string(),
            binding: session.binding.to_hex(),
            number: session.number,
            opened_at: session.opened_at,
            last_used: session.last_used,
        }
    }

    fn parse(&self) -> Option<Session> {
        Some(Session {
            fingerprint: Fingerprint::parse_hex(&self.hash)?,
            token_name: self.token_name.as_str().into(),
            binding: Fingerprint::parse_hex(&self.binding)?,
            number: self.number,
            opened_at: self.opened_at,
            last_used: self.last_used,
        })
    }
}

/// The file of the sessions.
#[derive(Debug)]
pub(crate) struct SessionFile {
    path: PathBuf,
    /// Held during a write.
    writing: Mutex<()>,
}

impl SessionFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, writing: Mutex::new(()) }
    }

    /// The stored sessions, the oldest first. A file that cannot be used is set aside: the browsers sign in again.
    pub(crate) fn load(&self, max_sessions: usize) -> Vec<Session> {
        read(&self.path, max_sessions).unwrap_or_else(|error| {
            tracing::warn!(
                code = error.code.as_str(),
                "{} The file is set aside, and browsers have to sign in again.",
                error.message
            );
            if let Err(why) = std::fs::rename(&self.path, self.path.with_extension(SET_ASIDE)) {
                tracing::warn!("{} cannot be set aside: {why}", self.path.display());
            }
            Vec::new()
        })
    }

    /// Writes the changed sessions, if `changes` gives some, and returns their revision. One write follows the other,
    /// so that the newest sessions are written last.
    pub(crate) fn save(
        &self,
        changes: impl FnOnce() -> Option<(Vec<Session>, u64)>,
    ) -> Result<Option<u64>, ApiError> {
        let _writing = lock(&self.writing);
        let Some((sessions, revision)) = changes() else { return Ok(None) };
        let stored: Vec<StoredSession> = sessions.iter().map(StoredSession::new).collect();
        let text = serde_json::to_vec(&stored)
            .map_err(|why| unusable(&self.path, &format!("cannot be written as JSON ({why})")))?;
        secret_file::replace(&self.path, &text)?;
        Ok(Some(revision))
    }
}

fn read(path: &Path, max_sessions: usize) -> Result<Vec<Session>, ApiError> {
    let Some(text) = secret_file::read(path, MAX_BYTES)? else { return Ok(Vec::new()) };
    let stored: Vec<StoredSession> = serde_json::from_str(&text)
        .map_err(|why| unusable(path, &format!("is not a list of sessions (column {})", why.column())))?;
    if stored.len() > max_sessions {
        return Err(unusable(path, "has too many sessions"));
    }
    let sessions: Option<Vec<Session>> = stored.iter().map(StoredSession::parse).collect();
    sessions.ok_or_else(|| unusable(path, "has a session with an invalid hash"))
}

fn unusable(path: &Path, problem: &str) -> ApiError {
    secret_file::unsafe_file(path, problem, "it holds no data of yours, so you can remove it")
}

#[cfg(test)]
#[path = "session_file_tests.rs"]
mod tests;
