//! `redflow check --url`: the sidecar says what is wrong with a flow.

use super::client::Sidecar;
use crate::Exit;
use crate::check::report_of;
use crate::drive::runtime;
use crate::terminal::refuse_api;
use redflow_contract::api::CheckRequest;
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_contract::limits::FlowLimits;

/// What the sidecar says of a flow. A file that is no JSON cannot be sent to it, so what this build says of such a
/// file stands.
pub(crate) fn check(bytes: &[u8], profile: Option<Profile>, sidecar: &Sidecar) -> Result<CheckReport, Exit> {
    let FlowLimits { max_bytes, max_depth, .. } = FlowLimits::default();
    let Ok(flows) = parse_strict(bytes, JsonLimits { max_bytes, max_depth }) else {
        return Ok(report_of(bytes));
    };
    let request = CheckRequest { flows, profile };
    let asked = runtime()?.block_on(sidecar.post(&["api", "flows", "check"], &request));
    asked.map_err(|error| refuse_api(&error, &[]))
}
