//! The images of a message: finds them by the template of the agent, checks them, and takes them out of the message.
//!
//! A run holds the data of an image once. So it is taken out of the message when it becomes part of the
//! conversation, and put back when the message of the result is built.

use crate::template::render;
use redflow_contract::Message;
use redflow_contract::bridge::TAG;
use redflow_contract::code::RunErrorCode;
use redflow_contract::image::{
    ImageProblem, MAX_IMAGE_BYTES, check_base64, image_bytes, image_from_bytes, parse_data_url,
};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{Image, MAX_IMAGES};
use serde_json::Value;

/// The images of a message, in its order.
#[derive(Debug, Default)]
pub struct MessageImages {
    /// At most [`MAX_IMAGES`].
    pub sources: Vec<ImageSource>,
    /// What is put back into the message of the result.
    pub taken: Vec<TakenImage>,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    /// The message has it.
    Message(Image),
    /// It must be downloaded from this address.
    Address(String),
}

/// The data of an image that was taken out of a message.
#[derive(Debug)]
pub struct TakenImage {
    /// The keys to its place; the first one is a property of the message.
    path: Vec<String>,
    form: ImageForm,
    image: Image,
}

/// How a message holds the data of an image.
#[derive(Debug)]
enum ImageForm {
    /// A text: what stands before the data, then the data.
    Text(String),
    /// An object whose `data` is the data.
    Tagged(Message),
    /// An object whose `data` is a list of bytes.
    Bytes(Message),
}

/// The text that stands for an image where its data was. Digests in journals cover it and the texts of failures below, so
/// they keep their old word.
#[must_use]
pub fn image_label(number: usize) -> String {
    format!("[picture {number}]")
}

/// Finds the images of a message by the template of its agent, and takes their data out of the message. A label
/// stays in its place.
///
/// # Errors
/// `IMAGE_INVALID` with the number of the first image that cannot be used. The message is unchanged then.
pub fn take_images(template: &str, message: &mut Message) -> Result<MessageImages, Failure> {
    let template = template.trim();
    let Some(path) = whole_path(template) else {
        let text = Value::String(render(template, message));
        return Ok(MessageImages { sources: read_all(&text)?, taken: Vec::new() });
    };
    let Some(value) = find_mut(&path, message) else { return Ok(MessageImages::default()) };
    let sources = read_all(value)?;
    let mut images = MessageImages { sources, taken: Vec::new() };
    let places: Vec<(Option<usize>, &mut Value)> = match value {
        Value::Array(items) => items.iter_mut().enumerate().map(|(at, item)| (Some(at), item)).collect(),
        single => vec![(None, single)],
    };
    for ((number, source), (index, place)) in (1..).zip(&images.sources).zip(places) {
        let ImageSource::Message(image) = source else { continue };
        let Some(form) = take_form(place, image, number) else { continue };
        let steps = path.iter().map(|step| (*step).to_owned());
        let path = steps.chain(index.map(|index| index.to_string())).collect();
        images.taken.push(TakenImage { path, form, image: image.clone() });
    }
    Ok(images)
}

impl TakenImage {
    /// Puts the data back: into the message, or into the payload that was taken out of it.
    pub fn put_back(self, message: &mut Message, payload: &mut Value) {
        let Some((first, rest)) = self.path.split_first() else { return };
        let root = if first == "payload" { Some(payload) } else { message.get_mut(first) };
        let Some(place) = root.and_then(|root| step_down(root, rest.iter().map(String::as_str))) else {
            return;
        };
        let data = &*self.image.data;
        *place = match self.form {
            ImageForm::Text(prefix) => Value::String(prefix + data),
            ImageForm::Tagged(mut object) => {
                object.insert("data".to_owned(), Value::from(data));
                Value::Object(object)
            }
            ImageForm::Bytes(mut object) => {
                object.insert("data".to_owned(), image_bytes(&self.image).into());
                Value::Object(object)
            }
        };
    }
}

/// The path of a template that is nothing but one value, from the message on.
fn whole_path(template: &str) -> Option<Vec<&str>> {
    let name = template.strip_prefix("{{")?.strip_suffix("}}")?.trim();
    if name.contains("{{") || name.contains("}}") {
        return None;
    }
    let mut steps = name.split('.');
    match steps.next()? {
        "json" => Some(std::iter::once("payload").chain(steps).collect()),
        "msg" => Some(steps.collect()),
        // As in every template, an unknown name is empty.
        _ => Some(Vec::new()),
    }
}

fn find_mut<'a>(path: &[&str], message: &'a mut Message) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    step_down(message.get_mut(*first)?, rest.iter().copied())
}

fn step_down<'a, 'b>(root: &'a mut Value, mut steps: impl Iterator<Item = &'b str>) -> Option<&'a mut Value> {
    steps.try_fold(root, |value, key| match value {
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        value => value.get_mut(key),
    })
}

/// Reads a value that is an image, a list of them, or nothing.
fn read_all(value: &Value) -> Result<Vec<ImageSource>, Failure> {
    let items = match value {
        Value::Array(items) => items.as_slice(),
        value if is_nothing(value) => &[],
        single => std::slice::from_ref(single),
    };
    if items.len() > MAX_IMAGES {
        return Err(image_failure(MAX_IMAGES + 1, ImageProblem::TooMany));
    }
    let read = |(number, item)| read_image(item).map_err(|problem| image_failure(number, problem));
    (1..).zip(items).map(read).collect()
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Object(object) => object.get(TAG).is_some_and(|tag| tag == "undefined"),
        _ => false,
    }
}

fn image_failure(number: usize, problem: ImageProblem) -> Failure {
    let message = format!("Picture {number} of the message {problem}.");
    Failure { code: RunErrorCode::ImageInvalid, message }
}

fn read_image(value: &Value) -> Result<ImageSource, ImageProblem> {
    match value {
        Value::String(text) => read_text(text),
        Value::Object(object) => read_buffer(object).map(ImageSource::Message),
        _ => Err(ImageProblem::NoText),
    }
}

fn read_text(text: &str) -> Result<ImageSource, ImageProblem> {
    let text = text.trim();
    let starts_with =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if starts_with("https://") {
        return Ok(ImageSource::Address(text.to_owned()));
    }
    if starts_with("http://") {
        return Err(ImageProblem::NotHttps);
    }
    let (declared, data) = match parse_data_url(text).transpose()? {
        Some(url) => (Some(url.format), url.data),
        None => (None, text),
    };
    let (mime, data) = check_base64(data, declared)?;
    Ok(ImageSource::Message(Image { mime, data: data.into() }))
}

/// A Buffer: as the palette sends it, or as Node.js writes it.
fn read_buffer(object: &Message) -> Result<Image, ImageProblem> {
    let is_tagged = object.get(TAG).is_some_and(|tag| tag == "buffer");
    match object.get("data") {
        Some(Value::String(data)) if is_tagged => {
            let (mime, data) = check_base64(data, None)?;
            Ok(Image { mime, data: data.into() })
        }
        Some(Value::Array(numbers)) if object.get("type").is_some_and(|name| name == "Buffer") => {
            if numbers.len() > MAX_IMAGE_BYTES {
                return Err(ImageProblem::TooManyBytes);
            }
            let byte = |number: &Value| number.as_u64().and_then(|number| u8::try_from(number).ok());
            let bytes: Option<Vec<u8>> = numbers.iter().map(byte).collect();
            image_from_bytes(&bytes.ok_or(ImageProblem::UnknownFormat)?, None)
        }
        _ => Err(ImageProblem::NoText),
    }
}

/// Takes the data of an image out of its place, if it can be put back unchanged.
fn take_form(place: &mut Value, image: &Image, number: usize) -> Option<ImageForm> {
    let form = match place {
        // Anything else was repaired.
        Value::String(text) => ImageForm::Text(text.strip_suffix(&*image.data)?.to_owned()),
        Value::Object(object) => {
            let is_tagged = match object.get("data")? {
                Value::String(data) if **data == *image.data => true,
                Value::Array(_) => false,
                _ => return None,
            };
            let mut object = std::mem::take(object);
            object.insert("data".to_owned(), Value::Null);
            if is_tagged { ImageForm::Tagged(object) } else { ImageForm::Bytes(object) }
        }
        _ => return None,
    };
    *place = Value::String(image_label(number));
    Some(form)
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
