use super::{
    DataUrl, ImageHeader, ImageProblem, MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS, MAX_IMAGE_SIDE, MAX_IMAGES_BASE64,
    check_base64, check_bytes, fit_images, format_of, image_from_bytes, parse_data_url, read_header,
};
use crate::transcript::ImageType::{self, Gif, Jpeg, Png, Webp};
use crate::transcript::{Image, MAX_IMAGES};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use std::borrow::Cow;

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 2, 0, 0, 0]);
    bytes
}

fn gif(width: u16, height: u16) -> Vec<u8> {
    [&b"GIF89a"[..], &width.to_le_bytes(), &height.to_le_bytes(), &[0x80, 0, 0]].concat()
}

/// With a segment of a camera before the frame, and a fill byte.
fn jpeg(width: u16, height: u16, frame: u8) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8, 0xff, 0xe1, 0, 8];
    bytes.extend(b"Exif\0\0");
    bytes.extend([0xff, 0xff, 0xc4, 0, 3, 0, 0xff, frame, 0, 11, 8]);
    bytes.extend(height.to_be_bytes());
    bytes.extend(width.to_be_bytes());
    bytes.extend([1, 1, 0x11, 0]);
    bytes
}

fn webp(chunk: &[u8; 4], data: &[u8]) -> Vec<u8> {
    [&b"RIFF\x20\0\0\0WEBP"[..], chunk, &[10, 0, 0, 0], data].concat()
}

#[test]
fn reads_the_size_of_every_format() {
    let lossy = [0x30, 1, 0, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xf0, 0x40];
    // 14 bits for each side minus one.
    let lossless = (319_u32 | (239 << 14)).to_le_bytes();
    let files: [(Vec<u8>, ImageType); 8] = [
        (png(320, 240), Png),
        (gif(320, 240), Gif),
        (b"GIF87a\x40\x01\xf0\0\0\0\0".to_vec(), Gif),
        (jpeg(320, 240, 0xc0), Jpeg),
        (jpeg(320, 240, 0xc2), Jpeg),
        (webp(b"VP8 ", &lossy), Webp),
        (webp(b"VP8L", &[&[0x2f][..], &lossless].concat()), Webp),
        (webp(b"VP8X", &[0x10, 0, 0, 0, 0x3f, 1, 0, 0xef, 0, 0]), Webp),
    ];
    for (bytes, format) in files {
        let expected = ImageHeader { format, width: 320, height: 240 };
        assert_eq!(read_header(&bytes), Ok(expected));
        assert_eq!(check_bytes(&bytes, Some(format)), Ok(format));
    }
}

#[test]
fn refuses_what_is_no_image() {
    for bytes in [&b""[..], b"hello", b"<svg xmlns=''/>", b"%PDF-1.7", b"BM\x46\0", b"RIFF\x20\0\0\0WAVEfmt "]
    {
        assert_eq!(check_bytes(bytes, None), Err(ImageProblem::UnknownFormat), "{bytes:?}");
    }
    let damaged = [
        (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIDAT\0\0\0\x01\0\0\0\x01".to_vec(), Png),
        (png(0, 5), Png),
        (png(5, 5)[..20].to_vec(), Png),
        (gif(5, 0), Gif),
        (b"GIF89a\x05".to_vec(), Gif),
        // The data begins before a frame.
        (vec![0xff, 0xd8, 0xff, 0xda, 0, 4, 0, 0], Jpeg),
        (vec![0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0x12], Jpeg),
        (vec![0xff, 0xd8, 0xff, 0xff, 0xff], Jpeg),
        (webp(b"VP8 ", &[0; 10]), Webp),
        (webp(b"VP8L", &[0; 10]), Webp),
        (webp(b"ALPH", &[0; 10]), Webp),
        (b"RIFF\x20\0\0\0WEBP".to_vec(), Webp),
    ];
    for (bytes, format) in damaged {
        assert_eq!(check_bytes(&bytes, None), Err(ImageProblem::Damaged(format)), "{bytes:?}");
    }
}

#[test]
fn refuses_an_image_beyond_a_bound() {
    // 24 bytes that a decoder would make 1.6 GB of.
    let bomb = check_bytes(&png(20_000, 20_000), None);
    assert_eq!(bomb, Err(ImageProblem::TooManyPixels { width: 20_000, height: 20_000 }));
    assert_eq!(check_bytes(&png(MAX_IMAGE_SIDE, 2_441), None), Ok(Png));
    let (side, beyond) = (MAX_IMAGE_SIDE, MAX_IMAGE_SIDE + 1);
    for (width, height) in [(beyond, 1), (1, beyond), (side, 2_442), (u32::MAX, u32::MAX)] {
        let problem = ImageProblem::TooManyPixels { width, height };
        assert_eq!(check_bytes(&png(width, height), None), Err(problem));
    }
    assert!(u64::from(side) * 2_442 > MAX_IMAGE_PIXELS);
    let mut large = png(10, 10);
    large.resize(MAX_IMAGE_BYTES, 0);
    assert_eq!(check_bytes(&large, None), Ok(Png));
    assert_eq!(check_base64(&STANDARD.encode(&large), None).map(|(format, _)| format), Ok(Png));
    large.push(0);
    assert_eq!(check_bytes(&large, None), Err(ImageProblem::TooManyBytes));
    assert_eq!(check_base64(&STANDARD.encode(&large), None), Err(ImageProblem::TooManyBytes));
    let fifty = "iVBORw0K".repeat(50 * 1024 * 1024 / 6);
    assert_eq!(check_base64(&fifty, None), Err(ImageProblem::TooManyBytes));
}

#[test]
fn the_media_type_must_name_the_format_of_the_bytes() {
    let other = check_bytes(&png(1, 1), Some(Jpeg));
    assert_eq!(other, Err(ImageProblem::OtherFormat { declared: Jpeg, found: Png }));
    assert_eq!(
        other.unwrap_err().to_string(),
        "has the media type image/jpeg, but its bytes are PNG; correct one of them"
    );
    assert_eq!(format_of("IMAGE/JPG; charset=binary"), Some(Jpeg));
    assert_eq!((format_of("image/svg+xml"), format_of("")), (None, None));
}

#[test]
fn reads_data_urls() {
    let url = parse_data_url("DATA:image/png;name=a.png;Base64,iVBO");
    let expected = DataUrl { prefix: "DATA:image/png;name=a.png;Base64,", format: Png, data: "iVBO" };
    assert_eq!(url, Some(Ok(expected)));
    let refused = [
        ("data:image/png,abc", ImageProblem::NoBase64Mark),
        ("data:image/png;base64", ImageProblem::NoBase64Mark),
        ("data:;base64,abc", ImageProblem::UnknownMediaType),
        ("data:image/svg+xml;base64,abc", ImageProblem::UnknownMediaType),
        ("data:text/html,<b>", ImageProblem::UnknownMediaType),
    ];
    for (text, problem) in refused {
        assert_eq!(parse_data_url(text), Some(Err(problem)), "{text}");
    }
    assert_eq!(parse_data_url("iVBO"), None);
    assert_eq!(parse_data_url("dat"), None);
}

#[test]
fn base64_may_have_line_breaks_and_no_padding() {
    let bytes = gif(3, 2);
    let canonical = STANDARD.encode(&bytes);
    assert!(canonical.ends_with('='));
    assert!(matches!(check_base64(&canonical, None), Ok((Gif, Cow::Borrowed(_)))));
    let broken = format!("{}\r\n{}", &canonical[..8], canonical[8..].trim_end_matches('='));
    let (format, data) = check_base64(&broken, None).unwrap();
    assert_eq!((format, &*data), (Gif, canonical.as_str()));
    for text in ["not base64!", "ä", "iVBO_w0K"] {
        assert_eq!(check_base64(text, None), Err(ImageProblem::NotBase64), "{text}");
    }
    let image = image_from_bytes(&bytes, None).unwrap();
    assert_eq!((image.mime, &*image.data), (Gif, canonical.as_str()));
}

proptest! {
    /// Also with a beginning that a parser goes on with.
    #[test]
    fn never_panics(start in 0_usize..9, rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let starts: [&[u8]; 9] = [
            b"", b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"GIF89a", b"\xff\xd8\xff",
            b"\xff\xd8\xff\xe0\0\x04\0\0", b"RIFF\0\0\0\0WEBPVP8 ", b"RIFF\0\0\0\0WEBPVP8L", b"RIFF\0\0\0\0WEBPVP8X",
        ];
        let bytes = [starts[start], &rest].concat();
        let header = read_header(&bytes);
        if let Ok(ImageHeader { width, height, .. }) = header {
            prop_assert!(width > 0 && height > 0);
        }
        let _ = check_bytes(&bytes, Some(ImageType::Png));
    }

    #[test]
    fn texts_never_panic(text in "\\PC{0,80}", format in prop::sample::select(vec!["", "data:", "data:image/png;base64,"])) {
        let text = format!("{format}{text}");
        let _ = parse_data_url(&text);
        let _ = check_base64(&text, None);
    }

    /// What is accepted is as small as promised, and comes back unchanged.
    #[test]
    fn accepted_images_are_within_the_bounds(width in any::<u32>(), height in any::<u32>()) {
        let bytes = png(width, height);
        let fits = width > 0 && height > 0 && width <= MAX_IMAGE_SIDE && height <= MAX_IMAGE_SIDE
            && u64::from(width) * u64::from(height) <= MAX_IMAGE_PIXELS;
        let image = image_from_bytes(&bytes, None);
        prop_assert_eq!(image.is_ok(), fits);
        if let Ok(image) = image {
            prop_assert_eq!(STANDARD.decode(&*image.data).unwrap(), bytes);
        }
    }
}

#[test]
fn the_first_images_that_fit_into_a_message_are_kept() {
    let image = |bytes: usize| Image { mime: ImageType::Png, data: "A".repeat(bytes).into() };
    let fit = |sizes: &[usize], most: usize| {
        let mut images: Vec<Image> = sizes.iter().map(|bytes| image(*bytes)).collect();
        let removed = fit_images(&mut images, most);
        (images.len(), removed)
    };
    assert_eq!(fit(&[4, 4, 4, 4], 9), (4, 0));
    assert_eq!(fit(&[4, 4, 4, 4, 4, 4], 9), (MAX_IMAGES, 2));
    assert_eq!(fit(&[4, 4], 1), (1, 1));
    assert_eq!(fit(&[MAX_IMAGES_BASE64, 4], 9), (1, 1));
    assert_eq!(fit(&[MAX_IMAGES_BASE64 + 4, 4], 9), (0, 2));
    for bytes in 0..9 {
        let image = Image { mime: ImageType::Png, data: STANDARD.encode(vec![7; bytes]).into() };
        assert_eq!(image.file_bytes(), bytes);
    }
}
