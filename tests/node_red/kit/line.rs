//! The lines of Node-RED, and what `cargo xtask node-red` has prepared of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// How to prepare what is missing.
const ADVICE: &str = "run `cargo xtask node-red`, which prepares it and runs these tests";

/// The oldest Node.js that runs the palette module.
const OLDEST_NODE: u32 = 20;

/// A line of Node-RED.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// 4.1, on the system's Node.js.
    Older,
    /// 5, on a Node.js from npm.
    Newer,
}

impl Line {
    /// Its folder, as its versions begin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Older => "4.1",
            Self::Newer => "5",
        }
    }

    fn folder(self) -> PathBuf {
        here().join("lines").join(self.name())
    }

    /// The program of Node-RED, for [`Line::node`].
    pub(crate) fn program(self) -> PathBuf {
        there(self.folder().join("node_modules/node-red/red.js"))
    }

    /// The Node.js it runs on.
    pub(crate) fn node(self) -> PathBuf {
        match self {
            Self::Older if system_node() >= Some(OLDEST_NODE) => "node".into(),
            _ => there(Self::Newer.folder().join("node_modules/.bin/node")),
        }
    }
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("node_red")
}

fn there(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is not there: {ADVICE}", path.display());
    path
}

fn system_node() -> Option<u32> {
    let output = Command::new("node").arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

/// The modules of a user directory with the packed palette module, as npm has installed it.
pub(crate) fn palette() -> PathBuf {
    let modules = here().join("dist/user/node_modules");
    let installed = there(modules.join("@redflow/node-red-bridge/package.json"));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node-red-bridge");
    // npm gives what it unpacks a date of its own; this one is when it was done.
    let since = changed(&modules.join(".package-lock.json"));
    let newest = ["src", "examples", "scripts"].map(|name| newest(&sources.join(name)));
    let newest = newest.into_iter().chain([changed(&sources.join("package.json"))]).max().unwrap();
    assert!(newest <= since, "{} is older than its sources: {ADVICE}", installed.display());
    modules
}

/// The examples in the palette module, as a newcomer imports them.
pub(crate) fn example(name: &str) -> serde_json::Value {
    let path = there(palette().join("@redflow/node-red-bridge/examples").join(name));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|data| data.modified()).ok()
}

fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| if entry.path().is_dir() { newest(&entry.path()) } else { changed(&entry.path()) })
        .max()
        .flatten()
}
