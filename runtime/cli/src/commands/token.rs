//! `redflow token`: prints the sidecar's token, manages more tokens, and signs in a browser.
//!
//! A token is printed to stdout only. The crate `access` owns the files.

use crate::args::{AddTokenOptions, TokenCommand, TokenOptions};
use crate::config::Settings;
use crate::context::{AppContext, clock};
use crate::data_dir::create_data_dir;
use crate::errors::{print_api_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::files::display_path;
use crate::session::new_runtime;
use crate::sidecar::{connect, local_address};
use crate::terminal::{fail, print_json, print_note, print_text, print_warning};
use crate::text::{count, printable_line};
use crate::times::format_time;
use redflow_access::tokens;
use redflow_contract::api::{Scope, SignInCode};
use redflow_contract::console::TokenEntry;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use url::Url;

pub(crate) fn token(options: &TokenOptions, context: &AppContext) -> CommandResult {
    let settings = &context.settings;
    if options.command.is_some() && (options.rotate || options.browser) {
        return Err(fail("--rotate and --browser are for the main token: leave out them or the command"));
    }
    match &options.command {
        None if options.browser => browser(options, settings),
        None if options.rotate => rotate(options, settings),
        None => print_main_token(options, settings),
        Some(TokenCommand::Add(add)) => add_token(add, options, settings),
        Some(TokenCommand::List) => list(options, settings),
        Some(TokenCommand::Remove { name }) => remove(name, options, settings),
    }
}

fn data_dir(settings: &Settings) -> Result<PathBuf, Exit> {
    settings.data_dir().map_err(print_store_error)
}

fn created_data_dir(settings: &Settings) -> Result<PathBuf, Exit> {
    let dir = data_dir(settings)?;
    create_data_dir(&dir)?;
    Ok(dir)
}

/// Prints the token of a sidecar that is started with these settings.
fn print_main_token(options: &TokenOptions, settings: &Settings) -> CommandResult {
    if let Some(token) = &settings.token {
        warn_overridden(settings);
        return Ok(print_token(options, token, "environment"));
    }
    let token = tokens::main_token(&created_data_dir(settings)?).map_err(print_api_error)?;
    Ok(print_token(options, &token, "file"))
}

fn rotate(options: &TokenOptions, settings: &Settings) -> CommandResult {
    let token = tokens::rotate(&created_data_dir(settings)?).map_err(print_api_error)?;
    if settings.token.is_some() {
        warn_overridden(settings);
    }
    Ok(print_token(options, &token, "file"))
}

fn print_token(options: &TokenOptions, token: &SecretString, from: &str) -> Exit {
    let token = token.expose_secret();
    if options.json {
        return print_json(&json!({"token": token, "from": from}));
    }
    print_text(&format!("{token}\n"))
}

fn warn_overridden(settings: &Settings) {
    let file = settings.data_dir().map(|dir| display_path(&dir.join("token")));
    let file = file.unwrap_or_else(|_| "the token of the data directory".to_owned());
    print_warning(&format!("REDFLOW_TOKEN is set and overrides {file}"));
}

fn add_token(add: &AddTokenOptions, options: &TokenOptions, settings: &Settings) -> CommandResult {
    let scopes: Vec<Scope> = add.scope.iter().copied().map(Scope::from).collect();
    let token = tokens::add(&created_data_dir(settings)?, &add.name, &scopes, clock().now());
    let token = token.map_err(print_api_error)?;
    let token = token.expose_secret();
    if options.json {
        return Ok(print_json(&json!({"name": add.name, "scopes": scopes, "token": token})));
    }
    print_note("keep this token: it is printed only once");
    Ok(print_text(&format!("{token}\n")))
}

fn list(options: &TokenOptions, settings: &Settings) -> CommandResult {
    let entries = tokens::list(&data_dir(settings)?).map_err(print_api_error)?;
    if options.json {
        let print = |entry: &TokenEntry| {
            print_json(&json!({"name": entry.name, "scopes": entry.scopes, "createdAt": entry.created_at}))
        };
        return Ok(entries.iter().map(print).max().unwrap_or(Exit::Success));
    }
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in &entries {
        let scopes: Vec<&str> = entry.scopes.iter().map(|scope| scope.as_str()).collect();
        let created_at = entry.created_at.map(format_time).unwrap_or_default();
        text += &format!("{:<width$}  {created_at}  {}\n", entry.name, scopes.join(","));
    }
    print_note(&format!("{} in addition to the main token", count(entries.len(), "token")));
    Ok(if text.is_empty() { Exit::Success } else { print_text(&text) })
}

fn remove(name: &str, options: &TokenOptions, settings: &Settings) -> CommandResult {
    tokens::remove(&data_dir(settings)?, name).map_err(print_api_error)?;
    if options.json {
        return Ok(print_json(&json!({"name": name, "removed": true})));
    }
    print_note(&format!("the token {} is removed", printable_line(name, 80)));
    Ok(Exit::Success)
}

fn browser(options: &TokenOptions, settings: &Settings) -> CommandResult {
    let url = match &settings.url.value {
        Some(url) => url.clone(),
        None => local_url(settings.server.listen.value).ok_or(Exit::Unusable)?,
    };
    let sidecar = connect(&url, None, settings)?;
    let answer = new_runtime()?.block_on(sidecar.post_empty::<SignInCode>(&["api", "sign-in-codes"]));
    let SignInCode { path, expires_at } = answer.map_err(print_api_error)?;
    let address = format!("{}{path}", url.as_str().trim_end_matches('/'));
    if options.json {
        return Ok(print_json(&json!({"url": address, "expiresAt": expires_at})));
    }
    print_note(&format!("open this in a browser before {}; it works once", format_time(expires_at)));
    Ok(print_text(&format!("{}\n", printable_line(&address, 2000))))
}

/// The URL at which this machine reaches a sidecar that listens on `listen`.
fn local_url(listen: SocketAddr) -> Option<Url> {
    Url::parse(&format!("http://{}", local_address(listen))).ok()
}

#[cfg(test)]
mod tests {
    use super::local_url;

    #[test]
    fn an_unspecified_address_is_reached_on_the_loopback() {
        let rows = [
            ("127.0.0.1:1881", "http://127.0.0.1:1881/"),
            ("0.0.0.0:80", "http://127.0.0.1/"),
            ("[::]:1881", "http://[::1]:1881/"),
            ("[fe80::1]:1", "http://[fe80::1]:1/"),
        ];
        for (listen, url) in rows {
            assert_eq!(local_url(listen.parse().unwrap()).unwrap().as_str(), url);
        }
    }
}
