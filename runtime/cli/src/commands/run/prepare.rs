//! Opens and reads what a run needs, before anything runs.

use crate::args::RunOptions;
use crate::context::AppContext;
use crate::diagnostics::print_diagnostics;
use crate::errors::{from_store, print_with_help};
use crate::exit::Exit;
use crate::input::read_json;
use crate::journal_files::JournalFiles;
use crate::loaded_flow::LoadedFlow;
use crate::terminal::fail;
use crate::text::printable_line;
use redflow_contract::image::{MAX_IMAGE_BYTES, image_from_bytes};
use redflow_contract::transcript::MAX_IMAGES;
use redflow_store::Store;
use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

pub(super) fn read_flow(context: &AppContext, flow: &Path) -> Result<LoadedFlow, Exit> {
    LoadedFlow::read(context, flow).map_err(|problems| {
        print_diagnostics(Some(flow), problems);
        Exit::Unusable
    })
}

pub(super) fn read_input(options: &RunOptions) -> Result<Option<Value>, Exit> {
    let input = options.input.as_deref().map(|text| read_json(text, "input"));
    input.transpose().map_err(|text| fail(&text))
}

/// The images as data URLs, or as https addresses.
pub(super) fn read_images(options: &RunOptions) -> Result<Vec<String>, Exit> {
    if options.image.len() > MAX_IMAGES {
        return Err(fail(&format!("at most {MAX_IMAGES} images are allowed; leave out an --image")));
    }
    options.image.iter().map(|image| read_image(image).map_err(|text| fail(&text))).collect()
}

fn read_image(image: &str) -> Result<String, String> {
    if image.starts_with("https://") {
        return Ok(image.to_owned());
    }
    let name = printable_line(image, 200);
    let unreadable = |error: std::io::Error| format!("the image `{name}` cannot be read: {error}");
    let file = File::open(image).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more shows that a file is too large.
    file.take(MAX_IMAGE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let image = image_from_bytes(&bytes, None).map_err(|problem| format!("the image `{name}` {problem}"))?;
    Ok(format!("data:{};base64,{}", image.mime.as_str(), image.data))
}

pub(super) fn open_journals(options: &RunOptions) -> Result<Option<JournalFiles>, Exit> {
    options.journal.as_deref().map(JournalFiles::create).transpose().map_err(|text| fail(&text))
}

/// Opens the data directory to drive its runs.
pub(super) fn open_store(options: &RunOptions, context: &AppContext) -> Result<Store, Exit> {
    let log = context.settings.event_log();
    context.settings.data_dir().and_then(|dir| Store::open_with_log(&dir, log)).map_err(|error| {
        // A run that is to be resumed is in no other directory.
        let other = || {
            "use another --data DIR, or --ephemeral to store nothing; with --url URL the sidecar that has the directory \
             runs its flow"
                .to_owned()
        };
        print_with_help(from_store(error), options.resume.is_none().then(other).as_slice())
    })
}
