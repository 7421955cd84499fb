//! Tests with a second process: locks that end with their process, kills at the worst moment, limits and
//! permissions of a whole process. The second process is this test binary again, in a role.

use crate::kit::{deliver_run, id, last_batch, new_run, opening_lines, start_run, synced_batch, text};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_contract::run::{RunRequest, RunStatus};
use redflow_ports::{RunStore, StoreError};
use redflow_store::{PruneRequest, Reader, Store, prune, submit_request};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ROLE: &str = "REDFLOW_STORE_TEST_ROLE";
const DIR: &str = "REDFLOW_STORE_TEST_DIR";

/// Plays the role that the environment names; without one it does nothing.
#[tokio::test]
async fn role() {
    let (Ok(role), Ok(dir)) = (std::env::var(ROLE), std::env::var(DIR)) else { return };
    let dir = Path::new(&dir);
    match role.as_str() {
        "hold" => {
            let _store = Store::open(dir).unwrap();
            print_and_wait("holding");
        }
        "write" => {
            let store = Store::open(dir).unwrap();
            for run in RUNS {
                write_run(&store, run).await;
            }
            print_and_wait("written");
        }
        "two batches" => {
            let store = Store::open(dir).unwrap();
            let mut journal = start_run(&store, "a").await;
            journal.append(synced_batch(&["second", "third"])).await.unwrap();
            panic!("the process was not stopped at the failpoint");
        }
        "fill" => {
            let store = Store::open(dir).unwrap();
            let mut journal = start_run(&store, "a").await;
            let error = loop {
                if let Err(error) = journal.append(synced_batch(&[&"x".repeat(8192)])).await {
                    break error;
                }
            };
            println!("\nfailed: {error}");
        }
        "read read-only directories" => read_read_only_directories(dir),
        "prune" => {
            prune(dir, PruneRequest { keep: Some(10), ..PruneRequest::default() }).unwrap();
            panic!("the process was not stopped at the failpoint");
        }
        "forget" => crate::forget::play_role(dir).await,
        "recount" => crate::recount::play_role(dir),
        "back up" => {
            Reader::open(dir).unwrap().backup(&backup_of(dir)).unwrap();
            println!("\nbacked up");
        }
        "read on a full disk" => {
            let reader = Reader::open(dir).unwrap();
            assert_eq!(reader.run_ids().unwrap(), [id("a")]);
            reader.load(&id("a")).unwrap().unwrap();
            assert!(!reader.is_driven());
            let full = reader.backup(&backup_of(dir)).unwrap_err();
            println!("\nread everything, but {full}");
        }
        "fail to read" => println!("\nfailed: {}", Reader::open(dir).map(drop).unwrap_err()),
        "chat" => {
            crate::chats::append_items(dir).await;
            print_and_wait("appended");
        }
        "set pins" | "set tokens" => crate::mcp_files::play_role(&role, dir),
        "save storage" => crate::ui_storage::save_new_items(dir),
        other => crate::flow_kills::play_role(other, dir).await,
    }
}

fn print_and_wait(word: &str) {
    println!("\n{word}");
    let _ = std::io::stdin().read(&mut [0]);
}

const RUNS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Stores a run in three batches, each with a flush of its own.
async fn write_run(store: &Store, run: &str) {
    let mut journal = start_run(store, run).await;
    journal.append(synced_batch(&["second"])).await.unwrap();
    journal.append(last_batch(5)).await.unwrap();
}

fn written_text(run: &str) -> String {
    opening_lines(&new_run(run)).join("\n") + "\nsecond\nthe end\n"
}

pub(crate) fn in_role(mut command: Command, role: &str, dir: &Path) -> Command {
    command.args(["processes::role", "--exact", "--nocapture"]).env(ROLE, role).env(DIR, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The path of the backup of a directory.
pub(crate) fn backup_of(dir: &Path) -> PathBuf {
    dir.with_extension("copy")
}

/// Plays a role in a process whose files are limited to this many blocks of 512 bytes. Returns its output.
pub(crate) fn output_with_file_limit(blocks: u32, role: &str, dir: &Path) -> String {
    let mut shell = Command::new("sh");
    let script = format!(r#"trap "" XFSZ; ulimit -f {blocks}; exec "$0" "$@""#);
    shell.args(["-c", &script]).arg(std::env::current_exe().unwrap());
    String::from_utf8(in_role(shell, role, dir).output().unwrap().stdout).unwrap()
}

/// Runs a role until it stops at this failpoint, and kills it there.
pub(crate) fn kill_at(point: &str, role: &str, dir: &Path) {
    let mut command = in_role(this_binary(), role, dir);
    command.env("REDFLOW_FAILPOINT", point).stderr(Stdio::piped());
    let mut other = OtherProcess::start(command);
    let mut lines = BufReader::new(other.0.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("FAILPOINT")), "{point}");
    other.kill();
}

pub(crate) fn this_binary() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// A process that is killed at the end of the test, if not before.
pub(crate) struct OtherProcess(pub(crate) Child);

impl OtherProcess {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// Waits until it prints this line.
    pub(crate) fn wait_for_line(&mut self, word: &str) {
        let lines = BufReader::new(self.0.stdout.take().unwrap()).lines();
        assert!(lines.map(Result::unwrap).any(|line| line == word), "it ended without printing {word}");
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_lock_names_its_process_and_dies_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = OtherProcess::start(in_role(this_binary(), "hold", dir.path()));
    other.wait_for_line("holding");
    let error = Store::open(dir.path()).unwrap_err();
    assert_eq!(error.code, StoreCode::DataLocked);
    assert!(error.message.contains(&format!("Process {} ", other.0.id())), "{error}");
    let reader = Reader::open(dir.path()).unwrap();
    assert!(reader.is_driven());
    other.kill();
    assert!(!reader.is_driven());
    drop(Store::open(dir.path()).unwrap());
}

#[tokio::test]
async fn stored_batches_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = OtherProcess::start(in_role(this_binary(), "write", dir.path()));
    other.wait_for_line("written");
    other.kill();
    let reader = Reader::open(dir.path()).unwrap();
    for run in RUNS {
        assert_eq!(text(&reader.load(&id(run)).unwrap().unwrap().journal), written_text(run));
    }
}

/// Killed before the commit, a batch is not stored at all. Killed right after it, the batch is stored
/// completely, although the caller got no answer.
#[test]
fn a_batch_is_stored_completely_or_not_at_all() {
    for (point, batches) in [("store.before_commit=2", 1), ("store.after_commit=2", 2)] {
        let dir = tempfile::tempdir().unwrap();
        kill_at(point, "two batches", dir.path());
        let stored = Reader::open(dir.path()).unwrap().load(&id("a")).unwrap().unwrap();
        let mut expected = opening_lines(&new_run("a")).join("\n") + "\n";
        if batches == 2 {
            expected += "second\nthird\n";
        }
        assert_eq!((stored.mark.batches, text(&stored.journal)), (batches, expected.as_str()), "{point}");
        assert_eq!(stored.summary.status, RunStatus::Interrupted);
    }
}

/// A write-ahead log whose end is lost or garbled loses the commits from there on, each of them completely,
/// and without an error: to SQLite such a commit never happened. Everything before it can be read and
/// continued.
#[tokio::test]
async fn a_damaged_end_of_the_log_loses_whole_commits() {
    let killed = tempfile::tempdir().unwrap();
    let mut other = OtherProcess::start(in_role(this_binary(), "write", killed.path()));
    other.wait_for_line("written");
    other.kill();
    let database = std::fs::read(killed.path().join("redflow.db")).unwrap();
    let log = std::fs::read(killed.path().join("redflow.db-wal")).unwrap();
    const FRAME: usize = 24 + 4096;
    assert_eq!((log.len() - 32) % FRAME, 0);
    let flipped = |at: usize| {
        let mut log = log.clone();
        log[at] ^= 1;
        log
    };
    let end = log.len();
    let damages = [
        log[..end - 1].to_vec(),
        log[..end - FRAME + 10].to_vec(),
        log[..end - FRAME].to_vec(),
        flipped(end - 1),
        flipped(end - FRAME + 24),
        flipped(end - FRAME + 16),
    ];
    for (index, damage) in damages.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("redflow.db"), &database).unwrap();
        std::fs::write(dir.path().join("redflow.db-wal"), damage).unwrap();
        let store = Store::open(dir.path()).unwrap();
        let loaded = async |run: &str| store.load(&id(run)).await.unwrap().unwrap();
        for run in &RUNS[..4] {
            assert_eq!(text(&loaded(run).await.journal), written_text(run), "damage {index}");
        }
        let cut = loaded("e").await;
        assert_eq!((cut.mark.batches, cut.summary.status), (2, RunStatus::Interrupted), "damage {index}");
        store.reopen(&cut).append(last_batch(5)).await.unwrap();
        assert_eq!(text(&loaded("e").await.journal), written_text("e"), "damage {index}");
    }
    // Damage far from the end: more commits are lost, but none in part.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("redflow.db"), &database).unwrap();
    std::fs::write(dir.path().join("redflow.db-wal"), flipped(end / FRAME * 3 / 4 * FRAME)).unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    let runs = reader.run_ids().unwrap();
    assert!((1..5).contains(&runs.len()), "{runs:?}");
    for run in runs {
        let stored = reader.load(&run).unwrap().unwrap();
        assert!(written_text(run.as_str()).starts_with(text(&stored.journal)));
    }
    // For `cargo xtask faults`, which prints it.
    println!(
        "FAULTS log ends damaged={}: whole last commits gone in silence, the rest sound",
        damages.len() + 1
    );
}

/// SQLite reports this limit only as a failed write.
#[test]
fn a_file_size_limit_is_reported_as_a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let output = output_with_file_limit(768, "fill", dir.path());
    assert!(output.contains("failed: DATA_FULL: There is no room left"), "{output}");
    assert!(!output.contains("prune"), "that needs room too: {output}");
    // The run has the batches that were stored, and without the limit there is room again.
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.retain(|name| name.to_str().unwrap().starts_with("probe"));
    assert!(names.is_empty(), "{names:?}");
    let reader = Reader::open(dir.path()).unwrap();
    assert!(reader.load(&id("a")).unwrap().unwrap().mark.batches > 1);
    drop(Store::open(dir.path()).unwrap());
}

/// Where no file can grow, the stored runs can still be read, although SQLite cannot even create its index.
#[tokio::test]
async fn a_full_disk_can_be_read() {
    let outer = tempfile::tempdir().unwrap();
    let (clean, killed) = (outer.path().join("clean"), outer.path().join("killed"));
    deliver_run(&Store::open(&clean).unwrap(), "a", 1).await;
    let output = output_with_file_limit(0, "read on a full disk", &clean);
    let expected = "read everything, but DATA_FULL: There is no room left for the copy";
    assert!(output.contains(expected), "{output}");
    // Again, although the first process left half an index.
    let again = output_with_file_limit(0, "read on a full disk", &clean);
    assert!(again.contains("read everything"), "{again}");
    assert_eq!(std::fs::read_dir(outer.path()).unwrap().count(), 1, "a part file was left");

    // Without its write-ahead log the database would lack the newest runs.
    let mut other = OtherProcess::start(in_role(this_binary(), "write", &killed));
    other.wait_for_line("written");
    other.kill();
    std::fs::remove_file(killed.join("redflow.db-shm")).unwrap();
    let output = output_with_file_limit(0, "fail to read", &killed);
    assert!(output.contains("failed: DATA_FULL"), "{output}");
    assert_eq!(Reader::open(&killed).unwrap().run_ids().unwrap().len(), RUNS.len());
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// This binary as a user without root rights: root becomes the user `nobody`.
pub(crate) fn as_nobody(place: &Path) -> Command {
    if std::fs::metadata(place).unwrap().uid() != 0 {
        return this_binary();
    }
    // The user `nobody` may not be allowed to read the directory of this binary.
    let copy = place.join("copy of the test");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = Command::new(copy);
    command.uid(65534).gid(65534);
    command
}

#[tokio::test]
async fn a_read_only_directory_can_be_read() {
    let place = tempfile::tempdir().unwrap();
    let [clean, killed, barred, secret] = dirs(place.path());
    for dir in [&clean, &barred, &secret] {
        let store = Store::open(dir).unwrap();
        deliver_run(&store, "a", 1).await;
        drop(start_run(&store, "open").await);
    }
    // It has a write-ahead log, but no index of it.
    let mut other = OtherProcess::start(in_role(this_binary(), "write", &killed));
    other.wait_for_line("written");
    other.kill();
    std::fs::remove_file(killed.join("redflow.db-shm")).unwrap();
    let all = [(clean, 0o555, 0o444), (killed, 0o555, 0o444), (barred, 0o000, 0o444), (secret, 0o555, 0o000)];
    for (dir, mode, files) in &all {
        for file in std::fs::read_dir(dir).unwrap() {
            set_mode(&file.unwrap().path(), *files);
        }
        set_mode(dir, *mode);
    }
    set_mode(place.path(), 0o755);
    let output =
        in_role(as_nobody(place.path()), "read read-only directories", place.path()).output().unwrap();
    for (dir, ..) in &all {
        set_mode(dir, 0o755);
    }
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("read everything"), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn dirs(place: &Path) -> [PathBuf; 4] {
    ["clean: 100% ü?#", "killed", "barred", "secret"].map(|name| place.join(name))
}

/// The other half of [`a_read_only_directory_can_be_read`].
fn read_read_only_directories(place: &Path) {
    let [clean, killed, barred, secret] = dirs(place);
    let code = |result: Result<(), StoreError>| result.unwrap_err().code;
    for dir in [&clean, &killed, &clean.join("below")] {
        assert_eq!(code(Store::open(dir).map(drop)), StoreCode::DataReadOnly, "{dir:?}");
    }
    let cancel = RunRequest::Cancel { reason: "test".into() };
    assert_eq!(code(submit_request(&clean, &id("open"), &cancel, 1).map(drop)), StoreCode::DataReadOnly);
    let reader = Reader::open(&clean).unwrap();
    assert_eq!(reader.run_ids().unwrap(), [id("a"), id("open")]);
    assert_eq!(reader.load(&id("a")).unwrap().unwrap().mark.batches, 3);
    assert!(!reader.is_driven());
    // Without its write-ahead log the database would lack the newest runs.
    assert_eq!(code(Reader::open(&killed).map(drop)), StoreCode::DataReadOnly);
    assert_eq!(code(Reader::open(&barred).map(drop)), StoreCode::DataUnusable);
    assert_eq!(code(Reader::open(&secret).map(drop)), StoreCode::DataUnusable);
    assert_eq!(code(Store::open(&barred).map(drop)), StoreCode::DataReadOnly);
    println!("\nread everything");
}

/// Of drivers that start at the same time, exactly one gets the runs.
#[test]
fn of_many_starting_drivers_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let opened: Vec<Result<Store, StoreError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Store::open(dir.path()))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let drivers = opened.iter().filter(|opened| opened.is_ok()).count();
    assert_eq!(drivers, 1, "{opened:?}");
    let refused = opened.into_iter().filter_map(Result::err);
    assert!(refused.into_iter().all(|error| error.code == StoreCode::DataLocked));
}
