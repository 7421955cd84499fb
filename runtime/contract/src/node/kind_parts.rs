//! The parts of a property's kind: limits of numbers, values of a choice, shapes of JSON.

#[cfg(feature = "codegen")]
use serde::Serialize;

/// The limits of a whole number.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "codegen", derive(Serialize), serde(rename_all = "camelCase"))]
pub struct Whole {
    /// The least value.
    pub min: Option<i64>,
    /// The greatest value.
    pub max: Option<i64>,
    /// The property that must be greater, if it is set.
    pub below: Option<&'static str>,
    /// The limits of the dialog, if it is stricter than the schema.
    pub dialog: Option<(i64, i64)>,
}

/// Any whole number.
pub(super) const WHOLE: Whole = Whole { min: None, max: None, below: None, dialog: None };

/// The largest number of 32 bits.
pub const MAX_COUNT: i64 = 4_294_967_295;

/// One value of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize))]
pub struct Choice {
    /// The value; empty for the choice of the runtime.
    pub value: &'static str,
    /// How the dialog offers it.
    pub text: &'static str,
}

pub(super) const fn choice(value: &'static str, text: &'static str) -> Choice {
    Choice { value, text }
}

/// What a JSON value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize), serde(rename_all = "camelCase"))]
pub enum JsonShape {
    /// An object.
    Object,
    /// A JSON Schema of an object. The dialog also shows its properties as a table.
    Parameters,
    /// A list with at least one entry.
    List,
    /// A list of ids and patterns of tools, with at least one entry.
    ToolIds,
    /// A list of resources of MCP servers.
    ContextSpans,
    /// A list of categories, with at least one entry.
    Categories,
    /// The capabilities of a model.
    Capabilities,
}
