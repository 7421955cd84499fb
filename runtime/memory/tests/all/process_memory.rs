//! `buffer-memory` and `window-memory`.

use crate::kit::{
    append, append_turn, assistant, build, check_parallel_calls, failure, process, recall, tool_call,
    tool_result, try_build, user, user_texts,
};
use pretty_assertions::assert_eq;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_memory::MemorySettings;
use serde_json::json;
use std::time::Duration;
use tokio::time::advance;

const TYPES: [&str; 2] = ["buffer-memory", "window-memory"];

#[tokio::test(start_paused = true)]
async fn a_conversation_is_recalled_unchanged_by_node_and_session() {
    for type_name in TYPES {
        let adapters = process(MemorySettings::default());
        let memory = build(&adapters, type_name, "n", json!({}));
        let other_node = build(&adapters, type_name, "other", json!({}));
        let turn = [user("2+2?"), tool_call("a"), tool_result("a"), assistant("4")];
        let prompt = ChatMessage::new(ChatRole::System, "never stored");
        let with_prompt: Vec<ChatMessage> = [prompt].into_iter().chain(turn.clone()).collect();
        append(&memory, "f:s", "r1", &with_prompt).await.unwrap();
        append(&memory, "f:s", "r2", &[]).await.unwrap();
        assert_eq!(recall(&memory, "f:s").await.unwrap(), turn, "{type_name}");
        for (memory, session) in [(&memory, "g:s"), (&memory, "f:t"), (&other_node, "f:s")] {
            assert_eq!(recall(memory, session).await.unwrap(), [], "{session}");
        }
        // A deploy builds the node again.
        let again = build(&adapters, type_name, "n", json!({}));
        drop(memory);
        assert_eq!(recall(&again, "f:s").await.unwrap(), turn);
        again.clear("f:s").await.unwrap();
        again.clear("f:s").await.unwrap();
        assert_eq!(recall(&again, "f:s").await.unwrap(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_appends_one_turn_even_after_its_turn_was_removed() {
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "window-memory", "n", json!({"maxMessages": 4}));
    for run in ["1", "2", "2", "3", "1"] {
        append_turn(&memory, "f:s", run).await.unwrap();
    }
    assert_eq!(user_texts(&memory, "f:s").await, ["2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn a_window_is_ten_messages_of_complete_turns() {
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "window-memory", "n", json!({}));
    for run in 0..9 {
        append_turn(&memory, "f:s", &run.to_string()).await.unwrap();
    }
    assert_eq!(user_texts(&memory, "f:s").await, ["4", "5", "6", "7", "8"]);
    // Four more messages leave six of the ten for older turns.
    append(&memory, "f:s", "t", &[user("t"), tool_call("a"), tool_result("a"), assistant("x")])
        .await
        .unwrap();
    assert_eq!(user_texts(&memory, "f:s").await, ["6", "7", "8", "t"]);
    let long: Vec<ChatMessage> = (0..12).map(|_| assistant("x")).collect();
    append(&memory, "f:s", "long", &long).await.unwrap();
    assert_eq!(recall(&memory, "f:s").await.unwrap(), long);
}

#[tokio::test(start_paused = true)]
async fn a_buffer_is_limited_to_a_thousand_messages_and_its_bytes() {
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "buffer-memory", "n", json!({}));
    for run in 0..502 {
        append_turn(&memory, "f:s", &run.to_string()).await.unwrap();
    }
    let all = user_texts(&memory, "f:s").await;
    assert_eq!((all.len(), all[0].as_str()), (500, "2"));

    for type_name in TYPES {
        let memory = build(&adapters, type_name, "small", json!({"options": {"maxBytes": 20}}));
        for run in ["aaaaa", "bbbbb", "ccccc"] {
            append_turn(&memory, "f:s", run).await.unwrap();
        }
        assert_eq!(user_texts(&memory, "f:s").await, ["bbbbb", "ccccc"], "{type_name}");
        let error = append_turn(&memory, "f:s", "ddddddddddd").await;
        assert_eq!(error, Err(failure("the turn has 22 bytes; the limit is 20")));
        assert_eq!(user_texts(&memory, "f:s").await, ["bbbbb", "ccccc"], "{type_name}");
        // After a deploy with a smaller limit less is recalled, but always the newest turn.
        let smaller = build(&adapters, type_name, "small", json!({"maxBytes": 5}));
        assert_eq!(user_texts(&smaller, "f:s").await, ["ccccc"]);
        memory.clear("f:s").await.unwrap();
    }
    // Without `maxBytes` it is 2 MiB.
    let mib = "x".repeat(1024 * 1024);
    let error = append(&memory, "f:s", "big", &[user(&mib), user(&mib), user("x")]).await;
    assert_eq!(error, Err(failure("the turn has 2097153 bytes; the limit is 2097152")));
}

#[tokio::test(start_paused = true)]
async fn incomplete_turns_are_not_recalled() {
    let adapters = process(MemorySettings::default());
    let memory = build(&adapters, "buffer-memory", "n", json!({}));
    append(&memory, "f:s", "1", &[user("1"), tool_call("a")]).await.unwrap();
    append_turn(&memory, "f:s", "2").await.unwrap();
    append(&memory, "f:s", "3", &[user("3"), tool_result("a"), assistant("x")]).await.unwrap();
    assert_eq!(user_texts(&memory, "f:s").await, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn turns_with_parallel_calls_stay_whole_and_lose_their_reasoning() {
    for type_name in TYPES {
        let adapters = process(MemorySettings::default());
        check_parallel_calls(&build(&adapters, type_name, "n", json!({"maxMessages": 6}))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_unused_for_an_hour_is_removed() {
    for type_name in TYPES {
        let adapters = process(MemorySettings::default());
        let hour = build(&adapters, type_name, "hour", json!({}));
        let minute = build(&adapters, type_name, "minute", json!({"idle": 60}));
        let ever = build(&adapters, type_name, "ever", json!({"idle": 0}));
        for memory in [&hour, &minute, &ever] {
            append_turn(memory, "f:s", "1").await.unwrap();
        }
        advance(Duration::from_secs(59)).await;
        assert_eq!(user_texts(&minute, "f:s").await, ["1"], "{type_name}: a recall is a use");
        advance(Duration::from_secs(59)).await;
        assert_eq!(user_texts(&minute, "f:s").await, ["1"]);
        advance(Duration::from_secs(60)).await;
        assert_eq!(user_texts(&minute, "f:s").await, [] as [&str; 0]);
        append_turn(&minute, "f:s", "1").await.unwrap();
        assert_eq!(user_texts(&minute, "f:s").await, ["1"], "a removed conversation starts again");
        assert_eq!(user_texts(&hour, "f:s").await, ["1"]);
        advance(Duration::from_secs(3599)).await;
        assert_eq!(user_texts(&hour, "f:s").await, ["1"]);
        advance(Duration::from_secs(3600)).await;
        assert_eq!(user_texts(&hour, "f:s").await, [] as [&str; 0]);
        assert_eq!(user_texts(&ever, "f:s").await, ["1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn beyond_the_limits_the_least_recently_used_conversation_is_removed() {
    let few = process(MemorySettings { max_sessions: 2, ..MemorySettings::default() });
    let memory = build(&few, "buffer-memory", "n", json!({}));
    append_turn(&memory, "f:a", "a").await.unwrap();
    append_turn(&memory, "f:b", "b").await.unwrap();
    assert_eq!(user_texts(&memory, "f:a").await, ["a"], "used again");
    // Another node: all nodes share the limit.
    let other = build(&few, "window-memory", "o", json!({}));
    append_turn(&other, "f:c", "c").await.unwrap();
    assert_eq!(user_texts(&memory, "f:b").await, [] as [&str; 0]);
    assert_eq!(
        (user_texts(&memory, "f:a").await, user_texts(&other, "f:c").await),
        (vec!["a".into()], vec!["c".into()])
    );

    let small = process(MemorySettings { max_bytes: 10_000, ..MemorySettings::default() });
    let memory = build(&small, "buffer-memory", "n", json!({}));
    for session in ["f:a", "f:b", "f:c"] {
        append(&memory, session, "1", &[user(&"x".repeat(4_000))]).await.unwrap();
    }
    let lengths = [recall(&memory, "f:a").await, recall(&memory, "f:b").await, recall(&memory, "f:c").await]
        .map(|turns| turns.unwrap().len());
    assert_eq!(lengths, [0, 1, 1]);
    let error = append(&memory, "f:d", "1", &[user(&"x".repeat(10_001))]).await;
    assert_eq!(error, Err(failure("the turn has 10001 bytes; the limit is 10000")));
}

#[tokio::test(start_paused = true)]
async fn invalid_properties_are_refused() {
    let adapters = process(MemorySettings::default());
    for type_name in TYPES {
        let error = try_build(&adapters, type_name, "n", &json!({"maxMessages": "many"}), &[]).err().unwrap();
        assert!(error.starts_with("its properties do not fit"), "{error}");
    }
    // More than a run accepts would be stored and never recalled.
    for type_name in TYPES.into_iter().chain(["redis-memory"]) {
        for props in [json!({"maxBytes": 4_194_305}), json!({"options": {"maxBytes": 4_194_305}})] {
            let error = try_build(&adapters, type_name, "n", &props, &[]).err();
            let expected = "its maxBytes is 4194305; the limit is 4194304";
            assert_eq!(error.as_deref(), Some(expected), "{type_name}");
        }
        assert!(try_build(&adapters, type_name, "n", &json!({"maxBytes": 4_194_304}), &[]).is_ok());
    }
}
