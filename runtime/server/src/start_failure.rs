//! Why a sidecar does not start.

use redflow_contract::api::ApiError;
use redflow_contract::diagnostic::CheckReport;

/// The reason why a sidecar does not start.
#[derive(Debug)]
pub enum StartFailure {
    /// The flow file is unusable as a whole. The report lists every problem.
    Flow(CheckReport),
    /// The manifest of tools has problems. The report lists them all.
    Manifest(CheckReport),
    /// Any other reason, such as unreadable credentials.
    Api(ApiError),
}
