//! Compresses texts that a crate embeds. Build scripts of several crates share this file.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Writes `list` into the folder of the build's results: the Rust source of a slice with the name and the packed text
/// of each file.
pub(crate) fn pack(files: &[(String, PathBuf)], list: &str) -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let mut source = "&[\n".to_owned();
    for (name, path) in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let packed = out.join(format!("{name}.deflate"));
        let bytes = pack_file(path, &packed).map_err(|error| format!("{}: {error}", path.display()))?;
        let _ = writeln!(source, "({name:?}, PackedText::new({bytes}, include_bytes!({packed:?}))),");
    }
    fs::write(out.join(list), source + "]").map_err(|error| format!("{list}: {error}"))
}

/// Gives the number of bytes of the text.
fn pack_file(path: &Path, packed: &Path) -> std::io::Result<usize> {
    let text = fs::read_to_string(path)?;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    fs::write(packed, encoder.finish()?)?;
    Ok(text.len())
}

/// The absolute path of a folder: texts are included from the folder of the build's results.
pub(crate) fn absolute(folder: &str) -> Result<PathBuf, String> {
    Path::new(folder).canonicalize().map_err(|error| format!("{folder}: {error}"))
}

/// The files directly in a folder whose names end so, by their names without this end.
pub(crate) fn files_in(folder: &Path, end: &str) -> Result<Vec<(String, PathBuf)>, String> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(end));
        if let Some(name) = name.map(str::to_owned) {
            files.push((name, path));
        }
    }
    files.sort();
    Ok(files)
}
