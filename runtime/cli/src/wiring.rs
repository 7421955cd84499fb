//! The adapters of this build, and how flows are checked with them. Only this crate knows them all.

use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_flow::{CheckOptions, CheckedFlow, check_bytes};
use redflow_ports::{Adapters, Clock};
use std::sync::Arc;

/// Everything this build can run.
pub(crate) fn adapters() -> Adapters {
    let mut adapters = Adapters::default();
    redflow_models::register(&mut adapters);
    redflow_tools::register(&mut adapters);
    redflow_nodes::register(&mut adapters);
    #[cfg(feature = "faults")]
    crate::witness::register(&mut adapters);
    adapters
}

/// Time and ids.
#[cfg(not(feature = "faults"))]
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(redflow_engine::SystemClock)
}

/// Time and ids, for tests of what happens when the clock jumps.
#[cfg(feature = "faults")]
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(crate::shifted_clock::ShiftedClock::from_environment())
}

/// The process environment as flows see it.
pub(crate) fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Checks a flow with the adapters of this build.
pub(crate) fn check(bytes: &[u8], profile: Profile, adapters: &Adapters) -> Result<CheckedFlow, CheckReport> {
    let options = CheckOptions {
        profile,
        limits: FlowLimits::default(),
        run_limits: RunLimits::default(),
        instance: InstanceId::local(),
        runs: &|type_name| adapters.runs(type_name),
        env: &process_env,
    };
    check_bytes(bytes, &options)
}
