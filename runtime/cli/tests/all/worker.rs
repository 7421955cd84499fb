//! `redflow worker`: the program reads documents in processes of its own.

use crate::kit::Folder;
use pretty_assertions::assert_eq;
use redflow_worker::{Worker, WorkerError, WorkerSettings};
use std::time::Duration;

fn worker(timeout: Duration) -> Worker {
    let program = Some(env!("CARGO_BIN_EXE_redflow").into());
    Worker::new(WorkerSettings { program, timeout, ..WorkerSettings::default() })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn the_program_reads_documents() {
    let worker = worker(Duration::from_secs(30));
    let page = b"<title>Pump</title><h1>Care</h1><p>Close both valves.".to_vec();
    let text = block_on(worker.read_html(page)).unwrap();
    assert_eq!(
        (text.title.as_deref(), text.markdown.as_str()),
        (Some("Pump"), "# Care\n\nClose both valves.")
    );
    let error = block_on(worker.read_pdf(b"%PDF-1.7".to_vec())).unwrap_err();
    assert_eq!(error.to_string(), "the document cannot be read: it is not a PDF document, or it is damaged");
}

#[test]
fn it_is_no_command_for_people() {
    let folder = Folder::new();
    let output = folder.redflow(["worker"]).run();
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("this command is for the program itself"), "{}", output.stderr);
    assert!(!folder.redflow(["--help"]).run().stdout.contains("worker"));
}

/// The limit of memory counts from the start: the allocator has taken little before it is set.
// SECURITY: worker-confined
#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_a_worker_is_bounded() {
    use redflow_worker::MEMORY_BYTES;
    use std::sync::atomic::{AtomicBool, Ordering};

    let ended = AtomicBool::new(false);
    let largest = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut largest = 0;
            while !ended.load(Ordering::Relaxed) {
                largest = limited_workers().into_iter().fold(largest, u64::max);
                std::thread::park_timeout(Duration::from_millis(1));
            }
            largest
        });
        // Its tree has ten million nodes.
        let error =
            block_on(worker(Duration::from_secs(20)).read_html("<p>".repeat(10_000_000).into_bytes()));
        ended.store(true, Ordering::Relaxed);
        assert!(matches!(error, Err(WorkerError::Ended | WorkerError::TimedOut)), "{error:?}");
        watch.join().unwrap()
    });
    assert!(largest > 0, "no worker was seen");
    assert!(largest <= MEMORY_BYTES, "{largest} bytes");
}

/// The memory of the workers that this process has started and that have set their filter.
#[cfg(target_os = "linux")]
fn limited_workers() -> Vec<u64> {
    let parent = format!("PPid:\t{}", std::process::id());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let statuses =
        processes.filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok());
    statuses
        .filter(|status| {
            [parent.as_str(), "Seccomp:\t2"].iter().all(|line| status.lines().any(|l| l == *line))
        })
        .filter_map(|status| {
            let memory = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
            Some(memory.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
        })
        .collect()
}

/// A program of an MCP server had the kernel write the memory of the sidecar, with its keys, into a folder that it reads.
// SECURITY: memory-hidden
#[cfg(target_os = "linux")]
#[test]
fn the_sidecar_leaves_no_memory_dump_and_shows_its_memory_to_nobody() {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::fs::MetadataExt as _;
    let folder = Folder::with_flow(&crate::kit::flow(serde_json::json!([]), vec![]));
    let args = ["serve", "--flows", "flow.json", "--listen", "127.0.0.1:0", "--data", "serve-data"];
    let data = folder.path("serve-data");
    std::fs::create_dir(&data).unwrap();
    // It must not be the superuser, who may read everything.
    let mut call = folder.redflow_without_root(args);
    if folder.path("").metadata().unwrap().uid() == 0 {
        std::os::unix::fs::chown(&data, Some(65534), Some(65534)).unwrap();
    }
    call = call.env("REDFLOW_LOG", "error");
    let mut sidecar = call.spawn();
    let mut stderr = BufReader::new(sidecar.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening on http://") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended without listening");
    }
    let process = std::path::Path::new("/proc").join(sidecar.0.id().to_string());
    let limits = std::fs::read_to_string(process.join("limits")).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"]);
    // The kernel gives the files of a process that cannot be dumped to the superuser.
    assert_eq!(process.join("environ").metadata().unwrap().uid(), 0);
}
