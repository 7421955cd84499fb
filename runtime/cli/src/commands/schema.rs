//! `redflow schema` and `redflow types`: the JSON Schemas and TypeScript sources inside this binary.

use crate::args::{SchemaOptions, TypesOptions};
use crate::exit::Exit;
use crate::files::display_path;
use crate::terminal::{fail, print_note, print_text};
use crate::text::{count, describe_io_error, printable_line};
use redflow_contract::packed_text::PackedText;
use redflow_contract::schemas::{SCHEMAS, find};
use std::path::Path;

/// The TypeScript sources, without the end of their names: the generated types and the client.
static SOURCES: &[(&str, PackedText)] = include!(concat!(env!("OUT_DIR"), "/types.rs"));

/// The files that `redflow types` writes.
fn sources() -> Vec<(String, String)> {
    SOURCES.iter().map(|(name, packed)| (format!("{name}.ts"), packed.text())).collect()
}

pub(crate) fn schema(options: &SchemaOptions) -> Exit {
    let Some(name) = &options.name else {
        let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
        return print_text(&(names.join("\n") + "\n"));
    };
    if let Some(text) = find(name.trim_end_matches(".schema.json")) {
        return print_text(&text);
    }
    fail(&format!("there is no schema `{}`; `redflow schema` lists them all", printable_line(name, 60)))
}

/// Whether a file is an older copy of ours, which its first two lines show.
fn is_own_copy(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|found| found.lines().take(2).eq(text.lines().take(2)))
}

/// Whether an earlier build wrote this folder. The generated file has the same first lines in every build; the others
/// may have changed theirs.
fn is_own_folder(folder: &Path, files: &[(String, String)]) -> bool {
    files.iter().any(|(name, text)| name == "types.ts" && is_own_copy(&folder.join(name), text))
}

pub(crate) fn types(options: &TypesOptions) -> Exit {
    let files = sources();
    let is_ours = is_own_folder(&options.folder, &files);
    for (name, text) in &files {
        let path = options.folder.join(name);
        if path.exists() && !is_ours && !is_own_copy(&path, text) {
            return fail(&format!(
                "{} exists and was not written by `redflow types`; name another folder",
                display_path(&path)
            ));
        }
    }
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&options.folder)?;
        for (name, text) in &files {
            std::fs::write(options.folder.join(name), text)?;
        }
        Ok(())
    };
    let folder = display_path(&options.folder);
    match write() {
        Ok(()) => {
            print_note(&format!("wrote {} into {folder}", count(files.len(), "file")));
            Exit::Success
        }
        Err(error) => fail(&format!("cannot write into {folder}: {}", describe_io_error(&error))),
    }
}
