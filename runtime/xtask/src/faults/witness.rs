//! The world that tools act on: a server that counts every call it sees, in a process that is never killed.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How the witness treats a call once it has counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Answers at once.
    Answers,
    /// Never answers, and notes when the caller gives up.
    Holds,
    /// Closes the connection without an answer.
    HangsUp,
    /// Takes its time; now and then it fails, and now and then it hangs up.
    Moody,
}

/// One call, as the tool told of it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) run: String,
    pub(super) key: String,
    pub(super) class: String,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    /// Callers that gave up while they were held.
    given_up: usize,
    manner: Option<Manner>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

pub(super) struct Witness {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Witness {
    pub(super) fn start() -> Result<Self, String> {
        let wrong = |error: std::io::Error| format!("the witness cannot listen: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let shared = Arc::<Shared>::default();
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let shared = Arc::clone(&server);
                std::thread::spawn(move || serve(caller, &shared));
            }
        });
        Ok(Self { address, shared })
    }

    /// Forgets what it saw, and behaves like this from now on.
    pub(super) fn reset(&self, manner: Manner) {
        *lock(&self.shared) = Seen { manner: Some(manner), ..Seen::default() };
    }

    /// Behaves like this from now on.
    pub(super) fn behave(&self, manner: Manner) {
        lock(&self.shared).manner = Some(manner);
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        lock(&self.shared).calls.clone()
    }

    /// Waits until so many calls were seen; says whether they came in time.
    pub(super) fn wait_for_calls(&self, count: usize, limit: Duration) -> bool {
        self.wait(limit, |seen| seen.calls.len() >= count)
    }

    /// Waits until so many held callers gave up.
    pub(super) fn wait_for_given_up(&self, count: usize, limit: Duration) -> bool {
        self.wait(limit, |seen| seen.given_up >= count)
    }

    fn wait(&self, limit: Duration, there: impl Fn(&Seen) -> bool) -> bool {
        let end = Instant::now() + limit;
        let mut seen = lock(&self.shared);
        while !there(&seen) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            seen = self.shared.changed.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, Seen> {
    shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(caller: TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(caller);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let Ok(told) = serde_json::from_str::<Value>(&line) else { return };
    let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    let (manner, number) = {
        let mut seen = lock(shared);
        seen.calls.push(Call { run: text("run"), key: text("key"), class: text("class") });
        shared.changed.notify_all();
        (seen.manner.unwrap_or(Manner::Answers), seen.calls.len())
    };
    let mut caller = reader.into_inner();
    match manner {
        Manner::HangsUp => {}
        Manner::Holds => {
            // Comes back when the caller closes its end, one way or the other.
            let _ = caller.read(&mut [0; 16]);
            lock(shared).given_up += 1;
            shared.changed.notify_all();
        }
        Manner::Answers => drop(writeln!(caller, "ok {number}")),
        Manner::Moody => {
            std::thread::sleep(Duration::from_millis((number as u64 * 7) % 23));
            match number % 12 {
                0 => {}
                5 => drop(writeln!(caller, "fail")),
                _ => drop(writeln!(caller, "ok {number}")),
            }
        }
    }
}
