//! What is in the packages of a release: their manifests and files. Writes into the folder of the release only; the sources
//! stay as they are.

use super::platform::{PLATFORMS, Platform, tarball};
use super::{notices, npm_pack, toolchain};
use crate::{files, process, test};
use serde_json::{Map, Value, json};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The version of everything in the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the sources of the palette module need and those who install it do not.
const FOR_DEVELOPERS: [&str; 2] = ["scripts", "devDependencies"];

/// A release that is being made.
pub(crate) struct Release<'a> {
    pub(crate) root: &'a Path,
    /// Where the tarballs go.
    pub(crate) out: &'a Path,
    /// Where the sources are.
    pub(crate) repository: Option<&'a str>,
}

/// A tarball, and what is to be known of it.
pub(crate) struct Made {
    tarball: PathBuf,
    packed: u64,
    remarks: Vec<String>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.tarball.display(), megabytes(self.packed))?;
        self.remarks.iter().try_for_each(|remark| write!(f, "\n  {remark}"))
    }
}

impl Release<'_> {
    /// Packs a program for a platform.
    pub(crate) fn program(&self, platform: &Platform, program: &Path) -> Result<Made, String> {
        println!("packing {}", platform.package());
        let folder = self.folder(platform.name)?;
        let bin = folder.join("bin");
        let file = bin.join(platform.program());
        fs::create_dir(&bin).map_err(|error| told(&bin, &error))?;
        fs::copy(program, &file).map_err(|error| told(program, &error))?;
        let bytes = fs::read(&file).map_err(|error| told(&file, &error))?;
        if !toolchain::is_for(platform, &bytes) {
            return Err(format!("{} is no program for {}", program.display(), platform.triple));
        }
        let mut remarks = Vec::new();
        if !toolchain::strip(self.root, platform, &file) {
            remarks.push("not stripped: there is no tool for it here".to_owned());
        }
        let bytes = fs::read(&file).map_err(|error| told(&file, &error))?;
        remarks.push(format!("the program has {}", megabytes(bytes.len() as u64)));
        let needs = needs(platform, &bytes);
        remarks.extend(needs.clone());
        write(&folder, "package.json", &pretty(&program_manifest(platform, self.repository)))?;
        write(&folder, "README.md", &program_readme(platform, needs.as_deref()))?;
        write(&folder, "LICENSE", &files::read(self.root, "LICENSE")?)?;
        write(&folder, "THIRD-PARTY.txt", &notices::of_crates(self.root, platform.triple)?)?;
        let library = notices::of_the_library(self.root)?;
        fs::copy(&library, folder.join("THIRD-PARTY-RUST.html")).map_err(|error| told(&library, &error))?;
        self.pack(&folder, &platform.tarball(VERSION), remarks)
    }

    /// Builds and packs the palette module.
    pub(crate) fn bridge(&self) -> Result<Made, String> {
        let sources = self.root.join("node-red-bridge");
        test::check(process::program(&sources, "npm", ["run", "--silent", "build"]))?;
        let (folder, name) = self.stage_bridge(&sources)?;
        let named = programs_in(self.out);
        let remarks = vec![if named.is_empty() {
            "it names no package with the program".to_owned()
        } else {
            format!("it names {}", named.iter().map(|it| it.package()).collect::<Vec<_>>().join(", "))
        }];
        self.pack(&folder, &tarball(&name, VERSION), remarks)
    }

    /// What the palette module's manifest lists, with a manifest for those who install it.
    fn stage_bridge(&self, sources: &Path) -> Result<(PathBuf, String), String> {
        let text = files::read(sources, "package.json")?;
        let manifest: Value =
            serde_json::from_str(&text).map_err(|error| format!("package.json: {error}"))?;
        let folder = self.folder("bridge")?;
        let listed = manifest["files"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in listed.chain(["LICENSE"]) {
            copy(&sources.join(name), &folder.join(name))?;
        }
        let (manifest, name) = bridge_manifest(manifest, &programs_in(self.out), self.repository)?;
        write(&folder, "package.json", &pretty(&manifest))?;
        Ok((folder, name))
    }

    /// An empty folder to put a package together in.
    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.staging().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| told(&folder, &error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| told(&folder, &error))?;
        Ok(folder)
    }

    fn staging(&self) -> PathBuf {
        self.out.join("staging")
    }

    fn pack(&self, folder: &Path, name: &str, remarks: Vec<String>) -> Result<Made, String> {
        npm_pack(folder, self.out)?;
        fs::remove_dir_all(folder).map_err(|error| told(folder, &error))?;
        // Until another package is put together there.
        let _ = fs::remove_dir(self.staging());
        let tarball = self.out.join(name);
        let packed = fs::metadata(&tarball).map_err(|error| told(&tarball, &error))?.len();
        Ok(Made { tarball, packed, remarks })
    }
}

fn program_manifest(platform: &Platform, repository: Option<&str>) -> Value {
    let mut manifest = json!({
        "name": platform.package(),
        "version": VERSION,
        "description": format!("The program redflow of Redflow Runtime, for {}", platform.name),
        "license": "Apache-2.0",
        "os": [platform.os],
        "cpu": [platform.cpu],
    });
    if let (Some(libc), Some(fields)) = (platform.libc, manifest.as_object_mut()) {
        fields.insert("libc".into(), json!([libc]));
    }
    if let Some(fields) = manifest.as_object_mut() {
        let program = format!("bin/{}", platform.program());
        fields.insert("bin".into(), json!({ "redflow": program }));
        fields.insert("files".into(), json!(["bin", "THIRD-PARTY.txt", "THIRD-PARTY-RUST.html"]));
        // It is run from where it lies, also where packages are kept in archives.
        fields.insert("preferUnplugged".into(), json!(true));
        at(fields, repository);
    }
    manifest
}

fn program_readme(platform: &Platform, needs: Option<&str>) -> String {
    let needs = needs.map(|needs| format!(" It {needs}.")).unwrap_or_default();
    format!(
        "# {}\n\nThe program `redflow` of Redflow Runtime for {} ({}).{needs}\n\n`@redflow/node-red-bridge` finds it by \
         itself. Nothing runs when it is installed.\n\nApache-2.0. What others have written of it is in THIRD-PARTY.txt \
         and THIRD-PARTY-RUST.html.\n",
        platform.package(),
        platform.name,
        platform.triple
    )
}

/// What a program asks of the system it runs on.
fn needs(platform: &Platform, program: &[u8]) -> Option<String> {
    let (major, minor) = (platform.libc == Some("glibc")).then(|| toolchain::oldest_glibc(program))??;
    Some(format!("needs glibc {major}.{minor} or newer"))
}

/// The manifest for those who install it, and the package's name.
fn bridge_manifest(
    mut manifest: Value,
    programs: &[&Platform],
    repository: Option<&str>,
) -> Result<(Value, String), String> {
    let fields = manifest.as_object_mut().ok_or("the palette module's package.json is no object")?;
    let text =
        |fields: &Map<String, Value>, key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text(fields, "name").ok_or("the palette module has no name")?;
    let version = text(fields, "version").unwrap_or_default();
    if version != VERSION {
        return Err(format!("the palette module has version {version}, the workspace {VERSION}"));
    }
    for key in FOR_DEVELOPERS {
        fields.shift_remove(key);
    }
    at(fields, repository);
    if !programs.is_empty() {
        let named: Map<String, Value> =
            programs.iter().map(|platform| (platform.package(), VERSION.into())).collect();
        fields.insert("optionalDependencies".into(), named.into());
    }
    Ok((manifest, name))
}

fn at(fields: &mut Map<String, Value>, repository: Option<&str>) {
    if let Some(url) = repository {
        fields.insert("repository".into(), json!({"type": "git", "url": format!("git+{url}")}));
    }
}

/// The platforms whose packages of this version lie in a folder.
fn programs_in(folder: &Path) -> Vec<&'static Platform> {
    PLATFORMS.iter().filter(|platform| folder.join(platform.tarball(VERSION)).exists()).collect()
}

/// Copies a file or a folder.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).map_err(|error| told(from, &error));
    }
    fs::create_dir_all(to).map_err(|error| told(to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| told(from, &error))? {
        let entry = entry.map_err(|error| told(from, &error))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(name), text).map_err(|error| told(&folder.join(name), &error))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn megabytes(bytes: u64) -> String {
    let tenths = bytes.saturating_add(50_000) / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
