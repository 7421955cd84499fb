use super::MIGRATE;
use crate::redis_server::RedisServer;
use pretty_assertions::assert_eq;
use redis::AsyncCommands;

#[tokio::test]
async fn a_legacy_value_is_migrated_only_if_it_has_not_changed_since_it_was_read() {
    let server = RedisServer::start();
    let mut raw = server.raw().await;
    let mut call = MIGRATE.prepare_invoke();
    call.key("list").key("legacy").arg("as read").arg(0).arg("turn 1").arg("turn 2");

    // Another program wrote the legacy format meanwhile.
    let _: () = raw.set("legacy", "written since").await.unwrap();
    assert_eq!(call.invoke_async::<Vec<String>>(&mut raw).await.unwrap(), ["changed"]);
    assert_eq!(raw.get::<_, String>("legacy").await.unwrap(), "written since");
    // Another process migrated it, and a third one wrote the legacy format again.
    let _: () = raw.set("legacy", "as read").await.unwrap();
    let _: usize = raw.rpush("list", "turn 0").await.unwrap();
    assert_eq!(call.invoke_async::<Vec<String>>(&mut raw).await.unwrap(), ["changed"]);
    assert_eq!(raw.lrange::<_, Vec<String>>("list", 0, -1).await.unwrap(), ["turn 0"]);
    assert_eq!(raw.get::<_, String>("legacy").await.unwrap(), "as read");
    // It has another type now.
    let _: usize = raw.del(&["list", "legacy"]).await.unwrap();
    let _: usize = raw.hset("legacy", "a", "b").await.unwrap();
    assert_eq!(call.invoke_async::<Vec<String>>(&mut raw).await.unwrap(), ["changed"]);

    let _: usize = raw.del("legacy").await.unwrap();
    let _: () = raw.set("legacy", "as read").await.unwrap();
    assert_eq!(call.invoke_async::<Vec<String>>(&mut raw).await.unwrap(), ["done"]);
    assert_eq!(raw.lrange::<_, Vec<String>>("list", 0, -1).await.unwrap(), ["turn 1", "turn 2"]);
    assert!(!raw.exists::<_, bool>("legacy").await.unwrap());
}
