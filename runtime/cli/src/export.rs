//! `redflow schema` and `redflow types`: what this binary carries for others to build on.

use crate::Exit;
use crate::args::{SchemaOptions, TypesOptions};
use crate::files::{reason, shown};
use crate::terminal::{complain, count, data, printable_line, talk};
use redflow_contract::schemas::{SCHEMAS, find};
use std::path::Path;

macro_rules! sources {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../bindings/src/", $name)))),+]
    };
}

/// The TypeScript sources: the types, as `cargo xtask codegen` wrote them, and the client.
const TYPES: &[(&str, &str)] = sources![
    "backoff.ts",
    "client.ts",
    "error.ts",
    "event-socket.ts",
    "events.ts",
    "follow-run.ts",
    "http.ts",
    "index.ts",
    "platform.ts",
    "sse.ts",
    "types.ts",
];

pub(crate) fn schema(options: &SchemaOptions) -> Exit {
    let Some(name) = &options.name else {
        let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
        return data(&(names.join("\n") + "\n"));
    };
    if let Some(text) = find(name.trim_end_matches(".schema.json")) {
        return data(text);
    }
    complain(&format!("there is no schema `{}`; `redflow schema` lists them all", printable_line(name, 60)));
    Exit::Unusable
}

/// By its first two lines an older copy of ours is told from somebody's own file.
fn is_ours(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|found| found.lines().take(2).eq(text.lines().take(2)))
}

pub(crate) fn types(options: &TypesOptions) -> Exit {
    for (name, text) in TYPES.iter().copied() {
        let path = options.folder.join(name);
        if path.exists() && !is_ours(&path, text) {
            complain(&format!(
                "{} is there and not written by `redflow types`; name another folder",
                shown(&path)
            ));
            return Exit::Unusable;
        }
    }
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&options.folder)?;
        for (name, text) in TYPES.iter().copied() {
            std::fs::write(options.folder.join(name), text)?;
        }
        Ok(())
    };
    let folder = shown(&options.folder);
    match write() {
        Ok(()) => {
            talk(&format!("wrote {} into {folder}", count(TYPES.len(), "file")));
            Exit::Well
        }
        Err(error) => {
            complain(&format!("cannot write into {folder}: {}", reason(&error)));
            Exit::Unusable
        }
    }
}
