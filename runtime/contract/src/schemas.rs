//! The embedded JSON Schemas. `agent-core.react` is written by hand; `cargo xtask codegen` writes the others and
//! their list.

mod list;

pub use list::SCHEMAS;

/// The OpenAPI document of the sidecar.
pub const OPENAPI: &str = include_str!("../../../schemas/openapi.json");

/// Finds the text of a schema by name.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
