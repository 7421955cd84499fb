//! Credentials on the disk.
//!
//! Owns which of them belong to which flow. Never writes one in the open, and never writes over what it cannot
//! read.
//!
//! The file holds the credentials of two flows: the one that is about to be put in place and the one before. The
//! flow file decides which of them count, so the two files change as one, whenever a process dies.

use crate::error;
use crate::sealed_file::{Kind, SealedFile};
use crate::whole_file;
use redflow_contract::digest::Digest;
use redflow_ports::{Credentials, FileStoreError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use zeroize::Zeroizing;

static KIND: Kind = Kind {
    sealed_as: b"redflow credentials, version 1",
    most: 4 * 1024 * 1024,
    unreadable: error::credentials_unreadable,
};

/// Credentials, by the flow they came with.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    newest: OfFlow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<OfFlow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfFlow {
    /// The digest of the flow's file.
    flow: Digest,
    credentials: Credentials,
}

impl Kept {
    /// Those that count with this flow. With one that nobody put here, the newest: somebody has edited the file.
    pub(crate) fn of(self, flow: &Digest) -> Credentials {
        match self.before {
            Some(before) if self.newest.flow != *flow && before.flow == *flow => before.credentials,
            _ => self.newest.credentials,
        }
    }
}

/// Where they are.
#[derive(Debug)]
pub(crate) struct Vault(SealedFile);

impl Vault {
    pub(crate) fn new(data: &Path) -> Self {
        Self(SealedFile::new(data, "credentials.json", &KIND))
    }

    /// What is there; none if nothing ever was.
    pub(crate) fn open(&self) -> Result<Option<Kept>, FileStoreError> {
        let Some(plain) = self.0.open()? else { return Ok(None) };
        let kept = serde_json::from_slice(&plain);
        kept.map(Some).map_err(|_| self.0.unreadable("it holds something else"))
    }

    /// Keeps the credentials of a flow, and those that count with the one it takes the place of. On the disk
    /// when it returns.
    pub(crate) fn keep(
        &self,
        flow: Digest,
        credentials: &Credentials,
        before: Option<(Digest, Credentials)>,
    ) -> Result<(), FileStoreError> {
        let Self(file) = self;
        let newest = OfFlow { flow, credentials: credentials.clone() };
        let before = before.map(|(flow, credentials)| OfFlow { flow, credentials });
        let mut kept = Kept { newest, before };
        let mut plain = self.plain(&kept)?;
        if !file.has_room(&plain) {
            // Better to lose the old ones than to refuse the new.
            kept.before = None;
            plain = self.plain(&kept)?;
        }
        if !file.has_room(&plain) {
            return Err(error::flow_too_large(file.path(), KIND.most));
        }
        // What is nested too deeply could be written, but never be read again.
        serde_json::from_slice::<Kept>(&plain).map_err(|_| file.not_sealed("it is nested too deeply"))?;
        let bytes = file.seal(&plain)?;
        if let Some(old) = file.written()? {
            file.replace(&whole_file::before(file.path()), &old)?;
        }
        file.replace(file.path(), &bytes)
    }

    fn plain(&self, kept: &Kept) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
        serde_json::to_vec(kept).map(Zeroizing::new).map_err(|_| self.0.not_sealed("it cannot be encrypted"))
    }
}
