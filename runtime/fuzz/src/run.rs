//! Runs inputs: in a thread of their own, with a time limit, and keeps what a target must never do.

use crate::inputs::{Random, change};
use crate::targets::{Outcome, Target};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// An input that takes longer hangs. The builds of developers are slow.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Inputs that reached something new and are changed further.
const MAX_POOL: usize = 2_000;

/// How long a target is fuzzed, and with which inputs.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The time for random inputs.
    pub time: Duration,
    /// The most random inputs.
    pub inputs: usize,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// An input that broke a rule.
#[derive(Debug)]
pub struct Finding {
    /// What happened.
    pub problem: String,
    /// The file that holds the input.
    pub file: PathBuf,
}

/// Runs one input of a target.
///
/// # Errors
/// What happened: a panic, a hang, or a rule that does not hold.
pub fn run_case(target: &Arc<dyn Target>, input: Vec<u8>) -> Outcome {
    Worker::start(target).run(input)
}

/// Fuzzes a target: first its seeds and kept cases, then random changes of them. Returns the number of inputs
/// and of different outcomes.
///
/// # Errors
/// The first input that broke a rule, or why an input could not be kept.
pub fn fuzz(target: &Arc<dyn Target>, limits: Limits) -> Result<(usize, usize), Finding> {
    let mut pool = target.seeds();
    pool.extend(kept_cases(target.name()).into_iter().map(|(_, input)| input));
    let mut random = Random::new(limits.seed);
    let mut worker = Worker::start(target);
    let mut outcomes = HashSet::new();
    let began = Instant::now();
    let first = pool.len();
    for count in 0.. {
        let is_seed = count < first;
        if !is_seed && (count - first >= limits.inputs || began.elapsed() >= limits.time) {
            return Ok((count, outcomes.len()));
        }
        let input = if is_seed {
            pool[count].clone()
        } else {
            let seed = random.below(pool.len());
            change(&mut random, &pool[seed], &pool)
        };
        match worker.run(input.clone()) {
            Ok(outcome) => {
                if outcomes.insert(outcome) && !is_seed && pool.len() < MAX_POOL {
                    pool.push(input);
                }
            }
            Err(problem) => return Err(keep(target.name(), &input, problem)),
        }
    }
    Ok((0, 0))
}

/// Runs all kept cases of a target. Returns their number.
///
/// # Errors
/// The first one that breaks a rule again.
pub fn run_cases(target: &Arc<dyn Target>) -> Result<usize, Finding> {
    let cases = kept_cases(target.name());
    let mut worker = Worker::start(target);
    for (file, input) in &cases {
        worker.run(input.clone()).map_err(|problem| Finding { problem, file: file.clone() })?;
    }
    Ok(cases.len())
}

fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases").join(target)
}

fn kept_cases(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder(target)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|file| file.path()).collect();
    paths.sort();
    paths.into_iter().filter_map(|path| std::fs::read(&path).ok().map(|input| (path, input))).collect()
}

fn keep(target: &str, input: &[u8], problem: String) -> Finding {
    let folder = folder(target);
    let digest = redflow_contract::digest::Digest::of(input).to_hex();
    let file = folder.join(&digest[..16]);
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, input));
    let problem = match written {
        Ok(()) => problem,
        Err(error) => format!("{problem} (the input could not be kept: {error})"),
    };
    Finding { problem, file }
}

/// A thread that runs inputs. A new one replaces it after a hang.
struct Worker {
    inputs: Sender<Vec<u8>>,
    outcomes: Receiver<Outcome>,
}

impl Worker {
    fn start(target: &Arc<dyn Target>) -> Self {
        let (inputs, received) = channel::<Vec<u8>>();
        let (sender, outcomes) = channel();
        let target = Arc::clone(target);
        std::thread::spawn(move || {
            for input in received {
                let outcome = catch_unwind(AssertUnwindSafe(|| target.run(&input)));
                let outcome = outcome.unwrap_or_else(|_| Err("it panicked".to_owned()));
                if sender.send(outcome).is_err() {
                    return;
                }
            }
        });
        Self { inputs, outcomes }
    }

    fn run(&mut self, input: Vec<u8>) -> Outcome {
        let ended = |_| "the thread of the target has ended".to_owned();
        self.inputs.send(input).map_err(|error| ended(error.to_string()))?;
        let outcome = self.outcomes.recv_timeout(TIME_LIMIT);
        outcome.unwrap_or_else(|_| Err(format!("no answer after {} s", TIME_LIMIT.as_secs())))
    }
}
