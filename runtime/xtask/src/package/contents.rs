//! Puts the packages of a release together: their manifests and files. Writes only into the release's folder.

use super::platform::{PLATFORMS, Platform, tarball};
use super::size::{self, megabytes};
use super::{notices, npm_pack, toolchain};
use crate::{console, files, process, tools};
use serde_json::{Map, Value, json};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The version of everything in the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Keys of the palette module's manifest that users do not need.
const FOR_DEVELOPERS: [&str; 2] = ["scripts", "devDependencies"];

/// The settings of all packages of a release.
pub(crate) struct Release<'a> {
    pub(crate) root: &'a Path,
    /// The folder for the tarballs.
    pub(crate) out: &'a Path,
    /// Whether a program above the ceiling is refused.
    pub(crate) check_size: bool,
    /// Whether the size of the program becomes the kept one.
    pub(crate) keep_size: bool,
    /// The address of the sources.
    pub(crate) repository: Option<&'a str>,
}

/// A tarball on disk, with remarks for the person who makes the release.
pub(crate) struct Tarball {
    path: PathBuf,
    bytes: u64,
    remarks: Vec<String>,
}

impl fmt::Display for Tarball {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), megabytes(self.bytes))?;
        self.remarks.iter().try_for_each(|remark| write!(f, "\n  {remark}"))
    }
}

impl Release<'_> {
    /// Packs a program for a platform.
    pub(crate) fn pack_program(&self, platform: &Platform, program: &Path) -> Result<Tarball, String> {
        println!("packing {}", platform.package());
        let folder = self.empty_folder(platform.name)?;
        let bin = folder.join("bin");
        let file = bin.join(platform.program());
        fs::create_dir(&bin).map_err(|error| path_error(&bin, &error))?;
        fs::copy(program, &file).map_err(|error| path_error(program, &error))?;
        let bytes = fs::read(&file).map_err(|error| path_error(&file, &error))?;
        if !toolchain::is_for(platform, &bytes) {
            return Err(format!("{} is no program for {}", program.display(), platform.triple));
        }
        let mut remarks = vec![format!("the program has {}", megabytes(bytes.len() as u64))];
        if self.keep_size {
            size::keep(self.root, &bytes)?;
        }
        if self.check_size {
            print!("{}", size::check(self.root, &bytes)?);
        }
        let needs = needs(platform, &bytes);
        remarks.extend(needs.clone());
        write(&folder, "package.json", &pretty(&program_manifest(platform, self.repository)))?;
        write(&folder, "README.md", &program_readme(platform, needs.as_deref()))?;
        write(&folder, "LICENSE", &files::read(self.root, "LICENSE")?)?;
        write(&folder, "THIRD-PARTY.txt", &self.notices(platform)?)?;
        let library = notices::library_notices(self.root)?;
        fs::copy(&library, folder.join("THIRD-PARTY-RUST.html"))
            .map_err(|error| path_error(&library, &error))?;
        self.pack(&folder, &platform.tarball(VERSION), remarks)
    }

    fn notices(&self, platform: &Platform) -> Result<String, String> {
        notices::third_party(self.root, platform.triple, &console::bundled_packages(self.root)?)
    }

    /// Builds and packs the palette module.
    pub(crate) fn pack_palette(&self) -> Result<Tarball, String> {
        let sources = self.root.join("node-red-bridge");
        tools::check(process::program(&sources, "npm", ["run", "--silent", "build"]))?;
        let (folder, name) = self.stage_palette(&sources)?;
        let packages: Vec<String> = programs_in(self.out).iter().map(|platform| platform.package()).collect();
        let remark = if packages.is_empty() {
            "it lists no package with the program".to_owned()
        } else {
            format!("it lists {}", packages.join(", "))
        };
        self.pack(&folder, &tarball(&name, VERSION), vec![remark])
    }

    /// Copies the files that the palette module's manifest lists, and writes a manifest for users.
    fn stage_palette(&self, sources: &Path) -> Result<(PathBuf, String), String> {
        let text = files::read(sources, "package.json")?;
        let manifest: Value =
            serde_json::from_str(&text).map_err(|error| format!("package.json: {error}"))?;
        let folder = self.empty_folder("bridge")?;
        let listed = manifest["files"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in listed.chain(["LICENSE"]) {
            copy(&sources.join(name), &folder.join(name))?;
        }
        let (manifest, name) = palette_manifest(manifest, &programs_in(self.out), self.repository)?;
        write(&folder, "package.json", &pretty(&manifest))?;
        Ok((folder, name))
    }

    /// Makes an empty folder for the files of a package.
    fn empty_folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.staging().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| path_error(&folder, &error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| path_error(&folder, &error))?;
        Ok(folder)
    }

    fn staging(&self) -> PathBuf {
        self.out.join("staging")
    }

    fn pack(&self, folder: &Path, name: &str, remarks: Vec<String>) -> Result<Tarball, String> {
        npm_pack(folder, self.out)?;
        fs::remove_dir_all(folder).map_err(|error| path_error(folder, &error))?;
        // This fails while the folder holds another package, which is fine.
        let _ = fs::remove_dir(self.staging());
        let path = self.out.join(name);
        let bytes = fs::metadata(&path).map_err(|error| path_error(&path, &error))?.len();
        Ok(Tarball { path, bytes, remarks })
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
        "bin": {"redflow": format!("bin/{}", platform.program())},
        "files": ["bin", "THIRD-PARTY.txt", "THIRD-PARTY-RUST.html"],
        // A program cannot run inside an archive, where some package managers keep packages.
        "preferUnplugged": true,
    });
    if let Some(libc) = platform.libc {
        manifest["libc"] = json!([libc]);
    }
    if let Some(url) = repository {
        manifest["repository"] = repository_field(url);
    }
    manifest
}

fn program_readme(platform: &Platform, needs: Option<&str>) -> String {
    let needs = needs.map(|needs| format!(" It {needs}.")).unwrap_or_default();
    format!(
        "# {}\n\nThe program `redflow` of Redflow Runtime for {} ({}).{needs}\n\n\
         `@redflow/node-red-bridge` finds it by itself. Installing it runs no script.\n\n\
         Apache-2.0. THIRD-PARTY.txt and THIRD-PARTY-RUST.html contain the licences of code by others.\n",
        platform.package(),
        platform.name,
        platform.triple
    )
}

/// The C library that a program needs.
fn needs(platform: &Platform, program: &[u8]) -> Option<String> {
    let (major, minor) = (platform.libc == Some("glibc")).then(|| toolchain::oldest_glibc(program))??;
    Some(format!("needs glibc {major}.{minor} or newer"))
}

/// The palette module's manifest for users, and the package's name.
fn palette_manifest(
    mut manifest: Value,
    programs: &[&Platform],
    repository: Option<&str>,
) -> Result<(Value, String), String> {
    let text = |key: &str| manifest[key].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    if version != VERSION {
        return Err(format!("the palette module has version {version}, the workspace {VERSION}"));
    }
    let fields = manifest.as_object_mut().ok_or("the palette module's package.json is no object")?;
    for key in FOR_DEVELOPERS {
        fields.shift_remove(key);
    }
    if let Some(url) = repository {
        fields.insert("repository".into(), repository_field(url));
    }
    if !programs.is_empty() {
        let packages: Map<String, Value> =
            programs.iter().map(|platform| (platform.package(), VERSION.into())).collect();
        fields.insert("optionalDependencies".into(), packages.into());
    }
    Ok((manifest, name))
}

fn repository_field(url: &str) -> Value {
    json!({"type": "git", "url": format!("git+{url}")})
}

/// The platforms whose packages of this version are in a folder.
fn programs_in(folder: &Path) -> Vec<&'static Platform> {
    PLATFORMS.iter().filter(|platform| folder.join(platform.tarball(VERSION)).exists()).collect()
}

/// Copies a file or a folder.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).map_err(|error| path_error(from, &error));
    }
    fs::create_dir_all(to).map_err(|error| path_error(to, &error))?;
    for entry in fs::read_dir(from).map_err(|error| path_error(from, &error))? {
        let entry = entry.map_err(|error| path_error(from, &error))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(name), text).map_err(|error| path_error(&folder.join(name), &error))
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn path_error(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
