//! The adapters of this build, and how flows are checked with them. Only this crate knows all adapters.

use crate::archive::archive;
use crate::config::Settings;
use crate::diagnostics::format_diagnostic;
use crate::errors::print_store_error;
use crate::exit::Exit;
use crate::knowledge::LocalKnowledge;
use crate::memories::LocalMemories;
use crate::terminal::print_note;
use redflow_contract::diagnostic::CheckReport;
use redflow_contract::flow::Profile;
use redflow_contract::id::InstanceId;
use redflow_contract::limits::{FlowLimits, RunLimits};
use redflow_egress::Egress;
use redflow_engine::Registry;
use redflow_flow::{CheckOptions, CheckedFlow, check_bytes};
use redflow_long_memory::LongMemorySettings;
use redflow_mcp::{ConfineCommand, Confiner, HubSettings, McpHub, ServerTimes};
use redflow_models::ModelSettings;
use redflow_models::embed::{EmbedderFactory, embedder_sources};
use redflow_ports::{Adapters, Clock, McpServers, McpStore, StoreError};
use redflow_store::{ManifestFiles, McpFiles, MemoryMcpStore};
use redflow_telemetry::Metrics;
use redflow_tools::ToolSettings;
use redflow_tools::knowledge::KnowledgeSettings;
use redflow_worker::{Worker, WorkerSettings, confine_support};
use std::sync::Arc;

/// The folder of the data directory with models of this machine.
pub(crate) const MODELS_DIR: &str = "models";

/// The settings of this process and what is built from them. `main` builds it once and passes it to the
/// command.
pub(crate) struct AppContext {
    pub(crate) settings: Settings,
    pub(crate) adapters: Arc<Adapters>,
    pub(crate) metrics: Arc<Metrics>,
    /// The knowledge bases. Commands, the sidecar and the tools of agents share them.
    knowledge: Result<Arc<LocalKnowledge>, StoreError>,
    /// The long memories. Commands and the sidecar share them.
    memories: Result<Arc<LocalMemories>, StoreError>,
    /// The MCP servers. It has none before the tools are loaded.
    pub(crate) mcp: Arc<dyn McpServers>,
    /// The tools of the data directory, after they have been loaded.
    pub(crate) registry: Arc<Registry>,
}

impl AppContext {
    pub(crate) fn new(settings: Settings) -> Self {
        let metrics = Arc::<Metrics>::default();
        let models = ModelSettings {
            http: settings.http.clone(),
            prices: settings.prices.clone(),
            meter: metrics.clone(),
            ..ModelSettings::default()
        };
        let mut adapters = Adapters::default();
        redflow_models::register(&mut adapters, models.clone());
        let models = Arc::new(models);
        redflow_memory::register(&mut adapters, settings.memory);
        let egress = Egress::new(settings.egress.clone());
        let hub = McpHub::new(hub_settings(&settings, egress.clone(), metrics.clone()));
        redflow_mcp::register(&mut adapters, &hub);
        let knowledge = settings.data_dir().map(|data| {
            let archive = archive(&settings, &data, clock());
            let embedders = Arc::new(EmbedderFactory::new(models, data.join(MODELS_DIR)));
            let filter = settings.sandbox_filter;
            let worker = Worker::new(WorkerSettings { filter, ..WorkerSettings::default() });
            let meter = metrics.clone();
            Arc::new(LocalKnowledge::new(archive, embedders, process_env, worker, clock(), meter))
        });
        let memories = knowledge.as_ref().map_err(StoreError::clone).map(|knowledge| {
            let (archive, embedders) = (Arc::clone(knowledge.archive()), Arc::clone(knowledge.embedders()));
            Arc::new(LocalMemories::new(archive, embedders, process_env, metrics.clone()))
        });
        let for_tools = knowledge.as_ref().ok().map(|knowledge| KnowledgeSettings {
            base: knowledge.base().clone(),
            embedder: embedder_sources(Arc::clone(knowledge.embedders())),
        });
        if let Ok(knowledge) = &knowledge {
            let settings = LongMemorySettings {
                archive: Arc::clone(knowledge.archive()),
                embedder: embedder_sources(Arc::clone(knowledge.embedders())),
                meter: metrics.clone(),
                clock: clock(),
                context: Some(hub.clone()),
            };
            redflow_long_memory::register(&mut adapters, settings);
        }
        let tools = ToolSettings { egress, meter: metrics.clone(), knowledge: for_tools };
        redflow_tools::register(&mut adapters, tools);
        redflow_nodes::register(&mut adapters);
        #[cfg(feature = "faults")]
        crate::witness::register(&mut adapters);
        Self {
            settings,
            adapters: Arc::new(adapters),
            metrics,
            knowledge,
            memories,
            registry: Arc::new(Registry::with_mcp(hub.clone())),
            mcp: hub,
        }
    }

    /// The knowledge bases of the data directory.
    pub(crate) fn knowledge(&self) -> Result<&Arc<LocalKnowledge>, Exit> {
        self.knowledge.as_ref().map_err(|error| print_store_error(error.clone()))
    }

    /// The long memories of the data directory.
    pub(crate) fn memories(&self) -> Result<&Arc<LocalMemories>, Exit> {
        self.memories.as_ref().map_err(|error| print_store_error(error.clone()))
    }

    /// Loads the manifest and the registered tools of the data directory, and prints their problems. A process that
    /// stores nothing may have no directory, and then no tools. Must be called inside a tokio runtime, which the
    /// tools need for their connections.
    pub(crate) fn load_tools(&self) -> Result<(), Exit> {
        let Ok(dir) = self.settings.data_dir() else { return Ok(()) };
        let build = self.adapters.manifest_tool.as_ref();
        let loaded = self.registry.load(&ManifestFiles::new(dir), build, &process_env);
        let problems = loaded.as_ref().unwrap_or_else(|problems| problems);
        problems.iter().for_each(|problem| print_note(&format_diagnostic(problem)));
        loaded.map(|_| ()).map_err(|_| Exit::Unusable)
    }

    /// Checks a flow with the adapters of this build and the profile of the settings.
    pub(crate) fn check(&self, flow: &[u8]) -> Result<CheckedFlow, CheckReport> {
        self.check_with(flow, self.settings.server.profile.value)
    }

    pub(crate) fn check_with(&self, flow: &[u8], profile: Profile) -> Result<CheckedFlow, CheckReport> {
        let options = CheckOptions {
            profile,
            limits: FlowLimits::default(),
            run_limits: RunLimits::default(),
            run_budget: self.settings.run_budget,
            instance: InstanceId::local(),
            provides_tools: &|type_name| {
                self.adapters.tool_providers.contains_key(type_name)
                    || self.registry.snapshot().operations(&InstanceId::local(), type_name).is_some()
            },
            can_run: &|type_name| self.adapters.can_run(type_name),
            env: &process_env,
        };
        check_bytes(flow, &options)
    }

    /// The diagnostics of a flow, whether it can be used or not.
    pub(crate) fn check_report(&self, flow: &[u8]) -> CheckReport {
        self.check(flow).map_or_else(|report| report, |checked| checked.report)
    }
}

/// What MCP servers need. A process without a data directory keeps their pins in memory, and starts no programs.
fn hub_settings(settings: &Settings, egress: Egress, meter: Arc<Metrics>) -> HubSettings {
    let data = settings.data_dir().ok();
    let store: Arc<dyn McpStore> = match &data {
        Some(data) => Arc::new(McpFiles::new(data)),
        None => Arc::new(MemoryMcpStore::default()),
    };
    HubSettings {
        egress,
        store,
        clock: clock(),
        meter,
        // Not beside the pins: a server may have any name.
        folder: data.map(|data| data.join("mcp").join("folders")),
        // This very program, also after an update has replaced its file.
        confine: Confiner::new(find_confinement),
        times: ServerTimes::default(),
    }
}

/// The command that confines programs here; none if the system cannot.
pub(crate) fn find_confinement() -> Option<ConfineCommand> {
    let [program, command] = ["/proc/self/exe", "confine"];
    let mut check = std::process::Command::new(program);
    let support = confine_support(check.args([command, "--check"]).env_clear())?;
    let words = vec![program.into(), command.into()];
    Some(ConfineCommand { words, landlock: support.landlock, namespaces: support.namespaces })
}

/// The source of times and ids.
#[cfg(not(feature = "faults"))]
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(redflow_engine::SystemClock)
}

/// The source of times and ids, which tests can shift.
#[cfg(feature = "faults")]
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(crate::shifted_clock::ShiftedClock::from_environment())
}

/// The value of an environment variable, for flows.
pub(crate) fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
