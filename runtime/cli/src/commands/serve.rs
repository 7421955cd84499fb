//! `redflow serve`: starts and stops the sidecar, and prints its address.

use crate::args::ServeOptions;
use crate::commands::config::config_entries;
use crate::config::Settings;
use crate::context::{AppContext, clock, process_env};
use crate::data_dir::create_data_dir;
use crate::diagnostics::{format_diagnostic, print_diagnostics};
use crate::errors::{print_api_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::files::{absolute_path, display_path};
use crate::knowledge::remove_expired_entries;
use crate::node_red::find_node_red;
use crate::session::{Session, cannot_start};
use crate::sidecar::local_address;
use crate::signals::{RunLifetime, stop_with_stdin};
use crate::terminal::{fail, print_note, print_warning};
use crate::text::count;
use redflow_access::{AccessSettings, Tokens, listen};
use redflow_contract::flow::Profile;
use redflow_node_red::NodeRed;
use redflow_ports::{
    ChatStore, EventLog, FileStoreError, FlowStore, ManifestStore, RunReader, RunStore, StoredFlow, UiStorage,
};
use redflow_server::{Parts, Sidecar, StartFailure};
use redflow_store::{
    FlowFile, ManifestFiles, MemoryChatStore, MemoryStore, MemoryUiStorage, Store, UiStorageFile,
};
use redflow_telemetry::{RedactionLevel, Redactor};
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often expired entries of the archive are removed.
pub(crate) const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) fn serve(options: &ServeOptions, context: &AppContext) -> CommandResult {
    run_sidecar(options, context)?;
    // The store is closed now, so everything is on the disk.
    print_note("stopped");
    Ok(Exit::Success)
}

fn run_sidecar(options: &ServeOptions, context: &AppContext) -> Result<(), Exit> {
    let settings = &context.settings;
    let data = settings.data_dir().map_err(print_store_error)?;
    let flows = settings.flows_file().map_err(print_store_error)?;
    let session = Session::start(RunLifetime::Served)?;
    if options.stop_with_stdin {
        stop_with_stdin(session.signals()).map_err(|error| cannot_start(&error))?;
    }
    create_data_dir(&data)?;
    let stores = Stores::open(options.ephemeral, settings, &data, &flows)?;
    let tokens = Tokens::open(&data, settings.token.clone()).map_err(print_api_error)?;
    let listener =
        session.wait(async { listen::bind(settings.server.listen.value) }).map_err(print_api_error)?;
    let attached = find_node_red(settings)?;
    let address = listener.local_addr().map_err(|error| cannot_start(&error))?;
    let on_disk = stores.on_disk.clone();
    let mut server = server_settings(settings, address);
    // Two ephemeral sidecars may use one data directory.
    server.access.sessions_file = (!options.ephemeral).then(|| data.join("sessions.json"));
    let served = session.wait(async {
        let sidecar = start_sidecar(context, stores, tokens, &flows, server).await?;
        // A command that finds the sidecar earlier would wait for an answer.
        set_address(on_disk.as_deref(), address)?;
        print_start(&sidecar, settings, address, &flows);
        if let Some(node_red) = attached {
            print_attached(&node_red, settings);
            sidecar.attach(node_red);
        }
        let stop = session.signals().suspend.clone();
        let archive = Arc::clone(context.knowledge()?.archive());
        let expired = remove_expired_entries(&*archive, &*context.metrics, EXPIRY_INTERVAL, &stop);
        let close = CancellationToken::new();
        let withdraw = async {
            stop.cancelled().await;
            // While the port is still taken: another program could listen there and get the token of a command.
            if let Some(store) = on_disk {
                store.remove_address();
            }
            close.cancel();
        };
        tokio::join!(sidecar.serve(listener, close.clone()), withdraw, expired);
        Ok(())
    });
    session.end();
    served
}

/// Starts a sidecar, and prints the problems of its manifest and its flow.
pub(crate) async fn start_sidecar(
    context: &AppContext,
    stores: Stores,
    tokens: Tokens,
    flows: &Path,
    server: redflow_server::Settings,
) -> Result<Sidecar, Exit> {
    match Sidecar::start(parts(context, stores, tokens, flows)?, server).await {
        Ok(sidecar) => {
            print_diagnostics(Some(flows), sidecar.report().diagnostics.clone());
            Ok(sidecar)
        }
        Err(StartFailure::Api(error)) => Err(print_api_error(error)),
        Err(StartFailure::Manifest(report)) => {
            report.diagnostics.iter().for_each(|problem| print_note(&format_diagnostic(problem)));
            Err(Exit::Unusable)
        }
        Err(StartFailure::Flow(report)) => {
            print_diagnostics(Some(flows), report.diagnostics);
            Err(Exit::Unusable)
        }
    }
}

/// Everything the sidecar stores, on the disk or in memory.
pub(crate) struct Stores {
    runs: Arc<dyn RunStore>,
    reader: Arc<dyn RunReader>,
    log: Arc<dyn EventLog>,
    flow: Arc<dyn FlowStore>,
    chats: Arc<dyn ChatStore>,
    ui: Arc<dyn UiStorage>,
    manifests: Arc<dyn ManifestStore>,
    /// The store on the disk; none for an ephemeral sidecar.
    on_disk: Option<Arc<Store>>,
}

impl Stores {
    pub(crate) fn open(
        is_ephemeral: bool,
        settings: &Settings,
        data: &Path,
        flows: &Path,
    ) -> Result<Self, Exit> {
        let log = settings.event_log();
        let file = FlowFile::new(flows.to_owned(), data.to_owned());
        let manifests = Arc::new(ManifestFiles::new(data.to_owned()));
        if is_ephemeral {
            let (chats, ui) = (Arc::new(MemoryChatStore::default()), Arc::new(MemoryUiStorage::default()));
            let runs = MemoryStore::with_event_log(MemoryStore::DEFAULT_MAX_FINISHED, log);
            let runs = Arc::new(runs.with_chats(Arc::clone(&chats)));
            let flow = Arc::new(EphemeralFlowStore { file, latest: Mutex::default() });
            let (reader, log, on_disk) = (runs.clone(), runs.clone(), None);
            return Ok(Self { reader, log, runs, flow, chats, ui, manifests, on_disk });
        }
        let runs = Arc::new(Store::open_with_log(data, log).map_err(print_store_error)?);
        let (flow, ui) = (Arc::new(file), Arc::new(UiStorageFile::new(data)));
        let (reader, log, chats, on_disk) = (runs.clone(), runs.clone(), runs.clone(), Some(runs.clone()));
        Ok(Self { reader, log, chats, runs, flow, ui, manifests, on_disk })
    }
}

/// Writes where the sidecar listens, so that commands of this machine find it. Two ephemeral sidecars may use one data
/// directory, so they do not.
fn set_address(on_disk: Option<&Store>, address: SocketAddr) -> Result<(), Exit> {
    on_disk.map_or(Ok(()), |store| store.set_address(address)).map_err(print_store_error)
}

/// The flow of an ephemeral sidecar. It is read from the file; deploys stay in memory.
struct EphemeralFlowStore {
    file: FlowFile,
    latest: Mutex<Option<StoredFlow>>,
}

impl FlowStore for EphemeralFlowStore {
    fn load(&self) -> Result<Option<StoredFlow>, FileStoreError> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latest.map_or_else(|| self.file.load(), |flow| Ok(Some(flow)))
    }

    fn save(&self, flow: &StoredFlow) -> Result<(), FileStoreError> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(flow.clone());
        Ok(())
    }
}

fn parts(context: &AppContext, stores: Stores, tokens: Tokens, flows: &Path) -> Result<Parts, Exit> {
    let Stores { runs, reader, log, flow, chats, ui, manifests, on_disk: _ } = stores;
    let metrics = Arc::clone(&context.metrics);
    // Reports of runs are for others, so they lose everything, whatever the log may show.
    let known: Vec<_> = context.settings.token.iter().cloned().collect();
    let redactor = Redactor::new(RedactionLevel::All, &known).map_err(|text| fail(&text))?;
    Ok(Parts {
        clock: clock(),
        store: runs,
        run_reader: reader,
        log,
        flow_store: flow,
        chats,
        knowledge: context.knowledge()?.clone(),
        memories: context.memories()?.clone(),
        ui_storage: ui,
        manifests,
        mcp: Some(Arc::clone(&context.mcp)),
        adapters: Arc::clone(&context.adapters),
        meter: context.metrics.clone(),
        metrics: Arc::new(move || metrics.render()),
        redactor: Arc::new(redactor),
        env: process_env,
        source: absolute_path(flows),
        tokens,
    })
}

pub(crate) fn server_settings(settings: &Settings, address: SocketAddr) -> redflow_server::Settings {
    let from = &settings.server;
    let access = AccessSettings {
        listen: address,
        hosts: from.hosts.value.clone(),
        origins: from.origins.value.clone(),
        redflow_ui: from.redflow_ui.value.clone(),
        tokens_for_others: from.node_red.value.is_some(),
        https: from.https.value,
        requests_per_second: from.rate_per_second.value,
        request_burst: from.rate_burst.value,
        max_connections: listen::raise_open_file_limit(from.max_connections.value),
        head_timeout: Duration::from_millis(from.header_timeout_ms.value),
        ..AccessSettings::default()
    };
    redflow_server::Settings {
        profile: from.profile.value,
        engine_limits: settings.limits,
        run_budget: settings.run_budget,
        access,
        max_body_bytes: from.max_body_bytes.value,
        body_timeout: Duration::from_millis(from.body_timeout_ms.value),
        drain_timeout: Duration::from_millis(from.drain_ms.value),
        config: config_entries(settings),
        console_folder: console_folder(),
        ..redflow_server::Settings::default()
    }
}

/// A folder with another console, for developers. A release never reads files that the environment names.
fn console_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("REDFLOW_CONSOLE").filter(|folder| !folder.is_empty());
    folder.filter(|_| cfg!(debug_assertions)).map(PathBuf::from)
}

/// Prints the address of the sidecar. The address that signs in a browser goes only to a terminal, because it
/// works once and a log must not contain it.
fn print_start(sidecar: &Sidecar, settings: &Settings, address: SocketAddr, flows: &Path) {
    let url = format!("http://{address}");
    let (flow, refused) = match sidecar.agents() {
        None => (format!("no flow yet in {}", display_path(flows)), 0),
        Some((agents, refused)) => {
            (format!("{} from {}", count(agents, "agent"), display_path(flows)), refused)
        }
    };
    print_note(&format!("redflow {} listening on {url} ({flow})", env!("CARGO_PKG_VERSION")));
    if refused > 0 {
        print_note(&format!(
            "{} refused: the answer to every message is the error of the agent",
            count(refused, "agent")
        ));
    }
    if let Some(origin) = &settings.server.redflow_ui.value {
        print_redflow_ui(origin, settings, address);
    }
    if address.ip().is_unspecified() && settings.server.hosts.value.is_empty() {
        print_note(
            "other machines can reach the sidecar, but it accepts no host name yet: set `server.hosts` in the configuration",
        );
    }
    if std::io::stderr().is_terminal() {
        match sidecar.sign_in_path() {
            Ok(path) => {
                let local = local_address(address);
                print_note(&format!(
                    "open http://{local}{path} in a browser; it works once, for ten minutes"
                ));
            }
            Err(error) => drop(print_api_error(error)),
        }
    }
}

fn print_attached(node_red: &NodeRed, settings: &Settings) {
    let url = node_red.url();
    print_note(&format!("attached to Node-RED at {url}: flows deployed there are checked, not run"));
    if settings.server.redflow_ui.value.is_some() {
        print_note(&format!(
            "requests to Node-RED's Admin API, /comms and unknown paths are forwarded to {url}, with the Authorization \
             header of the Redflow UI"
        ));
    }
}

/// The Redflow UI sends some credentials to this port, whatever address it was built for.
const REDFLOW_UI_PORT: u16 = 1880;

/// Warns who can control the flow without a token.
fn print_redflow_ui(origin: &str, settings: &Settings, address: SocketAddr) {
    print_note(&format!(
        "pages of {origin} need no token for the routes of the Redflow UI: flows, deploys, injects, chats, stored \
         credentials, sockets"
    ));
    print_warning(&format!(
        "every page of {origin} in a browser on this machine, and every program on this machine, can control the flow \
         and send the keys of its nodes to any address"
    ));
    let profile = &settings.server.profile;
    if profile.value != Profile::Redflow {
        print_note(&format!(
            "the profile stays strict because of {}: nodes that the Redflow UI creates are refused",
            profile.origin
        ));
    }
    if address.port() != REDFLOW_UI_PORT {
        print_note(&format!(
            "the Redflow UI sends some credentials to http://localhost:{REDFLOW_UI_PORT}, which is another port: use \
             --listen 127.0.0.1:{REDFLOW_UI_PORT}"
        ));
    }
}
