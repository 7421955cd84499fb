//! `cargo xtask console`: builds the console into `console/dist`. The next build of `redflow` embeds it.
//!
//! The result holds code of others, so git does not have it.

use crate::{Failure, files, process, switches, tools};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

const FOLDER: &str = "console";
const DIST: &str = "console/dist";

/// The folders whose files go into the console.
const SOURCES: &[&str] = &[FOLDER, "bindings/src", "node-red-bridge/src/editor/locales"];

/// A second build for comparison.
const SECOND: &str = "target/console";

/// A bundle names the file of each part after this.
const PACKAGES: &str = "node_modules/";

/// A package of others whose code is in the console.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BundledPackage {
    /// Name and version.
    pub(crate) title: String,
    pub(crate) licence: String,
    pub(crate) repository: String,
    pub(crate) folder: PathBuf,
}

/// Builds the console, also if it is current.
///
/// # Errors
/// If Node.js is missing or the build fails.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [] = switches(args, [])?;
    install(root)?;
    build(root, DIST)?;
    println!("{DIST} is ready: the next build of redflow embeds it");
    Ok(ExitCode::SUCCESS)
}

/// Builds the console if its sources are newer. A build that changes nothing would compile the server again.
pub(crate) fn prepare(root: &Path) -> Result<(), String> {
    install(root)?;
    let sources = SOURCES.iter().flat_map(|folder| files::list(root, folder));
    let newest = sources.filter_map(|file| modified(&root.join(file))).max();
    if is_current(newest, built(&root.join(DIST))) { Ok(()) } else { build(root, DIST) }
}

/// Builds the console a second time and compares all bytes.
pub(crate) fn compare_builds(root: &Path) -> Result<(), String> {
    prepare(root)?;
    build(root, SECOND)?;
    let (first, second) = (contents(&root.join(DIST))?, contents(&root.join(SECOND))?);
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if names(&first) != names(&second) {
        return Err(format!("two builds have the files {:?} and {:?}", names(&first), names(&second)));
    }
    match first.iter().zip(&second).find(|(one, other)| one != other) {
        Some(((name, _), _)) => Err(format!("two builds of the same sources differ in {name}")),
        None => Ok(()),
    }
}

/// The packages whose code the built console has.
pub(crate) fn bundled_packages(root: &Path) -> Result<Vec<BundledPackage>, String> {
    let script = files::read(root, &format!("{DIST}/console.js"))?;
    let names = bundled_names(&script);
    if names.is_empty() {
        return Err(format!("{DIST}/console.js names no package: it must not be minified"));
    }
    names.iter().map(|name| read_package(&root.join(FOLDER).join(PACKAGES).join(name))).collect()
}

/// The packages that a bundle names in the comments before their code.
fn bundled_names(script: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let (_, path) = line.trim_start().strip_prefix("// ")?.rsplit_once(PACKAGES)?;
        let parts = if path.starts_with('@') { 2 } else { 1 };
        Some(path.split('/').take(parts).collect::<Vec<_>>().join("/"))
    };
    script.lines().filter_map(name).collect()
}

fn read_package(folder: &Path) -> Result<BundledPackage, String> {
    let package: Value = serde_json::from_str(&files::read(folder, "package.json")?)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // npm allows an address, or an object with it.
    let repository = match &package["repository"] {
        Value::Object(fields) => text(fields.get("url").unwrap_or(&Value::Null)),
        other => text(other),
    };
    Ok(BundledPackage {
        title: format!("{} {}", text(&package["name"]), text(&package["version"])),
        licence: text(&package["license"]),
        repository,
        folder: folder.to_owned(),
    })
}

fn install(root: &Path) -> Result<(), String> {
    tools::node(root)?;
    tools::install(&root.join(FOLDER))
}

fn build(root: &Path, out: &str) -> Result<(), String> {
    let mut command = process::program(&root.join(FOLDER), "node", ["scripts/build.mjs"]);
    command.arg(root.join(out));
    tools::check(command)
}

/// When the oldest file of a build was written; none if there is no build.
fn built(dist: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(dist).ok()?.flatten();
    entries.filter_map(|entry| modified(&entry.path())).min()
}

fn is_current(newest_source: Option<SystemTime>, built: Option<SystemTime>) -> bool {
    built.is_some_and(|built| newest_source.is_none_or(|source| source <= built))
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|data| data.modified()).ok()
}

/// The files of a folder, sorted.
fn contents(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let bytes = fs::read(entry.path()).map_err(failed)?;
        found.push((entry.file_name().to_string_lossy().into_owned(), bytes));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{BundledPackage, built, bundled_names, is_current, read_package};
    use pretty_assertions::assert_eq;
    use std::fs;
    use std::time::{Duration, SystemTime};

    #[test]
    fn finds_the_packages_of_a_bundle() {
        let script = "// src/main.tsx\nlet a = 1; // node_modules is a word\n  // node_modules/preact/dist/preact.mjs\n\
                      // ../bindings/src/client.ts\n// node_modules/@preact/signals/dist/signals.mjs\n\
                      // node_modules/a/node_modules/b/index.js\n// node_modules/preact/hooks/dist/hooks.mjs\n";
        let names = bundled_names(script);
        assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["@preact/signals", "b", "preact"]);
        assert!(bundled_names("let a=1").is_empty());
    }

    #[test]
    fn reads_what_a_package_says_of_itself() {
        let folder = tempfile::tempdir().unwrap();
        for repository in [r#""https://a.example""#, r#"{"type": "git", "url": "https://a.example"}"#] {
            let text = format!(
                r#"{{"name": "a", "version": "1.2.3", "license": "MIT", "repository": {repository}}}"#
            );
            fs::write(folder.path().join("package.json"), text).unwrap();
            let wanted = BundledPackage {
                title: "a 1.2.3".to_owned(),
                licence: "MIT".to_owned(),
                repository: "https://a.example".to_owned(),
                folder: folder.path().to_owned(),
            };
            assert_eq!(read_package(folder.path()), Ok(wanted));
        }
        assert!(read_package(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn a_build_is_current_until_a_source_is_newer() {
        let at = |seconds: u64| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(is_current(at(1), at(1)) && is_current(at(1), at(2)) && is_current(None, at(1)));
        assert!(!is_current(at(2), at(1)) && !is_current(at(1), None) && !is_current(None, None));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(built(&folder.path().join("missing")), None);
        assert_eq!(built(folder.path()), None);
    }
}
