//! Recognises the format of an image by its first bytes, and reads its width and height from its header.

use super::problem::ImageProblem;
use crate::transcript::ImageType;

/// What the header of an image says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageHeader {
    /// The format.
    pub format: ImageType,
    /// Pixels of a row. Never 0.
    pub width: u32,
    /// The number of rows. Never 0.
    pub height: u32,
}

/// Reads the header of a file.
///
/// # Errors
/// When the format is unknown, or the header gives no size.
pub fn read_header(bytes: &[u8]) -> Result<ImageHeader, ImageProblem> {
    let (format, size) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        (ImageType::Png, png_size(bytes))
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        (ImageType::Jpeg, jpeg_size(bytes))
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        (ImageType::Gif, gif_size(bytes))
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        (ImageType::Webp, webp_size(bytes))
    } else {
        return Err(ImageProblem::UnknownFormat);
    };
    let (width, height) =
        size.filter(|(width, height)| *width > 0 && *height > 0).ok_or(ImageProblem::Damaged(format))?;
    Ok(ImageHeader { format, width, height })
}

/// `N` bytes at a position.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The first chunk of a PNG file is its header.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    Some((u32::from_be_bytes(array_at(bytes, 16)?), u32::from_be_bytes(array_at(bytes, 20)?)))
}

fn gif_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let side = |at| Some(u32::from(u16::from_le_bytes(array_at(bytes, at)?)));
    Some((side(6)?, side(8)?))
}

/// Skips the segments of a JPEG file until the one that begins a frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        // Any number of 0xff may stand before a marker.
        while *bytes.get(at)? == 0xff {
            at += 1;
        }
        let marker = *bytes.get(at)?;
        at += 1;
        match marker {
            // These have no length.
            0x01 | 0xd0..=0xd7 => continue,
            // The data or the end, before any frame.
            0x00 | 0xd8..=0xda => return None,
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes(array_at(bytes, at)?));
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            // Length and precision come first, then the height.
            let side = |at| Some(u32::from(u16::from_be_bytes(array_at(bytes, at)?)));
            return Some((side(at + 5)?, side(at + 3)?));
        }
        // The length counts itself.
        at += length.max(2);
    }
}

/// The first chunk of a WebP file gives the size, in one of three ways.
fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let data = bytes.get(20..)?;
    match bytes.get(12..16)? {
        b"VP8 " => {
            if data.get(3..6)? != [0x9d, 0x01, 0x2a] {
                return None;
            }
            let side = |at| Some(u32::from(u16::from_le_bytes(array_at(data, at)?) & 0x3fff));
            Some((side(6)?, side(8)?))
        }
        b"VP8L" => {
            if *data.first()? != 0x2f {
                return None;
            }
            let bits = u32::from_le_bytes(array_at(data, 1)?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => {
            let side = |at| {
                let [low, middle, high] = array_at(data, at)?;
                Some(u32::from_le_bytes([low, middle, high, 0]) + 1)
            };
            Some((side(4)?, side(7)?))
        }
        _ => None,
    }
}
