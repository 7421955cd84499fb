//! Redis dies between two turns, and stays away.

use crate::aimock::Aimock;
use crate::conversations::{FIRST, SECOND, THIRD, fixtures};
use crate::redis_server::RedisServer;
use crate::wires::Way;
use crate::world::{World, actions};
use pretty_assertions::assert_eq;
use serde_json::json;

#[tokio::test]
async fn a_conversation_outlives_its_server_and_an_agent_its_memory() {
    let mock = Aimock::start(&fixtures());
    let mut redis = RedisServer::start();
    let world = World::new(
        &Way::OpenaiChat.model(&mock.address()),
        Some(&redis.props(&json!({"type": "redis-memory"}))),
    );
    assert_eq!(world.say(FIRST).await["payload"], "4");
    redis.kill();
    redis.restart();
    mock.requests();
    let message = world.say(SECOND).await;
    assert_eq!(message["payload"], "7");
    assert!(!actions(&message).contains(&"memory_error"), "{message:#}");
    assert!(mock.requests()[0].body().to_string().contains(FIRST), "killed, and forgotten");

    redis.kill();
    let message = world.say(THIRD).await;
    assert_eq!(message["agentResult"]["completed"], true, "{message:#}");
    assert_eq!(message["agentResult"].get("error"), None);
    // Once for what could not be recalled, once for what could not be kept.
    let lost = actions(&message).into_iter().filter(|action| *action == "memory_error").count();
    assert_eq!(lost, 2, "{message:#}");
    let body = mock.requests()[0].body().to_string();
    assert!(body.contains(THIRD) && !body.contains(FIRST) && !body.contains(SECOND));

    redis.restart();
    let message = world.say(FIRST).await;
    assert!(!actions(&message).contains(&"memory_error"), "{message:#}");
    let body = mock.requests()[0].body().to_string();
    assert!(body.contains(SECOND) && !body.contains(THIRD), "the lost turn is the only one that is");
}
