//! The configuration file: TOML, named by `--config` or `REDFLOW_CONFIG`. Without one everything has its
//! default.
//!
//! A value in it may be a secret (a proxy's password), so no error quotes one.

use crate::files::{read_bounded, reason, shown};
use crate::terminal::printable_line;
use redflow_memory::MemorySettings;
use redflow_models::price::Prices;
use redflow_models::transport::HttpSettings;
use redflow_telemetry::{Format, Level};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// Bytes of a configuration file.
const MAX_BYTES: usize = 1024 * 1024;

/// What the file may say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    http: HttpSection,
    /// Prices for a million tokens, by model.
    pub(crate) prices: Prices,
    memory: MemorySection,
    pub(crate) log: LogSection,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    proxy: Option<Url>,
    ca_file: Option<PathBuf>,
    connect_timeout_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct MemorySection {
    max_sessions: Option<usize>,
    max_bytes: Option<usize>,
}

/// How the log looks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogSection {
    pub(crate) level: Option<String>,
    pub(crate) format: Option<FormatName>,
    pub(crate) redact: Option<LevelName>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FormatName {
    Auto,
    Human,
    Json,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LevelName {
    Off,
    Secrets,
    All,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Auto => Self::Auto,
            FormatName::Human => Self::Human,
            FormatName::Json => Self::Json,
        }
    }
}

impl From<LevelName> for Level {
    fn from(name: LevelName) -> Self {
        match name {
            LevelName::Off => Self::Off,
            LevelName::Secrets => Self::Secrets,
            LevelName::All => Self::All,
        }
    }
}

impl Config {
    /// The file's, or the defaults if none is named.
    pub(crate) fn read(named: Option<&Path>) -> Result<Self, String> {
        let from_env =
            || std::env::var_os("REDFLOW_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        let Some(path) = named.map(Path::to_owned).or_else(from_env) else { return Ok(Self::default()) };
        let wrong = |what: String| format!("the configuration {} {what}", shown(&path));
        let bytes = read_bounded(&path, MAX_BYTES)
            .map_err(|error| wrong(format!("cannot be read: {}", reason(&error))))?;
        if bytes.len() > MAX_BYTES {
            return Err(wrong(format!("has more than {MAX_BYTES} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("is no UTF-8 text".to_owned()))?;
        let config: Self = toml::from_str(&text).map_err(|error| wrong(complaint(&error, &text)))?;
        match config.prices.iter().find(|(_, price)| !price.is_sound()) {
            Some((model, _)) => {
                let model = printable_line(model, 100);
                Err(wrong(format!("is wrong: the prices of `{model}` must be numbers from 0 to 1e9")))
            }
            None => Ok(config),
        }
    }

    /// How providers are reached.
    pub(crate) fn http(&self) -> Result<HttpSettings, String> {
        let defaults = HttpSettings::default();
        let extra_ca = match &self.http.ca_file {
            None => Vec::new(),
            Some(path) => read_bounded(path, MAX_BYTES).map_err(|error| {
                format!("the certificates in {} cannot be read: {}", shown(path), reason(&error))
            })?,
        };
        Ok(HttpSettings {
            proxy: self.http.proxy.clone(),
            extra_ca,
            connect_timeout: self
                .http
                .connect_timeout_ms
                .map_or(defaults.connect_timeout, Duration::from_millis),
        })
    }

    /// Bounds of what is remembered in the process.
    pub(crate) fn memory(&self) -> MemorySettings {
        let defaults = MemorySettings::default();
        MemorySettings {
            max_sessions: self.memory.max_sessions.unwrap_or(defaults.max_sessions),
            max_bytes: self.memory.max_bytes.unwrap_or(defaults.max_bytes),
            ..defaults
        }
    }
}

/// Where and why, without the library's quotation of the line.
fn complaint(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let place = line.map(|line| format!(" in line {line}")).unwrap_or_default();
    let message = error.message();
    // These name keys only; others may quote a value.
    let known = ["unknown field", "missing field", "unknown variant", "duplicate key"];
    match known.iter().find(|start| message.starts_with(*start)) {
        Some(_) => format!("is wrong{place}: {message}"),
        None => format!("is wrong{place}: it is no TOML, or a value is of another kind than its key wants"),
    }
}

#[cfg(test)]
mod tests {
    use super::Config;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redflow.toml");
        std::fs::write(&path, text).unwrap();
        let shown = path.display().to_string();
        Config::read(Some(&path)).map_err(|text| text.replace(&shown, "FILE"))
    }

    #[test]
    fn what_it_may_say() {
        let config = read(
            "[http]\nproxy = \"http://u:p@proxy:3128\"\nconnect_timeout_ms = 5\n\
             [prices.\"gpt-5*\"]\ninput = 1\noutput = 2.5\ncached = 0.1\n\
             [memory]\nmax_sessions = 7\n[log]\nlevel = \"debug\"\nformat = \"json\"\nredact = \"secrets\"\n",
        )
        .unwrap();
        let http = config.http().unwrap();
        assert_eq!((http.connect_timeout.as_millis(), http.proxy.unwrap().port()), (5, Some(3128)));
        assert_eq!(config.memory().max_sessions, 7);
        assert!((config.prices["gpt-5*"].output - 2.5).abs() < 1e-9);
        assert!(Config::read(None).is_ok());
    }

    #[test]
    fn a_mistake_is_named_and_no_value_is_quoted() {
        for (text, expected) in [
            ("[http]\nprox = 1\n", "the configuration FILE is wrong in line 2: unknown field `prox`"),
            ("[log]\nredact = \"some\"", "in line 2: unknown variant"),
            ("\n[http]\nproxy = 5", "in line 3: it is no TOML, or a value is of another kind"),
            ("[http\nproxy", "in line 1: it is no TOML"),
            ("[prices.x]\ninput = 1", "missing field `output`"),
            ("[prices.x]\ninput = nan\noutput = 1", "the prices of `x` must be numbers from 0 to 1e9"),
            ("[prices.x]\ninput = 1\noutput = -1", "the prices of `x` must be"),
            ("[prices.x]\ninput = 1\noutput = 1\ncached = inf", "the prices of `x` must be"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let secret = read("[http]\nproxy = \"s3cret word\"").unwrap_err();
        assert!(!secret.contains("s3cret"), "{secret}");
        let missing = Config::read(Some(std::path::Path::new("no/such.toml"))).unwrap_err();
        assert!(missing.contains("cannot be read"), "{missing}");
        let no_ca = read("[http]\nca_file = \"no/such.pem\"").unwrap().http().unwrap_err();
        assert!(no_ca.contains("the certificates in"), "{no_ca}");
    }
}
