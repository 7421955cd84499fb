//! Images, as every provider takes them.

use super::fields::Finder;
use serde_json::Value;

/// The media types that every provider with vision takes.
pub(super) const TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Checks a data URL with the bytes of an image.
pub(super) fn check_data_url(finder: &mut Finder, at: &str, url: &Value) {
    let parts = url.as_str().and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
    let Some((kind, data)) = parts else { return finder.add(at, "no data URL") };
    finder.add_if(!TYPES.contains(&kind), at, format!("the media type {kind}"));
    check_text(finder, at, data);
}

/// Checks the bytes of an image in Base64.
pub(super) fn check_base64(finder: &mut Finder, at: &str, data: &Value) {
    check_text(finder, at, data.as_str().unwrap_or_default());
}

fn check_text(finder: &mut Finder, at: &str, data: &str) {
    let bytes = data.trim_end_matches('=');
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    let fits = !bytes.is_empty() && data.len().is_multiple_of(4) && data.len() - bytes.len() <= 2;
    finder.add_if(!fits || !bytes.bytes().all(is_known), at, "no Base64");
}
