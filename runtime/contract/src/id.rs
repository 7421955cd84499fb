//! Ids. Each is an opaque string to every reader but its maker.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(
            // Every event and every call copies the id, so a copy must be cheap.
            #[cfg_attr(feature = "codegen", ts(type = "string"), schemars(with = "String"))] Arc<str>,
        );

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
    };
}

string_id! {
    /// A node of a flow. Any non-empty string: Redflow writes dots, spaces and epoch times into it.
    NodeId
}
string_id! {
    /// One run of one agent: a uuid v7, also the trace id.
    RunId
}
string_id! {
    /// One tool call of one run.
    CallId
}
string_id! {
    /// The Node-RED that owns a flow; `local` for the sidecar's own flow.
    InstanceId
}
string_id! {
    /// Who started a run or called a tool: `token:NAME`, `node-red:INSTANCE`, `redflow-ui` or `cli`.
    Principal
}

impl InstanceId {
    /// The instance of the sidecar's own flow.
    #[must_use]
    pub fn local() -> Self {
        Self("local".into())
    }
}

/// An effect of one run, numbered from 1 in the order of emission. Facts name the effect that they answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(transparent)]
pub struct EffectId(pub u32);

impl std::fmt::Display for EffectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A node together with its Node-RED, because two Node-REDs may share one runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeRef {
    /// The Node-RED that owns the node.
    pub instance: InstanceId,
    /// The id of the node in that Node-RED.
    pub node_id: NodeId,
}

/// The id, type and name of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NodeSummary {
    /// The id of the node.
    pub id: NodeId,
    /// The Node-RED type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The name its owner gave it; empty if none.
    pub name: String,
}
