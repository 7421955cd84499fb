//! Many tasks of several processes append at once, and Redis is killed meanwhile: no turn is lost or doubled.

use crate::kit::{append_turn, build, process, user_texts};
use crate::redis_server::RedisServer;
use pretty_assertions::assert_eq;
use redflow_memory::MemorySettings;
use redflow_ports::Memory;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

const APPENDERS: usize = 100;
const TURNS: usize = 6;
const KILL_AFTER: usize = APPENDERS * TURNS / 3;

/// The memories of four processes, each with its own connection.
fn memories(server: &RedisServer) -> Vec<Arc<dyn Memory>> {
    let props = server.props(&json!({"maxMessages": 10_000}));
    (0..4).map(|_| build(&process(MemorySettings::default()), "redis-memory", "n", props.clone())).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum ServerState {
    Up,
    Down,
    Restarted,
}

fn count_runs(texts: Vec<String>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for run in texts {
        *counts.entry(run).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_appends_lose_no_turn_and_keep_the_order_of_each_task() {
    let server = RedisServer::start();
    let memories = memories(&server);
    let tasks = (0..APPENDERS).map(|task| {
        let memory = Arc::clone(&memories[task % memories.len()]);
        tokio::spawn(async move {
            for turn in 0..TURNS {
                append_turn(&memory, "f:s", &format!("{task}-{turn}")).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let all = user_texts(&memories[0], "f:s").await;
    for task in 0..APPENDERS {
        let own: Vec<&String> = all.iter().filter(|run| run.starts_with(&format!("{task}-"))).collect();
        assert_eq!(
            own,
            (0..TURNS).map(|turn| format!("{task}-{turn}")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
    }
    assert_eq!(all.len(), APPENDERS * TURNS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_under_load_every_acknowledged_turn_is_stored_once() {
    let mut server = RedisServer::start();
    let memories = memories(&server);
    let (results, mut received) = mpsc::unbounded_channel::<Result<String, String>>();
    let (state, watched) = watch::channel(ServerState::Up);
    for task in 0..APPENDERS {
        let memory = Arc::clone(&memories[task % memories.len()]);
        let (results, mut watched) = (results.clone(), watched.clone());
        tokio::spawn(async move {
            for turn in 0..TURNS {
                if turn == TURNS - 1 {
                    // However fast the tasks are, some appends meet the kill.
                    watched.wait_for(|state| *state != ServerState::Up).await.unwrap();
                }
                let run = format!("{task}-{turn}");
                match append_turn(&memory, "f:s", &run).await {
                    Ok(()) => results.send(Ok(run)).unwrap(),
                    Err(_) => {
                        results.send(Err(run)).unwrap();
                        watched.wait_for(|state| *state == ServerState::Restarted).await.unwrap();
                    }
                }
            }
        });
    }
    drop(results);

    let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
    while acknowledged.len() < KILL_AFTER {
        acknowledged.push(received.recv().await.unwrap().unwrap());
    }
    server.kill();
    state.send(ServerState::Down).unwrap();
    while unknown.is_empty() {
        received.recv().await.unwrap().map_or_else(|run| unknown.push(run), |run| acknowledged.push(run));
    }
    server.restart();
    state.send(ServerState::Restarted).unwrap();
    while let Some(run) = received.recv().await {
        run.map_or_else(|run| unknown.push(run), |run| acknowledged.push(run));
    }
    assert_eq!(acknowledged.len() + unknown.len(), APPENDERS * TURNS);

    let counts_after = count_runs(user_texts(&memories[0], "f:s").await);
    let lost: Vec<&String> = acknowledged.iter().filter(|run| !counts_after.contains_key(*run)).collect();
    assert_eq!(lost, [] as [&String; 0]);
    let doubled: Vec<_> = counts_after.iter().filter(|(_, count)| **count > 1).collect();
    assert_eq!(doubled, []);

    // A run without an acknowledgement appends again, as a recovered run does: every turn is stored once.
    for run in &unknown {
        append_turn(&memories[1], "f:s", run).await.unwrap();
    }
    let final_counts = count_runs(user_texts(&memories[2], "f:s").await);
    assert_eq!(final_counts.len(), APPENDERS * TURNS);
    assert!(final_counts.values().all(|count| *count == 1));
}
