//! The release as users install it: `cargo xtask package` makes the tarballs, and npm installs them.

use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::on_the_newer_line;
use crate::kit::release_line::ReleaseLine;
use crate::managed_sidecar::sidecar_of;
use pretty_assertions::assert_eq;
use redflow_testkit::redflow_binary;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

on_the_newer_line! {
    npm_installs_the_binary
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
}

/// Packs the binary of this build, and the palette module that depends on its package.
fn tarballs(out: &Path) -> Vec<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut package = Command::new(cargo);
    package.args(["run", "--quiet", "--package", "redflow-xtask", "--", "package", "--program"]);
    package.arg(redflow_binary().unwrap()).arg("--out").arg(out).current_dir(env!("CARGO_MANIFEST_DIR"));
    run(&mut package);
    let entries = std::fs::read_dir(out).unwrap().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The PATH, without folders that have a `redflow`.
fn path() -> String {
    let path = std::env::var_os("PATH").unwrap();
    let without = std::env::split_paths(&path).filter(|folder| !folder.join("redflow").exists());
    std::env::join_paths(without).unwrap().into_string().unwrap()
}

async fn npm_installs_the_binary(line: ReleaseLine) {
    let out = tempfile::tempdir().unwrap();
    let tarballs = tarballs(out.path());
    assert_eq!(tarballs.len(), 2, "{tarballs:?}");
    let user = tempfile::tempdir().unwrap();
    std::fs::write(user.path().join("package.json"), r#"{"name": "user", "private": true}"#).unwrap();
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"]);
    run(install.args(tarballs).current_dir(user.path()));
    let modules = user.path().join("node_modules");
    let json = |file: &str| -> Value {
        let path = modules.join("@redflow/node-red-bridge").join(file);
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let manifest = json("package.json");
    let named = manifest["optionalDependencies"].as_object().unwrap();
    let (package, version) = named.iter().next().unwrap();
    assert_eq!((named.len(), version), (1, &manifest["version"]));

    let env = vec![("PATH".to_owned(), path())];
    let setup = Setup { palette: Some(modules.clone()), env, ..Setup::default() };
    let node_red = NodeRed::start_with(line, setup).await;
    node_red.deploy(&json("examples/01-calculator-agent.json")).await;
    node_red.admin.inject("rf01-ask").await;
    assert_eq!(node_red.comms.wait_for_debug("rf01-result", 1).await[0]["msg"], "You pay 235.99.");
    // The running sidecar is the binary that npm has installed.
    let program = std::fs::read_link(format!("/proc/{}/exe", sidecar_of(&node_red).await)).unwrap();
    assert_eq!(program, modules.canonicalize().unwrap().join(package).join("bin/redflow"));
}
