//! The paths that a program may use: its own, the declared ones, and the parts of the system that every program may read,
//! because runtimes and package managers need them.

use super::root::Place;
use super::{ConfineError, Confinement};
use std::ffi::OsStr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Programs, libraries and their data.
const PROGRAMS: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/snap"];

/// What runtimes read of the system. Of `/etc` only files without secrets: services have their keys there too.
const SYSTEM: &[&str] = &[
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/ld-musl-x86_64.path",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    // The file behind `/etc/resolv.conf` on many systems.
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
];

/// Devices without a state.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The folders beside a folder of `PATH` that its programs need, such as `lib` beside `bin`. Not `share`: data of the user
/// is there.
const BESIDE: &[&str] = &["lib", "lib64", "libexec", "versions"];

/// What of the system is in the root of a program with namespaces. All of `/etc`, because its files are replaced while
/// the program runs; Landlock leaves most of them closed.
const MOUNTED_WHOLE: &str = "/etc";

/// Where the kernel shows its processes. A root has its own.
const PROCESSES: &str = "/proc";

/// A path that is there.
#[derive(Debug, Clone)]
pub(super) struct RealPath {
    /// As it is declared.
    pub(super) name: PathBuf,
    /// Without links.
    pub(super) path: PathBuf,
    pub(super) kind: PathKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    Folder,
    File,
    Socket,
}

impl RealPath {
    fn new(name: &Path) -> Result<Self, ConfineError> {
        let missing =
            |error: std::io::Error| ConfineError::Path { path: name.to_owned(), reason: error.to_string() };
        let path = name.canonicalize().map_err(missing)?;
        let kind = match path.metadata().map_err(missing)?.file_type() {
            kind if kind.is_dir() => PathKind::Folder,
            kind if kind.is_socket() => PathKind::Socket,
            _ => PathKind::File,
        };
        if path.parent().is_none() {
            Err(ConfineError::Root)
        } else {
            Ok(Self { name: name.to_owned(), path, kind })
        }
    }
}

/// The paths of a program.
#[derive(Debug)]
pub(super) struct Declared {
    system: Vec<PathBuf>,
    read: Vec<RealPath>,
    write: Vec<RealPath>,
}

/// Those of a program without paths of its own.
impl Default for Declared {
    fn default() -> Self {
        Self { system: readable(OsStr::new(""), OsStr::new("")), read: Vec::new(), write: Vec::new() }
    }
}

impl Declared {
    /// # Errors
    /// A path that is not there, or one that the program could replace.
    pub(super) fn new(confinement: &Confinement, program: &OsStr) -> Result<Self, ConfineError> {
        let real =
            |paths: &[PathBuf]| paths.iter().map(|path| RealPath::new(path)).collect::<Result<Vec<_>, _>>();
        let (read, mut write) = (real(&confinement.read)?, real(&confinement.write)?);
        write.push(RealPath::new(&confinement.folder)?);
        for path in read.iter().chain(&write) {
            let is_around = |outer: &&RealPath| outer.path != path.path && path.path.starts_with(&outer.path);
            if let Some(outer) = write.iter().find(is_around) {
                return Err(ConfineError::Inside { path: path.name.clone(), outer: outer.name.clone() });
            }
        }
        let mut system = readable(&std::env::var_os("PATH").unwrap_or_default(), program);
        // The program may read them already, and could replace them too.
        system.retain(|path| !write.iter().any(|outer| path.starts_with(&outer.path) || is_in(path, outer)));
        Ok(Self { system, read, write })
    }

    /// The parts of the system.
    pub(super) fn system(&self) -> &[PathBuf] {
        &self.system
    }

    pub(super) fn readable(&self) -> &[RealPath] {
        &self.read
    }

    /// The folder of the program, and what is declared so.
    pub(super) fn writable(&self) -> &[RealPath] {
        &self.write
    }

    /// A declared socket.
    pub(super) fn socket(&self) -> Option<&Path> {
        let mut all = self.read.iter().chain(&self.write);
        all.find(|path| path.kind == PathKind::Socket).map(|path| path.name.as_path())
    }

    /// The places of a root with nothing else.
    pub(super) fn places(&self) -> Vec<Place> {
        let system = self.system.iter().map(PathBuf::as_path).chain(DEVICES.iter().map(Path::new));
        let whole =
            system.map(|path| if path.starts_with(MOUNTED_WHOLE) { Path::new(MOUNTED_WHOLE) } else { path });
        let system = whole.filter_map(|name| {
            Some(Place { name: name.to_owned(), path: name.canonicalize().ok()?, is_writable: false })
        });
        let declared =
            self.read.iter().map(|path| (path, false)).chain(self.write.iter().map(|path| (path, true)));
        let declared = declared.map(|(RealPath { name, path, .. }, is_writable)| Place {
            name: name.clone(),
            path: path.clone(),
            is_writable,
        });
        system.chain(declared).filter(|place| !place.path.starts_with(PROCESSES)).collect()
    }
}

fn is_in(path: &Path, outer: &RealPath) -> bool {
    path.canonicalize().is_ok_and(|path| path.starts_with(&outer.path))
}

/// The folders and files that a program may read and execute. Those that are not there are left out.
pub(super) fn readable(path_variable: &OsStr, program: &OsStr) -> Vec<PathBuf> {
    let fixed = PROGRAMS.iter().chain(SYSTEM).map(PathBuf::from);
    let named = Path::new(program);
    let named = (named.components().count() > 1).then(|| named.to_owned());
    let all = fixed.chain(search_folders(path_variable)).chain(named);
    all.filter(|path| path.exists()).collect()
}

/// The folders of `PATH` with those beside them. The root and relative folders are left out.
fn search_folders(path_variable: &OsStr) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in std::env::split_paths(path_variable).filter(|folder| folder.is_absolute()) {
        let Ok(folder) = folder.canonicalize() else { continue };
        let Some(parent) = folder.parent() else { continue };
        // `lib` beside a folder at the root is the system's own.
        if parent.parent().is_some() {
            folders.extend(BESIDE.iter().map(|name| parent.join(name)));
        }
        folders.push(folder);
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::{readable, search_folders};
    use std::ffi::OsStr;
    use std::path::PathBuf;

    #[test]
    fn the_folders_of_the_path_come_with_their_libraries() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        for folder in ["node/bin", "node/lib", "node/share"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        let variable = format!("{}:/:bin:.::/no/such", home.join("node/bin").display());
        let found = search_folders(OsStr::new(&variable));
        let expected =
            ["lib", "lib64", "libexec", "versions", "bin"].map(|name| home.join("node").join(name));
        assert_eq!(found, expected);
        let readable = readable(OsStr::new(&variable), OsStr::new("node"));
        for (name, expected) in
            [("node/bin", true), ("node/lib", true), ("node/lib64", false), ("node/share", false)]
        {
            assert_eq!(readable.contains(&home.join(name)), expected, "{name}");
        }
        assert!(!readable.contains(&home) && !readable.contains(&PathBuf::from("/")));
    }

    #[test]
    fn a_program_that_is_named_by_its_path_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        std::fs::write(&program, "").unwrap();
        assert!(readable(OsStr::new(""), program.as_os_str()).contains(&program));
        assert!(!readable(OsStr::new(""), OsStr::new("server")).contains(&program));
    }
}
