//! `redflow token`: the token of the sidecar, further ones, and a way in for a browser.
//!
//! Owns what is printed. The files belong to the access. A token goes to stdout and nowhere else, for nobody has it but
//! who asks for it here.

use crate::args_serve::{AddOptions, TokenCommand, TokenOptions};
use crate::config::Settings;
use crate::drive::runtime;
use crate::files::{reason, shown};
use crate::terminal::{complain, count, data, json, printable_line, refuse, refuse_api, talk};
use crate::times::moment;
use crate::{Exit, remote, wiring};
use owo_colors::OwoColorize;
use redflow_access::tokens;
use redflow_contract::api::{Scope, SignInCode};
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use url::Url;

pub(crate) fn token(options: &TokenOptions, settings: &Settings) -> Exit {
    if options.command.is_some() && (options.rotate || options.browser) {
        complain("--rotate and --browser are about the main token: leave them out, or the command");
        return Exit::Unusable;
    }
    let done = match &options.command {
        None if options.browser => browser(options, settings),
        None if options.rotate => rotate(options, settings),
        None => print(options, settings),
        Some(TokenCommand::Add(add)) => further(add, options, settings),
        Some(TokenCommand::List) => list(options, settings),
        Some(TokenCommand::Remove { name }) => remove(name, options, settings),
    };
    done.unwrap_or_else(|exit| exit)
}

fn directory(settings: &Settings) -> Result<PathBuf, Exit> {
    settings.data_dir().map_err(|error| refuse(&error))
}

/// The directory, made for its owner alone if it is not there yet.
pub(crate) fn made_directory(settings: &Settings) -> Result<PathBuf, Exit> {
    let dir = directory(settings)?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&dir).map_err(|error| {
        let text = format!("The data directory {} cannot be made: {}.", dir.display(), reason(&error));
        refuse(&StoreError::new(StoreCode::DataUnusable, text))
    })?;
    Ok(dir)
}

/// The token that counts for a sidecar that is started like this.
fn print(options: &TokenOptions, settings: &Settings) -> Result<Exit, Exit> {
    if let Some(token) = &settings.token {
        warn_overridden(settings);
        return Ok(tell(options, token, "environment"));
    }
    let token = tokens::main_token(&made_directory(settings)?).map_err(|error| refuse_api(&error, &[]))?;
    Ok(tell(options, &token, "file"))
}

fn rotate(options: &TokenOptions, settings: &Settings) -> Result<Exit, Exit> {
    let token = tokens::rotate(&made_directory(settings)?).map_err(|error| refuse_api(&error, &[]))?;
    if settings.token.is_some() {
        warn_overridden(settings);
    }
    Ok(tell(options, &token, "file"))
}

fn tell(options: &TokenOptions, token: &SecretString, from: &str) -> Exit {
    let token = token.expose_secret();
    if options.json { json(&json!({"token": token, "from": from})) } else { data(&format!("{token}\n")) }
}

fn warn_overridden(settings: &Settings) {
    let file = settings.data_dir().map(|dir| shown(&dir.join("token")));
    let file = file.unwrap_or_else(|_| "the one of the data directory".to_owned());
    talk(&format!("{}: REDFLOW_TOKEN is set and counts instead of {file}", "warning".yellow().bold()));
}

fn further(add: &AddOptions, options: &TokenOptions, settings: &Settings) -> Result<Exit, Exit> {
    let scopes: Vec<Scope> = add.scope.iter().copied().map(Scope::from).collect();
    let made = tokens::add(&made_directory(settings)?, &add.name, &scopes, wiring::clock().now());
    let token = made.map_err(|error| refuse_api(&error, &[]))?;
    let token = token.expose_secret();
    if options.json {
        return Ok(json(&json!({"name": add.name, "scopes": scopes, "token": token})));
    }
    talk("keep it: it is shown this once");
    Ok(data(&format!("{token}\n")))
}

fn list(options: &TokenOptions, settings: &Settings) -> Result<Exit, Exit> {
    let entries = tokens::list(&directory(settings)?).map_err(|error| refuse_api(&error, &[]))?;
    if options.json {
        let line = |entry: &tokens::TokenEntry| {
            json(&json!({"name": entry.name, "scopes": entry.scopes, "createdAt": entry.created_at}))
        };
        return Ok(entries.iter().map(line).max().unwrap_or(Exit::Well));
    }
    let wide = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in &entries {
        let scopes: Vec<&str> = entry.scopes.iter().map(|scope| scope.as_str()).collect();
        text += &format!("{:<wide$}  {}  {}\n", entry.name, moment(entry.created_at), scopes.join(","));
    }
    talk(&format!("{} beside the main one", count(entries.len(), "token")));
    Ok(if text.is_empty() { Exit::Well } else { data(&text) })
}

fn remove(name: &str, options: &TokenOptions, settings: &Settings) -> Result<Exit, Exit> {
    tokens::remove(&directory(settings)?, name).map_err(|error| refuse_api(&error, &[]))?;
    if options.json {
        return Ok(json(&json!({"name": name, "removed": true})));
    }
    talk(&format!("the token {} works no more", printable_line(name, 80)));
    Ok(Exit::Well)
}

fn browser(options: &TokenOptions, settings: &Settings) -> Result<Exit, Exit> {
    let url = match &settings.url.value {
        Some(url) => url.clone(),
        None => address_of(settings.server.listen.value).ok_or(Exit::Unusable)?,
    };
    let sidecar = remote::connect(&url, None, settings)?;
    let asked = runtime()?.block_on(sidecar.post_nothing::<SignInCode>(&["api", "sign-in-codes"]));
    let SignInCode { path, expires_at } = asked.map_err(|error| refuse_api(&error, &[]))?;
    let address = format!("{}{path}", url.as_str().trim_end_matches('/'));
    if options.json {
        return Ok(json(&json!({"url": address, "expiresAt": expires_at})));
    }
    talk(&format!("open this in a browser before {}; it works once", moment(expires_at)));
    Ok(data(&format!("{}\n", printable_line(&address, 2000))))
}

/// Where a sidecar that listens there is reached from this machine.
fn address_of(listen: SocketAddr) -> Option<Url> {
    Url::parse(&format!("http://{}", near(listen))).ok()
}

/// How who listens there is reached from this machine.
pub(crate) fn near(listen: SocketAddr) -> SocketAddr {
    let near = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(near, listen.port())
}

#[cfg(test)]
mod tests {
    use super::address_of;

    #[test]
    fn a_sidecar_is_reached_where_it_listens() {
        let rows = [
            ("127.0.0.1:1881", "http://127.0.0.1:1881/"),
            ("0.0.0.0:80", "http://127.0.0.1/"),
            ("[::]:1881", "http://[::1]:1881/"),
            ("[fe80::1]:1", "http://[fe80::1]:1/"),
        ];
        for (listen, url) in rows {
            assert_eq!(address_of(listen.parse().unwrap()).unwrap().as_str(), url);
        }
    }
}
