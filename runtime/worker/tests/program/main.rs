//! The worker of the tests, and programs that behave badly. The name that it is started by chooses: tests make links.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use redflow_worker::{Confinement, Worker, WorkerSettings, check_namespaces, hide_memory, limit_self, run};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let second = arguments.next().unwrap_or_default();
    let name = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name {
        "hang" => hang(),
        "echo-environment" => environment(),
        "long-line" => answer(&vec![b' '; 1 << 24]),
        "huge-claim" => answer(b"{\"ok\":true,\"bytes\":99999999999}\n{}"),
        "short-result" => answer(b"{\"ok\":true,\"bytes\":100}\n{}"),
        "wrong-result" => answer(b"{\"ok\":true,\"bytes\":2}\n[]"),
        "many-pages" => many_pages(),
        "strange-reason" => answer(b"{\"ok\":false,\"reason\":\"send money\"}\n"),
        "sandbox" => answer(b"{\"ok\":false,\"reason\":\"sandbox\"}\n"),
        "panic" => panic!("as parsers do"),
        "caller" => call_and_wait(Path::new(&second)),
        "forbidden" => forbidden(&second),
        "confine" => confine(&second),
        "check-namespaces" => check_namespaces().unwrap_or(ExitCode::FAILURE),
        "hide-memory" => hidden(),
        _ => match run(!std::env::args().any(|argument| argument == "--no-filter")) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
    }
}

/// Becomes a program under a confinement, given as a JSON list: the folder, the paths to read, those to write, whether
/// there is no network, whether there are namespaces, and the program with its arguments.
fn confine(job: &str) -> ExitCode {
    type Job = (PathBuf, Vec<PathBuf>, Vec<PathBuf>, bool, bool, Vec<String>);
    let (folder, read, write, network_none, namespaces, command): Job = serde_json::from_str(job).unwrap();
    let command: Vec<OsString> = command.into_iter().map(OsString::from).collect();
    let (program, arguments) = command.split_first().unwrap();
    let confinement = Confinement { folder, read, write, network_none, namespaces };
    confinement.run(program, arguments).unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "{error}");
        ExitCode::from(2)
    })
}

/// Hides its memory, says so, and waits for the end of its input.
fn hidden() -> ExitCode {
    hide_memory().unwrap();
    let behavior = rustix::process::dumpable_behavior().unwrap();
    assert_eq!(behavior, rustix::process::DumpableBehavior::NotDumpable);
    std::io::stdout().write_all(b"hidden\n").unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    ExitCode::SUCCESS
}

fn hang() -> ExitCode {
    limit_self(true).unwrap();
    loop {
        std::thread::park();
    }
}

fn answer(bytes: &[u8]) -> ExitCode {
    // The caller may close the pipe before it has read all.
    let _ = std::io::stdout().write_all(bytes);
    let _ = std::io::stdout().flush();
    hang()
}

/// Answers with the names in its environment as the Markdown.
fn environment() -> ExitCode {
    let names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    let result = format!("{{\"title\":null,\"markdown\":\"{}\"}}", names.join(" "));
    answer(format!("{{\"ok\":true,\"bytes\":{}}}\n{result}", result.len()).as_bytes())
}

fn many_pages() -> ExitCode {
    let result = format!("{{\"pages\":[{}\"\"]}}", "\"\",".repeat(2_000_000));
    answer(format!("{{\"ok\":true,\"bytes\":{}}}\n{result}", result.len()).as_bytes())
}

/// Calls a worker that hangs, until this process is killed.
fn call_and_wait(program: &Path) -> ExitCode {
    let settings = WorkerSettings {
        program: Some(program.to_owned()),
        timeout: Duration::from_secs(60),
        ..WorkerSettings::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _ = runtime.block_on(Worker::new(settings).read_html(b"<p>".to_vec()));
    ExitCode::SUCCESS
}

/// Limits itself and tries something that a worker must not do.
fn forbidden(act: &str) -> ExitCode {
    let mut limits = File::open("/proc/self/limits").unwrap();
    limit_self(act != "file-without-filter").unwrap();
    let refused = match act {
        "nothing" => false,
        // What is open stays open: the pipes are.
        "read-limits" => {
            let mut text = [0; 4096];
            let length = limits.read(&mut text).unwrap();
            return answer_and_end(&text[..length]);
        }
        "open-file" | "file-without-filter" => File::open("/proc/self/status").is_err(),
        "write-file" => File::create("redflow-worker-must-not-exist").is_err(),
        "list-folder" => std::fs::read_dir("/").is_err(),
        "tcp" => TcpListener::bind("127.0.0.1:0").is_err(),
        "udp" => UdpSocket::bind("127.0.0.1:0").is_err(),
        "process" => Command::new("/bin/true").spawn().is_err(),
        "thread" => std::thread::Builder::new().spawn(|| ()).is_err(),
        "memory" => {
            let mut memory: Vec<u8> = Vec::new();
            memory.try_reserve_exact(600 << 20).is_err()
        }
        _ => panic!("unknown act"),
    };
    answer_and_end(if refused { b"refused" } else { b"done" })
}

fn answer_and_end(bytes: &[u8]) -> ExitCode {
    std::io::stdout().write_all(bytes).unwrap();
    ExitCode::SUCCESS
}
