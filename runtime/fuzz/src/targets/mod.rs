//! What is fuzzed.

mod answer;
mod egress;
mod flow;
mod image;
mod journal;
mod manifest;
mod mcp;
mod oauth;
mod schema;
mod sidecar;
mod worker;

use std::path::Path;
use std::sync::Arc;

/// What an input led to: a short text that is the same for inputs of the same kind, or the rule that broke.
pub type Outcome = Result<String, String>;

/// Something that reads what strangers send.
pub trait Target: Send + Sync {
    /// Its name on the command line, and of the folder of its cases.
    fn name(&self) -> &'static str;

    /// Inputs to begin with.
    fn seeds(&self) -> Vec<Vec<u8>>;

    /// Runs one input.
    ///
    /// # Errors
    /// The rule that does not hold.
    fn run(&self, input: &[u8]) -> Outcome;
}

/// The targets that need no program of ours.
///
/// # Errors
/// If the files of a target cannot be written.
pub fn in_process() -> Result<Vec<Arc<dyn Target>>, String> {
    let worker = worker::Answers::new().map_err(|error| error.to_string())?;
    Ok(vec![
        Arc::new(flow::FlowFile),
        Arc::new(schema::ToolSchema),
        Arc::new(answer::ModelAnswers::new()),
        Arc::new(journal::JournalFile::new()),
        Arc::new(manifest::ManifestText),
        Arc::new(egress::EgressAddress),
        Arc::new(image::MessageImages),
        Arc::new(mcp::ServerMessages),
        Arc::new(oauth::SignIn),
        Arc::new(worker),
    ])
}

pub use sidecar::RunningSidecar;

/// The targets of the real program: the bodies of a sidecar's HTTP API, the frames of its sockets, messages of MCP clients, and
/// jobs of the process that reads documents. They work as long as the sidecar is not dropped.
///
/// # Errors
/// If the sidecar cannot be started.
pub fn of_sidecar(binary: &Path) -> Result<(Vec<Arc<dyn Target>>, RunningSidecar), String> {
    sidecar::targets(binary)
}
