//! Commands that talk to a running sidecar instead of doing the work here: `--url URL`.
//!
//! Owns which sidecar is meant, and where its token comes from. A token is never typed: it comes from a file or the
//! environment. It goes to the named address alone, and that of the data directory to this machine alone.

mod check;
mod client;
mod follow;
mod run;
mod runs;
mod sse;

pub(crate) use check::check;
pub(crate) use client::Sidecar;
pub(crate) use run::run;
pub(crate) use runs::{cancel, events, export, list, replay, resolve, show};

use crate::Exit;
use crate::config::{Origin, Settings};
use crate::terminal::{complain, printable_line, refuse_api, talk};
use clap::Args;
use owo_colors::OwoColorize;
use redflow_access::tokens::read_token;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_models::transport::is_local;
use secrecy::SecretString;
use std::path::PathBuf;
use url::Url;

pub(crate) const URL_HELP: &str = "\
The sidecar to ask, such as http://127.0.0.1:1881, instead of the data directory. Without it the one in REDFLOW_URL, \
unless --data or a flow is given";

pub(crate) const TOKEN_FILE_HELP: &str = "\
The file with the sidecar's token. Without it the token in REDFLOW_TOKEN, else, for a sidecar on this machine, that of \
the data directory";

/// Which sidecar.
#[derive(Debug, Clone, Args)]
pub(crate) struct SidecarOption {
    #[arg(long, value_name = "URL", help = URL_HELP)]
    pub(crate) url: Option<String>,
    #[arg(long, value_name = "FILE", help = TOKEN_FILE_HELP)]
    pub(crate) token_file: Option<PathBuf>,
}

impl SidecarOption {
    /// The sidecar a command goes to; none if it does its work here. A variable does not count for a command that
    /// names something to work on here.
    pub(crate) fn sidecar(&self, settings: &Settings, works_here: bool) -> Result<Option<Sidecar>, Exit> {
        match (&settings.url.value, &settings.url.origin) {
            (Some(_), Origin::Environment { .. }) if works_here => {}
            (Some(url), _) => return connect(url, self.token_file.as_ref(), settings).map(Some),
            (None, _) => {}
        }
        if self.token_file.is_some() {
            complain("there is no sidecar to give the token to: name one with --url URL");
            return Err(Exit::Unusable);
        }
        Ok(None)
    }
}

/// The sidecar at an address, with the token for it.
pub(crate) fn connect(url: &Url, token_file: Option<&PathBuf>, settings: &Settings) -> Result<Sidecar, Exit> {
    let token = token(url, token_file, settings).map_err(|error| refuse_api(&error, &[]))?;
    if url.scheme() == "http" && !is_local(url) {
        let address = printable_line(url.as_str(), 200);
        talk(&format!(
            "{}: the token goes to {address} as plain text; use https://",
            "warning".yellow().bold()
        ));
    }
    Sidecar::new(url.clone(), &token, &settings.http).map_err(|text| {
        complain(&text);
        Exit::Unusable
    })
}

fn token(url: &Url, file: Option<&PathBuf>, settings: &Settings) -> Result<SecretString, ApiError> {
    let missing = |text: String| ApiError::new(ApiCode::Unauthorized, text);
    if let Some(file) = file {
        let nothing = || missing(format!("There is no file {} with a token.", file.display()));
        return read_token(file)?.ok_or_else(nothing);
    }
    if let Some(token) = &settings.token {
        return Ok(token.clone());
    }
    let mend = "set REDFLOW_TOKEN, or name a file with --token-file FILE";
    if !is_local(url) {
        return Err(missing(format!("There is no token for {url}: {mend}.")));
    }
    let path = settings.data_dir().ok().map(|dir| dir.join("token"));
    let known = path.as_ref().map(|path| read_token(path)).transpose()?.flatten();
    known.ok_or_else(|| {
        let looked = path.map(|path| format!(", for {} is not there", path.display())).unwrap_or_default();
        missing(format!(
            "There is no token for {url}{looked}: {mend}, or the sidecar's data directory with --data DIR."
        ))
    })
}
