use super::{Release, VERSION, megabytes, needs, palette_manifest, program_manifest, program_readme};
use crate::package::platform::{PLATFORMS, by_triple};
use crate::{files, root};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn palette() -> Value {
    serde_json::from_str(&files::read(&root(), "node-red-bridge/package.json").unwrap()).unwrap()
}

#[test]
fn a_package_fits_only_its_platform_and_has_no_scripts() {
    for platform in PLATFORMS {
        let manifest = program_manifest(platform, None);
        assert_eq!(manifest["os"], json!([platform.os]));
        assert_eq!(manifest["cpu"], json!([platform.cpu]));
        assert_eq!(manifest.get("libc"), platform.libc.map(|libc| json!([libc])).as_ref());
        assert_eq!(manifest["version"], VERSION);
        assert_eq!(manifest["bin"]["redflow"], format!("bin/{}", platform.program()));
        for key in ["scripts", "dependencies", "repository"] {
            assert_eq!(manifest.get(key), None, "{key}");
        }
    }
}

// SECURITY: palette-install
#[test]
fn the_bridge_names_the_programs_that_are_there_at_its_own_version() {
    let arm = by_triple("aarch64-unknown-linux-gnu").unwrap();
    let (manifest, name) = palette_manifest(palette(), &[arm], Some("https://example.org/x")).unwrap();
    assert_eq!(name, "@redflow/node-red-bridge");
    assert_eq!(manifest["optionalDependencies"], json!({"@redflow/runtime-linux-arm64": VERSION}));
    assert_eq!(manifest["repository"]["url"], "git+https://example.org/x");
    let (manifest, _) = palette_manifest(palette(), &[], None).unwrap();
    for key in ["optionalDependencies", "repository", "scripts", "devDependencies"] {
        assert_eq!(manifest.get(key), None, "{key}");
    }
    // The keys that Node-RED and npm read do not change.
    for key in ["name", "version", "license", "keywords", "engines", "node-red", "dependencies", "files"] {
        assert_eq!(manifest[key], palette()[key], "{key}");
    }
}

#[test]
fn refuses_a_palette_module_of_another_version() {
    let mut other = palette();
    other["version"] = json!("9.9.9");
    assert!(palette_manifest(other, &[], None).unwrap_err().contains("9.9.9"));
    assert!(palette_manifest(json!([]), &[], None).is_err());
}

#[test]
fn the_palette_package_contains_what_its_manifest_lists() {
    let (sources, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let put = |folder: &Path, name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let manifest =
        json!({"name": "@redflow/node-red-bridge", "version": VERSION, "files": ["dist", "README.md"]});
    put(sources.path(), "package.json", &manifest.to_string());
    for name in ["dist/nodes/a.js", "README.md", "LICENSE", "src/a.ts", "test/a.test.mjs"] {
        put(sources.path(), name, name);
    }
    let platform = by_triple("armv7-unknown-linux-gnueabihf").unwrap();
    put(out.path(), &platform.tarball(VERSION), "");
    put(out.path(), &by_triple("x86_64-pc-windows-gnu").unwrap().tarball("0.0.1"), "of an older release");
    let release =
        Release { root: &root(), out: out.path(), check_size: false, keep_size: false, repository: None };
    let (folder, _) = release.stage_palette(sources.path()).unwrap();
    let staged = files::list(&folder, "");
    // This list skips `dist`, so the next line checks it.
    assert_eq!(staged, ["LICENSE", "README.md", "package.json"]);
    assert_eq!(fs::read_to_string(folder.join("dist/nodes/a.js")).unwrap(), "dist/nodes/a.js");
    let manifest: Value = serde_json::from_str(&files::read(&folder, "package.json").unwrap()).unwrap();
    assert_eq!(manifest["optionalDependencies"], json!({platform.package(): VERSION}));
}

#[test]
fn refuses_to_pack_a_program_of_another_platform() {
    let out = tempfile::tempdir().unwrap();
    let text = out.path().join("redflow");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    let release =
        Release { root: &root(), out: out.path(), check_size: false, keep_size: false, repository: None };
    for platform in PLATFORMS {
        let Err(error) = release.pack_program(platform, &text) else { panic!("{}", platform.triple) };
        assert!(error.contains("is no program for"), "{error}");
    }
}

#[test]
fn the_readme_says_which_glibc_the_program_needs() {
    let gnu = by_triple("x86_64-unknown-linux-gnu").unwrap();
    assert_eq!(needs(gnu, b"GLIBC_2.34\0").as_deref(), Some("needs glibc 2.34 or newer"));
    assert_eq!(needs(by_triple("x86_64-pc-windows-gnu").unwrap(), b"GLIBC_2.34\0"), None);
    assert!(program_readme(gnu, Some("needs glibc 2.34 or newer")).contains("It needs glibc 2.34 or newer."));
    assert_eq!(megabytes(10_748_418), "10.7 MB");
}
