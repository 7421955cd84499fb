//! What a confined program cannot do to its user, to the sidecar and to their files.

use crate::confine::{Declared, Places, nothing, ways};
use crate::kit::Links;
use crate::processes::wait_until;
use pretty_assertions::assert_eq;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// Prints each line with whether it could be done.
const ATTEMPTS: &str = "
import ctypes, os, resource, socket, sys
def attempt(name, act):
    try:
        act()
        print(name, 'done')
    except OSError as error:
        print(name, 'refused')
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
";

/// The lines of attempts that were not refused.
fn done(lines: &[String]) -> Vec<&str> {
    assert!(lines.iter().all(|line| line.ends_with(" done") || line.ends_with(" refused")), "{lines:?}");
    lines.iter().filter_map(|line| line.strip_suffix(" done")).collect()
}

/// Changes a file without writing into it.
const CHANGES: &str = "
path = PATH
opened = os.open(path, os.O_RDONLY)
attempt('chmod', lambda: os.chmod(path, 0o666))
attempt('fchmod', lambda: os.fchmod(opened, 0o666))
attempt('chown', lambda: os.chown(path, os.getuid(), os.getgid()))
attempt('fchown', lambda: os.fchown(opened, os.getuid(), os.getgid()))
attempt('utime', lambda: os.utime(path, (1, 1)))
attempt('futimens', lambda: os.utime(opened, (1, 1)))
attempt('setxattr', lambda: os.setxattr(path, 'user.x', b'x'))
attempt('truncate', lambda: os.truncate(path, 0))
attempt('empty', lambda: os.close(os.open(path, os.O_RDONLY | os.O_TRUNC)))
";

// SECURITY: mcp-confined
#[test]
fn a_program_changes_no_mode_owner_time_or_attribute_of_a_file_that_it_may_read() {
    for namespaces in ways() {
        let places = Places::new();
        let secret = places.path("other/secret");
        let declared = Declared { read: &[&secret], ..nothing(namespaces) };
        let change = |path: &Path| {
            let script = format!("{ATTEMPTS}\nPATH = '{}'\n{CHANGES}", path.display());
            places.python(&declared, &script)
        };
        let before = secret.metadata().unwrap();
        assert_eq!(done(&change(&secret)), [""; 0]);
        let after = secret.metadata().unwrap();
        assert_eq!((after.mode(), after.mtime(), after.len()), (before.mode(), before.mtime(), before.len()));
        // Its own files it may change only where the filter does not have to hold for all.
        std::fs::write(places.path("own/file"), "x").unwrap();
        let own = change(&places.path("own/file"));
        let allowed: &[&str] = match namespaces {
            true => &["chmod", "fchmod", "chown", "fchown", "utime", "futimens"],
            false => &[],
        };
        let found: Vec<&str> = done(&own).into_iter().filter(|name| *name != "setxattr").collect();
        assert_eq!(found, allowed);
        let mode = places.path("own/file").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode == 0o666, namespaces);
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_changes_no_limit_and_no_priority_of_its_caller() {
    let places = Places::new();
    let limits = || std::fs::read_to_string("/proc/self/limits").unwrap();
    let before = limits();
    for declared in ways().into_iter().map(nothing) {
        let script = format!(
            "{ATTEMPTS}
caller = {}
attempt('size of files', lambda: resource.prlimit(caller, resource.RLIMIT_FSIZE, (0, 0)))
attempt('open files', lambda: resource.prlimit(caller, resource.RLIMIT_NOFILE))
attempt('core', lambda: resource.prlimit(caller, resource.RLIMIT_CORE, (1, 1)))
attempt('priority', lambda: os.setpriority(os.PRIO_PROCESS, caller, 5))
attempt('processors', lambda: os.sched_setaffinity(caller, [0]))
attempt('scheduler', lambda: os.sched_setscheduler(caller, os.SCHED_BATCH, os.sched_param(0)))
attempt('its own limit', lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)))
attempt('its own priority', lambda: os.setpriority(os.PRIO_PROCESS, 0, 5))
",
            std::process::id()
        );
        assert_eq!(done(&places.python(&declared, &script)), ["its own limit", "its own priority"]);
        assert_eq!(limits(), before);
    }
}

// SECURITY: mcp-confined
#[test]
fn a_program_gets_no_namespaces_keys_or_queues_and_traces_nothing() {
    let places = Places::new();
    let number = |name: &str, x86_64: u32, aarch64: u32| {
        let number = if cfg!(target_arch = "x86_64") { x86_64 } else { aarch64 };
        format!("attempt('{name}', lambda: call({number}, *ARGUMENTS))\n").replace(
            "*ARGUMENTS",
            match name {
                "clone" => "0x10000011, 0, 0, 0, 0",
                "ptrace" => "0, 0, 0, 0",
                "unshare" => "0x10000000",
                "keyctl" => "0, -3, 1",
                "shmget" => "0, 4096, 0o1600",
                "io_uring" => "1, ctypes.create_string_buffer(200)",
                _ => "-1, -1, -1, -1, -1",
            },
        )
    };
    let attempts: String = [
        number("clone", 56, 220),
        number("ptrace", 101, 117),
        number("unshare", 272, 97),
        number("keyctl", 250, 219),
        number("shmget", 29, 194),
        number("io_uring", 425, 425),
        number("mount", 165, 40),
        number("bpf", 321, 280),
        number("userfaultfd", 323, 282),
    ]
    .concat();
    for declared in ways().into_iter().map(nothing) {
        assert_eq!(done(&places.python(&declared, &format!("{ATTEMPTS}\n{attempts}"))), [""; 0]);
    }
}

/// Connects to sockets that are files, and to one without a name.
fn connections(places: &Places, declared: &Declared<'_>, sockets: &[&Path]) -> Vec<String> {
    let mut script = format!(
        "{ATTEMPTS}
def connect(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)
one, two = socket.socketpair()
attempt('pair', lambda: one.sendall(b'x'))
"
    );
    for path in sockets {
        let name = path.file_name().unwrap().to_str().unwrap();
        script += &format!("attempt('{name}', lambda: connect('{}'))\n", path.display());
    }
    done(&places.python(declared, &script)).into_iter().map(str::to_owned).collect()
}

// SECURITY: mcp-confined
#[test]
fn a_program_connects_to_no_socket_that_is_not_declared() {
    let places = Places::new();
    let (declared, other, inner) =
        (places.path("declared.socket"), places.path("other.socket"), places.path("other/inner.socket"));
    let _listeners = [&declared, &other, &inner].map(|path| UnixListener::bind(path).unwrap());
    let all: Vec<&Path> = vec![&declared, &other, &inner];
    for namespaces in ways() {
        // Not by its folder either.
        let folder = places.path("other");
        for network_none in [false, true] {
            let with_folder = Declared { write: &[&folder], network_none, ..nothing(namespaces) };
            assert_eq!(connections(&places, &with_folder, &all), ["pair"]);
        }
        let with_socket = Declared { read: &[&declared], network_none: true, ..nothing(namespaces) };
        if namespaces {
            assert_eq!(connections(&places, &with_socket, &all), ["pair", "declared.socket"]);
        } else {
            let output = places.run(&with_socket, &["sh", "-c", "echo started"]);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
            assert!(text.contains("declared.socket is a socket"), "{text}");
        }
    }
}

/// The Python programs whose last argument is this one.
fn pythons(name: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(line) = std::fs::read_to_string(entry.path().join("cmdline")) else { continue };
        let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
        if words.first().is_some_and(|word| word.ends_with("python3")) && words.last() == Some(&name) {
            found.push(id);
        }
    }
    found
}

/// Two programs that sleep. One has a session of its own.
fn sleepers(name: &str) -> String {
    let sleep = format!("python3 -c 'import time; time.sleep(600)' '{name}'");
    format!("setsid {sleep} & exec {sleep}")
}

// SECURITY: mcp-confined
#[test]
fn a_program_ends_with_its_caller_and_with_namespaces_its_children_do_too() {
    for namespaces in ways() {
        let places = Places::new();
        let name = places.path("own").display().to_string();
        let job = json!([places.path("own"), [], [], false, namespaces, ["sh", "-c", sleepers(&name)]]);
        let confine = places.links.program("confine");
        // The shell waits for the confined program, and is killed while it does.
        let mut caller = Command::new("sh")
            .args(["-c", "\"$0\" \"$1\" & wait", confine.to_str().unwrap(), &job.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the start of both", || pythons(&name).len() == 2);
        caller.kill().unwrap();
        caller.wait().unwrap();
        let left = usize::from(!namespaces);
        wait_until("the end", || pythons(&name).len() == left);
        for process in pythons(&name) {
            assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
        }
    }
}

// SECURITY: mcp-confined
#[test]
fn with_namespaces_nothing_is_left_when_the_program_ends() {
    if !ways().contains(&true) {
        return;
    }
    let places = Places::new();
    let name = places.path("own").display().to_string();
    let script = sleepers(&name).replace("exec", "true");
    assert_eq!(places.shell(&nothing(true), &script).1, Some(0));
    wait_until("the end of the child", || pythons(&name).is_empty());
}

#[test]
fn a_program_that_is_asked_to_end_has_time_to_do_so() {
    use std::os::unix::process::CommandExt as _;
    let places = Places::new();
    for declared in ways().into_iter().map(nothing) {
        let script = "trap 'echo ends; exit 3' TERM; echo begins; while :; do sleep 0.02; done";
        let mut program = places.command(&declared, &["sh", "-c", script]).process_group(0).spawn().unwrap();
        let mut output = program.stdout.take().unwrap();
        let mut begin = [0; 7];
        output.read_exact(&mut begin).unwrap();
        let group = format!("-{}", program.id());
        assert!(Command::new("kill").args(["-TERM", "--", &group]).status().unwrap().success());
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), program.wait().unwrap().code()), ("ends\n", Some(3)));
    }
}

/// The sidecar calls this. What it holds is not for other processes of its user, and not for a file.
// SECURITY: memory-hidden
#[test]
fn a_process_that_hides_its_memory_leaves_no_dump() {
    let links = Links::new();
    let mut hidden = Command::new(links.program("hide-memory"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 7];
    hidden.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    let folder = Path::new("/proc").join(hidden.id().to_string());
    let limits = std::fs::read_to_string(folder.join("limits")).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"]);
    // The kernel gives the files of such a process to the superuser.
    assert_eq!(folder.join("environ").metadata().unwrap().uid(), 0);
    hidden.stdin.take().unwrap().write_all(b"x").unwrap();
    assert!(hidden.wait().unwrap().success());
}
