//! Runs what the fuzzers found before, and a few hundred new inputs, against every target that needs no process.

use redflow_fuzz::{Limits, fuzz, in_process, run_case, run_cases};
use std::sync::Arc;
use std::time::Duration;

// SECURITY: egress-silent
#[test]
fn kept_cases_stay_fixed() {
    for target in in_process().unwrap() {
        assert!(run_cases(&target).unwrap() > 0, "{}", target.name());
    }
}

// SECURITY: egress-silent
#[test]
fn some_new_inputs_break_nothing() {
    for target in in_process().unwrap() {
        let limits = Limits { time: Duration::from_secs(5), inputs: 150, seed: 1 };
        let (inputs, outcomes) = fuzz(&target, limits).unwrap();
        assert!(inputs > 0 && outcomes > 2, "{}: {inputs} {outcomes}", target.name());
    }
}

/// A target that panics or answers wrongly.
struct Broken;

impl redflow_fuzz::Target for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn run(&self, input: &[u8]) -> redflow_fuzz::Outcome {
        // Panics for an empty input.
        match input[0] {
            b'w' => Err("wrong".to_owned()),
            _ => Ok("fine".to_owned()),
        }
    }
}

#[test]
fn finds_a_panic_and_a_wrong_answer() {
    let target: Arc<dyn redflow_fuzz::Target> = Arc::new(Broken);
    assert_eq!(run_case(&target, b"fine".to_vec()), Ok("fine".to_owned()));
    assert_eq!(run_case(&target, b"wrong".to_vec()), Err("wrong".to_owned()));
    assert_eq!(run_case(&target, Vec::new()), Err("it panicked".to_owned()));
}
