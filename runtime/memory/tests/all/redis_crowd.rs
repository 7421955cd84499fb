//! Many write at once, from several processes, and Redis is killed among them: no turn is lost or doubled.

use crate::kit::{build, process, said, say};
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

/// Memories of four processes: each has a connection of its own.
fn memories(server: &RedisServer) -> Vec<Arc<dyn Memory>> {
    let props = server.props(&json!({"maxMessages": 10_000}));
    (0..4).map(|_| build(&process(MemorySettings::default()), "redis-memory", "n", props.clone())).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Up,
    Down,
    Back,
}

fn counts(said: Vec<String>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for run in said {
        *counts.entry(run).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_turn_is_lost_between_processes_and_each_ones_are_in_order() {
    let server = RedisServer::start();
    let memories = memories(&server);
    let tasks = (0..APPENDERS).map(|who| {
        let memory = Arc::clone(&memories[who % memories.len()]);
        tokio::spawn(async move {
            for turn in 0..TURNS {
                say(&memory, "f:s", &format!("{who}-{turn}")).await.unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let all = said(&memories[0], "f:s").await;
    for who in 0..APPENDERS {
        let own: Vec<&String> = all.iter().filter(|run| run.starts_with(&format!("{who}-"))).collect();
        assert_eq!(
            own,
            (0..TURNS).map(|turn| format!("{who}-{turn}")).collect::<Vec<_>>().iter().collect::<Vec<_>>()
        );
    }
    assert_eq!(all.len(), APPENDERS * TURNS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_under_load_every_acknowledged_turn_is_there_once() {
    let mut server = RedisServer::start();
    let memories = memories(&server);
    let (tell, mut told) = mpsc::unbounded_channel::<Result<String, String>>();
    let (state, watched) = watch::channel(State::Up);
    for who in 0..APPENDERS {
        let memory = Arc::clone(&memories[who % memories.len()]);
        let (tell, mut watched) = (tell.clone(), watched.clone());
        tokio::spawn(async move {
            for turn in 0..TURNS {
                if turn == TURNS - 1 {
                    // However fast they are, there is something left to be hit.
                    watched.wait_for(|state| *state != State::Up).await.unwrap();
                }
                let run = format!("{who}-{turn}");
                match say(&memory, "f:s", &run).await {
                    Ok(()) => tell.send(Ok(run)).unwrap(),
                    Err(_) => {
                        tell.send(Err(run)).unwrap();
                        watched.wait_for(|state| *state == State::Back).await.unwrap();
                    }
                }
            }
        });
    }
    drop(tell);

    let (mut sure, mut unknown) = (Vec::new(), Vec::new());
    while sure.len() < KILL_AFTER {
        sure.push(told.recv().await.unwrap().unwrap());
    }
    server.kill();
    state.send(State::Down).unwrap();
    while unknown.is_empty() {
        told.recv().await.unwrap().map_or_else(|run| unknown.push(run), |run| sure.push(run));
    }
    server.restart();
    state.send(State::Back).unwrap();
    while let Some(run) = told.recv().await {
        run.map_or_else(|run| unknown.push(run), |run| sure.push(run));
    }
    assert_eq!(sure.len() + unknown.len(), APPENDERS * TURNS);

    let counts_after = counts(said(&memories[0], "f:s").await);
    let lost: Vec<&String> = sure.iter().filter(|run| !counts_after.contains_key(*run)).collect();
    assert_eq!(lost, [] as [&String; 0]);
    let doubled: Vec<_> = counts_after.iter().filter(|(_, count)| **count > 1).collect();
    assert_eq!(doubled, []);

    // A run that never knew whether it was heard says it again, as a recovered run does: all are there, once.
    for run in &unknown {
        say(&memories[1], "f:s", run).await.unwrap();
    }
    let counts_at_last = counts(said(&memories[2], "f:s").await);
    assert_eq!(counts_at_last.len(), APPENDERS * TURNS);
    assert!(counts_at_last.values().all(|count| *count == 1));
}
