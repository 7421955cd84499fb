//! What the caller does about workers that hang, lie or end, and what ends with it.

use crate::kit::{Links, PROGRAM, block_on, worker_of};
use pretty_assertions::assert_eq;
use redflow_worker::{HtmlText, MAX_PROCESSES, Worker, WorkerError, WorkerSettings};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(10);

/// The processes below a process, by the kernel's list.
fn children_of(process: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let mut fields = after_name.split_whitespace();
        // A process that has ended and is not reaped yet runs no more.
        let ended = fields.next() == Some("Z");
        if !ended && fields.next() == Some(process.to_string().as_str()) {
            children.push(id);
        }
    }
    children
}

pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < SOON, "{what} did not happen");
        std::thread::yield_now();
    }
}

pub(crate) fn is_alive(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// The workers that run a link of this test.
fn workers_of(links: &Links) -> Vec<u32> {
    let folder = links.folder().to_str().unwrap().to_owned();
    let runs_link = |id: &u32| {
        std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains(&folder))
    };
    children_of(std::process::id()).into_iter().filter(runs_link).collect()
}

// SECURITY: worker-confined
#[test]
fn a_worker_that_hangs_is_killed() {
    let links = Links::new();
    let start = Instant::now();
    let worker = worker_of(links.program("hang"), Duration::from_millis(300));
    assert_eq!(block_on(worker.read_html(b"<p>".to_vec())), Err(WorkerError::TimedOut));
    // The job is larger than the pipe: the caller must not wait for it to be read.
    assert_eq!(block_on(worker.read_pdf(vec![0; 1 << 20])), Err(WorkerError::TimedOut));
    assert!(start.elapsed() < SOON);
    assert_eq!(workers_of(&links), [0; 0]);
}

// SECURITY: worker-confined
#[test]
fn answers_that_are_none_are_failures() {
    let links = Links::new();
    for behaviour in ["long-line", "huge-claim", "wrong-result", "strange-reason", "panic"] {
        let result = block_on(worker_of(links.program(behaviour), LONG).read_html(vec![b'a'; 1 << 20]));
        assert_eq!(result, Err(WorkerError::Ended), "{behaviour}");
    }
    let waits = worker_of(links.program("short-result"), Duration::from_millis(500));
    assert_eq!(block_on(waits.read_html(Vec::new())), Err(WorkerError::TimedOut));
    let pages = block_on(worker_of(links.program("many-pages"), LONG).read_pdf(Vec::new()));
    assert_eq!(pages, Err(WorkerError::Ended));
}

// SECURITY: worker-confined
#[test]
fn a_worker_without_its_limits_reads_nothing() {
    let links = Links::new();
    let result = block_on(worker_of(links.program("sandbox"), LONG).read_html(Vec::new()));
    assert_eq!(result, Err(WorkerError::SandboxUnavailable));
}

// SECURITY: worker-confined
#[test]
fn a_program_that_does_not_exist_is_reported() {
    let links = Links::new();
    let result = block_on(worker_of(links.folder().join("missing"), LONG).read_html(Vec::new()));
    assert_eq!(result, Err(WorkerError::NotStarted));
}

// SECURITY: worker-confined
#[test]
fn a_worker_gets_no_environment() {
    let links = Links::new();
    let result = block_on(worker_of(links.program("echo-environment"), LONG).read_html(Vec::new()));
    let markdown = "MIMALLOC_ARENA_EAGER_COMMIT".to_owned();
    assert_eq!(result, Ok(HtmlText { title: None, markdown }));
}

// SECURITY: worker-confined
#[test]
fn without_the_filter_documents_are_read_too() {
    let settings = WorkerSettings { program: Some(PROGRAM.into()), timeout: LONG, filter: false };
    let result = block_on(Worker::new(settings).read_html(b"<p>a".to_vec()));
    assert_eq!(result.map(|text| text.markdown), Ok("a".to_owned()));
}

// SECURITY: worker-confined
#[test]
fn a_dropped_call_kills_its_worker() {
    let links = Links::new();
    let worker = worker_of(links.program("hang"), LONG);
    block_on(async {
        let call = worker.read_html(b"<p>".to_vec());
        assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
        wait_until("the end of the worker", || workers_of(&links).is_empty());
    });
}

// SECURITY: worker-confined
#[test]
fn only_some_workers_run_at_once() {
    let links = Links::new();
    let worker = Arc::new(worker_of(links.program("hang"), Duration::from_millis(500)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let worker = Arc::clone(&worker);
            runtime.spawn(async move { worker.read_html(Vec::new()).await })
        })
        .collect();
    let mut most = 0;
    while !calls.iter().all(tokio::task::JoinHandle::is_finished) {
        most = most.max(workers_of(&links).len());
    }
    assert_eq!(most, MAX_PROCESSES);
    for call in calls {
        assert_eq!(runtime.block_on(call).unwrap(), Err(WorkerError::TimedOut));
    }
}

// SECURITY: worker-confined
#[test]
fn a_worker_ends_with_its_caller() {
    let links = Links::new();
    let mut caller = Command::new(links.program("caller"))
        .arg(links.program("hang"))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut workers = Vec::new();
    wait_until("the start of the worker", || {
        workers = children_of(caller.id());
        // It is limited once it waits: a new process shows its limits in its list of them.
        let limited = |id: &u32| {
            std::fs::read_to_string(format!("/proc/{id}/status"))
                .is_ok_and(|status| status.lines().any(|line| line == "Seccomp:\t2"))
        };
        workers.iter().any(limited)
    });
    caller.kill().unwrap();
    caller.wait().unwrap();
    wait_until("the end of the worker", || !workers.iter().any(|id| is_alive(*id)));
}
