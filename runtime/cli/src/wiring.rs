//! The adapters of this build, and how flows are checked with them. Only this crate knows them all.

use crate::config::Config;
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_flow::{CheckOptions, CheckedFlow, check_bytes};
use redflow_models::ModelSettings;
use redflow_ports::{Adapters, Clock};
use redflow_telemetry::Metrics;
use std::sync::{Arc, OnceLock};

/// What every command of this process works with. Made once.
struct World {
    adapters: Arc<Adapters>,
    metrics: Arc<Metrics>,
}

static WORLD: OnceLock<World> = OnceLock::new();

impl World {
    fn new(config: &Config) -> Result<Self, String> {
        let metrics = Arc::<Metrics>::default();
        let models = ModelSettings {
            http: config.http()?,
            prices: config.prices.clone(),
            meter: metrics.clone(),
            ..ModelSettings::default()
        };
        let mut adapters = Adapters::default();
        redflow_models::register(&mut adapters, models);
        redflow_memory::register(&mut adapters, config.memory());
        redflow_tools::register(&mut adapters);
        redflow_nodes::register(&mut adapters);
        #[cfg(feature = "faults")]
        crate::witness::register(&mut adapters);
        Ok(Self { adapters: Arc::new(adapters), metrics })
    }
}

/// Makes what every command works with.
pub(crate) fn configure(config: &Config) -> Result<(), String> {
    let world = World::new(config)?;
    // Only the first one counts.
    let _ = WORLD.set(world);
    Ok(())
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
