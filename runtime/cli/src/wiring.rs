//! The adapters of this build, and how flows are checked with them. Only this crate knows them all.

use crate::config::Settings;
use crate::data_dir::no_place;
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_engine::EngineLimits;
use redflow_flow::{CheckOptions, CheckedFlow, check_bytes};
use redflow_models::ModelSettings;
use redflow_ports::{Adapters, Clock, StoreError};
use redflow_telemetry::Metrics;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// What every command of this process works with. Made once.
struct World {
    adapters: Arc<Adapters>,
    metrics: Arc<Metrics>,
    limits: EngineLimits,
    profile: Profile,
    data: Option<PathBuf>,
}

static WORLD: OnceLock<World> = OnceLock::new();

impl World {
    fn new(settings: &Settings) -> Self {
        let metrics = Arc::<Metrics>::default();
        let models = ModelSettings {
            http: settings.http.clone(),
            prices: settings.prices.clone(),
            meter: metrics.clone(),
            ..ModelSettings::default()
        };
        let mut adapters = Adapters::default();
        redflow_models::register(&mut adapters, models);
        redflow_memory::register(&mut adapters, settings.memory);
        redflow_tools::register(&mut adapters);
        redflow_nodes::register(&mut adapters);
        #[cfg(feature = "faults")]
        crate::witness::register(&mut adapters);
        let data = settings.data_dir().ok();
        let (limits, profile) = (settings.limits, settings.server.profile.value);
        Self { adapters: Arc::new(adapters), metrics, limits, profile, data }
    }
}

/// Makes what every command works with.
pub(crate) fn configure(settings: &Settings) {
    // Only the first one counts.
    let _ = WORLD.set(World::new(settings));
}

/// Bounds on what messages may set off.
pub(crate) fn limits() -> EngineLimits {
    WORLD.get().map(|world| world.limits).unwrap_or_default()
}

/// How strictly agents are read.
pub(crate) fn profile() -> Profile {
    WORLD.get().map(|world| world.profile).unwrap_or_default()
}

/// The data directory, if no flag names one.
pub(crate) fn data_dir() -> Result<PathBuf, StoreError> {
    WORLD.get().and_then(|world| world.data.clone()).ok_or_else(no_place)
}

/// Everything this build can run.
pub(crate) fn adapters() -> Arc<Adapters> {
    WORLD.get().map(|world| Arc::clone(&world.adapters)).unwrap_or_default()
}

/// The counters of this process.
pub(crate) fn metrics() -> Arc<Metrics> {
    WORLD.get().map(|world| Arc::clone(&world.metrics)).unwrap_or_default()
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
