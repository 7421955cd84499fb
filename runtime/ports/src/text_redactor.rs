//! Redaction of texts that leave the sidecar.

/// Removes secrets and personal data from texts.
///
/// ```
/// use redflow_ports::TextRedactor;
///
/// struct Names;
///
/// impl TextRedactor for Names {
///     fn redact(&self, text: &str) -> String {
///         text.replace("Ada", "[name]")
///     }
/// }
///
/// assert_eq!(Names.redact("Ask Ada."), "Ask [name].");
/// ```
pub trait TextRedactor: Send + Sync {
    /// The text with placeholders in place of what must not be shown.
    fn redact(&self, text: &str) -> String;
}
