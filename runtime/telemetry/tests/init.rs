//! Logging can be started once per process.

use redflow_telemetry::{LogSettings, init};

#[test]
fn logging_starts_once_per_process() {
    let wrong = LogSettings { filter: "a=b=c".to_owned(), ..LogSettings::default() };
    assert!(init(&wrong).is_err());
    let guard = init(&LogSettings::default()).unwrap();
    assert_eq!(init(&LogSettings::default()).err().as_deref(), Some("the process logs already"));
    tracing::warn!(password = "hunter2", "seen on standard error");
    drop(guard);
}
