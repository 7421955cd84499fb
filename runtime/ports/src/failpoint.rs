//! Places where a test may stop the process dead. Without the feature `failpoints` they are nothing at all.

/// Stops here, for good, if this is the place named by `REDFLOW_FAILPOINT` (`NAME`, or `NAME=N` for the Nth
/// time it is passed). Says so on stderr first, so that whoever waits for it can kill the process.
#[cfg(feature = "failpoints")]
pub fn failpoint(name: &str) {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static WANTED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("REDFLOW_FAILPOINT").ok()?;
        let (name, nth) = text.split_once('=').unwrap_or((&text, "1"));
        Some((name.to_owned(), nth.parse().ok()?))
    });
    let Some((wanted, nth)) = wanted else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *nth {
        let mut out = std::io::stderr().lock();
        let _ = writeln!(out, "FAILPOINT {name}");
        let _ = out.flush();
        drop(out);
        loop {
            std::thread::park();
        }
    }
}

/// A place where a test build may stop dead. Not in this build.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn failpoint(_name: &str) {}
