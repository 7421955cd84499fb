//! Steps in a process of their own, beside others. Their output goes to a file, which is printed when they end.

use super::report::{Outcome, Report};
use crate::{process, tools};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

/// Steps that run now.
pub(super) struct Side {
    name: &'static str,
    child: Child,
    log: PathBuf,
    steps: Vec<&'static str>,
    began: Instant,
}

impl Side {
    /// Starts the steps.
    pub(super) fn start(root: &Path, name: &'static str, steps: Vec<&'static str>) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{name}: {error}");
        let folder = tools::target_folder(root)?.join("test");
        fs::create_dir_all(&folder).map_err(failed)?;
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).map_err(failed)?;
        // A build has replaced the file of this process: Linux then calls it deleted.
        let program = std::env::current_exe().map_err(failed)?.to_string_lossy().replace(" (deleted)", "");
        println!("\n== beside it: {} (output in {})", steps.join(", "), log.display());
        let mut command = process::program(root, &program, ["test", "--only"]);
        command.arg(steps.join(",")).stdin(Stdio::null());
        command.stderr(output.try_clone().map_err(failed)?).stdout(output);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { name, child, log, steps, began: Instant::now() })
    }

    /// Waits for the steps, prints what they wrote and tells how each ended.
    pub(super) fn reports(mut self) -> Vec<Report> {
        let status = self.child.wait();
        println!("\n== beside it, {:.1} s: {}", self.began.elapsed().as_secs_f64(), self.name);
        let output = fs::read(&self.log).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        println!("{output}");
        let ended = |name: &&'static str| {
            read_report(&output, name).unwrap_or_else(|| {
                let why = format!("did not end: the process of `{}` ended with {status:?}", self.name);
                Report::new(name, Outcome::Failed(why))
            })
        };
        self.steps.iter().map(ended).collect()
    }
}

/// What the output says about a step.
fn read_report(output: &str, name: &'static str) -> Option<Report> {
    let (_, after) = output.split_once(&format!("== {name}\n"))?;
    let own = after.split("\n== ").next()?;
    own.lines().rev().find_map(|line| Report::read(name, line))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, read_report};

    #[test]
    fn reads_how_each_step_ended() {
        let output = "\n== a\nwords\npassed in 1.5 s\n\n== b c\n$ npm\nFAILED after 2.0 s: `npm` failed: why\n\n== d\nskipped: no\n\n== e\n…";
        let report = |name| read_report(output, name);
        let a = report("a").unwrap();
        assert_eq!((a.outcome, a.seconds), (Outcome::Passed, 1.5));
        let b = report("b c").unwrap();
        assert_eq!((b.outcome, b.seconds), (Outcome::Failed("`npm` failed: why".into()), 2.0));
        assert_eq!(report("d").unwrap().outcome, Outcome::Skipped("no".into()));
        assert!(report("e").is_none() && report("f").is_none());
    }
}
