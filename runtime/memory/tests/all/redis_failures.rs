//! A Redis that is down, slow or refuses: each call fails within its time limit, and works when Redis is
//! back.

use crate::kit::{append_turn, build, failure, process, recall, try_build, user_texts};
use crate::redis_server::RedisServer;
use pretty_assertions::assert_eq;
use redflow_memory::MemorySettings;
use redis::aio::MultiplexedConnection;
use serde_json::json;

#[tokio::test]
async fn a_restarted_redis_is_used_again() {
    let mut server = RedisServer::start();
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    let offline = failure("Redis cannot be reached");
    append_turn(&memory, "f:s", "1").await.unwrap();
    for round in 0..2 {
        server.kill();
        assert_eq!(recall(&memory, "f:s").await, Err(offline.clone()), "{round}");
        assert_eq!(append_turn(&memory, "f:s", "2").await, Err(offline.clone()));
        assert_eq!(memory.clear("f:s").await, Err(offline.clone()));
        assert_eq!(memory.check().await, Err(offline.clone()));
        server.restart();
        assert_eq!(memory.check().await, Ok(()));
        assert_eq!(user_texts(&memory, "f:s").await, ["1"], "the next call finds it");
    }
    // A restart between two calls goes unnoticed.
    server.kill();
    server.restart();
    append_turn(&memory, "f:s", "2").await.unwrap();
    assert_eq!(user_texts(&memory, "f:s").await, ["1", "2"]);
}

#[tokio::test]
async fn redis_may_start_after_the_node() {
    let mut server = RedisServer::start();
    server.kill();
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    assert_eq!(recall(&memory, "f:s").await, Err(failure("Redis cannot be reached")));
    server.restart();
    assert_eq!(user_texts(&memory, "f:s").await, [] as [&str; 0]);
}

#[tokio::test]
async fn a_silent_redis_times_out_and_is_used_again() {
    // It accepts a connection and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let adapters = process(MemorySettings::default());
    let props = json!({"host": "127.0.0.1", "port": silent.local_addr().unwrap().port(), "timeout": 50});
    let late = failure("Redis did not answer within 50 ms");
    for more in [json!({}), json!({"db": 1}), json!({"password": "p"}), json!({"tls": true})] {
        let mut props = props.clone();
        props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let memory = build(&adapters, "redis-memory", "n", props);
        let calls = futures::future::join_all((0..20).map(|_| recall(&memory, "f:s"))).await;
        assert!(calls.iter().all(|one| *one == Err(late.clone())), "{more}: {calls:?}");
    }

    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let patient = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    let hasty = build(&adapters, "redis-memory", "n", server.props(&json!({"timeout": 50})));
    append_turn(&patient, "f:s", "1").await.unwrap();
    let _: () = redis::cmd("CLIENT").arg(&["PAUSE", "1000000", "WRITE"]).query_async(&mut raw).await.unwrap();
    assert_eq!(append_turn(&hasty, "f:s", "2").await, Err(late));
    let _: () = redis::cmd("CLIENT").arg("UNPAUSE").query_async(&mut raw).await.unwrap();
    // The late append may have succeeded; appended again, the turn is stored once. The late connection was
    // closed.
    let before = connections(&mut raw).await;
    append_turn(&patient, "f:s", "2").await.unwrap();
    assert_eq!(user_texts(&patient, "f:s").await, ["1", "2"]);
    assert_eq!(connections(&mut raw).await, before + 1);
}

/// The number of connections that Redis ever accepted.
async fn connections(raw: &mut MultiplexedConnection) -> u32 {
    let stats: String = redis::cmd("INFO").arg("stats").query_async(raw).await.unwrap();
    let count = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    count.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_refused() {
    let server = RedisServer::start_with(&["--requirepass", "s3cret"]);
    let adapters = process(MemorySettings::default());
    let missing = failure("Redis requires a password, and the node has none");
    let wrong = failure("Redis refused the user name or the password");
    let rows = [
        (json!({}), Some(&missing)),
        (json!({"password": "wr0ng"}), Some(&wrong)),
        (json!({"username": "nobody", "password": "s3cret"}), Some(&wrong)),
        (json!({"password": "s3cret"}), None),
        (json!({"username": "default", "credentials": {"password": "s3cret"}}), None),
        // A node with a wrong password does not get the connection of another node.
        (json!({"password": "wr0ng"}), Some(&wrong)),
    ];
    let mut held = Vec::new();
    for (props, expected) in rows {
        let memory = build(&adapters, "redis-memory", "n", server.props(&props.clone()));
        assert_eq!(recall(&memory, "f:s").await.err().as_ref(), expected, "{props}");
        held.push(memory);
    }
    let by_url = format!("redis://:s3cret@127.0.0.1:{}/0", server.port);
    for env in [[("REDIS_URL", by_url.as_str())], [("REDIS_PASSWORD", "s3cret")]] {
        let mut props = server.props(&json!({}));
        if env[0].0 == "REDIS_URL" {
            props.as_object_mut().unwrap().remove("host");
        }
        let memory = try_build(&adapters, "redis-memory", "n", &props, &env).unwrap();
        assert_eq!(recall(&memory, "f:s").await, Ok(vec![]), "{env:?}");
    }
}

#[tokio::test]
async fn credentials_alone_are_enough_to_connect() {
    let server = RedisServer::start_with(&["--requirepass", "s3cret"]);
    let adapters = process(MemorySettings::default());
    let port = server.port.to_string();
    let fields = json!({"host": "localhost", "port": port, "username": "default", "password": "s3cret",
                        "db": "1", "tls": "false"});
    let url = json!({"url": format!("redis://default:s3cret@127.0.0.1:{port}/1")});
    // The properties of the flow name a server that does not exist.
    let nowhere = json!({"host": "127.0.0.1", "port": 1, "db": 0, "tls": true, "username": "nobody"});
    for (number, credentials) in [fields, url].into_iter().enumerate() {
        let mut props = nowhere.clone();
        props["credentials"] = credentials;
        props["options"] = json!({"timeout": 20_000, "port": "1"});
        let memory = build(&adapters, "redis-memory", "n", props);
        append_turn(&memory, "f:s", &number.to_string()).await.unwrap();
        assert_eq!(user_texts(&memory, "f:s").await.len(), number + 1, "both are the same database");
    }
}

#[tokio::test]
async fn refusals_of_redis_are_reported_in_our_own_words() {
    let server = RedisServer::start_with(&["--databases", "2"]);
    let adapters = process(MemorySettings::default());
    let mut raw = server.raw().await;
    let memory = build(&adapters, "redis-memory", "n", server.props(&json!({})));
    let refused = build(&adapters, "redis-memory", "n", server.props(&json!({"db": 2})));
    assert_eq!(recall(&refused, "f:s").await, Err(failure("Redis refused to open the database 2")));

    let _: () =
        redis::cmd("ACL").arg(&["SETUSER", "eve", "on", ">p", "+ping"]).query_async(&mut raw).await.unwrap();
    let eve = server.props(&json!({"username": "eve", "password": "p"}));
    let eve = build(&adapters, "redis-memory", "n", eve);
    let forbidden = failure("Redis does not allow this user the commands that a memory needs");
    assert_eq!(recall(&eve, "f:s").await, Err(forbidden.clone()));
    assert_eq!(eve.check().await, Err(forbidden));

    append_turn(&memory, "f:s", "1").await.unwrap();
    let set = |name: &'static str, value: &'static str| {
        let mut command = redis::cmd("CONFIG");
        command.arg(&["SET", name, value]);
        command
    };
    let _: () = set("maxmemory", "1").query_async(&mut raw).await.unwrap();
    assert_eq!(append_turn(&memory, "f:s", "2").await, Err(failure("Redis is out of memory")));
    assert_eq!(memory.check().await, Err(failure("Redis is out of memory")));
    let _: () = set("maxmemory", "0").query_async(&mut raw).await.unwrap();
    assert_eq!(user_texts(&memory, "f:s").await, ["1"]);
    let _: () = redis::cmd("REPLICAOF").arg(&["127.0.0.1", "1"]).query_async(&mut raw).await.unwrap();
    let refused = failure("Redis refused the command with READONLY");
    assert_eq!(append_turn(&memory, "f:s", "2").await, Err(refused.clone()));
    assert_eq!(memory.check().await, Err(refused));
}

#[tokio::test]
async fn all_nodes_of_the_same_redis_share_one_connection() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let adapters = process(MemorySettings::default());
    let memories: Vec<_> = (0..5)
        .map(|number| {
            build(&adapters, "redis-memory", "n", server.props(&json!({"timeout": 20_000 + number})))
        })
        .collect();
    let before = connections(&mut raw).await;
    let calls = memories.iter().cycle().take(100).map(|memory| recall(memory, "f:s"));
    assert!(futures::future::join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(connections(&mut raw).await, before + 1);
    let elsewhere = build(&adapters, "redis-memory", "n", server.props(&json!({"db": 1})));
    recall(&elsewhere, "f:s").await.unwrap();
    assert_eq!(connections(&mut raw).await, before + 2);
}
