//! Compresses the TypeScript sources that `redflow types` writes.

#[path = "../contract/build/pack.rs"]
mod pack;

use std::path::Path;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../contract/build/pack.rs");
    let folder = Path::new("../../bindings/src");
    let absolute = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    pack::pack(&pack::files_in(&absolute, ".ts")?, "types.rs")
}
