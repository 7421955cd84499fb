//! Compresses the schemas, the OpenAPI document and the pages of codes that the crate embeds.

#[path = "build/pack.rs"]
mod pack;

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/pack.rs");
    let schemas = pack::absolute("../../schemas")?;
    let openapi = ("openapi".to_owned(), schemas.join("openapi.json"));
    pack::pack(&pack::files_in(&schemas, ".schema.json")?, "schemas.rs")?;
    pack::pack(&[openapi], "openapi.rs")?;
    let mut pages = pack::files_in(&pack::absolute("../../docs/codes")?, ".md")?;
    pages.retain(|(name, _)| name != "README");
    pack::pack(&pages, "codes.rs")
}
