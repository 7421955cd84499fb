//! The macro that makes the type of a node's properties.

/// A struct of optional properties, as Node-RED has them. With a schema and a declaration for each property it
/// also gets the constant `SET`.
macro_rules! config {
    ($(#[$doc:meta])* $name:ident = $schema:literal {
        $($(#[$attribute:meta])* $field:ident: $type:ty = $property:expr,)*
    }) => {
        $crate::node::config::config! {
            $(#[$doc])*
            #[allow(missing_docs, reason = "`SET` says what the properties mean")]
            $name { $($(#[$attribute])* $field: $type,)* }
        }

        impl $name {
            /// The declared properties.
            pub const SET: $crate::node::declaration::PropertySet = $crate::node::declaration::PropertySet {
                schema: $schema,
                properties: &[$($property),*],
                #[cfg(feature = "codegen")]
                source: Some($crate::node::source::source_of::<Self>()),
            };
        }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "codegen", derive(ts_rs::TS, schemars::JsonSchema), ts(optional_fields))]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$attribute])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }
    };
}

pub(super) use config;
