//! How large an image may be, and how many of them.

/// The most bytes of the file of one image.
pub const MAX_IMAGE_BYTES: usize = 3 * 1024 * 1024;
/// The most pixels of one image.
pub const MAX_IMAGE_PIXELS: u64 = 40_000_000;
/// The most pixels of one side of an image.
pub const MAX_IMAGE_SIDE: u32 = 16_384;
/// The most bytes of the images of one message in Base64: as much as a message of Node-RED may have.
pub const MAX_IMAGES_BASE64: usize = 4 * 1024 * 1024;
