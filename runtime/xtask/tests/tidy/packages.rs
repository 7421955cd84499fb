//! Checks where the packages of others come from and under which licence: crates and npm packages.

use super::check_files;
use redflow_xtask::process;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use std::path::Path;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences of packages that may be part of a release.
const ALLOWED: &[&str] = &[
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Licences of npm packages that only build or test: no release contains them.
const ALLOWED_FOR_DEVELOPMENT: &[&str] =
    &["0BSD", "Artistic-2.0", "BlueOak-1.0.0", "CC-BY-3.0", "CC0-1.0", "MPL-2.0", "Python-2.0", "Unlicense"];

/// npm packages whose lock entry has no licence or only names a file, with the licence that their own files state.
const REVIEWED: &[(&str, &str)] = &[
    ("@modelcontextprotocol/inspector@2.12.0", "MIT AND Apache-2.0"),
    ("@modelcontextprotocol/server-everything@2026.8.31", "MIT"),
    ("@modelcontextprotocol/server-filesystem@2026.8.31", "MIT"),
    ("@modelcontextprotocol/server-memory@2026.8.31", "MIT"),
    ("busboy@1.6.0", "MIT"),
    ("cli-table@0.3.11", "MIT"),
    ("passport-http-bearer@1.0.1", "MIT"),
    ("passport-oauth2-client-password@0.1.2", "MIT"),
    ("passport-strategy@1.0.0", "MIT"),
    ("pause@0.0.1", "MIT"),
    ("qrcode-terminal@0.12.0", "Apache-2.0"),
    ("streamsearch@1.1.0", "MIT"),
];

const ADD_LICENCE: &str = "replace the package, or add the licence in runtime/xtask/tests/tidy/packages.rs";

/// Every package of a `Cargo.lock` comes from crates.io or from this workspace.
pub(crate) fn rust_sources(root: &Path) -> Vec<String> {
    check_files(root, |path| path.ends_with("Cargo.lock"), other_sources)
}

/// Every crate has a licence that we allow.
pub(crate) fn rust_licences(root: &Path) -> Vec<String> {
    match read_metadata(root) {
        Ok(metadata) => bad_licences(&metadata),
        Err(problem) => vec![problem],
    }
}

/// Every entry of a `package-lock.json` has an allowed licence and a hash, and names no address.
pub(crate) fn npm(root: &Path) -> Vec<String> {
    check_files(root, |path| path.ends_with("package-lock.json"), bad_entries)
}

/// Crates of other platforms may not be here, and a test must not need the network for them.
fn read_metadata(root: &Path) -> Result<Value, String> {
    let host = process::host(root)?;
    let every_platform = ["metadata", "--format-version", "1", "--locked", "--offline"];
    let this_platform = ["metadata", "--format-version", "1", "--filter-platform", &host];
    let text = process::read(process::cargo(root, every_platform))
        .or_else(|_| process::read_cargo(root, &this_platform))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

fn other_sources(path: &str, text: &str) -> Vec<String> {
    let lock: toml::Table = match text.parse() {
        Ok(lock) => lock,
        Err(error) => return vec![format!("{path}: {error}")],
    };
    let packages = lock.get("package").and_then(|packages| packages.as_array()).into_iter().flatten();
    packages
        .filter_map(|package| {
            let field = |key: &str| package.get(key).and_then(|value| value.as_str());
            let source = field("source").filter(|source| *source != CRATES_IO)?;
            let name = field("name").unwrap_or_default();
            Some(format!("{path}: {name} comes from {source}: use a release of it on crates.io"))
        })
        .collect()
}

fn bad_licences(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter_map(|package| {
            let text = |key: &str| package[key].as_str().unwrap_or_default();
            let problem = bad_licence(text("license"), &[ALLOWED])?;
            Some(format!("Cargo.lock: {} {}: {problem}", text("name"), text("version")))
        })
        .collect()
}

/// Says what is wrong with an SPDX expression that `allowed` cannot satisfy.
fn bad_licence(licence: &str, allowed: &[&[&str]]) -> Option<String> {
    if licence.is_empty() {
        return Some(format!("it names no licence: {ADD_LICENCE}"));
    }
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(parsed) if parsed.evaluate(|one| allowed.concat().contains(&one.to_string().as_str())) => None,
        Ok(_) => Some(format!("its licence `{licence}` is not allowed: {ADD_LICENCE}")),
        Err(_) => Some(format!("its licence `{licence}` is not an SPDX expression: {ADD_LICENCE}")),
    }
}

fn bad_entries(path: &str, text: &str) -> Vec<String> {
    let Ok(lock) = serde_json::from_str::<Value>(text) else {
        return vec![format!("{path}: not JSON")];
    };
    let entries = lock["packages"].as_object().into_iter().flatten();
    let problems = entries.flat_map(|(place, entry)| bad_entry(path, place, entry));
    problems.map(|problem| format!("{path}: {problem}")).collect()
}

fn bad_entry(path: &str, place: &str, entry: &Value) -> Vec<String> {
    let text = |key: &str| entry[key].as_str().unwrap_or_default();
    // A path outside `node_modules` is a folder of this repository, and a link leads to one.
    let Some((_, name)) = place.rsplit_once("node_modules/").filter(|_| entry["link"] != true) else {
        return Vec::new();
    };
    let package = format!("{name}@{}", text("version"));
    let mut problems = Vec::new();
    if entry.get("resolved").is_some() {
        problems.push(format!("{package} records an address: set omit-lockfile-registry-resolved in .npmrc"));
    }
    // The hash of a package covers the packages that are bundled in it.
    if entry["inBundle"] != true && !text("integrity").starts_with("sha512-") {
        problems
            .push(format!("{package} has no sha512 hash: run `npm install` with a registry that gives one"));
    }
    let reviewed = REVIEWED.iter().find(|(reviewed, _)| *reviewed == package).map(|(_, licence)| *licence);
    let licence = reviewed.or(entry["license"].as_str()).unwrap_or_default();
    let released = entry["dev"] != true && !path.starts_with("tests/");
    let allowed: &[&[&str]] = if released { &[ALLOWED] } else { &[ALLOWED, ALLOWED_FOR_DEVELOPMENT] };
    problems.extend(bad_licence(licence, allowed).map(|problem| format!("{package}: {problem}")));
    problems
}

#[cfg(test)]
mod tests {
    use super::{ALLOWED, CRATES_IO, bad_entries, bad_licence, bad_licences, other_sources};
    use serde_json::{Value, json};

    #[test]
    fn names_a_crate_from_another_source() {
        let lock =
            |source: &str| format!("[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"{source}\"\n");
        assert_eq!(other_sources("Cargo.lock", &lock(CRATES_IO)), [""; 0]);
        assert_eq!(other_sources("Cargo.lock", "[[package]]\nname = \"redflow-a\"\n"), [""; 0]);
        for source in ["sparse+https://mirror.example/", "git+https://git.example/x#1234"] {
            let problems = other_sources("Cargo.lock", &lock(source));
            assert_eq!(problems.len(), 1);
            assert!(problems[0].starts_with(&format!("Cargo.lock: a comes from {source}")), "{problems:?}");
        }
        assert_eq!(other_sources("Cargo.lock", "no TOML").len(), 1);
    }

    #[test]
    fn a_licence_is_allowed_if_one_choice_is() {
        for good in
            ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR LGPL-2.1-or-later) AND Unicode-3.0"]
        {
            assert_eq!(bad_licence(good, &[ALLOWED]), None, "{good}");
        }
        for bad in [
            "GPL-3.0-only",
            "MIT AND GPL-3.0-or-later",
            "Apache-2.0 WITH Classpath-exception-2.0",
            "LicenseRef-Own",
            "SEE LICENSE IN a.txt",
            "",
        ] {
            assert!(bad_licence(bad, &[ALLOWED]).is_some(), "{bad}");
        }
    }

    #[test]
    fn names_a_crate_with_a_bad_licence() {
        let metadata = json!({"packages": [
            {"name": "good", "version": "1.0.0", "license": "MIT"},
            {"name": "copyleft", "version": "2.0.0", "license": "GPL-3.0-only"},
            {"name": "silent", "version": "3.0.0", "license": null},
        ]});
        let problems = bad_licences(&metadata);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].starts_with("Cargo.lock: copyleft 2.0.0: its licence `GPL-3.0-only` is not allowed")
        );
        assert!(problems[1].starts_with("Cargo.lock: silent 3.0.0: it names no licence"), "{problems:?}");
    }

    fn entry_problems(path: &str, change: impl Fn(&mut Value)) -> Vec<String> {
        let mut entry = json!({"version": "1.0.0", "integrity": "sha512-abc", "license": "MIT"});
        change(&mut entry);
        bad_entries(path, &json!({"packages": {"": {}, "node_modules/a": entry}}).to_string())
    }

    #[test]
    fn names_a_lock_entry_with_an_address_or_without_a_hash() {
        let path = "bindings/package-lock.json";
        assert_eq!(entry_problems(path, |_| ()), [""; 0]);
        let problems =
            entry_problems(path, |entry| entry["resolved"] = "https://mirror.example/a.tgz".into());
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with(&format!("{path}: a@1.0.0 records an address")), "{problems:?}");
        for integrity in [Value::Null, "sha1-abc".into()] {
            let problems = entry_problems(path, |entry| entry["integrity"] = integrity.clone());
            assert!(problems[0].contains("a@1.0.0 has no sha512 hash"), "{problems:?}");
        }
        let bundled =
            |entry: &mut Value| *entry = json!({"version": "1.0.0", "license": "MIT", "inBundle": true});
        assert_eq!(entry_problems(path, bundled), [""; 0]);
        let link = |entry: &mut Value| *entry = json!({"resolved": "../a", "link": true});
        assert_eq!(entry_problems(path, link), [""; 0]);
        assert_eq!(bad_entries(path, "").len(), 1);
    }

    #[test]
    fn names_a_lock_entry_with_a_bad_licence() {
        let count = |path: &str, licence: Value| {
            entry_problems(path, |entry| entry["license"] = licence.clone()).len()
        };
        assert_eq!(count("bindings/package-lock.json", "GPL-3.0-only".into()), 1);
        assert_eq!(count("bindings/package-lock.json", Value::Null), 1);
        // Only development may use it.
        assert_eq!(count("bindings/package-lock.json", "Python-2.0".into()), 1);
        assert_eq!(count("tests/a/package-lock.json", "Python-2.0".into()), 0);
        let dev = |entry: &mut Value| (entry["license"], entry["dev"]) = ("Python-2.0".into(), true.into());
        assert_eq!(entry_problems("bindings/package-lock.json", dev), [""; 0]);
        let reviewed =
            r#"{"packages": {"node_modules/pause": {"version": "0.0.1", "integrity": "sha512-abc"}}}"#;
        assert_eq!(bad_entries("tests/a/package-lock.json", reviewed), [""; 0]);
    }
}
