//! TLS: only to a server whose certificate the system trusts.
//!
//! Which certificates those are is told by the environment, so that the test runs itself again as a process
//! with an environment of its own.

use crate::kit::{build, failure, process, said, say};
use crate::redis_server::RedisServer;
use pretty_assertions::assert_eq;
use redflow_memory::MemorySettings;
use serde_json::json;
use std::process::Command;

const PORT: &str = "REDFLOW_TEST_TLS_PORT";
const TRUSTED: &str = "REDFLOW_TEST_TLS_TRUSTED";

#[tokio::test]
async fn encrypted_to_whom_the_system_trusts_and_to_nobody_else() {
    match std::env::var(PORT) {
        Ok(port) => talk(&port, std::env::var(TRUSTED).as_deref() == Ok("yes")).await,
        Err(_) => serve(),
    }
}

fn serve() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let [ours, other] =
        [(), ()].map(|()| rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap());
    let certificate = file("certificate", ours.cert.pem());
    let key = file("key", ours.signing_key.serialize_pem());
    let other = file("other", other.cert.pem());
    let words = ["--tls-port", "PORT", "--tls-auth-clients", "no", "--tls-cert-file", &certificate];
    let server = RedisServer::start_with(&[&words[..], &["--tls-key-file", &key]].concat());
    for (trusted, file) in [("yes", &certificate), ("no", &other)] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "redis_tls::encrypted_to_whom_the_system_trusts_and_to_nobody_else",
                "--nocapture",
            ])
            .env("SSL_CERT_FILE", file)
            .env_remove("SSL_CERT_DIR")
            .env(PORT, server.port.to_string())
            .env(TRUSTED, trusted)
            .output()
            .unwrap();
        let told = [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(child.status.success() && told[0].contains("1 passed"), "trusted: {trusted}\n{told:?}");
    }
}

async fn talk(port: &str, trusted: bool) {
    let adapters = process(MemorySettings::default());
    let url = format!("rediss://localhost:{port}/0");
    let memory = build(&adapters, "redis-memory", "n", json!({"url": url, "timeout": 20_000}));
    if trusted {
        say(&memory, "f:s", "1").await.unwrap();
        assert_eq!(said(&memory, "f:s").await, ["1"]);
    } else {
        assert_eq!(memory.recall("f:s").await, Err(failure("Redis cannot be reached")));
    }
    // The certificate is that of another name.
    let url = format!("rediss://127.0.0.1:{port}/0");
    let memory = build(&adapters, "redis-memory", "n", json!({"url": url, "timeout": 20_000}));
    assert_eq!(memory.recall("f:s").await, Err(failure("Redis cannot be reached")));
}
