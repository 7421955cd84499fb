//! TLS connects only to a server whose certificate the system trusts.
//!
//! The environment names the trusted certificates, so the test runs itself again in a process with another
//! environment.

use crate::kit::{append_turn, build, failure, process, recall, user_texts};
use crate::redis_server::RedisServer;
use pretty_assertions::assert_eq;
use redflow_memory::MemorySettings;
use serde_json::json;
use std::process::Command;

const PORT: &str = "REDFLOW_TEST_TLS_PORT";
const TRUSTED: &str = "REDFLOW_TEST_TLS_TRUSTED";

#[tokio::test]
async fn tls_connects_only_to_a_trusted_server() {
    match std::env::var(PORT) {
        Ok(port) => connect(&port, std::env::var(TRUSTED).as_deref() == Ok("yes")).await,
        Err(_) => serve_and_connect(),
    }
}

fn serve_and_connect() {
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
            .args(["--exact", "redis_tls::tls_connects_only_to_a_trusted_server", "--nocapture"])
            .env("SSL_CERT_FILE", file)
            .env_remove("SSL_CERT_DIR")
            .env(PORT, server.port.to_string())
            .env(TRUSTED, trusted)
            .output()
            .unwrap();
        let output = [child.stdout, child.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(child.status.success() && output[0].contains("1 passed"), "trusted: {trusted}\n{output:?}");
    }
}

async fn connect(port: &str, trusted: bool) {
    let adapters = process(MemorySettings::default());
    let url = format!("rediss://localhost:{port}/0");
    let memory = build(&adapters, "redis-memory", "n", json!({"url": url, "timeout": 20_000}));
    if trusted {
        append_turn(&memory, "f:s", "1").await.unwrap();
        assert_eq!(user_texts(&memory, "f:s").await, ["1"]);
    } else {
        assert_eq!(recall(&memory, "f:s").await, Err(failure("Redis cannot be reached")));
    }
    // The certificate is for another host name.
    let url = format!("rediss://127.0.0.1:{port}/0");
    let memory = build(&adapters, "redis-memory", "n", json!({"url": url, "timeout": 20_000}));
    assert_eq!(recall(&memory, "f:s").await, Err(failure("Redis cannot be reached")));
}
