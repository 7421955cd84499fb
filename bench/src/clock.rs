//! Measures time, processor time and memory of processes.

use crate::Failure;
use std::time::Instant;

/// The result of some work, and its microseconds. Reading the clock is part of the figure.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let result = std::hint::black_box(work());
    let micros = began.elapsed().as_secs_f64() * 1e6;
    (result, micros)
}

/// Wall time and processor time in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spent {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// The start of both times.
pub(crate) struct Stopwatch {
    wall: Instant,
    cpu: f64,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { cpu: process_micros(), wall: Instant::now() }
    }

    pub(crate) fn spent(&self) -> Spent {
        let wall = self.wall.elapsed().as_secs_f64() * 1e6;
        Spent { wall, cpu: process_micros() - self.cpu }
    }
}

/// Processor time of this process so far, with the kernel's and of all threads, also ended ones.
#[cfg(unix)]
fn process_micros() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    #[allow(clippy::cast_precision_loss, reason = "nanoseconds of some minutes")]
    let (seconds, nanos) = (time.tv_sec as f64, time.tv_nsec as f64);
    seconds * 1e6 + nanos / 1e3
}

/// This system does not report it: figures that need it are NaN.
#[cfg(not(unix))]
fn process_micros() -> f64 {
    f64::NAN
}

/// Memory of this process in bytes, from a line of `/proc/self/status`: `RssAnon` is what it has written and holds now,
/// `VmHWM` its peak with mapped files.
pub(crate) fn resident(line: &str) -> Result<f64, Failure> {
    resident_of("self", line)
}

/// The same for another process.
pub(crate) fn resident_of(process: &str, line: &str) -> Result<f64, Failure> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let found = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'));
    let kilobytes = found.and_then(|rest| rest.trim().strip_suffix(" kB")).ok_or("no such memory")?;
    Ok(kilobytes.parse::<f64>()? * 1024.0)
}

/// Microseconds of processor time of another process so far, with the kernel's.
///
/// The times of its threads are exact to the nanosecond. Ended threads are only in the time of the whole process, which
/// has steps of a hundredth of a second.
pub(crate) fn micros_of(process: &str) -> Result<f64, Failure> {
    let mut nanos = 0.0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may have ended in the meantime.
        let schedstat = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += schedstat.split(' ').next().and_then(|first| first.parse::<f64>().ok()).unwrap_or_default();
    }
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    Ok((nanos / 1e3).max(ticks(&stat).ok_or("no time of a process")? / ticks_per_second() * 1e6))
}

/// Ticks of the program and the kernel, from `/proc/PID/stat`. The name before them may contain blanks.
fn ticks(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some(next()? + next()?)
}

#[cfg(unix)]
fn ticks_per_second() -> f64 {
    figure(rustix::param::clock_ticks_per_second())
}

#[cfg(not(unix))]
fn ticks_per_second() -> f64 {
    f64::NAN
}

/// A count as a figure.
#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(crate) fn figure(count: u64) -> f64 {
    count as f64
}

/// The median. For an even number, the mean of the two samples in the middle.
pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.as_slice() {
        [] => f64::NAN,
        sorted if sorted.len() % 2 == 1 => sorted[middle],
        sorted => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Microseconds of reading the clock twice.
pub(crate) fn overhead() -> f64 {
    median((0..10_001).map(|_| timed(|| ()).1).collect())
}

#[cfg(test)]
mod tests {
    use super::{median, ticks};

    #[test]
    fn reads_the_ticks_behind_the_name() {
        let stat = "11 (a ) b) S 1 1 1 0 -1 4194304 104 0 0 0 25 17 3 4 20 0 1 0";
        assert_eq!(ticks(stat), Some(42.0));
        assert_eq!(ticks("11 (a"), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![9.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(vec![4.0, 1.0, 2.0, 9.0]) - 3.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }
}
