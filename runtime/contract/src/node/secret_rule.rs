//! Which values a secret property may have, and which variable replaces it.

#[cfg(feature = "codegen")]
use serde::Serialize;

/// Which characters a secret may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize), serde(rename_all = "snake_case"))]
pub enum SecretRule {
    /// Any.
    Any,
    /// Those of a key.
    Key,
    /// 32 bytes in base64.
    Bytes,
    /// Those of a sidecar's token, which a sidecar that runs already needs.
    Token,
}

/// The environment variable of the sidecar that has a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "codegen", derive(Serialize))]
pub struct SecretVariable {
    /// The name of the variable.
    pub name: &'static str,
    /// The property whose value makes the variable unused: the address of another server.
    pub unless: Option<&'static str>,
}
