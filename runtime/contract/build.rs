//! Compresses the schemas and the OpenAPI document that the crate embeds.

#[path = "build/pack.rs"]
mod pack;

use std::path::Path;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/pack.rs");
    let schemas = Path::new("../../schemas");
    let absolute = schemas.canonicalize().map_err(|error| format!("{}: {error}", schemas.display()))?;
    let openapi = ("openapi".to_owned(), absolute.join("openapi.json"));
    pack::pack(&pack::files_in(&absolute, ".schema.json")?, "schemas.rs")?;
    pack::pack(&[openapi], "openapi.rs")
}
