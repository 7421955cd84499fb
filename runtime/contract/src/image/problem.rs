//! Why something is no usable image.

use super::bounds::{MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS, MAX_IMAGE_SIDE};
use crate::transcript::{ImageType, MAX_IMAGES};

/// Why something is no usable image. The text is the rest of a sentence that begins with the image, and says how to
/// fix it. It never repeats data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImageProblem {
    /// Its bytes are of no known format.
    #[error("is no PNG, JPEG, GIF or WebP file; convert it to one of these formats")]
    UnknownFormat,
    /// Its header has no size.
    #[error("is a damaged {} file: its header gives no width and height", format_name(*.0))]
    Damaged(ImageType),
    /// Its media type is none of an image that models take.
    #[error("has a media type other than image/png, image/jpeg, image/gif and image/webp; convert it")]
    UnknownMediaType,
    /// Its media type names another format than its bytes have.
    #[error("has the media type {}, but its bytes are {}; correct one of them", declared.as_str(), format_name(*found))]
    OtherFormat {
        /// What the media type says.
        declared: ImageType,
        /// What the bytes are.
        found: ImageType,
    },
    /// Its file is too large.
    #[error("has more than {} MiB; make it smaller before you send it", MAX_IMAGE_BYTES / (1024 * 1024))]
    TooManyBytes,
    /// It has too many pixels.
    #[error(
        "has {width} × {height} pixels; at most {} million, and {MAX_IMAGE_SIDE} on each side, are allowed: make it \
         smaller before you send it",
        MAX_IMAGE_PIXELS / 1_000_000
    )]
    TooManyPixels {
        /// Its width.
        width: u32,
        /// Its height.
        height: u32,
    },
    /// Its text is neither an address nor data.
    #[error("is neither a data URL, nor Base64, nor an address that begins with https://")]
    NotBase64,
    /// It is a data URL without Base64.
    #[error("is a data URL without `;base64`; encode its data in Base64")]
    NoBase64Mark,
    /// Its address is not encrypted.
    #[error("has an address that begins with http://; only https:// is allowed")]
    NotHttps,
    /// It is no text and no Buffer.
    #[error("is neither a text nor a Buffer; send a data URL, a Buffer or an https address")]
    NoText,
    /// It is beyond the most images of a message.
    #[error("is one too many: a message may have {MAX_IMAGES} pictures")]
    TooMany,
}

fn format_name(format: ImageType) -> &'static str {
    match format {
        ImageType::Png => "PNG",
        ImageType::Jpeg => "JPEG",
        ImageType::Gif => "GIF",
        ImageType::Webp => "WebP",
    }
}
