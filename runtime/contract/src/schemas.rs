//! The embedded JSON Schemas. `agent-core.react` is written by hand; `cargo xtask codegen` writes the others.

use crate::packed_text::PackedText;

/// Every schema by its name.
pub static SCHEMAS: &[(&str, PackedText)] = include!(concat!(env!("OUT_DIR"), "/schemas.rs"));

static OPENAPI: &[(&str, PackedText)] = include!(concat!(env!("OUT_DIR"), "/openapi.rs"));

/// The OpenAPI document of the sidecar.
#[must_use]
pub fn openapi() -> String {
    OPENAPI.iter().map(|(_, packed)| packed.text()).collect()
}

/// The text of a schema.
#[must_use]
pub fn find(name: &str) -> Option<String> {
    SCHEMAS.iter().find(|(known, _)| *known == name).map(|(_, packed)| packed.text())
}

#[cfg(test)]
mod tests {
    use super::{SCHEMAS, find, openapi};
    use std::fs;

    #[test]
    fn embedded_texts_are_the_files() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");
        for (name, _) in SCHEMAS {
            let file = fs::read_to_string(format!("{folder}/{name}.schema.json")).unwrap();
            assert_eq!(find(name), Some(file), "{name}");
        }
        assert_eq!(openapi(), fs::read_to_string(format!("{folder}/openapi.json")).unwrap());
        assert!(SCHEMAS.iter().any(|(name, _)| *name == "agent-core.react"));
        assert_eq!(find("no-such-schema"), None);
    }
}
