//! Checks the MCP servers of a manifest, and those that `redflow mcp add` has added.
//!
//! An environment variable, an argument or an address may have a secret in it, so no text repeats one.

use super::address::{AddressOwner, check_address};
use super::fields::{check_header_name, check_number, check_variable, is_variable};
use super::problems::Problems;
use super::{pointer_to, text};
use redflow_contract::Message;
use redflow_contract::mcp::{MAX_MCP_RESULT_BYTES, MAX_MCP_SERVERS, MAX_MCP_TIMEOUT_MS, is_mcp_name};
use redflow_contract::secret::is_secret_name;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// The most arguments of a program, and the most entries of its other lists.
const MAX_ENTRIES: usize = 100;

/// The longest program, argument, path or value of a variable, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// The most names or patterns of tools in one list.
const MAX_PATTERNS: usize = 128;

/// The longest name or pattern of tools, in bytes.
const MAX_PATTERN_BYTES: usize = 128;

/// The most scopes of a sign-in.
const MAX_SCOPES: usize = 32;

/// The longest id of a client, and the longest scope, in bytes.
const MAX_OAUTH_BYTES: usize = 256;

/// What only a program has.
const OF_PROGRAM: [&str; 6] = ["args", "env", "secrets", "read", "write", "network"];

/// Variables that load code into a program before it is confined begin so.
const LOADER_VARIABLES: [&str; 2] = ["LD_", "DYLD_"];

/// Checks the servers of a manifest, by name.
pub(super) fn check_servers(problems: &mut Problems, servers: &Message) {
    if servers.len() > MAX_MCP_SERVERS {
        let (expected, found) = (format!("at most {MAX_MCP_SERVERS} servers"), servers.len().to_string());
        return problems.add("/mcp", &expected, &found, "Remove some of them.");
    }
    let mut names = HashSet::new();
    for (name, server) in servers {
        let pointer = pointer_to("/mcp", name);
        if !is_mcp_name(name) {
            let expected = "a name of 1 to 40 letters, digits, `_` and `-`";
            problems.add(&pointer, expected, &format!("`{name}`"), "Rename the server.");
        } else if !names.insert(name.to_ascii_lowercase()) {
            let expected = "a name that differs from the others by more than its case";
            problems.add(&pointer, expected, &format!("`{name}`"), "Rename one of the servers.");
        }
        if let Some(server) = server.as_object() {
            check_server(problems, &pointer, server);
        }
    }
}

/// Checks one server.
pub(super) fn check_server(problems: &mut Problems, pointer: &str, server: &Message) {
    let has = |key: &str| server.get(key).is_some_and(|value| !value.is_null());
    match (has("command"), has("url")) {
        (true, false) => check_program(problems, pointer, server),
        (false, true) => check_remote(problems, pointer, server),
        (both, _) => {
            let found = if both { "both" } else { "neither" };
            let help = "Write `command` for a program on this machine, or `url` for an address.";
            problems.add(pointer, "either `command` or `url`", found, help);
        }
    }
    for key in ["include", "exclude"] {
        let list = strings(server, key);
        check_count(problems, &format!("{pointer}/{key}"), list.len(), MAX_PATTERNS);
        for (index, pattern) in list {
            check_pattern(problems, &format!("{pointer}/{key}/{index}"), pattern);
        }
    }
    if let Some(effects) = server.get("effects").and_then(Value::as_object) {
        let pointer = format!("{pointer}/effects");
        check_count(problems, &pointer, effects.len(), MAX_PATTERNS);
        effects.keys().for_each(|pattern| check_pattern(problems, &pointer_to(&pointer, pattern), pattern));
    }
    check_number(problems, pointer, server, "timeoutMs", (1, MAX_MCP_TIMEOUT_MS));
    check_number(problems, pointer, server, "maxResultBytes", (1, MAX_MCP_RESULT_BYTES));
}

/// Checks a server that is a program.
fn check_program(problems: &mut Problems, pointer: &str, server: &Message) {
    if server.contains_key("auth") {
        let help = "Remove it. A program gets its secrets by `secrets`.";
        problems.add(&format!("{pointer}/auth"), "`auth` only beside `url`", "`auth`", help);
    }
    if let Some(command) = text(server, "command") {
        let pointer = format!("{pointer}/command");
        if command.trim().is_empty() {
            problems.add(&pointer, "a program", "an empty text", "Name the program, such as `npx`.");
        } else {
            check_bytes(problems, &pointer, command);
        }
    }
    for key in ["args", "read", "write", "secrets"] {
        let (pointer, list) = (format!("{pointer}/{key}"), strings(server, key));
        check_count(problems, &pointer, list.len(), MAX_ENTRIES);
        for (index, entry) in list {
            let pointer = format!("{pointer}/{index}");
            match key {
                "secrets" => check_inherited(problems, &pointer, entry),
                "args" => check_bytes(problems, &pointer, entry),
                _ => check_path(problems, &pointer, entry),
            }
        }
    }
    check_nesting(problems, pointer, server);
    let Some(env) = server.get("env").and_then(Value::as_object) else { return };
    let pointer = format!("{pointer}/env");
    check_count(problems, &pointer, env.len(), MAX_ENTRIES);
    for (name, value) in env {
        let pointer = pointer_to(&pointer, name);
        if !is_variable(name) {
            let expected = "the name of an environment variable: letters, digits and `_`, first no digit";
            problems.add(&pointer, expected, "another text", "Change the name.");
        } else if is_loader_variable(name) {
            let expected = "a variable that does not begin with `LD_` or `DYLD_`";
            let help = "Remove it. It would load code into the program before the program is confined.";
            problems.add(&pointer, expected, &format!("`{name}`"), help);
        } else if is_secret_name(name) {
            let help =
                "Set the variable in the environment of the sidecar, and write its name into `secrets`.";
            problems.add(&pointer, "a variable without a secret", &format!("`{name}`"), help);
        } else if let Some(value) = value.as_str() {
            check_bytes(problems, &pointer, value);
        }
    }
}

/// Checks a variable of the sidecar that a program gets.
fn check_inherited(problems: &mut Problems, pointer: &str, name: &str) {
    if is_loader_variable(name) {
        let expected = "a variable that does not begin with `LD_` or `DYLD_`";
        let help = "Remove it. It would load code into the program before the program is confined.";
        problems.add(pointer, expected, "one of them", help);
    } else {
        check_variable(problems, pointer, name);
    }
}

fn is_loader_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    LOADER_VARIABLES.iter().any(|prefix| upper.starts_with(prefix))
}

/// Checks a server that is an address.
fn check_remote(problems: &mut Problems, pointer: &str, server: &Message) {
    for key in OF_PROGRAM {
        if server.contains_key(key) {
            let (pointer, expected) = (format!("{pointer}/{key}"), format!("`{key}` only beside `command`"));
            problems.add(&pointer, &expected, &format!("`{key}`"), "Remove it. An address is no program.");
        }
    }
    if let Some(url) = text(server, "url") {
        let checked = if url.contains(['{', '}']) {
            Err(("an address without placeholders", "a brace".to_owned()))
        } else {
            check_address(url, AddressOwner::Server)
        };
        if let Err((expected, found)) = checked {
            problems.add(&format!("{pointer}/url"), expected, &found, "Change the address.");
        }
    }
    if let Some(auth) = server.get("auth").and_then(Value::as_object) {
        check_auth(problems, &format!("{pointer}/auth"), auth);
    }
}

fn check_auth(problems: &mut Problems, pointer: &str, auth: &Message) {
    for key in ["env", "secretEnv"] {
        if let Some(name) = text(auth, key) {
            check_variable(problems, &format!("{pointer}/{key}"), name);
        }
    }
    let kind = text(auth, "type");
    if let (Some("header"), Some(name)) = (kind, text(auth, "name")) {
        check_header_name(problems, &format!("{pointer}/name"), name);
    }
    if text(auth, "grant") == Some("client_credentials") {
        for key in ["clientId", "secretEnv"] {
            if text(auth, key).is_none() {
                let (expected, help) = (format!("a key `{key}`"), "Add it: `client_credentials` needs both.");
                problems.add(&format!("{pointer}/{key}"), &expected, "nothing", help);
            }
        }
    }
    let is_word = |text: &str| {
        (1..=MAX_OAUTH_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let expected = format!("1 to {MAX_OAUTH_BYTES} printable ASCII characters without spaces");
    if text(auth, "clientId").is_some_and(|id| !is_word(id)) {
        let help = "Write the id that the issuer gave the client.";
        problems.add(&format!("{pointer}/clientId"), &expected, "another text", help);
    }
    let (pointer, scopes) = (format!("{pointer}/scopes"), strings(auth, "scopes"));
    check_count(problems, &pointer, scopes.len(), MAX_SCOPES);
    for (index, scope) in scopes {
        if !is_word(scope) {
            let help = "Write one scope in each entry.";
            problems.add(&format!("{pointer}/{index}"), &expected, "another text", help);
        }
    }
}

/// Checks a text that the system takes: its length, and that no NUL cuts it.
fn check_bytes(problems: &mut Problems, pointer: &str, text: &str) {
    if text.len() > MAX_TEXT_BYTES || text.contains('\0') {
        let expected = format!("at most {MAX_TEXT_BYTES} bytes without a NUL");
        problems.add(pointer, &expected, &format!("{} bytes", text.len()), "Change the text.");
    }
}

fn check_path(problems: &mut Problems, pointer: &str, path: &str) {
    if Path::new(path).is_absolute() {
        check_bytes(problems, pointer, path);
    } else {
        let help = "Write the whole path, from the root on.";
        problems.add(pointer, "an absolute path", "another text", help);
    }
}

/// A program could replace a path inside a writable one by a link to anything, which its next start would follow.
fn check_nesting(problems: &mut Problems, pointer: &str, server: &Message) {
    let writable = strings(server, "write");
    for key in ["read", "write"] {
        for (index, path) in strings(server, key) {
            let is_around = |(_, outer): &&(usize, &str)| {
                Path::new(path) != Path::new(outer) && Path::new(path).starts_with(outer)
            };
            if let Some((outer, _)) = writable.iter().find(is_around) {
                let found = format!("a path inside `write/{outer}`");
                let help = "Declare the outer path alone, or one that is elsewhere.";
                problems.add(
                    &format!("{pointer}/{key}/{index}"),
                    "a path outside of writable ones",
                    &found,
                    help,
                );
            } else if Path::new(path).parent().is_none() && Path::new(path).is_absolute() {
                let help = "Declare the folders that the program needs.";
                problems.add(&format!("{pointer}/{key}/{index}"), "a path below the root", "the root", help);
            }
        }
    }
}

fn check_pattern(problems: &mut Problems, pointer: &str, pattern: &str) {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'*');
    if !(1..=MAX_PATTERN_BYTES).contains(&pattern.len()) || !pattern.bytes().all(is_allowed) {
        let expected = format!(
            "the name of a tool, or a pattern such as `read_*`: letters, digits, `_`, `-`, `.`, `/` and `*`, up to \
             {MAX_PATTERN_BYTES} bytes"
        );
        problems.add(pointer, &expected, "another text", "Change the name.");
    }
}

fn check_count(problems: &mut Problems, pointer: &str, count: usize, most: usize) {
    if count > most {
        let (expected, found) = (format!("at most {most} entries"), count.to_string());
        problems.add(pointer, &expected, &found, "Remove some of them.");
    }
}

/// The texts of a list, with their places.
fn strings<'a>(object: &'a Message, key: &str) -> Vec<(usize, &'a str)> {
    let list = object.get(key).and_then(Value::as_array).into_iter().flatten();
    list.enumerate().filter_map(|(index, entry)| Some((index, entry.as_str()?))).collect()
}
