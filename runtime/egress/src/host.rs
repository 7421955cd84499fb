//! Patterns of hosts.

/// A host or its subdomains: `api.example.org`, `*.example.org` (without the bare name) or an address, each with an
/// optional port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: String,
    port: Option<u16>,
}

impl HostPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { host: text.to_owned(), port: None })
    }
}
