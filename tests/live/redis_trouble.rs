//! Redis is killed between two turns, and once not restarted.

use crate::aimock::Aimock;
use crate::conversations::{FIRST, SECOND, THIRD, fixtures};
use crate::provider_api::ProviderApi;
use crate::redis_server::RedisServer;
use crate::world::{World, actions};
use pretty_assertions::assert_eq;
use serde_json::json;

#[tokio::test]
async fn a_conversation_survives_a_redis_restart_and_a_run_survives_without_redis() {
    let mock = Aimock::start(&fixtures());
    let mut redis = RedisServer::start();
    let world = World::new(
        &ProviderApi::OpenaiChat.model(&mock.address()),
        Some(&redis.props(&json!({"type": "redis-memory"}))),
    );
    assert_eq!(world.ask(FIRST).await["payload"], "4");
    redis.kill();
    redis.restart();
    mock.requests();
    let message = world.ask(SECOND).await;
    assert_eq!(message["payload"], "7");
    assert!(!actions(&message).contains(&"memory_error"), "{message:#}");
    assert!(mock.requests()[0].json().unwrap().to_string().contains(FIRST), "the conversation is lost");

    redis.kill();
    let message = world.ask(THIRD).await;
    assert_eq!(message["agentResult"]["completed"], true, "{message:#}");
    assert_eq!(message["agentResult"].get("error"), None);
    // One error for loading the conversation, one for storing the turn.
    let lost = actions(&message).into_iter().filter(|action| *action == "memory_error").count();
    assert_eq!(lost, 2, "{message:#}");
    let body = mock.requests()[0].json().unwrap().to_string();
    assert!(body.contains(THIRD) && !body.contains(FIRST) && !body.contains(SECOND));

    redis.restart();
    let message = world.ask(FIRST).await;
    assert!(!actions(&message).contains(&"memory_error"), "{message:#}");
    let body = mock.requests()[0].json().unwrap().to_string();
    assert!(body.contains(SECOND) && !body.contains(THIRD), "only the turn without Redis is lost");
}
