//! Which sidecar a command uses, and the token for it.
//!
//! A token comes from a file or the environment, never from a flag. It goes only to the named address. The
//! token of the data directory goes only to a sidecar on this machine. The token for an address of the environment that
//! a command does not use goes nowhere.

use super::client::SidecarClient;
use crate::args::SidecarOption;
use crate::config::{SettingOrigin, Settings};
use crate::errors::{print_api_error, print_store_error};
use crate::exit::Exit;
use crate::terminal::{fail, print_warning};
use crate::text::printable_line;
use redflow_access::tokens::read_token;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_models::transport::is_local;
use secrecy::{ExposeSecret as _, SecretString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use url::Url;

/// Whether the command line names something local to work on, such as a flow or a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalTarget {
    Named,
    Unnamed,
}

impl LocalTarget {
    pub(crate) fn named_if(named: bool) -> Self {
        if named { Self::Named } else { Self::Unnamed }
    }
}

/// The sidecar of a command. None if the command works locally. A local target overrides the sidecar of the
/// environment, but not the flag.
pub(crate) fn select_sidecar(
    options: &SidecarOption,
    settings: &Settings,
    target: LocalTarget,
) -> Result<Option<SidecarClient>, Exit> {
    match (&settings.url.value, &settings.url.origin) {
        (Some(_), SettingOrigin::Environment { .. }) if target == LocalTarget::Named => {}
        (Some(url), _) => return connect(url, options.token_file.as_ref(), settings).map(Some),
        (None, _) => {}
    }
    if options.token_file.is_some() {
        return Err(fail("there is no sidecar to send the token to: name one with --url URL"));
    }
    Ok(None)
}

/// The sidecar at an address, with its token.
pub(crate) fn connect(
    url: &Url,
    token_file: Option<&PathBuf>,
    settings: &Settings,
) -> Result<SidecarClient, Exit> {
    let token = find_token(url, token_file, settings).map_err(print_api_error)?;
    if url.scheme() == "http" && !is_local(url) {
        let address = printable_line(url.as_str(), 200);
        print_warning(&format!("the token goes to {address} as plain text; use https://"));
    }
    SidecarClient::new(url.clone(), &token, &settings.http).map_err(|text| fail(&text))
}

fn find_token(url: &Url, file: Option<&PathBuf>, settings: &Settings) -> Result<SecretString, ApiError> {
    let missing = |text: String| ApiError::new(ApiCode::Unauthorized, text);
    if let Some(file) = file {
        let no_file = || missing(format!("There is no file {} with a token.", file.display()));
        return read_token(file)?.ok_or_else(no_file);
    }
    if let Some(token) = &settings.token {
        return Ok(token.clone());
    }
    let remedy = "set REDFLOW_TOKEN, or name a file with --token-file FILE";
    if !is_local(url) {
        return Err(missing(format!("There is no token for {url}: {remedy}.")));
    }
    let path = settings.data_dir().ok().map(|dir| dir.join("token"));
    let token = path.as_ref().map(|path| read_token(path)).transpose()?.flatten();
    token.ok_or_else(|| {
        let why = path.map(|path| format!(", because {} does not exist", path.display())).unwrap_or_default();
        missing(format!(
            "There is no token for {url}{why}: {remedy}, or the sidecar's data directory with --data DIR."
        ))
    })
}

/// The sidecar that uses the data directory, at its address on this machine: once for each token that it may accept, the
/// likeliest first. There is at least one.
pub(crate) fn connect_local(url: &Url, settings: &Settings) -> Result<Vec<SidecarClient>, Exit> {
    let data = settings.data_dir().map_err(print_store_error)?;
    // Without an address, the token of the environment is the one that `redflow serve` got.
    let chosen = settings.token.as_ref().filter(|_| settings.url.value.is_none());
    let tokens = local_tokens(url, &data, chosen).map_err(print_api_error)?;
    let connect = |token| SidecarClient::on_this_machine(url.clone(), token, &settings.http);
    tokens.iter().map(connect).collect::<Result<_, _>>().map_err(|text| fail(&text))
}

/// The tokens that a sidecar with this data directory may accept: that of the directory, then the chosen one, which
/// replaces it if the sidecar has it too.
fn local_tokens(
    url: &Url,
    data: &Path,
    chosen: Option<&SecretString>,
) -> Result<Vec<SecretString>, ApiError> {
    let path = data.join("token");
    let of_data = match read_token(&path) {
        // A sidecar with a chosen token does not read the file.
        Err(_) if chosen.is_some() => None,
        read => read?,
    };
    let is_other = |chosen: &&SecretString| {
        of_data.as_ref().is_none_or(|token| token.expose_secret() != chosen.expose_secret())
    };
    let chosen = chosen.filter(is_other).cloned();
    let tokens: Vec<_> = of_data.into_iter().chain(chosen).collect();
    if tokens.is_empty() {
        let text = format!(
            "There is no token for {url}, because {} does not exist: set REDFLOW_TOKEN to the token of the sidecar, \
             without REDFLOW_URL.",
            path.display()
        );
        return Err(ApiError::new(ApiCode::Unauthorized, text));
    }
    Ok(tokens)
}

/// The address at which this machine reaches a sidecar that listens on `listen`.
pub(crate) fn local_address(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
