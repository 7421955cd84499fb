//! Work that would hold up other requests of a sidecar.

use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::RunErrorCode;
use redflow_ports::ArchiveError;

/// Works on another thread.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(_) => {
            let code = ProblemCode::Run(RunErrorCode::Internal);
            let message = "The work on another thread stopped: please report it.".to_owned();
            Err(ApiError { code, message, report: None, revision: None })
        }
    }
}
