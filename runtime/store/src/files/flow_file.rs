//! The active flow as a file.
//!
//! Owns the order in which the flow and its credentials are written. Whenever a process dies, the files hold
//! either the old flow with its credentials or the new flow with its credentials. Never reads the meaning of
//! a flow.

use super::credentials::CredentialsFile;
use super::whole_file::{self, FileContent, ReadError};
use crate::directory::Directory;
use crate::error;
use redflow_contract::digest::Digest;
use redflow_contract::limits::FlowLimits;
use redflow_ports::{FileStoreError, FlowStore, StoredFlow, failpoint};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A flow in a file, with its credentials encrypted in a data directory. If the path is a link, its target is
/// replaced. The previous flow stays beside it, with `.bak` after its name.
#[derive(Debug)]
pub struct FlowFile {
    flow: PathBuf,
    data: PathBuf,
    credentials: CredentialsFile,
    /// Held while files are read or written.
    access: Mutex<()>,
}

impl FlowFile {
    /// The flow in this file, with `credentials.json` and `credentials.key` in that directory. Reads and
    /// creates nothing yet.
    #[must_use]
    pub fn new(flow_path: PathBuf, data_dir: PathBuf) -> Self {
        let credentials = CredentialsFile::new(&data_dir);
        Self { flow: flow_path, data: data_dir, credentials, access: Mutex::new(()) }
    }

    fn access(&self) -> MutexGuard<'_, ()> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlowStore for FlowFile {
    fn load(&self) -> Result<Option<StoredFlow>, FileStoreError> {
        let _access = self.access();
        let Some(FileContent { bytes: flows, .. }) = read(&self.flow)? else { return Ok(None) };
        if flows.trim_ascii().is_empty() {
            return Ok(None);
        }
        let stored = self.credentials.read()?;
        let credentials = stored.map(|stored| stored.of_flow(&Digest::of(&flows))).unwrap_or_default();
        Ok(Some(StoredFlow { flows, credentials }))
    }

    fn save(&self, flow: &StoredFlow) -> Result<(), FileStoreError> {
        let _access = self.access();
        let max_bytes = max_bytes();
        if flow.flows.len() > max_bytes {
            return Err(error::file_too_large(&self.flow, max_bytes));
        }
        let target = whole_file::follow_links(&self.flow)
            .map_err(|error| error::file_not_written(&self.flow, &error))?;
        let old = read(&target)?;
        Directory::at(&self.data).and_then(|data| data.create()).map_err(error::to_file_error)?;
        let stored = self.credentials.read()?;
        if stored.is_some() || !flow.credentials.is_empty() {
            let before = old.as_ref().map(|old| {
                let digest = Digest::of(&old.bytes);
                (digest, stored.map(|stored| stored.of_flow(&digest)).unwrap_or_default())
            });
            self.credentials.write(Digest::of(&flow.flows), &flow.credentials, before)?;
        }
        failpoint("flow_file.credentials_kept");
        let replace = |path: &Path, bytes: &[u8], permissions_of: Option<&Metadata>| {
            whole_file::replace(path, bytes, permissions_of)
                .map_err(|error| error::file_not_written(path, &error))
        };
        if let Some(old) = old.as_ref().filter(|old| old.bytes != flow.flows) {
            // With mode 0600: a file written by hand may hold credentials, which a deploy takes out of it.
            replace(&whole_file::backup_path(&target), &old.bytes, None)?;
        }
        failpoint("flow_file.backed_up");
        replace(&target, &flow.flows, old.as_ref().map(|old| &old.metadata))
    }
}

fn max_bytes() -> usize {
    FlowLimits::default().max_bytes
}

fn read(path: &Path) -> Result<Option<FileContent>, FileStoreError> {
    let max_bytes = max_bytes();
    whole_file::read(path, max_bytes).map_err(|error| match error {
        ReadError::System(error) => error::file_unreadable(path, &error),
        ReadError::NotAFile => error::file_unreadable(path, &"it is no regular file"),
        ReadError::TooLarge => error::file_unreadable(path, &format!("it has more than {max_bytes} bytes")),
    })
}
