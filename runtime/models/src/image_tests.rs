//! Messages with images, on every wire.

use crate::ModelSettings;
use crate::anthropic::AnthropicMessages;
use crate::driver::estimated_bytes;
use crate::gemini::Gemini;
use crate::ollama::OllamaChat;
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::recording::{Node, Recording, reply};
use crate::samples::{Sample, assistant, conversation, system, user};
use crate::wire::Wire;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::transcript::{ChatMessage, Image, ImageType};
use redflow_ports::ToolChoice;
use serde_json::{Value, json};

fn with_images(text: &str) -> ChatMessage {
    let image = |mime, data: &str| Image { mime, data: data.into() };
    let images = vec![
        image(ImageType::Png, "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"),
        image(ImageType::Gif, "R0lGODlhAQABAIAAAA=="),
    ];
    ChatMessage { images, ..user(text) }
}

/// A question about two images, and another one about none.
fn sample() -> Sample {
    conversation([
        system("Answer in short."),
        with_images("What do they show?"),
        assistant("One pixel each."),
        user("Which colour?"),
    ])
}

fn wires() -> [(Box<dyn Wire>, &'static str); 6] {
    let model = || Some("gpt-4o".to_owned());
    let anthropic = AnthropicMessages {
        model: "claude-sonnet-5-5".to_owned(),
        max_tokens: 4_096,
        ..AnthropicMessages::default()
    };
    [
        (Box::new(OpenaiChat { model: model(), ..OpenaiChat::default() }), "openai-chat-pictures"),
        (
            Box::new(OpenaiChat { legacy_max_tokens: true, ..OpenaiChat::default() }),
            "openai-chat-azure-dated-pictures",
        ),
        (
            Box::new(OpenaiResponses { model: model(), ..OpenaiResponses::default() }),
            "openai-responses-pictures",
        ),
        (Box::new(anthropic), "anthropic-pictures"),
        (Box::new(OllamaChat { model: "llava".to_owned(), ..OllamaChat::default() }), "ollama-pictures"),
        (Box::new(Gemini { model: "gemini-3.5-flash".to_owned(), ..Gemini::default() }), "gemini-pictures"),
    ]
}

#[test]
fn golden_bodies_of_messages_with_images() {
    for (wire, name) in wires() {
        sample().check_golden(&*wire, name);
    }
}

/// A part without text is refused by some providers.
#[test]
fn a_message_may_have_images_only() {
    let sample = conversation([with_images(" ")]);
    for (wire, name) in wires() {
        let body = sample.body(&*wire);
        let message =
            ["/messages/0", "/input/0", "/contents/0"].iter().find_map(|place| body.pointer(place)).unwrap();
        let images = ["content", "images", "parts"].iter().find_map(|name| message[*name].as_array());
        assert_eq!(images.map(Vec::len), Some(2), "{name}: {message}");
    }
}

fn call(type_name: &'static str, props: Value) -> (Result<String, (RunErrorCode, String)>, usize) {
    let mut node = Node::new(type_name, props);
    node.messages = vec![with_images("What do they show?")];
    let recording = Recording::new([]);
    let answer = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default());
    let answer = answer.map(|answer| answer.text).map_err(|failure| (failure.code, failure.message));
    (answer, recording.requests().len())
}

#[test]
fn a_model_without_vision_is_not_called_with_images() {
    let nodes = [
        ("openai-model", json!({"model": "gpt-3.5-turbo"}), "gpt-3.5-turbo"),
        ("ollama-model", json!({"model": "llama3.2"}), "llama3.2"),
        (
            "anthropic-model",
            json!({"model": "claude-sonnet-5", "capabilities": {"vision": false}}),
            "claude-sonnet-5",
        ),
    ];
    for (type_name, mut props, model) in nodes {
        let (answer, requests) = call(type_name, props.clone());
        let message = format!(
            "the model `{model}` takes no images; choose another one, or set `capabilities` of its node to \
             {{\"vision\": true}} if it does"
        );
        assert_eq!((answer, requests), (Err((RunErrorCode::ConfigInvalid, message)), 0));
        props["capabilities"] = json!({"vision": true});
        let (answer, requests) = call(type_name, props);
        assert_eq!((answer, requests), (Ok("hi".to_owned()), 1));
    }
    // Its model is known to have vision.
    assert_eq!(call("openai-model", json!({"model": "gpt-4o"})).1, 1);
}

#[test]
fn a_format_that_an_api_does_not_take_is_not_sent() {
    let (answer, requests) = call("google-model", json!({"model": "gemini-3.5-flash"}));
    let message = "the model `gemini-3.5-flash` takes no images of the type image/gif, only image/png, image/jpeg, \
                   image/webp; convert them, or choose another model";
    assert_eq!((answer, requests), (Err((RunErrorCode::ConfigInvalid, message.to_owned())), 0));
    for (wire, name) in wires() {
        use ImageType::{Gif, Jpeg, Png, Webp};
        let taken =
            if name.starts_with("gemini") { vec![Png, Jpeg, Webp] } else { vec![Png, Jpeg, Gif, Webp] };
        assert_eq!(wire.image_types(), taken, "{name}");
    }
}

/// A body that grows while it is encoded is copied, and the last copy may have twice its size.
#[test]
fn the_estimated_size_of_a_request_has_the_images() {
    let image = |mime| Image { mime, data: "A".repeat(1 << 20).into() };
    let images = vec![image(ImageType::Png), image(ImageType::Jpeg)];
    let sample = conversation([system("Answer."), ChatMessage { images, ..user("What do they show?") }]);
    for (wire, name) in wires() {
        let mut body = Vec::with_capacity(estimated_bytes(&sample.request()));
        let capacity = body.capacity();
        wire.encode(&sample.request(), &mut body).unwrap();
        assert!(body.len() > 2 << 20, "{name}: {}", body.len());
        assert_eq!(body.capacity(), capacity, "{name}");
        assert!(capacity - body.len() < 4_096, "{name}: {capacity} for {}", body.len());
    }
}
