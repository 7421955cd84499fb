use super::{ImageSource, MessageImages, take_images};
use pretty_assertions::assert_eq;
use redflow_contract::Message;
use redflow_contract::code::RunErrorCode;
use redflow_contract::transcript::{Image, ImageType};
use serde_json::{Value, json};

/// A GIF of one pixel, whose Base64 has padding.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0";
const GIF_DATA: &str = "R0lGODlhAQABAIAAAA==";

fn message(value: Value) -> Message {
    let Value::Object(message) = value else { panic!("no message") };
    message
}

fn gif() -> ImageSource {
    ImageSource::Message(Image { mime: ImageType::Gif, data: GIF_DATA.into() })
}

fn data_url() -> String {
    format!("data:image/gif;base64,{GIF_DATA}")
}

fn buffer() -> Value {
    json!({"type": "Buffer", "data": GIF})
}

/// Takes the images, and checks that what is put back is the message as it was.
fn take(template: &str, whole: Value) -> (MessageImages, Message) {
    let whole = message(whole);
    let mut taken = whole.clone();
    let mut images = take_images(template, &mut taken).unwrap();
    let left = taken.clone();
    // As the record of a run holds it.
    let mut payload = taken.get_mut("payload").map(Value::take).unwrap_or_default();
    for one in std::mem::take(&mut images.taken) {
        one.put_back(&mut taken, &mut payload);
    }
    if let Some(place) = taken.get_mut("payload") {
        *place = payload;
    }
    assert_eq!(taken, whole);
    (images, left)
}

fn refusal(value: &Value) -> String {
    let mut incoming = message(json!({ "payload": "hi", "images": value }));
    let before = incoming.clone();
    let failure = take_images("{{msg.images}}", &mut incoming).unwrap_err();
    assert_eq!(incoming, before);
    assert_eq!(failure.code, RunErrorCode::ImageInvalid);
    failure.message
}

#[test]
fn takes_every_form_of_an_image_out_of_the_message() {
    let tagged = json!({"$redflow": "buffer", "data": GIF_DATA});
    let all = json!([data_url(), buffer(), tagged, GIF_DATA]);
    let (images, left) = take("{{msg.images}}", json!({"payload": "hi", "images": all}));
    assert_eq!(images.sources, [gif(), gif(), gif(), gif()]);
    let labels = json!(["[picture 1]", "[picture 2]", "[picture 3]", "[picture 4]"]);
    assert_eq!(Value::Object(left), json!({"payload": "hi", "images": labels}));
}

#[test]
fn keeps_the_order_of_the_message() {
    let address = "https://example.org/a.gif";
    let (images, left) = take("{{msg.images}}", json!({"images": [address, data_url()]}));
    assert_eq!(images.sources, [ImageSource::Address(address.to_owned()), gif()]);
    assert_eq!(left["images"], json!([address, "[picture 2]"]));
}

#[test]
fn a_template_names_a_value_of_the_message() {
    let (images, left) = take("{{json.photo}}", json!({"payload": {"photo": data_url(), "text": "?"}}));
    assert_eq!(images.sources, [gif()]);
    assert_eq!(left["payload"], json!({"photo": "[picture 1]", "text": "?"}));
    let (images, left) = take(" {{ msg.payload.0 }} ", json!({"payload": [buffer()]}));
    assert_eq!((images.sources, left["payload"][0].as_str()), (vec![gif()], Some("[picture 1]")));
    let (images, left) = take("{{json}}", json!({"payload": buffer()}));
    assert_eq!((images.sources, left["payload"].as_str()), (vec![gif()], Some("[picture 1]")));
    // A text, with values of the message in it.
    let (images, left) = take("https://example.org/{{msg.id}}.png", json!({"id": 7}));
    let address = ImageSource::Address("https://example.org/7.png".to_owned());
    assert_eq!((images.sources, left["id"].as_u64()), (vec![address], Some(7)));
    let (images, _) = take(&data_url(), json!({}));
    assert_eq!(images.sources, [gif()]);
}

#[test]
fn nothing_is_no_image() {
    for value in [json!(null), json!(""), json!(" "), json!([]), json!({"$redflow": "undefined"})] {
        assert_eq!(take("{{msg.images}}", json!({ "images": value })).0.sources, []);
    }
    for template in ["{{msg.images}}", "{{json.a.b}}", "{{msg}}", "{{other}}", "{{}}", ""] {
        assert_eq!(take(template, json!({"payload": "hi"})).0.sources, []);
    }
}

#[test]
fn repairs_base64_and_leaves_the_message_as_it_was() {
    let broken = format!("data:image/gif;base64,\n{}", &GIF_DATA[..18]);
    let (images, left) = take("{{msg.images}}", json!({ "images": broken }));
    assert_eq!((images.sources, &left["images"]), (vec![gif()], &json!(broken)));
    // Other properties of an object survive.
    let more = json!({"length": 13, "data": GIF, "type": "Buffer"});
    assert_eq!(take("{{msg.images}}", json!({ "images": more })).0.sources, [gif()]);
}

#[test]
fn refuses_what_cannot_be_used_by_its_number() {
    let refused = [
        (json!("aGVsbG8="), "is no PNG, JPEG, GIF or WebP file; convert it to one of these formats"),
        (
            json!("data:image/png;base64,R0lGODlhAQABAIAAAA=="),
            "has the media type image/png, but its bytes are GIF; correct one of them",
        ),
        (
            json!("http://example.org/a.png?key=secret"),
            "has an address that begins with http://; only https:// is allowed",
        ),
        (
            json!("ftp://example.org/a.png"),
            "is neither a data URL, nor Base64, nor an address that begins with https://",
        ),
        (json!(5), "is neither a text nor a Buffer; send a data URL, a Buffer or an https address"),
        (json!(null), "is neither a text nor a Buffer; send a data URL, a Buffer or an https address"),
        (
            json!({"url": "https://example.org"}),
            "is neither a text nor a Buffer; send a data URL, a Buffer or an https address",
        ),
        (
            json!({"type": "Buffer", "data": [71, 256]}),
            "is no PNG, JPEG, GIF or WebP file; convert it to one of these formats",
        ),
    ];
    for (value, problem) in refused {
        assert_eq!(refusal(&json!([data_url(), value])), format!("Picture 2 of the message {problem}."));
    }
    let five = json!([1, 2, 3, 4, 5]);
    assert_eq!(refusal(&five), "Picture 5 of the message is one too many: a message may have 4 pictures.");
}
