//! The file of encrypted credentials.
//!
//! Owns which credentials belong to which flow. Never writes a credential in plain text, and never overwrites
//! a file that it cannot read.
//!
//! The file holds the credentials of two flows: the new one and the previous one. The flow file decides which
//! of them count. So both files change as one, whenever a process dies.

use super::sealed_file::{FileKind, SealedFile};
use super::whole_file;
use crate::error;
use redflow_contract::digest::Digest;
use redflow_ports::{Credentials, FileStoreError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use zeroize::Zeroizing;

static KIND: FileKind = FileKind {
    purpose: b"redflow credentials, version 1",
    max_bytes: 4 * 1024 * 1024,
    unreadable: error::credentials_unreadable,
};

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredCredentials {
    newest: FlowCredentials,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<FlowCredentials>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowCredentials {
    /// The digest of the flow file.
    flow: Digest,
    credentials: Credentials,
}

impl StoredCredentials {
    /// The credentials of this flow. For an unknown flow the newest ones: a user has edited the file.
    pub(super) fn of_flow(self, flow: &Digest) -> Credentials {
        match self.before {
            Some(before) if self.newest.flow != *flow && before.flow == *flow => before.credentials,
            _ => self.newest.credentials,
        }
    }
}

#[derive(Debug)]
pub(super) struct CredentialsFile(SealedFile);

impl CredentialsFile {
    pub(super) fn new(data: &Path) -> Self {
        Self(SealedFile::new(data, "credentials.json", &KIND))
    }

    /// None if the file does not exist.
    pub(super) fn read(&self) -> Result<Option<StoredCredentials>, FileStoreError> {
        let Some(plain) = self.0.read()? else { return Ok(None) };
        let stored = serde_json::from_slice(&plain);
        stored.map(Some).map_err(|_| self.0.unreadable("it holds something else"))
    }

    /// Writes the credentials of a new flow and those of the flow it replaces. On the disk when it returns.
    pub(super) fn write(
        &self,
        flow: Digest,
        credentials: &Credentials,
        before: Option<(Digest, Credentials)>,
    ) -> Result<(), FileStoreError> {
        let Self(file) = self;
        let newest = FlowCredentials { flow, credentials: credentials.clone() };
        let before = before.map(|(flow, credentials)| FlowCredentials { flow, credentials });
        let mut stored = StoredCredentials { newest, before };
        let mut plain = self.serialize(&stored)?;
        if !file.has_room(&plain) {
            // Better lose the old credentials than refuse the new ones.
            stored.before = None;
            plain = self.serialize(&stored)?;
        }
        if !file.has_room(&plain) {
            return Err(error::file_too_large(file.path(), KIND.max_bytes));
        }
        // JSON that is nested too deeply could be written, but never be read again.
        serde_json::from_slice::<StoredCredentials>(&plain)
            .map_err(|_| file.not_sealable("it is nested too deeply"))?;
        let bytes = file.seal(&plain)?;
        if let Some(old) = file.read_sealed()? {
            file.replace(&whole_file::backup_path(file.path()), &old)?;
        }
        file.replace(file.path(), &bytes)
    }

    fn serialize(&self, stored: &StoredCredentials) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
        let plain = serde_json::to_vec(stored).map(Zeroizing::new);
        plain.map_err(|_| self.0.not_sealable("it cannot be encrypted"))
    }
}
