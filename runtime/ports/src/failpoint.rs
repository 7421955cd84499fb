//! Failpoints: places where a test can stop the process. Without the feature `failpoints` they do nothing.

/// Blocks this thread for ever if `REDFLOW_FAILPOINT` names this place: `NAME`, or `NAME=N` for its Nth pass.
/// Prints a line on stderr first, so that the test can then kill the process.
#[cfg(feature = "failpoints")]
pub fn failpoint(name: &str) {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static TARGET: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let target = TARGET.get_or_init(|| {
        let text = std::env::var("REDFLOW_FAILPOINT").ok()?;
        let (name, nth) = text.split_once('=').unwrap_or((&text, "1"));
        Some((name.to_owned(), nth.parse().ok()?))
    });
    let Some((target, nth)) = target else { return };
    if target == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *nth {
        let mut out = std::io::stderr().lock();
        let _ = writeln!(out, "FAILPOINT {name}");
        let _ = out.flush();
        drop(out);
        loop {
            std::thread::park();
        }
    }
}

/// Does nothing: this build has no failpoints.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn failpoint(_name: &str) {}
