//! `redflow memory export`: reads page by page, so that a large memory needs little room.

use super::{MemoryContext, check_names};
use crate::args::ExportMemoryOptions;
use crate::errors::print_api_error;
use crate::exit::{CommandResult, Exit};
use crate::files::{display_path, is_stdio, private_options};
use crate::terminal::{fail, print_bytes, print_note};
use crate::text::describe_io_error;
use redflow_contract::memory_api::{MAX_ENTRIES_PAGE, MemoryExportLine, MemoryFilter};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub(super) async fn export(context: &MemoryContext, options: &ExportMemoryOptions) -> CommandResult {
    check_names(&[&options.user, &options.session])?;
    let path = options.output.as_deref().filter(|path| !is_stdio(path));
    let mut output = match path {
        None => Output::Stdout,
        Some(path) => {
            let file = NewFile::create(path, options.force);
            Output::File(file.map_err(|error| cannot_write(path, &error))?)
        }
    };
    let memories = match &options.memory {
        Some(memory) => vec![memory.clone()],
        None => {
            let all = context.memories.list().await.map_err(print_api_error)?;
            all.into_iter().map(|memory| memory.name).collect()
        }
    };
    let (user, session) = (options.user.clone(), options.session.clone());
    let filter = MemoryFilter { user, session, ..MemoryFilter::default() };
    let mut exported: usize = 0;
    for memory in memories {
        let mut after = None;
        loop {
            let page = context.memories.entries(&memory, &filter, after.as_deref(), MAX_ENTRIES_PAGE).await;
            let page = page.map_err(print_api_error)?;
            exported += page.entries.len();
            let mut lines = Vec::new();
            for entry in page.entries {
                let line = MemoryExportLine { memory: memory.clone(), entry };
                lines.extend(serde_json::to_vec(&line).unwrap_or_default());
                lines.push(b'\n');
            }
            output.write(&lines)?;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    if let (Output::File(file), Some(path)) = (output, path) {
        file.finish().map_err(|error| cannot_write(path, &error))?;
        let entries = if exported == 1 { "1 entry".to_owned() } else { format!("{exported} entries") };
        print_note(&format!("{entries} exported into {}", display_path(path)));
    }
    Ok(Exit::Success)
}

fn cannot_write(path: &Path, error: &io::Error) -> Exit {
    let why = match error.kind() {
        io::ErrorKind::AlreadyExists => "it exists already; name another file, or use --force".to_owned(),
        _ => describe_io_error(error),
    };
    fail(&format!("cannot write {}: {why}", display_path(path)))
}

enum Output {
    Stdout,
    File(NewFile),
}

impl Output {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Exit> {
        match self {
            Self::Stdout => match print_bytes(bytes) {
                Exit::Success => Ok(()),
                exit => Err(exit),
            },
            Self::File(new) => {
                let written = new.file.write_all(bytes);
                written.map_err(|error| cannot_write(&new.path, &error))
            }
        }
    }
}

/// A file that has its name only when it is whole. What is dropped before that leaves nothing.
struct NewFile {
    file: File,
    path: PathBuf,
    /// Where it is written; none when it has its name.
    draft: Option<PathBuf>,
    force: bool,
}

impl NewFile {
    fn create(path: &Path, force: bool) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::other("it is a folder; name a file in it"));
        };
        if !force && path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let draft = path.with_file_name(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
        // Entries are about people.
        let file = private_options().write(true).create_new(true).open(&draft)?;
        Ok(Self { file, path: path.to_owned(), draft: Some(draft), force })
    }

    fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        let Some(draft) = &self.draft else { return Ok(()) };
        if !self.force && self.path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        std::fs::rename(draft, &self.path)?;
        self.draft = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            let _ = std::fs::remove_file(draft);
        }
    }
}
