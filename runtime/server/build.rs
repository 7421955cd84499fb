//! Embeds the console that `cargo xtask console` has built. Without it the binary has the small page only.

#[path = "src/console/names.rs"]
mod names;

use std::path::{Path, PathBuf};

fn main() -> Result<(), String> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or(format!("{name} is not set"));
    let console = variable("CARGO_MANIFEST_DIR")?.join("../../console");
    let list = embedded_files(&console);
    let out = variable("OUT_DIR")?.join("embedded_console.rs");
    std::fs::write(&out, list).map_err(|error| format!("{}: {error}", out.display()))
}

/// The list of the embedded files as Rust source; an empty one if a file is missing.
fn embedded_files(console: &Path) -> String {
    let files = names::NAMES.map(|name| (name, console.join("dist").join(name)));
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/console/names.rs");
    if !files.iter().all(|(_, file)| file.is_file()) {
        // Cargo would run this script each time for a file that does not exist.
        if console.is_dir() {
            println!("cargo::rerun-if-changed={}", console.display());
        }
        return "&[]".to_owned();
    }
    let entries = files.iter().map(|(name, file)| {
        println!("cargo::rerun-if-changed={}", file.display());
        format!("({name:?}, include_bytes!({file:?})),\n")
    });
    format!("&[\n{}]", entries.collect::<String>())
}
