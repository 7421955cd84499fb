//! What a confined program can and cannot do. The programs are those of the system.

use crate::kit::Links;
use pretty_assertions::assert_eq;
use redflow_worker::{PROGRAM_FILE_BYTES, PROGRAM_MEMORY_BYTES, PROGRAM_OPEN_FILES, can_confine};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of the program, and one with files that are not its own.
struct Places {
    links: Links,
    outer: tempfile::TempDir,
}

#[derive(Default)]
struct Declared<'a> {
    read: &'a [&'a Path],
    write: &'a [&'a Path],
    network_none: bool,
}

impl Places {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        for folder in ["own", "other"] {
            std::fs::create_dir(outer.path().join(folder)).unwrap();
        }
        std::fs::write(outer.path().join("other/secret"), "the secret").unwrap();
        Self { links: Links::new(), outer }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join(name)
    }

    fn command(&self, declared: &Declared<'_>, command: &[&str]) -> Command {
        let job = json!([self.path("own"), declared.read, declared.write, declared.network_none, command]);
        let mut confine = Command::new(self.links.program("confine"));
        confine.arg(job.to_string()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // As the sidecar starts programs: with `PATH`, and a home that is theirs.
        let path = std::env::var_os("PATH").unwrap_or_default();
        confine.env_clear().env("PATH", path).env("HOME", self.path("own")).env("TMPDIR", self.path("own"));
        confine
    }

    fn run(&self, declared: &Declared<'_>, command: &[&str]) -> Output {
        self.command(declared, command).output().unwrap()
    }

    /// The text that a command prints, and its exit status.
    fn shell(&self, declared: &Declared<'_>, script: &str) -> (String, Option<i32>) {
        let output = self.run(declared, &["sh", "-c", script]);
        (String::from_utf8(output.stdout).unwrap(), output.status.code())
    }
}

// SECURITY: mcp-confined
#[test]
fn this_system_confines_programs() {
    assert!(can_confine(), "the tests need a kernel with Landlock");
}

// SECURITY: mcp-confined
#[test]
fn the_status_of_the_program_passes_through() {
    let places = Places::new();
    assert_eq!(places.shell(&Declared::default(), "echo hello; exit 7"), ("hello\n".to_owned(), Some(7)));
    assert_eq!(places.shell(&Declared::default(), "pwd").0.trim(), places.path("own").to_str().unwrap());
    let missing = places.run(&Declared::default(), &["no-such-program-here"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("`no-such-program-here` cannot be started"));
    let folder = places.run(&Declared::default(), &["/usr"]);
    assert_eq!(folder.status.code(), Some(2));
}

// SECURITY: mcp-confined
#[test]
fn a_program_reads_only_what_is_declared() {
    let places = Places::new();
    let secret = places.path("other/secret");
    let read = format!("cat '{}'", secret.display());
    assert_eq!(places.shell(&Declared::default(), &read), (String::new(), Some(1)));
    let list = format!("ls '{}'", places.path("other").display());
    assert_eq!(places.shell(&Declared::default(), &list).0, "");
    for declared in [&secret, &places.path("other")] {
        let declared = Declared { read: &[declared], ..Declared::default() };
        assert_eq!(places.shell(&declared, &read), ("the secret".to_owned(), Some(0)));
        let write = format!("echo new > '{}'", secret.display());
        assert_ne!(places.shell(&declared, &write).1, Some(0));
    }
    // A link in its own folder leads no further.
    std::os::unix::fs::symlink(&secret, places.path("own/link")).unwrap();
    assert_eq!(places.shell(&Declared::default(), "cat link").0, "");
    assert_ne!(places.shell(&Declared::default(), &format!("ln '{}' hard", secret.display())).1, Some(0));
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "the secret");
}

// SECURITY: mcp-confined
#[test]
fn a_program_writes_only_its_folder_and_what_is_declared() {
    let places = Places::new();
    let script = "mkdir -p a/b && echo one > a/b/c && mv a/b/c d && cat d && rm -r a";
    assert_eq!(places.shell(&Declared::default(), script), ("one\n".to_owned(), Some(0)));
    assert_eq!(std::fs::read_to_string(places.path("own/d")).unwrap(), "one\n");
    let other = places.path("other");
    let write = format!("echo x > '{}/new'", other.display());
    assert_ne!(places.shell(&Declared::default(), &write).1, Some(0));
    assert!(!other.join("new").exists());
    let declared = Declared { write: &[&other], ..Declared::default() };
    assert_eq!(places.shell(&declared, &write).1, Some(0));
    assert!(other.join("new").exists());
    let elsewhere = ["/usr/x", "/etc/x", "/tmp/redflow-confine-test", "/dev/shm/redflow-confine-test"];
    for path in elsewhere {
        assert_ne!(places.shell(&Declared::default(), &format!("echo x > {path}")).1, Some(0), "{path}");
        assert!(!Path::new(path).exists(), "{path}");
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_has_few_devices_and_makes_none() {
    let places = Places::new();
    assert_eq!(
        places.shell(&Declared::default(), "echo x > /dev/null && head -c 1 /dev/urandom > r").1,
        Some(0)
    );
    assert_ne!(places.shell(&Declared::default(), "mknod disk b 8 0").1, Some(0));
    assert_ne!(places.shell(&Declared::default(), "cat /dev/kmsg < /dev/null").1, Some(0));
}

/// `/proc` is readable, but not what other processes hold.
// SECURITY: mcp-confined
#[test]
fn a_program_sees_no_environment_of_its_caller() {
    let places = Places::new();
    let read = format!("cat /proc/{}/environ", std::process::id());
    assert_eq!(places.shell(&Declared::default(), &read), (String::new(), Some(1)));
}

// SECURITY: mcp-confined
#[test]
fn a_program_shows_its_limits() {
    let places = Places::new();
    let limits = places.shell(&Declared::default(), "cat /proc/self/limits").0;
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
    let status = places.shell(&Declared::default(), "cat /proc/self/status").0;
    assert!(status.lines().any(|line| line == "NoNewPrivs:\t1"), "{status}");
    let rights = status.lines().find_map(|line| line.strip_prefix("CapPrm:\t")).unwrap();
    let rights = u64::from_str_radix(rights, 16).unwrap();
    // CHOWN, DAC_OVERRIDE, FOWNER and FSETID.
    assert_eq!(rights & !0b1_1011, 0, "{rights:x}");
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
    let sockets = |network_none: bool| {
        let declared = Declared { network_none, ..Declared::default() };
        let output = places.run(&declared, &["node", "-e", SOCKETS]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut lines: Vec<String> =
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sockets(false), ["tcp open", "udp open", "unix open"]);
    assert_eq!(sockets(true), ["tcp EACCES", "udp EACCES", "unix open"]);
}

// SECURITY: mcp-confined
#[test]
fn npm_and_python_start() {
    let places = Places::new();
    for command in [["npm", "--version"], ["npx", "--version"], ["python3", "--version"]] {
        let output = places.run(&Declared::default(), &command);
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = places.run(&Declared::default(), &["npm", "config", "get", "cache"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), places.path("own/.npm").to_str().unwrap());
}

// SECURITY: mcp-confined
#[test]
fn a_declared_path_that_is_missing_stops_the_start() {
    let places = Places::new();
    let missing = places.path("missing");
    for declared in [
        Declared { read: &[&missing], ..Declared::default() },
        Declared { write: &[&missing], ..Declared::default() },
    ] {
        let output = places.run(&declared, &["sh", "-c", "echo started"]);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("missing") && text.contains("declare another path"), "{text}");
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_ends_with_its_caller() {
    let places = Places::new();
    // The shell waits for the confined program, and is killed while it does.
    let job = json!([places.path("own"), [], [], false, ["sh", "-c", "echo $$ > pid; exec sleep 600"]]);
    let script = format!("'{}' '{job}' & wait", places.links.program("confine").display());
    let mut caller = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap();
    let file = places.path("own/pid");
    let mut process = String::new();
    crate::processes::wait_until("the start of the program", || {
        process = std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
        !process.is_empty()
    });
    caller.kill().unwrap();
    caller.wait().unwrap();
    let process: u32 = process.parse().unwrap();
    crate::processes::wait_until("the end of the program", || !crate::processes::is_alive(process));
}
