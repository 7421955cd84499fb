//! A server that records every call of a tool, in a process that is never killed.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the witness does after it recorded a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Answers at once.
    Answer,
    /// Never answers, and records when the caller closes the connection.
    Hold,
    /// Closes the connection without an answer.
    HangUp,
    /// Answers after a pause, and sometimes fails or closes the connection.
    Mixed,
}

/// One call, as the tool describes it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) run: String,
    pub(super) key: String,
    pub(super) class: String,
}

#[derive(Default)]
struct Record {
    calls: Vec<Call>,
    /// Held callers that closed the connection.
    given_up: usize,
    behaviour: Option<Behaviour>,
}

#[derive(Default)]
struct SharedRecord {
    record: Mutex<Record>,
    changed: Condvar,
}

pub(super) struct Witness {
    pub(super) address: SocketAddr,
    shared: Arc<SharedRecord>,
}

impl Witness {
    pub(super) fn start() -> Result<Self, String> {
        let wrong = |error: std::io::Error| format!("the witness cannot listen: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let shared = Arc::<SharedRecord>::default();
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let shared = Arc::clone(&server);
                std::thread::spawn(move || serve(caller, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// Clears the record and sets the behaviour.
    pub(super) fn reset(&self, behaviour: Behaviour) {
        *lock(&self.shared) = Record { behaviour: Some(behaviour), ..Record::default() };
    }

    pub(super) fn set_behaviour(&self, behaviour: Behaviour) {
        lock(&self.shared).behaviour = Some(behaviour);
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        lock(&self.shared).calls.clone()
    }

    /// Waits for `count` calls. False if they do not come in time.
    pub(super) fn wait_for_calls(&self, count: usize, limit: Duration) -> bool {
        self.wait(limit, |record| record.calls.len() >= count)
    }

    /// Waits until `count` held callers closed the connection.
    pub(super) fn wait_for_given_up(&self, count: usize, limit: Duration) -> bool {
        self.wait(limit, |record| record.given_up >= count)
    }

    fn wait(&self, limit: Duration, is_met: impl Fn(&Record) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut record = lock(&self.shared);
        while !is_met(&record) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            record = self.shared.changed.wait_timeout(record, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

fn lock(shared: &SharedRecord) -> MutexGuard<'_, Record> {
    shared.record.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(caller: TcpStream, shared: &SharedRecord) {
    let mut reader = BufReader::new(caller);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let Ok(call) = serde_json::from_str::<Value>(&line) else { return };
    let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
    let (behaviour, number) = {
        let mut record = lock(shared);
        record.calls.push(Call { run: text("run"), key: text("key"), class: text("class") });
        shared.changed.notify_all();
        (record.behaviour.unwrap_or(Behaviour::Answer), record.calls.len())
    };
    let mut caller = reader.into_inner();
    match behaviour {
        Behaviour::HangUp => {}
        Behaviour::Hold => {
            // Returns when the caller closes the connection.
            let _ = caller.read(&mut [0; 16]);
            lock(shared).given_up += 1;
            shared.changed.notify_all();
        }
        Behaviour::Answer => drop(writeln!(caller, "ok {number}")),
        Behaviour::Mixed => {
            std::thread::sleep(Duration::from_millis((number as u64 * 7) % 23));
            match number % 12 {
                0 => {}
                5 => drop(writeln!(caller, "fail")),
                _ => drop(writeln!(caller, "ok {number}")),
            }
        }
    }
}
