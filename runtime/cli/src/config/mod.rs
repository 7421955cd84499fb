//! What the process is told: by flags, else by the environment, else by a TOML file, else by defaults.
//!
//! Owns every key there is, its kind and its default. All that is wrong is told at once, and no value is ever
//! quoted: it may be a secret, such as a proxy's password.

mod file;
mod layers;
mod show;
mod values;

pub(crate) use layers::{Origin, Row, Setting};
pub(crate) use show::show;

use crate::data_dir;
use crate::files::{read_bounded, reason, shown};
use crate::terminal::{bold_red, talk};
use file::{ConfigFile, MAX_BYTES};
use layers::{Environment, Layers, quoted};
use owo_colors::OwoColorize;
use redflow_access::Tokens;
use redflow_access::tokens::{MAX_TOKEN_BYTES, MIN_TOKEN_BYTES};
use redflow_contract::code::ApiCode;
use redflow_contract::flow::Profile;
use redflow_engine::EngineLimits;
use redflow_memory::MemorySettings;
use redflow_models::price::{Price, Prices};
use redflow_models::transport::HttpSettings;
use redflow_node_red::TOKEN_VARIABLE;
use redflow_ports::StoreError;
use redflow_telemetry::{Format, Level};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;
use values::{
    IS_SET, address, format, hosts, level, node_red, origins, path, price, profile, proxy, redflow_ui,
    sidecar, text, whole, yes_or_no,
};

/// Problems that are told one by one.
const MOST_TOLD: usize = 50;
/// An hour: nobody waits longer for a request.
const HOUR: u64 = 3_600_000;
const MANY: u64 = 1_000_000;
/// Why the Redflow UI and other machines do not go together.
const NOT_FOR_OTHERS: &str = "pages of the Redflow UI need no token, so other machines must not reach the sidecar: listen \
                              at this machine alone, with --listen 127.0.0.1:1880";

/// What was typed that settings come from too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) log: Option<String>,
    pub(crate) listen: Option<String>,
    pub(crate) flows: Option<PathBuf>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) profile: Option<&'static str>,
    pub(crate) redflow_ui: Option<String>,
    pub(crate) node_red: Option<String>,
    pub(crate) url: Option<String>,
    /// How this command logs unless one says otherwise.
    pub(crate) logs: LogDefault,
}

/// How a command logs unless one says otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogDefault {
    /// What goes wrong.
    #[default]
    Quiet,
    /// The same beside a timeline: what that shows already is not logged as well.
    BesideTimeline,
    /// What a service does, for people on a terminal and for machines elsewhere.
    Service,
}

/// Everything that can be set.
pub(crate) struct Settings {
    pub(crate) server: ServerSettings,
    pub(crate) limits: EngineLimits,
    /// How providers and sidecars are reached.
    pub(crate) http: HttpSettings,
    /// Prices for a million tokens, by model.
    pub(crate) prices: Prices,
    /// Bounds of what is remembered in the process.
    pub(crate) memory: MemorySettings,
    pub(crate) log: LogSettings,
    /// The sidecar to talk to.
    pub(crate) url: Setting<Option<Url>>,
    /// The token that counts instead of the one in the data directory.
    pub(crate) token: Option<SecretString>,
    /// The access token for Node-RED.
    pub(crate) node_red_token: Option<SecretString>,
    /// The file, if there is one.
    file: Option<PathBuf>,
    rows: Vec<Row>,
}

/// Of the sidecar.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    /// Where it listens.
    pub(crate) listen: Setting<SocketAddr>,
    /// Where its flow is kept; none if it has no place.
    flows: Setting<Option<PathBuf>>,
    /// The data directory, also of other commands; none if it has no place.
    data: Setting<Option<PathBuf>>,
    /// The one origin whose pages, those of the Redflow UI, need no token.
    pub(crate) redflow_ui: Setting<Option<String>>,
    /// The Node-RED without the bridge that it stands beside, also of `flows`.
    pub(crate) node_red: Setting<Option<Url>>,
    /// How strictly agents are read, also by other commands.
    pub(crate) profile: Setting<Profile>,
    /// Further names it answers to: `host` or `host:port`.
    pub(crate) hosts: Setting<Vec<String>>,
    /// Further origins of web pages that may talk to it.
    pub(crate) origins: Setting<Vec<String>>,
    /// Whether browsers reach it over https.
    pub(crate) https: Setting<bool>,
    /// Requests of one token.
    pub(crate) rate_per_second: Setting<u32>,
    /// Requests of one token at once.
    pub(crate) rate_burst: Setting<u32>,
    /// Connections at once.
    pub(crate) max_connections: Setting<usize>,
    /// Bytes of a body.
    pub(crate) max_body_bytes: Setting<usize>,
    /// How long the head of a request may take to arrive, in milliseconds.
    pub(crate) header_timeout_ms: Setting<u64>,
    /// How long a body may take to arrive, in milliseconds.
    pub(crate) body_timeout_ms: Setting<u64>,
    /// How long runs may take to finish what they are at when it stops, in milliseconds.
    pub(crate) drain_ms: Setting<u64>,
    /// Events that are kept.
    pub(crate) events_kept: Setting<u64>,
}

/// How the log looks.
#[derive(Debug)]
pub(crate) struct LogSettings {
    pub(crate) level: Setting<String>,
    pub(crate) format: Setting<Format>,
    pub(crate) redact: Setting<Level>,
}

/// Why the settings cannot be used: a sentence each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong(Vec<String>);

impl Wrong {
    /// One thing that turned out only when it was used.
    pub(crate) fn at(origin: &Origin, why: &str) -> Self {
        Self(vec![format!("{origin}: {why}")])
    }

    /// Says all of it.
    pub(crate) fn tell(&self) {
        let code = ApiCode::ConfigFileInvalid;
        for problem in self.0.iter().take(MOST_TOLD) {
            talk(&format!("{}: {problem}", format!("error[{code}]").style(bold_red())));
        }
        if self.0.len() > MOST_TOLD {
            talk(&format!("… and {} more", self.0.len() - MOST_TOLD));
        }
        talk(&format!("   = help: redflow explain {code}"));
    }
}

impl Settings {
    /// Gathers them for this process.
    pub(crate) fn gather(flags: &Flags) -> Result<Self, Wrong> {
        Self::from(flags, &|name| std::env::var_os(name))
    }

    fn from(flags: &Flags, env: Environment<'_>) -> Result<Self, Wrong> {
        let from_env = || env("REDFLOW_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        let named = flags.config.clone().or_else(from_env);
        // A file that cannot be taken apart says nothing; what the others say is looked at all the same.
        let (file, unreadable) = match named.as_deref().map(ConfigFile::read).transpose() {
            Ok(file) => (file, Vec::new()),
            Err(problems) => (None, problems),
        };
        let mut layers = Layers::new(env, file);
        layers.problems = unreadable;
        let config =
            layers.key("", "config").variable("REDFLOW_CONFIG").flag("--config", flags.config.clone());
        config.or(|| None, |raw| path(raw).map(Some));
        let server = server(&mut layers, flags, env);
        let limits = limits(&mut layers);
        let http = http(&mut layers);
        let prices = prices(&mut layers);
        let memory = memory(&mut layers);
        let log = log(&mut layers, flags);
        let url = layers.key("", "url").variable("REDFLOW_URL").flag("--url", flags.url.clone());
        let url = url.or(|| None, |raw| sidecar(raw).map(Some));
        let token = secret(&mut layers, "token", "REDFLOW_TOKEN", token);
        let node_red_token = secret(&mut layers, "node_red_token", TOKEN_VARIABLE, Ok);
        // Whoever encrypts with it looks at it more closely.
        secret(&mut layers, "memory_key", "REDFLOW_MEMORY_KEY", Ok);
        let rows = layers.end().map_err(Wrong)?;
        Ok(Self { server, limits, http, prices, memory, log, url, token, node_red_token, file: named, rows })
    }

    /// The data directory.
    pub(crate) fn data_dir(&self) -> Result<PathBuf, StoreError> {
        self.server.data.value.clone().ok_or_else(data_dir::no_place)
    }

    /// The file the sidecar keeps its flow in.
    pub(crate) fn flows_file(&self) -> Result<PathBuf, StoreError> {
        self.server.flows.value.clone().ok_or_else(data_dir::no_place)
    }
}

fn server(layers: &mut Layers<'_>, flags: &Flags, env: Environment<'_>) -> ServerSettings {
    const IN: &str = "server";
    let here = || SocketAddr::from((Ipv4Addr::LOCALHOST, 1881));
    let listen = layers
        .key(IN, "listen")
        .variable("REDFLOW_LISTEN")
        .flag("--listen", flags.listen.clone())
        .or(here, address);
    let data = layers.key(IN, "data").variable("REDFLOW_DATA").flag("--data", flags.data.clone());
    let data = data.or(|| data_dir::default_place(env), |raw| path(raw).map(Some));
    let beside = || data.value.as_ref().map(|dir| dir.join("flows.json"));
    let flows = layers.key(IN, "flows").variable("REDFLOW_FLOWS").flag("--flows", flags.flows.clone());
    let flows = flows.or(beside, |raw| path(raw).map(Some));
    let ui =
        layers.key(IN, "redflow_ui").variable("REDFLOW_UI").flag("--redflow-ui", flags.redflow_ui.clone());
    let ui = ui.or(|| None, |raw| redflow_ui(raw).map(Some));
    if ui.value.is_some() && !listen.value.ip().is_loopback() {
        layers.complain(&ui.origin, NOT_FOR_OTHERS);
    }
    let beside =
        layers.key(IN, "node_red").variable("REDFLOW_NODE_RED").flag("--node-red", flags.node_red.clone());
    let beside = beside.or(|| None, |raw| node_red(raw).map(Some));
    let strictly = layers.key(IN, "profile").variable("REDFLOW_PROFILE").flag("--profile", flags.profile);
    // What that UI makes lacks what the schema asks for.
    let implied = ui.value.is_some().then_some("redflow");
    let profile = strictly.implied("server.redflow_ui", implied).or(Profile::default, profile);
    ServerSettings {
        listen,
        flows,
        data,
        redflow_ui: ui,
        node_red: beside,
        profile,
        hosts: layers.key(IN, "hosts").or(Vec::new, hosts),
        origins: layers.key(IN, "origins").or(Vec::new, origins),
        https: layers.key(IN, "https").or(|| false, yes_or_no),
        rate_per_second: layers.key(IN, "rate_per_second").or(|| 100, whole(1..=MANY)),
        rate_burst: layers.key(IN, "rate_burst").or(|| 200, whole(1..=MANY)),
        max_connections: layers.key(IN, "max_connections").or(|| 1024, whole(1..=MANY)),
        max_body_bytes: layers.key(IN, "max_body_bytes").or(|| 40 * 1024 * 1024, whole(1024..=1 << 30)),
        header_timeout_ms: layers.key(IN, "header_timeout_ms").or(|| 10_000, whole(1..=HOUR)),
        body_timeout_ms: layers.key(IN, "body_timeout_ms").or(|| 30_000, whole(1..=HOUR)),
        drain_ms: layers.key(IN, "drain_ms").or(|| 10_000, whole(0..=HOUR)),
        events_kept: layers.key(IN, "events_kept").or(|| 65_536, whole(1..=100 * MANY)),
    }
}

fn limits(layers: &mut Layers<'_>) -> EngineLimits {
    let EngineLimits {
        max_active,
        max_active_per_agent,
        max_queued,
        max_queued_per_agent,
        max_runs,
        max_deliveries,
        max_made_bytes,
    } = EngineLimits::default();
    let mut bound =
        |name, least, default| layers.key("limits", name).or(|| default, whole(least..=100 * MANY)).value;
    EngineLimits {
        max_active: bound("max_active", 1, max_active),
        max_active_per_agent: bound("max_active_per_agent", 1, max_active_per_agent),
        max_queued: bound("max_queued", 0, max_queued),
        max_queued_per_agent: bound("max_queued_per_agent", 0, max_queued_per_agent),
        max_runs: bound("max_runs", 1, max_runs),
        max_deliveries: bound("max_deliveries", 1, max_deliveries),
        max_made_bytes: layers
            .key("limits", "max_made_bytes")
            .or(|| max_made_bytes, whole(1024..=1 << 40))
            .value,
    }
}

fn http(layers: &mut Layers<'_>) -> HttpSettings {
    let defaults = HttpSettings::default();
    let usual = u64::try_from(defaults.connect_timeout.as_millis()).unwrap_or(HOUR);
    let proxy = layers.key("http", "proxy").or(|| None, |raw| proxy(raw).map(Some));
    let ca_file = layers.key("http", "ca_file").or(|| None, |raw| path(raw).map(Some));
    let timeout = layers.key("http", "connect_timeout_ms").or(|| usual, whole(1..=HOUR));
    let extra_ca = ca_file.value.map_or_else(Vec::new, |path| {
        read_bounded(&path, MAX_BYTES).unwrap_or_else(|error| {
            let why = format!("the certificates in {} cannot be read: {}", shown(&path), reason(&error));
            layers.complain(&ca_file.origin, &why);
            Vec::new()
        })
    });
    let connect_timeout = Duration::from_millis(timeout.value);
    HttpSettings { proxy: proxy.value, extra_ca, connect_timeout, ..defaults }
}

fn prices(layers: &mut Layers<'_>) -> Prices {
    const KEYS: [&str; 4] = ["input", "output", "cached", "cache_write"];
    let mut prices = Prices::new();
    for (model, origin, values) in layers.tables("prices", &KEYS) {
        let mut of = |key: &'static str| {
            let (raw, origin) = values.get(key)?;
            let read = price(raw).map_err(|why| layers.complain(origin, &why)).ok();
            let name = format!("prices.{}.{key}", quoted(&model));
            layers.show(name, json!(read), origin.clone());
            // Told already; that it is missing would be told a second time.
            Some(read.unwrap_or(0.0))
        };
        let [input, output, cached, cache_write] = KEYS.map(&mut of);
        for (key, value) in [("input", input), ("output", output)] {
            if value.is_none() {
                layers.complain(&origin, &format!("missing field `{key}`"));
            }
        }
        if let Some((input, output)) = input.zip(output) {
            prices.insert(model, Price { input, output, cached, cache_write });
        }
    }
    prices
}

fn memory(layers: &mut Layers<'_>) -> MemorySettings {
    let defaults = MemorySettings::default();
    let mut bound = |name, default| layers.key("memory", name).or(|| default, whole(0..=1 << 50)).value;
    MemorySettings {
        max_sessions: bound("max_sessions", defaults.max_sessions),
        max_bytes: bound("max_bytes", defaults.max_bytes),
        ..defaults
    }
}

fn log(layers: &mut Layers<'_>, flags: &Flags) -> LogSettings {
    let (filter, usual) = match flags.logs {
        LogDefault::Quiet => ("warn", Format::Human),
        LogDefault::BesideTimeline => ("warn,redflow_engine=error", Format::Human),
        LogDefault::Service => ("info", Format::Auto),
    };
    let key = layers.key("log", "level").variable("REDFLOW_LOG").flag("--log", flags.log.clone());
    LogSettings {
        level: key.or(|| filter.to_owned(), text),
        format: layers.key("log", "format").or(|| usual, format),
        redact: layers.key("log", "redact").or(|| Level::All, level),
    }
}

/// A secret of the environment. Only that there is one is shown.
fn secret(
    layers: &mut Layers<'_>,
    key: &str,
    name: &'static str,
    check: fn(SecretString) -> Result<SecretString, String>,
) -> Option<SecretString> {
    let Some(value) = layers.variable(name) else {
        layers.show(key.to_owned(), Value::Null, Origin::Default);
        return None;
    };
    let origin = Origin::Environment { name };
    layers.show(key.to_owned(), json!(IS_SET), origin.clone());
    let text = value.into_string().map_err(|_| "it must be UTF-8 text".to_owned());
    match text.map(SecretString::from).and_then(check) {
        Ok(secret) => Some(secret),
        Err(why) => {
            layers.complain(&origin, &why);
            None
        }
    }
}

/// What may be a token.
fn token(secret: SecretString) -> Result<SecretString, String> {
    match Tokens::ephemeral(Some(secret.clone())) {
        Ok(_) => Ok(secret),
        Err(_) => Err(format!("it must be {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} visible ASCII characters")),
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
