//! Compresses the TypeScript sources that `redflow types` writes.

#[path = "../contract/build/pack.rs"]
mod pack;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../contract/build/pack.rs");
    pack::pack(&pack::files_in(&pack::absolute("../../bindings/src")?, ".ts")?, "types.rs")
}
