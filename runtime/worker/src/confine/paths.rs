//! The parts of the system that every program may read, because runtimes and package managers need them.

use std::ffi::OsStr;
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
