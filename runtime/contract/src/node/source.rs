//! The Rust types behind property sets, for the code generator.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use ts_rs::TS;

/// How to generate the TypeScript type and the JSON Schema of a property set.
#[derive(Debug, Clone, Copy)]
pub struct ConfigSource {
    /// Writes the declaration of the TypeScript type.
    pub typescript: fn(&ts_rs::Config) -> String,
    /// Makes the JSON Schema.
    pub schema: fn() -> Value,
}

/// The source of a type.
#[must_use]
pub const fn source_of<T: TS + JsonSchema>() -> ConfigSource {
    ConfigSource { typescript: typescript::<T>, schema: schema::<T> }
}

/// The exported declaration of a type, after its docs.
#[must_use]
pub fn typescript<T: TS>(config: &ts_rs::Config) -> String {
    format!("\n{}export {}\n", T::docs().unwrap_or_default(), T::decl(config))
}

/// The JSON Schema of a type.
#[must_use]
pub fn schema<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

/// The JSON Schema of a type that people write. Unlike [`schema`], it leaves out what has a default.
#[must_use]
pub fn written_schema<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    generator.into_root_schema_for::<T>().to_value()
}
