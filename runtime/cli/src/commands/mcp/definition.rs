//! The definition of a server from arguments, and what people should know about it.

use crate::args::{AddServerOptions, AddressOptions, ProgramOptions};
use redflow_contract::mcp::{
    McpAuth, McpConfinement, McpConfinementGap, McpNetwork, McpServer, McpTrust, OAuthGrant,
};
use redflow_contract::node::EffectClass;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Programs that fetch a package before they run it.
const PACKAGE_RUNNERS: [&str; 6] = ["npx", "pnpx", "bunx", "uvx", "npm", "pipx"];

/// Options of those programs whose next word is the package.
const PACKAGE_OPTIONS: [&str; 4] = ["-p", "--package", "--from", "--spec"];

/// The definition that the arguments describe. The error says which argument is wrong.
pub(super) fn define(options: &AddServerOptions) -> Result<McpServer, String> {
    let ProgramOptions { env, secret, read, write, network, command } = &options.program;
    let mut words = command.iter().cloned();
    let mut effects = BTreeMap::new();
    for effect in &options.effect {
        let (pattern, class) = parse_effect(effect)?;
        effects.insert(pattern, class);
    }
    let mut variables = BTreeMap::new();
    for variable in env {
        let (name, value) =
            variable.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
                // The text may be a secret, so it is not repeated.
                "--env needs a name and a value: --env NAME=VALUE".to_owned()
            })?;
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(McpServer {
        command: words.next().map(|program| absolute_program(&program)),
        args: words.collect(),
        env: variables,
        secrets: secret.clone(),
        read: absolute_all(read)?,
        write: absolute_all(write)?,
        network: network
            .as_deref()
            .map(|name| if name == "none" { McpNetwork::None } else { McpNetwork::Any }),
        url: options.remote.address.clone(),
        auth: define_auth(&options.remote)?,
        include: options.include.clone(),
        exclude: options.exclude.clone(),
        effects,
        timeout_ms: options.timeout_ms,
        max_result_bytes: options.max_result_bytes,
        resources: options.resources,
        trust: options
            .trust
            .as_deref()
            .map(|name| if name == "pinned" { McpTrust::Pinned } else { McpTrust::FirstUse }),
    })
}

fn define_auth(options: &AddressOptions) -> Result<Option<McpAuth>, String> {
    if let Some(env) = &options.bearer_env {
        return Ok(Some(McpAuth::Bearer { env: env.clone() }));
    }
    if let Some(header) = &options.header {
        let (name, env) =
            header.split_once('=').ok_or("--header needs a name and a variable: --header NAME=VARIABLE")?;
        return Ok(Some(McpAuth::Header { name: name.to_owned(), env: env.to_owned() }));
    }
    if !options.oauth {
        return Ok(None);
    }
    let grant = options.grant.as_deref().map(|name| match name {
        "client_credentials" => OAuthGrant::ClientCredentials,
        _ => OAuthGrant::AuthorizationCode,
    });
    Ok(Some(McpAuth::OAuth {
        grant,
        client_id: options.client_id.clone(),
        secret_env: options.client_secret_env.clone(),
        scopes: options.scope.clone(),
    }))
}

fn parse_effect(text: &str) -> Result<(String, EffectClass), String> {
    let wrong = || {
        format!(
            "--effect needs a name or pattern and a class: --effect 'get_*=read'; the classes are read, idempotent and \
             at_most_once, not `{text}`"
        )
    };
    let (pattern, class) =
        text.rsplit_once('=').filter(|(pattern, _)| !pattern.is_empty()).ok_or_else(wrong)?;
    let class = match class {
        "read" => EffectClass::Read,
        "idempotent" => EffectClass::Idempotent,
        "at_most_once" => EffectClass::AtMostOnce,
        _ => return Err(wrong()),
    };
    Ok((pattern.to_owned(), class))
}

/// The sidecar has another current folder, so a relative path would mean another file.
fn absolute_all(paths: &[PathBuf]) -> Result<Vec<String>, String> {
    let each = |path: &PathBuf| {
        let absolute = std::path::absolute(path).ok().and_then(|path| path.to_str().map(str::to_owned));
        absolute.ok_or_else(|| format!("the path `{}` cannot be used: name one in UTF-8", path.display()))
    };
    paths.iter().map(each).collect()
}

/// A program that is named by a relative path, such as `./server`.
fn absolute_program(program: &str) -> String {
    let path = Path::new(program);
    if path.components().count() < 2 {
        return program.to_owned();
    }
    let absolute = std::path::absolute(path).ok().and_then(|path| path.to_str().map(str::to_owned));
    absolute.unwrap_or_else(|| program.to_owned())
}

/// What people should know about a definition before they use it.
pub(super) fn warnings(server: &McpServer, confinement: &McpConfinement) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(package) = package_without_version(server) {
        warnings.push(format!(
            "`{package}` has no exact version, so another program may start tomorrow; write it as NAME@1.2.3"
        ));
    }
    let concerns = |gap: &&McpConfinementGap| match gap {
        McpConfinementGap::Unconfined => server.command.is_some(),
        McpConfinementGap::NoModes => is_package_runner(server),
        _ => false,
    };
    let gaps = confinement.gaps.iter().filter(concerns);
    warnings.extend(gaps.map(|gap| format!("on this system {}", gap.text())));
    if server.command.is_some() && confinement.landlock.is_some() {
        let declared = server.read.iter().chain(&server.write);
        let declared: Vec<&Path> = declared.map(Path::new).collect();
        for argument in server.args.iter().map(Path::new).filter(|path| path.is_absolute() && path.exists()) {
            if !declared.iter().any(|path| argument.starts_with(path)) && !is_system(argument) {
                let path = argument.display();
                warnings
                    .push(format!("the program cannot use {path} yet; add --read {path} or --write {path}"));
            }
        }
    }
    warnings
}

fn is_system(path: &Path) -> bool {
    ["/usr", "/opt", "/bin", "/lib", "/proc"].iter().any(|folder| path.starts_with(folder))
}

fn program_name(server: &McpServer) -> Option<&str> {
    Path::new(server.command.as_deref()?).file_stem()?.to_str()
}

fn is_package_runner(server: &McpServer) -> bool {
    program_name(server).is_some_and(|program| PACKAGE_RUNNERS.contains(&program))
}

/// The package that a program fetches, if nothing fixes its version.
fn package_without_version(server: &McpServer) -> Option<&str> {
    if !is_package_runner(server) {
        return None;
    }
    let program = program_name(server)?;
    let mut words = server.args.iter().map(String::as_str);
    if matches!(program, "npm" | "pipx") && !matches!(words.next(), Some("exec" | "x" | "run")) {
        return None;
    }
    let mut package = None;
    while let Some(word) = words.next() {
        if PACKAGE_OPTIONS.contains(&word) {
            package = words.next();
            break;
        }
        if let Some((_, named)) = word.split_once('=').filter(|(option, _)| PACKAGE_OPTIONS.contains(option))
        {
            package = Some(named);
            break;
        }
        if !word.starts_with('-') {
            package = Some(word);
            break;
        }
    }
    package.filter(|package| !has_exact_version(package) && !is_path(package))
}

fn is_path(package: &str) -> bool {
    package.starts_with(['.', '/', '~'])
}

/// Whether a package is written as `NAME@1.2.3` or `NAME==1.2.3`.
fn has_exact_version(package: &str) -> bool {
    let version = match package.split_once("==") {
        Some((_, version)) => version,
        // A scope begins with the same sign: `@scope/name`.
        None => match package.rsplit_once('@') {
            Some((name, version)) if !name.is_empty() => version,
            _ => return false,
        },
    };
    let plain =
        version.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'_'));
    plain
        && version.starts_with(|first: char| first.is_ascii_digit())
        && version.matches('.').count() >= 2
        && !version.split('.').any(|part| matches!(part, "" | "x" | "X"))
}

#[cfg(test)]
mod tests {
    use super::{has_exact_version, package_without_version, parse_effect, warnings};
    use redflow_contract::mcp::{McpConfinement, McpServer};
    use redflow_contract::node::EffectClass;

    fn program(command: &[&str]) -> McpServer {
        let mut words = command.iter().map(|word| (*word).to_owned());
        McpServer { command: words.next(), args: words.collect(), ..McpServer::default() }
    }

    #[test]
    fn a_version_is_exact_or_it_is_none() {
        for exact in ["a@1.2.3", "@s/a@2026.7.10", "a@1.2.3-beta.1", "a==1.2.3", "a@1.2.3+x"] {
            assert!(has_exact_version(exact), "{exact}");
        }
        for loose in [
            "a", "@s/a", "a@latest", "a@1", "a@1.2", "a@^1.2.3", "a@1.2.x", "a@1.x.3", "a@", "a>=1.2.3",
            "a@*",
        ] {
            assert!(!has_exact_version(loose), "{loose}");
        }
    }

    #[test]
    fn packages_without_an_exact_version_are_named() {
        let rows: [(&[&str], Option<&str>); 12] = [
            (&["npx", "-y", "@s/a"], Some("@s/a")),
            (&["npx", "-y", "@s/a@1.2.3", "--flag", "x"], None),
            (&["npx", "--package=@s/a@latest", "run"], Some("@s/a@latest")),
            (&["npx", "-y", "-p", "a@1.2.3", "b"], None),
            (&["/usr/bin/npx", "a"], Some("a")),
            (&["npx", "./local"], None),
            (&["npx"], None),
            (&["uvx", "a"], Some("a")),
            (&["uvx", "--from", "a==1.2.3", "a"], None),
            (&["npm", "exec", "--yes", "a"], Some("a")),
            (&["npm", "start"], None),
            (&["node", "a"], None),
        ];
        for (command, expected) in rows {
            assert_eq!(package_without_version(&program(command)), expected, "{command:?}");
        }
    }

    #[test]
    fn an_argument_that_names_a_file_must_be_declared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let mut server = program(&["node", "/no/such/file", &path]);
        let whole = McpConfinement::of(Some(7), true);
        assert_eq!(warnings(&server, &whole).len(), 1, "{:?}", warnings(&server, &whole));
        server.read = vec![path];
        assert_eq!(warnings(&server, &whole), Vec::<String>::new());
        let none = McpConfinement::of(None, false);
        assert_eq!(warnings(&server, &none), ["on this system a program has the rights of the sidecar"]);
        let part = McpConfinement::of(Some(7), false);
        assert_eq!(warnings(&server, &part), Vec::<String>::new());
        let installed = warnings(&program(&["npx", "a@1.2.3"]), &part);
        assert!(installed[0].contains("installations by npx"), "{installed:?}");
    }

    #[test]
    fn an_effect_is_a_pattern_and_a_class() {
        assert_eq!(parse_effect("get_*=read"), Ok(("get_*".to_owned(), EffectClass::Read)));
        assert_eq!(parse_effect("a=b=at_most_once"), Ok(("a=b".to_owned(), EffectClass::AtMostOnce)));
        for wrong in ["get_*", "=read", "a=", "a=write"] {
            assert!(parse_effect(wrong).unwrap_err().contains("--effect 'get_*=read'"), "{wrong}");
        }
    }
}
