//! The operator's settings, as written in `[egress]` of the configuration.

use serde::Deserialize;

/// The operator's settings of the way out. They are checked by [`crate::EgressPolicy::new`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressSettings {
    /// The schemes that requests may use: `https`, `http` or both.
    pub schemes: Vec<String>,
    /// The ports that requests may use.
    pub ports: Vec<u16>,
    /// If not empty, the only hosts that requests may reach.
    pub allow: Vec<String>,
    /// Hosts that requests may not reach.
    pub deny: Vec<String>,
    /// `HOST:PORT` of machines in the operator's own network. The host is a name, an address or a CIDR block.
    pub private: Vec<String>,
    /// A proxy for every request, such as `http://proxy.example.org:3128`. Empty: no proxy.
    pub proxy: String,
    /// The largest body of an answer, after decoding.
    pub max_body_bytes: u64,
}

impl Default for EgressSettings {
    fn default() -> Self {
        Self {
            schemes: vec!["https".to_owned(), "http".to_owned()],
            ports: vec![80, 443],
            allow: Vec::new(),
            deny: Vec::new(),
            private: Vec::new(),
            proxy: String::new(),
            max_body_bytes: 10 * 1024 * 1024,
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingProblem {
    /// The key in `[egress]`.
    pub key: &'static str,
    /// What is wrong.
    pub problem: String,
    /// How to fix it.
    pub fix: String,
}

impl std::fmt::Display for SettingProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "egress.{}: {}; {}", self.key, self.problem, self.fix)
    }
}
