//! Images of messages, in every form.

use super::{Outcome, Target};
use redflow_contract::Message;
use redflow_contract::image::check_bytes;
use redflow_contract::transcript::MAX_IMAGES;
use redflow_machine::take_images;
use serde_json::{Value, json};

/// Where an agent finds the images.
const TEMPLATES: [&str; 3] = ["{{msg.images}}", "{{json.photo}}", "https://example.org/{{msg.id}}"];

/// A GIF, and the start of a PNG, a JPEG and a WebP file.
const FILES: [&[u8]; 4] = [
    b"GIF89a\x01\0\x01\0\x80\0\0",
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0",
    b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0",
    b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\x01\0\0\x01\0\0",
];

pub(super) struct MessageImages;

impl Target for MessageImages {
    fn name(&self) -> &'static str {
        "image"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let data = "R0lGODlhAQABAIAAAA==";
        let forms = json!([
            format!("data:image/gif;base64,{data}"),
            {"$redflow": "buffer", "data": data},
            {"type": "Buffer", "data": FILES[0]},
            "https://example.org/a.png",
        ]);
        let texts = [
            json!({"payload": "hi", "images": forms}).to_string(),
            json!({"payload": {"photo": data}, "id": 7}).to_string(),
        ];
        let files = FILES.map(<[u8]>::to_vec);
        texts.map(String::into_bytes).into_iter().chain(files).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let file = if check_bytes(input, None).is_ok() { "image" } else { "none" };
        let Ok(message) = serde_json::from_slice::<Message>(input) else { return Ok(file.to_owned()) };
        let mut outcomes = Vec::new();
        for template in TEMPLATES {
            outcomes.push(take(template, &message)?);
        }
        Ok(outcomes.join(" "))
    }
}

/// What is taken out of a message comes back as it was.
fn take(template: &str, whole: &Message) -> Outcome {
    let mut message = whole.clone();
    let images = match take_images(template, &mut message) {
        Ok(images) => images,
        Err(_) if message != *whole => return Err("a refused message has changed".to_owned()),
        Err(failure) => return Ok(failure.code.to_string()),
    };
    if images.sources.len() > MAX_IMAGES || images.taken.len() > images.sources.len() {
        return Err("too many images".to_owned());
    }
    let mut payload = message.get_mut("payload").map(Value::take).unwrap_or_default();
    for taken in images.taken {
        taken.put_back(&mut message, &mut payload);
    }
    if let Some(place) = message.get_mut("payload") {
        *place = payload;
    }
    if message == *whole {
        Ok(images.sources.len().to_string())
    } else {
        Err("a message has changed".to_owned())
    }
}
