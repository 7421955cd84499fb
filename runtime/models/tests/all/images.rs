//! A request with a large image arrives whole.

use crate::scripted_server::{ScriptedServer, json};
use crate::wires::{WIRES, call_message};
use redflow_contract::image::MAX_IMAGE_BYTES;
use redflow_contract::transcript::{ChatMessage, ChatRole, Image, ImageType};
use serde_json::json as value;

#[tokio::test]
async fn a_large_image_arrives_whole_and_with_its_length() {
    let data = "iVBORw0K".repeat(MAX_IMAGE_BYTES / 6);
    for wire in WIRES {
        let server = ScriptedServer::start([json(wire.answer), json(wire.answer)]).await;
        let model = wire.at(&server, value!({"capabilities": {"vision": true}}));
        let images = vec![Image { mime: ImageType::Png, data: data.as_str().into() }];
        let message = ChatMessage { images, ..ChatMessage::new(ChatRole::User, "What is it?") };
        for _ in 0..2 {
            assert_eq!(call_message(&*model, message.clone()).await.unwrap().text, "hi");
        }
        let seen = server.seen();
        assert_eq!((seen.requests.len(), seen.connections), (2, 1));
        for request in seen.requests {
            let length = request.body.len().to_string();
            assert_eq!(request.header("content-length"), Some(length.as_str()));
            assert_eq!(request.header("transfer-encoding"), None);
            let body = String::from_utf8(request.body).unwrap();
            assert_eq!(body.matches(data.as_str()).count(), 1);
        }
    }
}
