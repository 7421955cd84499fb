//! How a node type is declared: its role and ports, its properties, and what an editor shows.

pub use super::kind_parts::{Choice, JsonShape, MAX_COUNT, Whole};
pub(super) use super::kind_parts::{WHOLE, choice};
pub use super::node_type::{FixedTool, NodeType};
pub use super::secret_rule::{SecretRule, SecretVariable};
use super::values::EffectClass;
use crate::edge::{PortKind, Role};
#[cfg(feature = "codegen")]
use serde::Serialize;

/// The declaration of a node type. The catalogue, the schemas, the types of the bindings, the palette and the
/// tables of the docs are all made from it.
#[derive(Debug, Clone, Copy)]
pub struct NodeDeclaration {
    /// The row of the catalogue.
    pub node_type: NodeType,
    /// The properties that the runtime reads.
    pub property_sets: &'static [&'static PropertySet],
    /// Whether the runtime runs such nodes without Node-RED.
    pub native: bool,
    /// Whether it is a config node, which other nodes name and no wire reaches.
    pub config: bool,
    /// The strategy of an agent that this build can run; none for other types.
    pub strategy: Option<&'static str>,
    /// Whether such a node provides several tools, which are known as a run begins.
    pub provider: bool,
    /// What a call of the tool does, if the type decides it.
    pub effect: Option<EffectClass>,
    /// How Node-RED's editor shows the type; none if our palette does not have it.
    pub palette: Option<Palette>,
}

impl NodeDeclaration {
    /// A type that is no service: one input, any number of outputs.
    pub(super) const fn data(name: &'static str) -> Self {
        let node_type = NodeType {
            name,
            role: Role::Data,
            inputs: 1,
            outputs: None,
            schemas: &[],
            tool: None,
            transparent: false,
        };
        Self {
            node_type,
            property_sets: &[],
            native: false,
            config: false,
            strategy: None,
            provider: false,
            effect: None,
            palette: None,
        }
    }

    /// A type that an agent binds, with one output that needs no wire.
    pub(super) const fn service(name: &'static str, role: Role) -> Self {
        Self::data(name).role(role, &[PortKind::Reply])
    }

    pub(super) const fn role(self, role: Role, outputs: &'static [PortKind]) -> Self {
        Self { node_type: NodeType { role, outputs: Some(outputs), ..self.node_type }, ..self }
    }

    pub(super) const fn without_input(self) -> Self {
        Self { node_type: NodeType { inputs: 0, ..self.node_type }, ..self }
    }

    pub(super) const fn transparent(self) -> Self {
        Self { node_type: NodeType { transparent: true, ..self.node_type }, ..self }
    }

    pub(super) const fn native(self) -> Self {
        Self { native: true, ..self }
    }

    pub(super) const fn config(self) -> Self {
        let node_type = NodeType { inputs: 0, outputs: Some(&[]), ..self.node_type };
        Self { node_type, config: true, ..self }
    }

    /// Whether the runtime uses credentials of such nodes.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        self.config || self.node_type.role.is_service()
    }

    /// Use the macro `sets!`, which keeps both lists equal.
    pub(super) const fn reads(
        self,
        (schemas, property_sets): (&'static [&'static str], &'static [&'static PropertySet]),
    ) -> Self {
        Self { node_type: NodeType { schemas, ..self.node_type }, property_sets, ..self }
    }

    pub(super) const fn tool(self, tool: FixedTool) -> Self {
        Self { node_type: NodeType { tool: Some(tool), ..self.node_type }, ..self }
    }

    pub(super) const fn provider(self) -> Self {
        Self { provider: true, ..self }
    }

    pub(super) const fn strategy(self, strategy: &'static str) -> Self {
        Self { strategy: Some(strategy), ..self }
    }

    pub(super) const fn effect(self, effect: EffectClass) -> Self {
        Self { effect: Some(effect), ..self }
    }

    pub(super) const fn palette(self, palette: Palette) -> Self {
        Self { palette: Some(palette), ..self }
    }
}

/// Property sets and the names of their schemas, for [`NodeDeclaration::reads`].
macro_rules! sets {
    ($($set:expr),+) => { (&[$($set.schema),+], &[$(&$set),+]) };
}

pub(super) use sets;

/// Properties with one JSON Schema.
#[derive(Debug, Clone, Copy)]
pub struct PropertySet {
    /// The name of the schema (see [`crate::schemas`]).
    pub schema: &'static str,
    /// The properties, in the order of the dialog.
    pub properties: &'static [Property],
    /// The Rust type of the properties; none if the schema is written by hand.
    #[cfg(feature = "codegen")]
    pub source: Option<super::source::ConfigSource>,
}

impl PropertySet {
    /// The names of the properties.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.properties.iter().map(|property| property.name)
    }
}

/// How Node-RED's editor shows a node type.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    /// The name of the type in the palette.
    pub label: &'static str,
    /// What the node is for: the first sentence of its help.
    pub summary: &'static str,
    /// The colour of the node.
    pub color: &'static str,
    /// The icon of the node, in the palette's folder of icons; empty for a config node.
    pub icon: &'static str,
    /// The properties that the dialog saves, in its order: one list after the other.
    pub properties: &'static [&'static [Property]],
    /// The property that a node without a name shows as its label.
    pub named_by: Option<&'static str>,
    /// The label of the input.
    pub input: Option<Text>,
    /// The labels of the outputs.
    pub outputs: &'static [Text],
}

impl Palette {
    /// The properties that the dialog saves, in its order.
    pub fn properties(&self) -> impl Iterator<Item = &'static Property> {
        self.properties.iter().copied().flatten()
    }

    pub(super) const fn named_by(self, property: &'static str) -> Self {
        Self { named_by: Some(property), ..self }
    }
}

/// A text of the editor: its key in the catalogues of all languages, and the English text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize))]
pub struct Text {
    /// The key, below the key of its kind: `field`, `hint`, `option` or `port`.
    pub key: &'static str,
    /// The English text.
    pub text: &'static str,
}

pub(super) const fn text(key: &'static str, text: &'static str) -> Text {
    Text { key, text }
}

/// One property of a node type.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "codegen", derive(Serialize), serde(rename_all = "camelCase"))]
pub struct Property {
    /// The name in the flow.
    pub name: &'static str,
    /// Which values it may have.
    #[cfg_attr(feature = "codegen", serde(flatten))]
    pub kind: Kind,
    /// The value of a new node.
    pub default: Initial,
    /// The label of its field.
    pub label: Text,
    /// What it means. `code` and *labels* are marked as in Markdown.
    pub help: &'static str,
    /// The text of the empty field.
    pub placeholder: Placeholder,
    /// A text below the field.
    pub note: Option<Text>,
    /// The icon of the label, of Font Awesome 4.
    pub icon: Option<&'static str>,
    /// Where the dialog has its field.
    pub place: Place,
    /// Whether it may be missing.
    pub presence: Presence,
}

impl Property {
    /// An optional property in the main part of the dialog, with the name as the key of its label.
    pub(super) const fn new(name: &'static str, kind: Kind, label: &'static str, help: &'static str) -> Self {
        let default = match kind {
            Kind::Flag => Initial::Flag(false),
            _ => Initial::Text(""),
        };
        let label = text(name, label);
        let (placeholder, note, icon) = (Placeholder::None, None, None);
        let (place, presence) = (Place::Main, Presence::Optional);
        Self { name, kind, default, label, help, placeholder, note, icon, place, presence }
    }

    /// A property that no dialog of ours shows.
    pub(super) const fn hidden(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { place: Place::Hidden, default: Initial::Absent, ..Self::new(name, kind, "", help) }
    }

    pub(super) const fn default(self, default: Initial) -> Self {
        Self { default, ..self }
    }

    pub(super) const fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// A label under another key than the name.
    pub(super) const fn label(self, key: &'static str, label: &'static str) -> Self {
        Self { label: text(key, label), ..self }
    }

    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    pub(super) const fn example(self, example: &'static str) -> Self {
        Self { placeholder: Placeholder::Example(example), ..self }
    }

    pub(super) const fn hint(self, key: &'static str, hint: &'static str) -> Self {
        Self { placeholder: Placeholder::Hint(text(key, hint)), ..self }
    }

    pub(super) const fn note(self, key: &'static str, note: &'static str) -> Self {
        Self { note: Some(text(key, note)), ..self }
    }

    pub(super) const fn icon(self, icon: &'static str) -> Self {
        Self { icon: Some(icon), ..self }
    }

    /// In the part of the dialog that is closed at first.
    pub(super) const fn more(self) -> Self {
        Self { place: Place::More, ..self }
    }

    /// Without a field: an imported flow keeps its value.
    pub(super) const fn kept(self) -> Self {
        Self { place: Place::Kept, default: Initial::Absent, ..self }
    }

    pub(super) const fn presence(self, presence: Presence) -> Self {
        Self { presence, ..self }
    }
}

/// The kind of a property's values.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    feature = "codegen",
    derive(Serialize),
    serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")
)]
pub enum Kind {
    /// A line of text.
    Line {
        /// The most characters.
        max: Option<u32>,
    },
    /// A text of several lines.
    Block,
    /// A whole number.
    Whole(Whole),
    /// A number.
    Decimal {
        /// The least value.
        min: f64,
        /// The greatest value.
        max: f64,
    },
    /// Yes or no.
    Flag,
    /// Yes, no, or as the runtime decides.
    OptionalFlag {
        /// How the dialog offers the last choice.
        unset: Text,
    },
    /// One of several values.
    Choice {
        /// The values, in the order of the dialog.
        choices: &'static [Choice],
    },
    /// A value that is written as JSON.
    Json {
        /// What the value must be.
        shape: JsonShape,
        /// The height of the field in pixels, if it is not the usual one.
        height: Option<u32>,
    },
    /// Texts, separated by commas or as a list.
    Texts {
        /// The most texts.
        most: u32,
    },
    /// The HTTP address of a server, without a key.
    Address {
        /// An address, for the message about an invalid one.
        example: &'static str,
    },
    /// The address of a Redis server, without a password.
    RedisAddress,
    /// Hosts with their ports, separated by commas, such as `nas.lan:8123`.
    HostPorts {
        /// The most hosts.
        most: u32,
    },
    /// A day such as 2026-10-21.
    Day,
    /// The name by which a model calls a tool.
    ToolName {
        /// Whether the name of the node counts if it is empty.
        or_node_name: bool,
    },
    /// A secret: Node-RED keeps it in the credentials, never in the flow.
    Secret {
        /// Which characters it may have.
        rule: SecretRule,
        /// Where the value comes from if it is empty.
        variable: Option<SecretVariable>,
    },
    /// The id of a config node of this type.
    ConfigNode {
        /// The type.
        of: &'static str,
    },
    /// The ids of nodes.
    NodeIds,
    /// The id of a model or memory of the flow.
    Service {
        /// The role of the node.
        role: Role,
    },
    /// The ids of models or tools of the flow.
    Services {
        /// The role of the nodes.
        role: Role,
    },
    /// The names of the tools that an agent may call.
    AllowedTools,
    /// When an agent stops early.
    StopConditions,
    /// Any other value.
    Other,
}

/// A whole number from `min`.
pub(super) const fn from(min: i64) -> Kind {
    Kind::Whole(Whole { min: Some(min), ..WHOLE })
}

/// A whole number from `min` to `max`.
pub(super) const fn between(min: i64, max: i64) -> Kind {
    Kind::Whole(Whole { min: Some(min), max: Some(max), ..WHOLE })
}

/// A whole number from `min` that 32 bits can hold.
pub(super) const fn count(min: i64) -> Kind {
    between(min, MAX_COUNT)
}

pub(super) const LINE: Kind = Kind::Line { max: None };

pub(super) const fn line(max: u32) -> Kind {
    Kind::Line { max: Some(max) }
}

/// The value of a property in a new node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initial {
    /// A new node does not have the property.
    Absent,
    /// A text; mostly the empty one.
    Text(&'static str),
    /// A number.
    Number(u32),
    /// Yes or no.
    Flag(bool),
    /// JSON, as text.
    Json(&'static str),
}

/// The text of an empty field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize), serde(rename_all = "snake_case"))]
pub enum Placeholder {
    /// None.
    None,
    /// A value, the same in every language.
    Example(&'static str),
    /// Words.
    Hint(Text),
}

/// Where the dialog has the field of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize), serde(rename_all = "snake_case"))]
pub enum Place {
    /// In the main part.
    Main,
    /// In the part that is closed at first.
    More,
    /// Nowhere, but the node keeps the value of an imported flow.
    Kept,
    /// Nowhere: no dialog of ours has it.
    Hidden,
}

/// Whether a property may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize), serde(rename_all = "snake_case"))]
pub enum Presence {
    /// It may be missing or blank.
    Optional,
    /// It may be missing, but not blank.
    NotBlank,
    /// It must have a value.
    Required,
}
