//! `redflow serve`: the sidecar, from its first word to its last.
//!
//! Owns the order in which its parts come and go, and what is said of it on the screen.

use crate::Exit;
use crate::args_serve::ServeOptions;
use crate::check::render_one;
use crate::config::Settings;
use crate::drive::{Session, cannot_start};
use crate::files::{shown, whole_path};
use crate::flows::node_red;
use crate::interrupt::{Runs, stop_with_stdin};
use crate::terminal::{count, refuse, refuse_api, talk};
use crate::token::{made_directory, near};
use crate::wiring;
use redflow_access::{AccessSettings, Tokens, listen};
use redflow_contract::api::ApiError;
use redflow_contract::diagnostic::{CheckReport, Diagnostic};
use redflow_contract::flow::Profile;
use redflow_node_red::NodeRed;
use redflow_ports::{
    ChatStore, EventLog, FileStoreError, FlowStore, RunReader, RunStore, StoredFlow, UiStorage,
};
use redflow_server::{Parts, Sidecar, StartFailure};
use redflow_store::{
    EventLogSettings, FlowFile, MemoryChatStore, MemoryStore, MemoryUiStorage, Store, UiStorageFile,
};
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) fn serve(options: &ServeOptions, settings: &Settings) -> Exit {
    // Its store is closed, and everything in it on the disk, before the last word is said.
    let served = serve_with(options, settings);
    if served.is_ok() {
        talk("stopped");
    }
    served.map_or_else(|exit| exit, |()| Exit::Well)
}

fn serve_with(options: &ServeOptions, settings: &Settings) -> Result<(), Exit> {
    let data = settings.data_dir().map_err(|error| refuse(&error))?;
    let flows = settings.flows_file().map_err(|error| refuse(&error))?;
    let told = |error: ApiError| refuse_api(&error, &[]);
    let session = Session::begin(Runs::Served)?;
    if options.stop_with_stdin {
        stop_with_stdin(session.wishes()).map_err(|error| cannot_start(&error))?;
    }
    made_directory(settings)?;
    let kept = Kept::open(options, settings, &data, &flows)?;
    let tokens = Tokens::open(&data, settings.token.clone()).map_err(told)?;
    let listener = session.wait(async { listen::bind(settings.server.listen.value) }).map_err(told)?;
    let beside = node_red(settings)?;
    let address = listener.local_addr().map_err(|error| cannot_start(&error))?;
    let server = server_settings(settings, address);
    let served = session.wait(async {
        let sidecar = match Sidecar::start(parts(kept, tokens, &flows), server).await {
            Ok(sidecar) => sidecar,
            Err(StartFailure::Api(error)) => return Err(refuse_api(&error, &[])),
            Err(StartFailure::Flow(report)) => {
                say(&report, &flows);
                return Err(Exit::Unusable);
            }
        };
        say(&sidecar.report(), &flows);
        greet(&sidecar, settings, address, &flows);
        if let Some(node_red) = beside {
            greet_node_red(&node_red, settings);
            sidecar.attach(node_red);
        }
        let stop = session.wishes().suspend.clone();
        sidecar.serve(listener, stop).await;
        Ok(())
    });
    session.end();
    served
}

/// What is kept, and how it is looked at.
struct Kept {
    store: Arc<dyn RunStore>,
    catalogue: Arc<dyn RunReader>,
    log: Arc<dyn EventLog>,
    shelf: Arc<dyn FlowStore>,
    chats: Arc<dyn ChatStore>,
    drawer: Arc<dyn UiStorage>,
}

impl Kept {
    fn open(options: &ServeOptions, settings: &Settings, data: &Path, flows: &Path) -> Result<Self, Exit> {
        let events = usize::try_from(settings.server.events_kept.value).unwrap_or(usize::MAX);
        let log = EventLogSettings { max_events: events, ..EventLogSettings::default() };
        let file = FlowFile::new(flows.to_owned(), data.to_owned());
        if options.ephemeral {
            let store = Arc::new(MemoryStore::keeping_with_log(MemoryStore::KEPT, log));
            let shelf = Arc::new(Unkept { file, latest: Mutex::default() });
            let (chats, drawer) =
                (Arc::new(MemoryChatStore::default()), Arc::new(MemoryUiStorage::default()));
            return Ok(Self { catalogue: store.clone(), log: store.clone(), store, shelf, chats, drawer });
        }
        let store = Store::open_with_log(data, log).map_err(|error| refuse(&error))?;
        let store = Arc::new(store);
        let (shelf, drawer) = (Arc::new(file), Arc::new(UiStorageFile::new(data)));
        Ok(Self { catalogue: store.clone(), log: store.clone(), chats: store.clone(), store, shelf, drawer })
    }
}

/// The flow of a sidecar that keeps nothing: read from its file, and never written.
struct Unkept {
    file: FlowFile,
    latest: Mutex<Option<StoredFlow>>,
}

impl FlowStore for Unkept {
    fn load(&self) -> Result<Option<StoredFlow>, FileStoreError> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latest.map_or_else(|| self.file.load(), |flow| Ok(Some(flow)))
    }

    fn save(&self, flow: &StoredFlow) -> Result<(), FileStoreError> {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(flow.clone());
        Ok(())
    }
}

fn parts(kept: Kept, tokens: Tokens, flows: &Path) -> Parts {
    let Kept { store, catalogue, log, shelf, chats, drawer } = kept;
    let metrics = wiring::metrics();
    Parts {
        clock: wiring::clock(),
        store,
        catalogue,
        log,
        shelf,
        chats,
        drawer,
        adapters: wiring::adapters(),
        meter: wiring::metrics(),
        metrics: Arc::new(move || metrics.render()),
        env: wiring::process_env,
        source: whole_path(flows),
        tokens,
    }
}

fn server_settings(settings: &Settings, address: SocketAddr) -> redflow_server::Settings {
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
        access,
        max_body_bytes: from.max_body_bytes.value,
        body_timeout: Duration::from_millis(from.body_timeout_ms.value),
        drain: Duration::from_millis(from.drain_ms.value),
        ..redflow_server::Settings::default()
    }
}

/// What the checker says of the flow.
fn say(report: &CheckReport, flows: &Path) {
    let file = flows.display().to_string();
    for diagnostic in &report.diagnostics {
        talk(&render_one(&Diagnostic { file: Some(file.clone()), ..diagnostic.clone() }));
    }
}

/// Says that it is there, and how to come in. The address works once and is for people: it goes to a terminal only.
fn greet(sidecar: &Sidecar, settings: &Settings, address: SocketAddr, flows: &Path) {
    let url = format!("http://{address}");
    let (flow, refused) = match sidecar.agents() {
        None => (format!("no flow yet in {}", shown(flows)), 0),
        Some((agents, refused)) => (format!("{} from {}", count(agents, "agent"), shown(flows)), refused),
    };
    talk(&format!("redflow {} listening on {url} ({flow})", env!("CARGO_PKG_VERSION")));
    if refused > 0 {
        talk(&format!(
            "{} refused: every message to such an agent is answered with its error",
            count(refused, "agent")
        ));
    }
    if let Some(origin) = &settings.server.redflow_ui.value {
        greet_redflow_ui(origin, settings, address);
    }
    if address.ip().is_unspecified() && settings.server.hosts.value.is_empty() {
        talk(
            "it listens to other machines and answers to no name of theirs: set `server.hosts` in the configuration",
        );
    }
    if std::io::stderr().is_terminal() {
        match sidecar.sign_in_path() {
            Ok(path) => {
                let near = near(address);
                talk(&format!("open http://{near}{path} in a browser; it works once, for ten minutes"));
            }
            Err(error) => drop(refuse_api(&error, &[])),
        }
    }
}

/// Says what it does with a Node-RED.
fn greet_node_red(node_red: &NodeRed, settings: &Settings) {
    let url = node_red.url();
    talk(&format!("stands beside Node-RED at {url}: checks what is deployed there, and runs none of it"));
    if settings.server.redflow_ui.value.is_some() {
        talk(&format!(
            "Node-RED's Admin API, /comms and addresses that are not known here go on to {url}, with what the page of the \
             Redflow UI sends as Authorization"
        ));
    }
}

/// The port that the Redflow UI sends some credentials to, whatever address it was built for.
const REDFLOW_UI_PORT: u16 = 1880;

/// Says who comes in without a token, and what that means.
fn greet_redflow_ui(origin: &str, settings: &Settings, address: SocketAddr) {
    talk(&format!(
        "pages of {origin} come in without a token, to the routes that the Redflow UI uses: flows, deploys, injects, \
         chats, stored credentials, sockets"
    ));
    talk(&format!(
        "warning: whoever can open a page of {origin} in a browser on this machine, and every program that runs here, \
         controls the flow, and can have the keys of its nodes sent to any address"
    ));
    let profile = &settings.server.profile;
    if profile.value != Profile::Redflow {
        talk(&format!(
            "the profile stays strict, as {} says: nodes as the Redflow UI makes them are refused",
            profile.origin
        ));
    }
    if address.port() != REDFLOW_UI_PORT {
        talk(&format!(
            "the Redflow UI sends some credentials to http://localhost:{REDFLOW_UI_PORT}, which is not here: use \
             --listen 127.0.0.1:{REDFLOW_UI_PORT}"
        ));
    }
}
