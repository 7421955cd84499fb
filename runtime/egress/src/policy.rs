//! The operator's policy.

use crate::{EgressSettings, SettingProblem};
use std::net::IpAddr;

/// The checked settings.
#[derive(Debug, Clone)]
pub struct EgressPolicy {
    pub(crate) settings: EgressSettings,
}

impl EgressPolicy {
    /// Checks the operator's settings.
    ///
    /// # Errors
    /// All problems at once.
    pub fn new(settings: &EgressSettings) -> Result<Self, Vec<SettingProblem>> {
        Ok(Self { settings: settings.clone() })
    }
}

/// An address that the rules allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedUrl {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The name as A-labels in lower case, or the address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether `[egress] private` names host and port.
    pub is_private: bool,
    /// The addresses of the host. Empty if none was looked up.
    pub addresses: Vec<IpAddr>,
}
