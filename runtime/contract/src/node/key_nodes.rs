//! Config nodes with a key that several models of a provider use.

use super::config::config;
use super::declaration::{Kind, NodeDeclaration, Palette, Property, sets};
use super::model_properties::API_KEY;
use super::services::CREDENTIALS;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The property of a model that names its key node.
pub const KEY_NODE: &str = "keyNode";

/// The property that names a key node of this type.
pub(super) const fn key_node(of: &'static str) -> Property {
    Property::new(
        KEY_NODE,
        Kind::ConfigNode { of },
        "Shared key",
        "A config node with a key that several models use. A model's own *API key* takes precedence.",
    )
    .icon("key")
}

const KEY: Property =
    API_KEY.help("The key of the provider. Kept in Node-RED's credentials, never in the flow.");

config! {
    /// The properties of a key node.
    KeyConfig = "node.key" {
        api_key: String = KEY,
        #[cfg_attr(feature = "codegen", ts(type = "{ [key: string]: JsonValue }"))]
        credentials: Map<String, Value> = CREDENTIALS,
    }
}

const fn declare(
    name: &'static str,
    (label, summary): (&'static str, &'static str),
    properties: &'static [&'static [Property]],
) -> NodeDeclaration {
    let (color, icon) = ("", "");
    let (named_by, input, outputs) = (None, None, &[]);
    let palette = Palette { label, summary, color, icon, properties, named_by, input, outputs };
    NodeDeclaration::data(name).config().reads(sets![KeyConfig::SET]).palette(palette)
}

pub(super) const OPENAI: NodeDeclaration = declare(
    "openai-key",
    (
        "OpenAI key",
        "A key that several OpenAI models use, or several models of a server with a compatible API.",
    ),
    &[&[KEY.example("sk-…"), CREDENTIALS]],
);

pub(super) const ANTHROPIC: NodeDeclaration = declare(
    "anthropic-key",
    ("Anthropic key", "A key that several Anthropic models use."),
    &[&[KEY.example("sk-ant-…"), CREDENTIALS]],
);

pub(super) const GOOGLE: NodeDeclaration = declare(
    "google-key",
    ("Google key", "A key that several Google models use."),
    &[&[KEY.example("AIza…"), CREDENTIALS]],
);

pub(super) const AZURE: NodeDeclaration = declare(
    "azure-openai-key",
    ("Azure OpenAI key", "The key of an Azure resource that several of its models use."),
    &[&[KEY.hint("resourceKey", "the resource's key"), CREDENTIALS]],
);
