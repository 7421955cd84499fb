//! The flow that runs, as a file.
//!
//! Owns the order in which the flow and its credentials are written: whenever a process dies, either the old flow
//! is there with its own credentials, or the new one with its. Never looks into a flow.

use crate::credentials::Vault;
use crate::directory::Directory;
use crate::error;
use crate::whole_file::{self, Found, Unread};
use redflow_contract::digest::Digest;
use redflow_contract::limits::FlowLimits;
use redflow_ports::{FileStoreError, FlowStore, StoredFlow, failpoint};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A flow in a file, and its credentials, encrypted, in a data directory. A link is followed: the file it names
/// is the one that is replaced. The flow before is beside it, with `.bak` after its name.
#[derive(Debug)]
pub struct FlowFile {
    flow: PathBuf,
    data: PathBuf,
    vault: Vault,
    /// One at a time.
    saving: Mutex<()>,
}

impl FlowFile {
    /// A flow in this file, with `credentials.json` and `credentials.key` in that directory. Nothing is made or
    /// read yet.
    #[must_use]
    pub fn new(flow_path: PathBuf, data_dir: PathBuf) -> Self {
        let vault = Vault::new(&data_dir);
        Self { flow: flow_path, data: data_dir, vault, saving: Mutex::new(()) }
    }

    fn saving(&self) -> std::sync::MutexGuard<'_, ()> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlowStore for FlowFile {
    fn load(&self) -> Result<Option<StoredFlow>, FileStoreError> {
        let _one = self.saving();
        let Some(Found { bytes: flows, .. }) = read(&self.flow)? else { return Ok(None) };
        if flows.trim_ascii().is_empty() {
            return Ok(None);
        }
        let kept = self.vault.open()?;
        let credentials = kept.map(|kept| kept.of(&Digest::of(&flows))).unwrap_or_default();
        Ok(Some(StoredFlow { flows, credentials }))
    }

    fn save(&self, flow: &StoredFlow) -> Result<(), FileStoreError> {
        let _one = self.saving();
        let most = max_bytes();
        if flow.flows.len() > most {
            return Err(error::flow_too_large(&self.flow, most));
        }
        let target =
            whole_file::behind_links(&self.flow).map_err(|why| error::flow_unwritten(&self.flow, &why))?;
        let old = read(&target)?;
        Directory::named(&self.data).and_then(|data| data.make()).map_err(error::on_shelf)?;
        let kept = self.vault.open()?;
        if kept.is_some() || !flow.credentials.is_empty() {
            let before = old.as_ref().map(|old| {
                let digest = Digest::of(&old.bytes);
                (digest, kept.map(|kept| kept.of(&digest)).unwrap_or_default())
            });
            self.vault.keep(Digest::of(&flow.flows), &flow.credentials, before)?;
        }
        failpoint("flow_file.credentials_kept");
        let replaced = |path: &Path, bytes: &[u8], rights: Option<&Metadata>| {
            whole_file::replace(path, bytes, rights).map_err(|why| error::flow_unwritten(path, &why))
        };
        if let Some(old) = old.as_ref().filter(|old| old.bytes != flow.flows) {
            // A file that somebody wrote by hand may hold credentials, which a deploy takes out of it.
            replaced(&whole_file::before(&target), &old.bytes, None)?;
        }
        failpoint("flow_file.backed_up");
        replaced(&target, &flow.flows, old.as_ref().map(|old| &old.about))
    }
}

fn max_bytes() -> usize {
    FlowLimits::default().max_bytes
}

fn read(path: &Path) -> Result<Option<Found>, FileStoreError> {
    let most = max_bytes();
    whole_file::read(path, most).map_err(|why| match why {
        Unread::System(why) => error::flow_unreadable(path, &why),
        Unread::NoFile => error::flow_unreadable(path, &"it is no regular file"),
        Unread::TooLarge => error::flow_unreadable(path, &format!("it has more than {most} bytes")),
    })
}
