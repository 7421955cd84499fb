//! `redflow mcp add` and `remove`: the servers in `mcp.d/` of a data directory.

use super::definition::{define, warnings};
use super::source::unknown_server;
use crate::args::AddServerOptions;
use crate::context::{AppContext, find_confinement};
use crate::data_dir::create_data_dir;
use crate::diagnostics::format_diagnostic;
use crate::errors::{print_api_error, print_file_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::files::display_path;
use crate::terminal::{fail, print_json, print_note, print_text, print_warning};
use crate::text::printable_line;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::manifest::Manifest;
use redflow_contract::mcp::{McpAuth, McpPins, McpServer, OAuthGrant};
use redflow_mcp::Confiner;
use redflow_ports::{ManifestStore as _, McpStore as _};
use redflow_store::{ManifestFiles, McpFiles};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn add(options: &AddServerOptions, context: &AppContext) -> CommandResult {
    let name = &options.name;
    let server = define(options).map_err(|text| fail(&text))?;
    if server.command.is_none() && server.url.is_none() {
        return Err(fail("name a program after `--`, or an address with --address URL"));
    }
    let dir = context.settings.data_dir().map_err(print_store_error)?;
    let files = ManifestFiles::new(dir.clone());
    let definition = serde_json::to_value(&server).unwrap_or_default();
    check_definition(name, &definition).map_err(|problems| print_problems(&problems))?;
    let manifest = read_manifest(&files).map_err(|problems| print_problems(&problems))?;
    check_name(name, &manifest, &files, options.force).map_err(|text| fail(&text))?;
    let confinement = Confiner::new(find_confinement).confinement();
    for warning in warnings(&server, &confinement) {
        print_warning(&printable_line(&warning, 800));
    }
    create_data_dir(&dir)?;
    files.put_server(name, &definition).map_err(print_file_error)?;
    Ok(if options.json {
        print_json(&json!({"name": name, "definition": definition}))
    } else {
        print_text(&next_steps(name, &server, &dir))
    })
}

/// Checks the definition as if it stood in the manifest.
fn check_definition(name: &str, definition: &Value) -> Result<(), Vec<Diagnostic>> {
    redflow_flow::check_manifest(&json!({"mcp": {name: definition}})).map(drop)
}

fn read_manifest(files: &ManifestFiles) -> Result<Manifest, Vec<Diagnostic>> {
    files.read().and_then(|value| redflow_flow::check_manifest(&value))
}

fn print_problems(problems: &[Diagnostic]) -> Exit {
    problems.iter().for_each(|problem| print_note(&format_diagnostic(problem)));
    Exit::Unusable
}

/// A server of the manifest would hide the new one. Names that differ by their case only would share files.
fn check_name(name: &str, manifest: &Manifest, files: &ManifestFiles, force: bool) -> Result<(), String> {
    let same = |other: &String| other.eq_ignore_ascii_case(name);
    if let Some(other) = manifest.mcp.keys().find(|other| same(other)) {
        return Err(format!("the manifest has a server `{other}`; choose another name, or change it there"));
    }
    let added: Vec<String> = files.servers().into_iter().map(|server| server.name).collect();
    match added.iter().find(|other| same(other)) {
        Some(other) if other != name => Err(format!(
            "there is a server `{other}`, whose name differs by its case only; choose another name"
        )),
        Some(_) if !force => Err(format!(
            "there is a server `{name}` already; replace it with --force, or choose another name"
        )),
        _ => Ok(()),
    }
}

/// What to do with a server that was just added.
fn next_steps(name: &str, server: &McpServer, dir: &Path) -> String {
    let mut text =
        format!("added {name} in {}\n", display_path(&dir.join("mcp.d").join(format!("{name}.json"))));
    let mut variables: Vec<&str> = server.secrets.iter().map(String::as_str).collect();
    variables.extend(server.auth.as_ref().and_then(McpAuth::env));
    for variable in variables {
        let variable = printable_line(variable, 100);
        let _ = writeln!(text, "  set {variable} in the environment of the sidecar");
    }
    let by_person = |auth: &McpAuth| matches!(auth, McpAuth::OAuth { grant, .. } if *grant != Some(OAuthGrant::ClientCredentials));
    if server.auth.as_ref().is_some_and(by_person) {
        let _ = writeln!(text, "  sign in:   redflow mcp login {name}");
    }
    let _ = writeln!(text, "  try it:    redflow mcp show {name}");
    let _ = writeln!(
        text,
        "  use it:    in Node-RED, wire an mcp-client node with the server `{name}` to an agent"
    );
    text
}

/// Removes an added server with its tokens and pins. A server that is added later with the same name starts afresh.
pub(super) async fn remove(name: &str, context: &AppContext) -> CommandResult {
    let dir = context.settings.data_dir().map_err(print_store_error)?;
    let files = ManifestFiles::new(dir.clone());
    let manifest = read_manifest(&files).map_err(|problems| print_problems(&problems))?;
    if manifest.mcp.contains_key(name) {
        return Err(fail("this server stands in the manifest; remove it there"));
    }
    let added = files.servers().into_iter().find(|server| server.name == name);
    let Some(added) = added else {
        return Err(print_api_error(unknown_server(name, &display_path(&dir))));
    };
    context.load_tools()?;
    // A program, and a definition with problems, have no tokens.
    let has_address = added.server.is_ok_and(|definition| definition.get("url").is_some());
    if has_address
        && context.mcp.is_known(name)
        && let Err(error) = context.mcp.logout(name).await
    {
        print_warning(&format!("its tokens may be left: {}", printable_line(&error.message, 400)));
    }
    files.remove_server(name).map_err(print_file_error)?;
    let pins = McpFiles::new(&dir);
    // Pins that cannot be read are replaced too.
    if pins.pins(name).map_or(true, |pins| !pins.tools.is_empty()) {
        pins.set_pins(name, &McpPins::default()).map_err(print_file_error)?;
    }
    print_note(&format!("removed {name}"));
    Ok(Exit::Success)
}
