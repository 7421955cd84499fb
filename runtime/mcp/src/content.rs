//! Results of calls: the content of a server becomes a bounded value, and images beside it. Sounds are left out.

use crate::program::MAX_MESSAGE_BYTES;
use crate::schema::OutputSchema;
use crate::text::{clean_and_cut, cut_bytes};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use redflow_contract::code::ToolCode;
use redflow_contract::digest::Digest;
use redflow_contract::fact::ToolResult;
use redflow_contract::image::check_base64;
use redflow_contract::json::{JsonLimits, MAX_DEPTH, parse_exact, quote_changed_integers};
use redflow_contract::transcript::{Image, MAX_IMAGES};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// The most characters of a name, a media type or an address in a result.
const MAX_LABEL_CHARS: usize = 2_048;

/// The most bytes of the reason of a failed call.
pub(crate) const MAX_ERROR_BYTES: usize = 8_192;

/// The result of a call, with its images. Beside them it has at most `most` bytes. What is cut no longer follows the
/// schema of the output, so it is checked before.
pub(crate) fn result_of(sent: CallToolResult, most: usize, schema: Option<&OutputSchema>) -> ToolResult {
    if sent.is_error == Some(true) {
        return ToolResult::failed(error_text(&sent, most.min(MAX_ERROR_BYTES)));
    }
    // Some servers send `null` for what they do not have.
    let structured = sent.structured_content.filter(|value| !value.is_null());
    let output = match schema {
        Some(schema) => match promised_value(structured, &sent.content, schema) {
            Ok(value) => bounded_value(value, most),
            Err(violation) => return output_invalid(&violation),
        },
        None => match (structured, sent.content.as_slice()) {
            (Some(value), _) => bounded_value(value, most),
            (None, []) => Value::Null,
            (None, [ContentBlock::Text(text)]) => bounded_text(&text.text, most),
            (None, blocks) => bounded_blocks(blocks.iter().map(block_value), blocks.len(), most),
        },
    };
    with_images(output, sent.content.iter())
}

/// The result with the images of these blocks. Their formats are those of their bytes, whatever the server says.
fn with_images<'a>(output: Value, blocks: impl Iterator<Item = &'a ContentBlock>) -> ToolResult {
    let mut result = ToolResult::ok(output);
    let mut unusable = 0;
    for (number, image) in (1..).zip(blocks.filter_map(ContentBlock::as_image)) {
        match check_base64(&image.data, None) {
            Ok((mime, data)) => result.images.push(Image { mime, data: data.into() }),
            Err(problem) => {
                unusable += 1;
                if unusable <= MAX_IMAGES {
                    result.add_note(&format!("Image {number} of the output was left out: it {problem}."));
                }
            }
        }
    }
    if unusable > MAX_IMAGES {
        result.add_note(&format!("Further unusable images were left out: {}.", unusable - MAX_IMAGES));
    }
    result
}

/// The result of a call that the library cannot read, because it does not know a block of it; none if it is no result
/// of a call.
pub(crate) fn loose_result(sent: Value, most: usize, schema: Option<&OutputSchema>) -> Option<ToolResult> {
    let Value::Object(mut sent) = sent else { return None };
    let Some(Value::Array(blocks)) = sent.remove("content") else { return None };
    let known = |block: &Value| serde_json::from_value::<ContentBlock>(block.clone()).ok();
    let known_blocks = || blocks.iter().filter_map(known);
    if schema.is_some()
        || sent.get("isError") == Some(&Value::Bool(true))
        || sent.get("structuredContent").is_some_and(|value| !value.is_null())
    {
        let mut known_part = CallToolResult::success(known_blocks().collect());
        known_part.is_error = sent.get("isError").and_then(Value::as_bool);
        known_part.structured_content = sent.remove("structuredContent");
        return Some(result_of(known_part, most, schema));
    }
    let value =
        |block: &Value| known(block).map_or_else(|| json!({"type": "unknown"}), |block| block_value(&block));
    let output = bounded_blocks(blocks.iter().map(value), blocks.len(), most);
    Some(with_images(output, known_blocks().collect::<Vec<_>>().iter()))
}

/// The value that follows the schema of the output. A server must send it as structured content. Some send it as a text
/// only, which is the same value for older clients.
///
/// # Errors
/// How the server breaks the schema.
fn promised_value(
    structured: Option<Value>,
    content: &[ContentBlock],
    schema: &OutputSchema,
) -> Result<Value, String> {
    let value = match (structured, content) {
        (Some(value), _) => value,
        (None, [ContentBlock::Text(text)]) => {
            let quoted = quote_changed_integers(&text.text);
            let text = quoted.as_deref().unwrap_or(&text.text);
            parse_exact(text.as_bytes(), TEXT_LIMITS).map_err(|_| NOT_STRUCTURED.to_owned())?
        }
        (None, _) => return Err(NOT_STRUCTURED.to_owned()),
    };
    schema.violation(&value).map_or(Ok(value), Err)
}

/// A message of a server is not longer.
const TEXT_LIMITS: JsonLimits = JsonLimits { max_bytes: MAX_MESSAGE_BYTES, max_depth: MAX_DEPTH };

const NOT_STRUCTURED: &str = "The server sent no structured content.";

fn output_invalid(violation: &str) -> ToolResult {
    let text = format!("The call was made, but its output breaks the tool's schema. {violation}");
    ToolResult::refused(ToolCode::ToolOutputInvalid, text)
}

/// What the contents of a resource are as a value.
pub(crate) fn contents_value(contents: &[ResourceContents], most: usize) -> Value {
    match contents {
        [ResourceContents::TextResourceContents { text, .. }] => bounded_text(text, most),
        all => bounded_blocks(all.iter().map(resource_value), all.len(), most),
    }
}

fn error_text(sent: &CallToolResult, most: usize) -> String {
    let texts: Vec<&str> =
        sent.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
    let text = match (texts.join("\n"), &sent.structured_content) {
        (text, Some(value)) if text.trim().is_empty() => value.to_string(),
        (text, _) => text,
    };
    match text.trim() {
        "" => "The tool failed and gives no reason.".to_owned(),
        text if text.len() > most => format!("{}…", cut_bytes(text, most)),
        text => text.to_owned(),
    }
}

/// A value that is too long becomes the beginning of its JSON.
fn bounded_value(value: Value, most: usize) -> Value {
    let text = value.to_string();
    if text.len() <= most { value } else { cut_text(&text, most) }
}

/// A text, or its beginning.
pub(crate) fn bounded_text(text: &str, most: usize) -> Value {
    if json_bytes(text) <= most { text.into() } else { cut_text(text, most) }
}

fn cut_text(text: &str, most: usize) -> Value {
    let sha256 = Digest::of(text.as_bytes()).to_hex();
    json!({"text": fit(text, most), "truncated": true, "bytes": text.len(), "sha256": sha256})
}

/// The beginning of a text whose JSON has at most so many bytes.
fn fit(text: &str, most: usize) -> &str {
    let mut end = most;
    loop {
        let cut = cut_bytes(text, end);
        let bytes = json_bytes(cut);
        if bytes <= most || cut.is_empty() {
            return cut;
        }
        end = (cut.len() * most / bytes).min(cut.len() - 1);
    }
}

fn json_bytes(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |json| json.len())
}

/// As many blocks as fit. A long text is cut, and what follows it is left out.
fn bounded_blocks(blocks: impl Iterator<Item = Value>, count: usize, most: usize) -> Value {
    let (mut all, mut left) = (Vec::new(), most);
    for (index, mut block) in blocks.enumerate() {
        let mut bytes = block.to_string().len();
        if bytes > left {
            if let Some(text) = block.get("text").and_then(Value::as_str) {
                let cut = cut_text(text, left);
                let kind = block.get("type").cloned().unwrap_or_else(|| "text".into());
                block = cut;
                block["type"] = kind;
            } else {
                block = json!({"type": "left_out", "truncated": true});
            }
            bytes = left;
        }
        all.push(block);
        left -= bytes;
        if left == 0 {
            if index + 1 < count {
                all.push(json!({"type": "left_out", "truncated": true, "blocks": count - index - 1}));
            }
            break;
        }
    }
    Value::Array(all)
}

fn block_value(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(text) => json!({"type": "text", "text": text.text}),
        ContentBlock::Image(image) => binary("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => resource_value(&resource.resource),
        // A link is not followed: its address is the server's choice.
        ContentBlock::ResourceLink(link) => {
            json!({"type": "resource_link", "uri": label(&link.uri), "name": label(&link.name)})
        }
        _ => json!({"type": "unknown"}),
    }
}

fn resource_value(resource: &ResourceContents) -> Value {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            json!({"type": "resource", "uri": label(uri), "text": text})
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mut value = binary("resource", mime_type.as_deref().unwrap_or_default(), blob);
            value["uri"] = label(uri).into();
            value
        }
        _ => json!({"type": "unknown"}),
    }
}

/// What a model can know of bytes. The bytes themselves are not stored.
fn binary(kind: &str, mime: &str, data: &str) -> Value {
    match BASE64_STANDARD.decode(data) {
        Ok(bytes) => {
            let sha256 = Digest::of(&bytes).to_hex();
            json!({"type": kind, "mime": label(mime), "bytes": bytes.len(), "sha256": sha256})
        }
        Err(_) => json!({"type": kind, "mime": label(mime), "bytes": 0, "error": "the data is not base64"}),
    }
}

fn label(text: &str) -> String {
    clean_and_cut(text, MAX_LABEL_CHARS)
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
