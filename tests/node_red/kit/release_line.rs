//! The release lines of Node-RED that `cargo xtask node-red` has prepared.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// How to prepare missing files.
const HINT: &str = "run `cargo xtask node-red`, which prepares it and runs these tests";

/// The oldest Node.js that runs the palette module.
const OLDEST_NODE: u32 = 20;

/// A release line of Node-RED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReleaseLine {
    /// 4.1, on the system's Node.js.
    Older,
    /// 5, on a Node.js from npm.
    Newer,
}

impl ReleaseLine {
    /// Its folder, as its versions begin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Older => "4.1",
            Self::Newer => "5",
        }
    }

    fn folder(self) -> PathBuf {
        tests_folder().join("lines").join(self.name())
    }

    /// The program of Node-RED, for [`ReleaseLine::node`].
    pub(crate) fn program(self) -> PathBuf {
        prepared(self.folder().join("node_modules/node-red/red.js"))
    }

    /// The Node.js it runs on.
    pub(crate) fn node(self) -> PathBuf {
        match self {
            Self::Older if system_node() >= Some(OLDEST_NODE) => "node".into(),
            _ => prepared(Self::Newer.folder().join("node_modules/.bin/node")),
        }
    }
}

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("node_red")
}

fn prepared(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is missing: {HINT}", path.display());
    path
}

fn system_node() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

/// The modules of a user directory where npm installed the packed palette module.
pub(crate) fn palette() -> PathBuf {
    let modules = tests_folder().join("dist/user/node_modules");
    let installed = prepared(modules.join("@redflow/node-red-bridge/package.json"));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node-red-bridge");
    // npm sets the date of unpacked files itself. This file shows the time of the installation.
    let since = modified(&modules.join(".package-lock.json"));
    let newest = ["src", "examples", "scripts"].map(|name| newest(&sources.join(name)));
    let newest = newest.into_iter().chain([modified(&sources.join("package.json"))]).max().unwrap();
    assert!(newest <= since, "{} is older than its sources: {HINT}", installed.display());
    modules
}

/// An example of the palette module, as a new user imports it.
pub(crate) fn example(name: &str) -> serde_json::Value {
    let path = prepared(palette().join("@redflow/node-red-bridge/examples").join(name));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| if entry.path().is_dir() { newest(&entry.path()) } else { modified(&entry.path()) })
        .max()
        .flatten()
}
