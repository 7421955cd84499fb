//! Images of messages: what counts as one, and how large it may be.
//!
//! Reads only the header of a file. No pixel is decoded, so that a small file with a huge image costs nothing.

mod bounds;
mod header;
mod problem;

use crate::transcript::{Image, ImageType, MAX_IMAGES};
use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
pub use bounds::{MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS, MAX_IMAGE_SIDE, MAX_IMAGES_BASE64};
pub use header::{ImageHeader, read_header};
pub use problem::ImageProblem;
use std::borrow::Cow;

/// Base64 as some programs write it: without the padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Checks the bytes of a file. `declared` is the format that its media type names.
///
/// # Errors
/// When it is no image, or too large.
///
/// ```
/// use redflow_contract::image::{ImageProblem, check_bytes};
/// use redflow_contract::transcript::ImageType;
///
/// let gif = *b"GIF89a\x02\0\x01\0\x80\0\0";
/// assert_eq!(check_bytes(&gif, None), Ok(ImageType::Gif));
/// assert_eq!(check_bytes(b"hello", None), Err(ImageProblem::UnknownFormat));
/// ```
pub fn check_bytes(bytes: &[u8], declared: Option<ImageType>) -> Result<ImageType, ImageProblem> {
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(ImageProblem::TooManyBytes);
    }
    let ImageHeader { format, width, height } = read_header(bytes)?;
    if let Some(declared) = declared.filter(|declared| *declared != format) {
        return Err(ImageProblem::OtherFormat { declared, found: format });
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > MAX_IMAGE_PIXELS || width.max(height) > MAX_IMAGE_SIDE {
        return Err(ImageProblem::TooManyPixels { width, height });
    }
    Ok(format)
}

/// Makes an image of the bytes of a file.
///
/// # Errors
/// When it is no image, or too large.
pub fn image_from_bytes(bytes: &[u8], declared: Option<ImageType>) -> Result<Image, ImageProblem> {
    let mime = check_bytes(bytes, declared)?;
    Ok(Image { mime, data: STANDARD.encode(bytes).into() })
}

/// Checks a file in Base64. Gives its format and its data as every provider takes it: with padding and without white
/// space, and borrowed if it already is so.
///
/// # Errors
/// When it is no image, or too large.
pub fn check_base64(
    text: &str,
    declared: Option<ImageType>,
) -> Result<(ImageType, Cow<'_, str>), ImageProblem> {
    if let Ok(bytes) = decode(text, &STANDARD) {
        return Ok((check_bytes(&bytes?, declared)?, Cow::Borrowed(text)));
    }
    // Some programs break the lines of Base64, or leave out its padding.
    let compact: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let bytes = decode(&compact, &LENIENT).map_err(|NotBase64| ImageProblem::NotBase64)??;
    Ok((check_bytes(&bytes, declared)?, Cow::Owned(STANDARD.encode(&bytes))))
}

/// The bytes of a file in Base64. Of an image that was checked, they are whole.
#[must_use]
pub fn image_bytes(image: &Image) -> Vec<u8> {
    STANDARD.decode(&*image.data).unwrap_or_default()
}

/// Keeps the first images that fit into one message, and at most `most`. Gives how many it removed.
pub fn fit_images(images: &mut Vec<Image>, most: usize) -> usize {
    let count = images.len();
    let mut bytes = 0;
    let fitting = images.iter().take_while(|image| {
        bytes += image.data.len();
        bytes <= MAX_IMAGES_BASE64
    });
    let fitting = fitting.count().min(MAX_IMAGES).min(most);
    images.truncate(fitting);
    count - fitting
}

struct NotBase64;

/// Decodes Base64, unless it is too long.
fn decode(text: &str, engine: &GeneralPurpose) -> Result<Result<Vec<u8>, ImageProblem>, NotBase64> {
    if text.len() > MAX_IMAGE_BYTES.div_ceil(3) * 4 {
        // A text of another kind is no large image.
        let start = text.as_bytes().get(..64).unwrap_or_default();
        return engine.decode(start).map(|_| Err(ImageProblem::TooManyBytes)).map_err(|_| NotBase64);
    }
    engine.decode(text).map(Ok).map_err(|_| NotBase64)
}

/// The parts of a data URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataUrl<'a> {
    /// What stands before the data, with the comma.
    pub prefix: &'a str,
    /// The format that its media type names.
    pub format: ImageType,
    /// The data in Base64.
    pub data: &'a str,
}

/// Reads a data URL; none if the text is no data URL.
///
/// # Errors
/// When its media type is no image, or its data is not in Base64.
///
/// ```
/// use redflow_contract::image::parse_data_url;
/// use redflow_contract::transcript::ImageType;
///
/// let url = parse_data_url("data:image/jpg;base64,/9j/").unwrap()?;
/// assert_eq!((url.format, url.data), (ImageType::Jpeg, "/9j/"));
/// assert!(parse_data_url("https://example.org/a.jpg").is_none());
/// # Ok::<(), redflow_contract::image::ImageProblem>(())
/// ```
#[must_use]
pub fn parse_data_url(text: &str) -> Option<Result<DataUrl<'_>, ImageProblem>> {
    const SCHEME: &str = "data:";
    text.get(..SCHEME.len()).filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME))?;
    let Some(comma) = text.find(',') else { return Some(Err(ImageProblem::NoBase64Mark)) };
    let (prefix, data) = text.split_at(comma + 1);
    let mut parts = prefix.get(SCHEME.len()..comma).unwrap_or_default().split(';');
    let media_type = parts.next().unwrap_or_default();
    let Some(format) = format_of(media_type) else { return Some(Err(ImageProblem::UnknownMediaType)) };
    if !parts.next_back().is_some_and(|last| last.trim().eq_ignore_ascii_case("base64")) {
        return Some(Err(ImageProblem::NoBase64Mark));
    }
    Some(Ok(DataUrl { prefix, format, data }))
}

/// The format that a media type names, without its parameters; none if models do not take it.
#[must_use]
pub fn format_of(media_type: &str) -> Option<ImageType> {
    let name = media_type.split(';').next().unwrap_or_default().trim();
    let known = [
        ("image/png", ImageType::Png),
        ("image/jpeg", ImageType::Jpeg),
        // Not registered, but common.
        ("image/jpg", ImageType::Jpeg),
        ("image/gif", ImageType::Gif),
        ("image/webp", ImageType::Webp),
    ];
    known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| format)
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
