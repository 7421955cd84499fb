//! What a confined program can and cannot do. The programs are those of the system. Each test runs without namespaces,
//! and with them if the kernel has them.

use crate::kit::Links;
use pretty_assertions::assert_eq;
use redflow_worker::{
    ConfineSupport, PROGRAM_FILE_BYTES, PROGRAM_MEMORY_BYTES, PROGRAM_OPEN_FILES, confine_support,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

static SUPPORT: LazyLock<Option<ConfineSupport>> =
    LazyLock::new(|| confine_support(&mut Command::new(Links::new().program("check-namespaces"))));

/// Whether programs get namespaces: the ways to confine a program on this system.
pub(crate) fn ways() -> Vec<bool> {
    let support = SUPPORT.expect("the tests need a kernel with Landlock");
    [false, true].into_iter().filter(|namespaces| support.namespaces || !namespaces).collect()
}

/// A folder of the program, and one with files that are not its own.
pub(crate) struct Places {
    pub(crate) links: Links,
    outer: tempfile::TempDir,
}

#[derive(Default)]
pub(crate) struct Declared<'a> {
    pub(crate) read: &'a [&'a Path],
    pub(crate) write: &'a [&'a Path],
    pub(crate) network_none: bool,
    pub(crate) namespaces: bool,
}

/// Nothing but namespaces, or none.
pub(crate) fn nothing(namespaces: bool) -> Declared<'static> {
    Declared { namespaces, ..Declared::default() }
}

impl Places {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        for folder in ["own", "other"] {
            std::fs::create_dir(outer.path().join(folder)).unwrap();
        }
        std::fs::write(outer.path().join("other/secret"), "the secret").unwrap();
        Self { links: Links::new(), outer }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    pub(crate) fn command(&self, declared: &Declared<'_>, command: &[&str]) -> Command {
        let Declared { read, write, network_none, namespaces } = declared;
        let job = json!([self.path("own"), read, write, network_none, namespaces, command]);
        let mut confine = Command::new(self.links.program("confine"));
        confine.arg(job.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // As the sidecar starts programs: with `PATH`, and a home that is theirs.
        let path = std::env::var_os("PATH").unwrap_or_default();
        confine.env_clear().env("PATH", path).env("HOME", self.path("own")).env("TMPDIR", self.path("own"));
        confine
    }

    pub(crate) fn run(&self, declared: &Declared<'_>, command: &[&str]) -> Output {
        self.command(declared, command).output().unwrap()
    }

    /// The text that a command prints, and its exit status.
    pub(crate) fn shell(&self, declared: &Declared<'_>, script: &str) -> (String, Option<i32>) {
        let output = self.run(declared, &["sh", "-c", script]);
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    }

    /// The lines that a Python program prints.
    #[track_caller]
    pub(crate) fn python(&self, declared: &Declared<'_>, script: &str) -> Vec<String> {
        let output = self.run(declared, &["python3", "-c", script]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

// SECURITY: mcp-confined
#[test]
fn the_status_of_the_program_passes_through() {
    let places = Places::new();
    for declared in ways().into_iter().map(nothing) {
        assert_eq!(places.shell(&declared, "echo hello; exit 7"), ("hello\n".to_owned(), Some(7)));
        assert_eq!(places.shell(&declared, "pwd").0.trim(), places.path("own").to_str().unwrap());
        let killed = places.shell(&declared, "kill -9 $$").1;
        assert_eq!(killed, declared.namespaces.then_some(137));
        let missing = places.run(&declared, &["no-such-program-here"]);
        assert_eq!(missing.status.code(), Some(2));
        assert!(
            String::from_utf8_lossy(&missing.stderr).contains("`no-such-program-here` cannot be started")
        );
        let folder = places.run(&declared, &["/usr"]);
        assert_eq!(folder.status.code(), Some(2));
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_reads_only_what_is_declared() {
    for namespaces in ways() {
        let places = Places::new();
        let none = nothing(namespaces);
        let secret = places.path("other/secret");
        let read = format!("cat '{}'", secret.display());
        assert_eq!(places.shell(&none, &read), (String::new(), Some(1)));
        let list = format!("ls '{}'", places.path("other").display());
        assert_eq!(places.shell(&none, &list).0, "");
        for declared in [&secret, &places.path("other")] {
            let declared = Declared { read: &[declared], ..nothing(namespaces) };
            assert_eq!(places.shell(&declared, &read), ("the secret".to_owned(), Some(0)));
            let write = format!("echo new > '{}'", secret.display());
            assert_ne!(places.shell(&declared, &write).1, Some(0));
        }
        // A link in its own folder leads no further.
        std::os::unix::fs::symlink(&secret, places.path("own/link")).unwrap();
        assert_eq!(places.shell(&none, "cat link").0, "");
        assert_ne!(places.shell(&none, &format!("ln '{}' hard", secret.display())).1, Some(0));
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "the secret");
        // A declared link leads where it led when the program started.
        let link = places.path("to-other");
        std::os::unix::fs::symlink(places.path("other"), &link).unwrap();
        let declared = Declared { read: &[&link], ..nothing(namespaces) };
        let through = format!("cat '{}/secret'", link.display());
        assert_eq!(places.shell(&declared, &through), ("the secret".to_owned(), Some(0)));
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_writes_only_its_folder_and_what_is_declared() {
    for namespaces in ways() {
        let places = Places::new();
        let none = nothing(namespaces);
        let script = "mkdir -p a/b && echo one > a/b/c && mv a/b/c d && cat d && rm -r a";
        assert_eq!(places.shell(&none, script), ("one\n".to_owned(), Some(0)));
        assert_eq!(std::fs::read_to_string(places.path("own/d")).unwrap(), "one\n");
        let other = places.path("other");
        let write = format!("echo x > '{}/new'", other.display());
        assert_ne!(places.shell(&none, &write).1, Some(0));
        assert!(!other.join("new").exists());
        let declared = Declared { write: &[&other], ..nothing(namespaces) };
        assert_eq!(places.shell(&declared, &write).1, Some(0));
        assert!(other.join("new").exists());
        let elsewhere =
            ["/x", "/usr/x", "/etc/x", "/tmp/redflow-confine-test", "/dev/shm/redflow-confine-test"];
        for path in elsewhere {
            assert_ne!(places.shell(&none, &format!("echo x > {path}")).1, Some(0), "{path}");
            assert!(!Path::new(path).exists(), "{path}");
        }
    }
}

// SECURITY: mcp-confined
#[test]
fn what_a_program_writes_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let places = Places::new();
    for namespaces in ways() {
        let name = format!("new-{namespaces}");
        assert_eq!(
            places.shell(&nothing(namespaces), &format!("mkdir {name} && echo x > {name}/file")).1,
            Some(0)
        );
        for (path, mode) in [(name.clone(), 0o700), (format!("{name}/file"), 0o600)] {
            let found = places.path("own").join(path).metadata().unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode);
        }
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_has_few_devices_and_makes_none() {
    let places = Places::new();
    for declared in ways().into_iter().map(nothing) {
        let write = "echo x > /dev/null && head -c 1 /dev/urandom > r && echo x > /dev/fd/1";
        assert_eq!(places.shell(&declared, write).1, Some(0));
        assert_ne!(places.shell(&declared, "mknod disk b 8 0").1, Some(0));
        assert_ne!(places.shell(&declared, "cat /dev/kmsg < /dev/null").1, Some(0));
    }
}

/// `/proc` is readable, but not what other processes hold.
// SECURITY: mcp-confined
#[test]
fn a_program_sees_no_environment_of_its_caller() {
    let places = Places::new();
    for declared in ways().into_iter().map(nothing) {
        let read = format!("cat /proc/{}/environ", std::process::id());
        assert_eq!(places.shell(&declared, &read), (String::new(), Some(1)));
        // With namespaces it does not even see its caller.
        let list = format!("ls /proc/{}", std::process::id());
        assert_eq!(places.shell(&declared, &list).1 == Some(0), !declared.namespaces);
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_shows_its_limits() {
    let places = Places::new();
    for declared in ways().into_iter().map(nothing) {
        let limits = places.shell(&declared, "cat /proc/self/limits").0;
        for (name, value) in [
            ("Max file size", PROGRAM_FILE_BYTES),
            ("Max data size", PROGRAM_MEMORY_BYTES),
            ("Max core file size", 0),
            ("Max open files", PROGRAM_OPEN_FILES),
        ] {
            let row = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            let found: Vec<u64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            assert_eq!(found, [value; 2], "{name}: {row}");
        }
        let status = places.shell(&declared, "cat /proc/self/status").0;
        for rights in ["NoNewPrivs:\t1", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"] {
            assert!(status.lines().any(|line| line == rights), "{rights}: {status}");
        }
    }
}

/// Opens a socket of each family in Node.js, and prints what came of it.
const SOCKETS: &str = r"
const net = require('net'), dgram = require('dgram');
const say = (name, what) => console.log(name + ' ' + what);
const tcp = net.createServer().on('error', e => say('tcp', e.code));
tcp.listen(0, '127.0.0.1', () => { say('tcp', 'open'); tcp.close(); });
const udp = dgram.createSocket('udp4').on('error', e => { say('udp', e.code); });
udp.bind(0, '127.0.0.1', () => { say('udp', 'open'); udp.close(); });
const unix = net.createServer().on('error', e => say('unix', e.code));
unix.listen('socket', () => { say('unix', 'open'); unix.close(); });
";

// SECURITY: mcp-confined
#[test]
fn node_starts_and_has_a_network_only_if_it_may() {
    let places = Places::new();
    for namespaces in ways() {
        let sockets = |network_none: bool| {
            let declared = Declared { network_none, ..nothing(namespaces) };
            let output = places.run(&declared, &["node", "-e", SOCKETS]);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let mut lines: Vec<String> =
                String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sockets(false), ["tcp open", "udp open", "unix EPERM"]);
        assert_eq!(sockets(true), ["tcp EPERM", "udp EPERM", "unix EPERM"]);
    }
}

// SECURITY: mcp-confined
#[test]
fn npm_and_python_start() {
    let places = Places::new();
    for declared in ways().into_iter().map(nothing) {
        for command in [["npm", "--version"], ["npx", "--version"], ["python3", "--version"]] {
            let output = places.run(&declared, &command);
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let output = places.run(&declared, &["npm", "config", "get", "cache"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), places.path("own/.npm").to_str().unwrap());
    }
}

/// An installation changes the modes of its files. Without namespaces it fails, as docs/mcp.md says.
// SECURITY: mcp-confined
#[test]
fn a_package_is_installed_only_with_namespaces() {
    for namespaces in ways() {
        let places = Places::new();
        let package = places.path("own/package");
        std::fs::create_dir(&package).unwrap();
        let manifest =
            json!({"name": "own-package", "version": "1.0.0", "bin": "start.js", "files": ["start.js"]});
        std::fs::write(package.join("package.json"), manifest.to_string()).unwrap();
        std::fs::write(package.join("start.js"), "#!/usr/bin/env node\nconsole.log('it runs')\n").unwrap();
        // Packed by this process, because that changes modes too.
        let packed = Command::new("npm")
            .args(["pack", "--silent", "./package"])
            .current_dir(places.path("own"))
            .output();
        assert!(packed.unwrap().status.success());
        let start = places.shell(&nothing(namespaces), "npx --yes --offline ./own-package-1.0.0.tgz 2>&1");
        assert_eq!(start.0.contains("it runs"), namespaces, "{start:?}");
        assert_eq!(start.0.contains("EPERM"), !namespaces, "{start:?}");
    }
}

// SECURITY: mcp-confined
#[test]
fn a_declared_path_that_is_missing_stops_the_start() {
    let places = Places::new();
    let missing = places.path("missing");
    for namespaces in ways() {
        for declared in [
            Declared { read: &[&missing], ..nothing(namespaces) },
            Declared { write: &[&missing], ..nothing(namespaces) },
        ] {
            let output = places.run(&declared, &["sh", "-c", "echo started"]);
            assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(text.contains("missing") && text.contains("declare another path"), "{text}");
        }
    }
}

/// The program could replace such a path by a link to a secret, and read it after the next start.
// SECURITY: mcp-confined
#[test]
fn a_declared_path_inside_a_writable_one_stops_the_start() {
    let places = Places::new();
    let (other, secret) = (places.path("other"), places.path("other/secret"));
    let link = places.path("link");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let (own, inner) = (places.path("own"), places.path("own/inner"));
    std::fs::create_dir(&inner).unwrap();
    let around = own.parent().unwrap().to_owned();
    for namespaces in ways() {
        let rows: [(&[&Path], &[&Path]); 5] = [
            (&[&secret], &[&other]),
            (&[&link], &[&other]),
            (&[], &[&secret, &other]),
            (&[&inner], &[]),
            // The folder of the program itself.
            (&[], &[&around]),
        ];
        for (read, write) in rows {
            let output =
                places.run(&Declared { read, write, ..nothing(namespaces) }, &["sh", "-c", "echo started"]);
            assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(text.contains("where the program can write"), "{text}");
        }
        let root = places.run(&Declared { read: &[Path::new("/")], ..nothing(namespaces) }, &["sh"]);
        assert!(String::from_utf8_lossy(&root.stderr).contains("`/` cannot be declared"));
        let twice = Declared { read: &[&other], write: &[&other], ..nothing(namespaces) };
        assert_eq!(places.shell(&twice, "echo x").1, Some(0));
    }
}
