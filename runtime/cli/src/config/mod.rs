//! The settings of the process, from flags, the environment, a TOML file and defaults.
//!
//! Owns the list of keys with their types and defaults. All problems are reported at once. No message quotes
//! a value, because it may be a secret, such as the password of a proxy.

mod egress;
mod file;
mod layers;
mod values;

pub(crate) use layers::{Setting, SettingOrigin, SettingRow};

use crate::data_dir;
use crate::files::{display_path, read_bounded};
use crate::terminal::{bold_red, print_note};
use crate::text::describe_io_error;
use file::{ConfigFile, MAX_BYTES, RawValue};
use layers::{Environment, Layers, quote_key};
use owo_colors::OwoColorize;
use redflow_access::Tokens;
use redflow_access::tokens::{MAX_TOKEN_BYTES, MIN_TOKEN_BYTES};
use redflow_contract::code::ApiCode;
use redflow_contract::flow::Profile;
use redflow_contract::node::Budget;
use redflow_egress::EgressPolicy;
use redflow_engine::EngineLimits;
use redflow_memory::MemorySettings;
use redflow_models::no_proxy::NoProxy;
use redflow_models::price::{Price, Prices};
use redflow_models::transport::HttpSettings;
use redflow_node_red::TOKEN_VARIABLE;
use redflow_ports::StoreError;
use redflow_store::EventLogSettings;
use redflow_telemetry::{LogFormat, RedactionLevel};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;
use values::{
    IS_SET, amount, boolean, hosts, integer_in, listen_address, log_format, no_proxy, node_red_url, origin,
    origins, path, profile, proxy_url, redaction, sidecar_url, text,
};

/// The variable with the key of an encrypted archive.
pub(crate) const ARCHIVE_KEY_VARIABLE: &str = "REDFLOW_ARCHIVE_KEY";
/// The configuration file in the data directory. It counts if neither a flag nor a variable names a file.
const FILE_IN_DATA_DIR: &str = "redflow.toml";
/// The most problems that are printed.
const MAX_PROBLEMS: usize = 50;
/// The longest timeout: an hour in milliseconds.
const HOUR_MS: u64 = 3_600_000;
const MILLION: u64 = 1_000_000;
/// The error if the sidecar accepts the Redflow UI and listens to other machines.
const UI_NEEDS_LOOPBACK: &str = "pages of the Redflow UI need no token, so other machines must not reach the sidecar: listen \
                                 on this machine only, with --listen 127.0.0.1:1880";

/// The flags that override settings.
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
    pub(crate) allow_private: Vec<String>,
    /// The defaults of the log for this command.
    pub(crate) logs: LogDefault,
}

/// The defaults of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogDefault {
    /// Only warnings and errors.
    #[default]
    Quiet,
    /// Warnings and errors that the timeline does not show already.
    WithTimeline,
    /// The activity of a service, for people on a terminal and as JSON elsewhere.
    Service,
}

pub(crate) struct Settings {
    pub(crate) server: ServerSettings,
    pub(crate) limits: EngineLimits,
    /// What one run may spend, however much its agent allows.
    pub(crate) run_budget: Budget,
    /// The HTTP client for model providers and sidecars.
    pub(crate) http: HttpSettings,
    /// Which addresses tools may reach.
    pub(crate) egress: EgressPolicy,
    /// The prices of a million tokens, by model.
    pub(crate) prices: Prices,
    /// The limits of memories inside the process.
    pub(crate) memory: MemorySettings,
    pub(crate) archive: ArchiveSettings,
    /// Whether the process that reads PDF and HTML must filter its system calls.
    pub(crate) sandbox_filter: bool,
    pub(crate) log: LogSettings,
    /// The sidecar to use instead of the data directory.
    pub(crate) url: Setting<Option<Url>>,
    /// The token that overrides the one in the data directory.
    pub(crate) token: Option<SecretString>,
    /// The access token for Node-RED.
    pub(crate) node_red_token: Option<SecretString>,
    /// The configuration file.
    pub(crate) file: Option<PathBuf>,
    /// All settings, for `redflow config show`.
    pub(crate) rows: Vec<SettingRow>,
}

/// The settings of the sidecar. Other commands share some of them.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    pub(crate) listen: Setting<SocketAddr>,
    /// None if there is no data directory to put it into.
    flows: Setting<Option<PathBuf>>,
    /// None if the platform has no default.
    data: Setting<Option<PathBuf>>,
    /// The origin of the Redflow UI, whose pages need no token.
    pub(crate) redflow_ui: Setting<Option<String>>,
    /// The attached Node-RED, and the one of `redflow flows`.
    pub(crate) node_red: Setting<Option<Url>>,
    pub(crate) profile: Setting<Profile>,
    /// More host names of the sidecar: `host` or `host:port`.
    pub(crate) hosts: Setting<Vec<String>>,
    /// More origins of web pages that may use the sidecar.
    pub(crate) origins: Setting<Vec<String>>,
    /// Whether browsers reach the sidecar over https.
    pub(crate) https: Setting<bool>,
    /// Requests of one token.
    pub(crate) rate_per_second: Setting<u32>,
    /// Requests of one token at once.
    pub(crate) rate_burst: Setting<u32>,
    pub(crate) max_connections: Setting<usize>,
    pub(crate) max_body_bytes: Setting<usize>,
    pub(crate) header_timeout_ms: Setting<u64>,
    pub(crate) body_timeout_ms: Setting<u64>,
    /// The time that runs have to finish their current step when the sidecar stops.
    pub(crate) drain_ms: Setting<u64>,
    pub(crate) events_kept: Setting<u64>,
}

/// The settings of the archive.
#[derive(Debug)]
pub(crate) struct ArchiveSettings {
    pub(crate) encrypt: bool,
    /// The key that overrides the one in the data directory.
    pub(crate) key: Option<SecretString>,
}

#[derive(Debug)]
pub(crate) struct LogSettings {
    pub(crate) level: Setting<String>,
    pub(crate) format: Setting<LogFormat>,
    pub(crate) redact: Setting<RedactionLevel>,
}

/// The problems of the settings, one sentence each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigErrors(Vec<String>);

impl ConfigErrors {
    /// One problem that shows only when the setting is used.
    pub(crate) fn single(origin: &SettingOrigin, why: &str) -> Self {
        Self(vec![format!("{origin}: {why}")])
    }

    pub(crate) fn print(&self) {
        let code = ApiCode::ConfigFileInvalid;
        for problem in self.0.iter().take(MAX_PROBLEMS) {
            print_note(&format!("{}: {problem}", format!("error[{code}]").style(bold_red())));
        }
        if self.0.len() > MAX_PROBLEMS {
            print_note(&format!("… and {} more", self.0.len() - MAX_PROBLEMS));
        }
        print_note(&format!("   = help: redflow explain {code}"));
    }
}

impl Settings {
    /// How many events a data directory keeps.
    pub(crate) fn event_log(&self) -> EventLogSettings {
        let max_events = usize::try_from(self.server.events_kept.value).unwrap_or(usize::MAX);
        EventLogSettings { max_events, ..EventLogSettings::default() }
    }

    /// Reads the settings of this process.
    pub(crate) fn load(flags: &Flags) -> Result<Self, ConfigErrors> {
        Self::load_with(flags, &|name| std::env::var_os(name))
    }

    fn load_with(flags: &Flags, env: Environment<'_>) -> Result<Self, ConfigErrors> {
        let from_env = |name| env(name).filter(|path: &OsString| !path.is_empty()).map(PathBuf::from);
        let named = flags.config.clone().or_else(|| from_env("REDFLOW_CONFIG"));
        let data = || flags.data.clone().or_else(|| from_env("REDFLOW_DATA"));
        let in_data = || file_in(&data().or_else(|| data_dir::default_data_dir(env))?);
        let named = named.or_else(in_data);
        // A file that cannot be parsed sets nothing, but the other layers are still checked.
        let (file, unreadable) = match named.as_deref().map(ConfigFile::read).transpose() {
            Ok(file) => (file, Vec::new()),
            Err(problems) => (None, problems),
        };
        let mut layers = Layers::new(env, file);
        layers.problems = unreadable;
        let config =
            layers.key("", "config").variable("REDFLOW_CONFIG").flag("--config", flags.config.clone());
        config.read_or(|| named.clone(), |raw| path(raw).map(Some));
        let server = server(&mut layers, flags, env);
        let limits = limits(&mut layers);
        let run_budget = run_budget(&mut layers);
        let http = http(&mut layers);
        let egress = egress::egress(&mut layers, flags, &http.extra_ca);
        let prices = prices(&mut layers);
        let memory = memory(&mut layers);
        let encrypt = layers.key("archive", "encrypt").variable("REDFLOW_ARCHIVE_ENCRYPT");
        let encrypt = encrypt.read_or(|| false, boolean).value;
        let sandbox_filter = layers.key("sandbox", "filter").read_or(|| true, boolean).value;
        let log = log(&mut layers, flags);
        let url = layers.key("", "url").variable("REDFLOW_URL").flag("--url", flags.url.clone());
        let url = url.read_or(|| None, |raw| sidecar_url(raw).map(Some));
        let token = secret(&mut layers, "token", "REDFLOW_TOKEN", check_token);
        let node_red_token = secret(&mut layers, "node_red_token", TOKEN_VARIABLE, Ok);
        // The memory that encrypts with the key checks it.
        secret(&mut layers, "memory_key", "REDFLOW_MEMORY_KEY", Ok);
        let key = secret(&mut layers, "archive_key", ARCHIVE_KEY_VARIABLE, check_archive_key);
        let rows = layers.finish().map_err(ConfigErrors)?;
        Ok(Self {
            server,
            limits,
            run_budget,
            http,
            egress,
            prices,
            memory,
            archive: ArchiveSettings { encrypt, key },
            sandbox_filter,
            log,
            url,
            token,
            node_red_token,
            file: named,
            rows,
        })
    }

    pub(crate) fn data_dir(&self) -> Result<PathBuf, StoreError> {
        self.server.data.value.clone().ok_or_else(data_dir::missing_data_dir)
    }

    /// The flow file of the sidecar.
    pub(crate) fn flows_file(&self) -> Result<PathBuf, StoreError> {
        self.server.flows.value.clone().ok_or_else(data_dir::missing_data_dir)
    }
}

/// The configuration file in a data directory, if it has one.
fn file_in(data: &Path) -> Option<PathBuf> {
    let file = data.join(FILE_IN_DATA_DIR);
    // A link that leads nowhere is an error, and not a missing file.
    file.symlink_metadata().is_ok().then_some(file)
}

fn server(layers: &mut Layers<'_>, flags: &Flags, env: Environment<'_>) -> ServerSettings {
    const SECTION: &str = "server";
    let default_listen = || SocketAddr::from((Ipv4Addr::LOCALHOST, 1881));
    let listen = layers
        .key(SECTION, "listen")
        .variable("REDFLOW_LISTEN")
        .flag("--listen", flags.listen.clone())
        .read_or(default_listen, listen_address);
    let data = layers.key(SECTION, "data").variable("REDFLOW_DATA").flag("--data", flags.data.clone());
    let data = data.read_or(|| data_dir::default_data_dir(env), |raw| path(raw).map(Some));
    let default_flows = || data.value.as_ref().map(|dir| dir.join("flows.json"));
    let flows = layers.key(SECTION, "flows").variable("REDFLOW_FLOWS").flag("--flows", flags.flows.clone());
    let flows = flows.read_or(default_flows, |raw| path(raw).map(Some));
    let ui = layers
        .key(SECTION, "redflow_ui")
        .variable("REDFLOW_UI")
        .flag("--redflow-ui", flags.redflow_ui.clone());
    let ui = ui.read_or(|| None, |raw| origin(raw).map(Some));
    if ui.value.is_some() && !listen.value.ip().is_loopback() {
        layers.add_problem(&ui.origin, UI_NEEDS_LOOPBACK);
    }
    let node_red = layers
        .key(SECTION, "node_red")
        .variable("REDFLOW_NODE_RED")
        .flag("--node-red", flags.node_red.clone())
        .read_or(|| None, |raw| node_red_url(raw).map(Some));
    let profile_key =
        layers.key(SECTION, "profile").variable("REDFLOW_PROFILE").flag("--profile", flags.profile);
    // Nodes that the Redflow UI creates lack properties that the strict profile requires.
    let implied = ui.value.is_some().then_some("redflow");
    let profile = profile_key.implied("server.redflow_ui", implied).read_or(Profile::default, profile);
    ServerSettings {
        listen,
        flows,
        data,
        redflow_ui: ui,
        node_red,
        profile,
        hosts: layers.key(SECTION, "hosts").read_or(Vec::new, hosts),
        origins: layers.key(SECTION, "origins").read_or(Vec::new, origins),
        https: layers.key(SECTION, "https").read_or(|| false, boolean),
        rate_per_second: layers.key(SECTION, "rate_per_second").read_or(|| 100, integer_in(1..=MILLION)),
        rate_burst: layers.key(SECTION, "rate_burst").read_or(|| 200, integer_in(1..=MILLION)),
        max_connections: layers.key(SECTION, "max_connections").read_or(|| 1024, integer_in(1..=MILLION)),
        max_body_bytes: layers
            .key(SECTION, "max_body_bytes")
            .read_or(|| 40 * 1024 * 1024, integer_in(1024..=1 << 30)),
        header_timeout_ms: layers
            .key(SECTION, "header_timeout_ms")
            .read_or(|| 10_000, integer_in(1..=HOUR_MS)),
        body_timeout_ms: layers.key(SECTION, "body_timeout_ms").read_or(|| 30_000, integer_in(1..=HOUR_MS)),
        drain_ms: layers.key(SECTION, "drain_ms").read_or(|| 10_000, integer_in(0..=HOUR_MS)),
        events_kept: layers.key(SECTION, "events_kept").read_or(|| 65_536, integer_in(1..=100 * MILLION)),
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
    let mut limit = |name, least, default| {
        layers.key("limits", name).read_or(|| default, integer_in(least..=100 * MILLION)).value
    };
    EngineLimits {
        max_active: limit("max_active", 1, max_active),
        max_active_per_agent: limit("max_active_per_agent", 1, max_active_per_agent),
        max_queued: limit("max_queued", 0, max_queued),
        max_queued_per_agent: limit("max_queued_per_agent", 0, max_queued_per_agent),
        max_runs: limit("max_runs", 1, max_runs),
        max_deliveries: limit("max_deliveries", 1, max_deliveries),
        max_made_bytes: layers
            .key("limits", "max_made_bytes")
            .read_or(|| max_made_bytes, integer_in(1024..=1 << 40))
            .value,
    }
}

fn run_budget(layers: &mut Layers<'_>) -> Budget {
    const SECTION: &str = "run_budget";
    fn calls(least: u64) -> impl Fn(&RawValue) -> Result<Option<u32>, String> {
        move |raw| integer_in(least..=100 * MILLION)(raw).map(Some)
    }
    Budget {
        tokens: layers
            .key(SECTION, "tokens")
            .read_or(|| None, |raw| integer_in(1..=1 << 50)(raw).map(Some))
            .value,
        cost: layers.key(SECTION, "cost").read_or(|| None, |raw| amount(raw).map(Some)).value,
        model_calls: layers.key(SECTION, "model_calls").read_or(|| None, calls(1)).value,
        tool_calls: layers.key(SECTION, "tool_calls").read_or(|| None, calls(0)).value,
    }
}

fn http(layers: &mut Layers<'_>) -> HttpSettings {
    let defaults = HttpSettings::default();
    let default_timeout = u64::try_from(defaults.connect_timeout.as_millis()).unwrap_or(HOUR_MS);
    let proxy = layers.key("http", "proxy").read_or(|| None, |raw| proxy_url(raw).map(Some));
    let no_proxy = layers.key("http", "no_proxy").read_or(Vec::new, no_proxy);
    let ca_file = layers.key("http", "ca_file").read_or(|| None, |raw| path(raw).map(Some));
    let timeout =
        layers.key("http", "connect_timeout_ms").read_or(|| default_timeout, integer_in(1..=HOUR_MS));
    let extra_ca = ca_file.value.map_or_else(Vec::new, |path| {
        read_bounded(&path, MAX_BYTES).unwrap_or_else(|error| {
            let (path, why) = (display_path(&path), describe_io_error(&error));
            layers.add_problem(&ca_file.origin, &format!("the certificates in {path} cannot be read: {why}"));
            Vec::new()
        })
    });
    let connect_timeout = Duration::from_millis(timeout.value);
    // Wrong entries are reported already, and nothing starts with them.
    let no_proxy = NoProxy::parse(&no_proxy.value).unwrap_or_default();
    HttpSettings { proxy: proxy.value, no_proxy, extra_ca, connect_timeout, ..defaults }
}

fn prices(layers: &mut Layers<'_>) -> Prices {
    const KEYS: [&str; 4] = ["input", "output", "cached", "cache_write"];
    let mut prices = Prices::new();
    for (model, origin, values) in layers.take_tables("prices", &KEYS) {
        let mut read_price = |key: &'static str| {
            let (raw, origin) = values.get(key)?;
            let value = amount(raw).map_err(|why| layers.add_problem(origin, &why)).ok();
            let name = format!("prices.{}.{key}", quote_key(&model));
            layers.add_row(name, json!(value), origin.clone());
            // A wrong price is reported already, so it must not count as missing too.
            Some(value.unwrap_or(0.0))
        };
        let [input, output, cached, cache_write] = KEYS.map(&mut read_price);
        for (key, value) in [("input", input), ("output", output)] {
            if value.is_none() {
                layers.add_problem(&origin, &format!("missing field `{key}`"));
            }
        }
        if let Some((input, output)) = input.zip(output) {
            prices.insert(model, Price { above: 0, input, output, cached, cache_write });
        }
    }
    prices
}

fn memory(layers: &mut Layers<'_>) -> MemorySettings {
    let defaults = MemorySettings::default();
    let mut limit =
        |name, default| layers.key("memory", name).read_or(|| default, integer_in(0..=1 << 50)).value;
    MemorySettings {
        max_sessions: limit("max_sessions", defaults.max_sessions),
        max_bytes: limit("max_bytes", defaults.max_bytes),
        ..defaults
    }
}

fn log(layers: &mut Layers<'_>, flags: &Flags) -> LogSettings {
    let (filter, default_format) = match flags.logs {
        LogDefault::Quiet => ("warn", LogFormat::Human),
        LogDefault::WithTimeline => ("warn,redflow_engine=error", LogFormat::Human),
        LogDefault::Service => ("info", LogFormat::Auto),
    };
    let key = layers.key("log", "level").variable("REDFLOW_LOG").flag("--log", flags.log.clone());
    LogSettings {
        level: key.read_or(|| filter.to_owned(), text),
        format: layers.key("log", "format").read_or(|| default_format, log_format),
        redact: layers.key("log", "redact").read_or(|| RedactionLevel::All, redaction),
    }
}

/// Reads a secret from the environment. Only its presence is displayed.
fn secret(
    layers: &mut Layers<'_>,
    key: &str,
    name: &'static str,
    check: fn(SecretString) -> Result<SecretString, String>,
) -> Option<SecretString> {
    let Some(value) = layers.variable(name) else {
        layers.add_row(key.to_owned(), Value::Null, SettingOrigin::Default);
        return None;
    };
    let origin = SettingOrigin::Environment { name };
    layers.add_row(key.to_owned(), json!(IS_SET), origin.clone());
    let text = value.into_string().map_err(|_| "it must be UTF-8 text".to_owned());
    match text.map(SecretString::from).and_then(check) {
        Ok(secret) => Some(secret),
        Err(why) => {
            layers.add_problem(&origin, &why);
            None
        }
    }
}

/// Checks the length and the characters of a token.
fn check_token(secret: SecretString) -> Result<SecretString, String> {
    match Tokens::ephemeral(Some(secret.clone())) {
        Ok(_) => Ok(secret),
        Err(_) => Err(format!("it must be {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} visible ASCII characters")),
    }
}

fn check_archive_key(secret: SecretString) -> Result<SecretString, String> {
    match redflow_store::parse_key(secret.expose_secret()) {
        Some(_) => Ok(secret),
        None => Err("it must be 32 bytes in base64 or in hexadecimal digits".to_owned()),
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
