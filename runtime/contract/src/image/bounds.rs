//! How large a picture may be.

/// The most bytes of the file of one picture.
pub const MAX_IMAGE_BYTES: usize = 3 * 1024 * 1024;
/// The most pixels of one picture.
pub const MAX_IMAGE_PIXELS: u64 = 40_000_000;
/// The most pixels of one side of a picture.
pub const MAX_IMAGE_SIDE: u32 = 16_384;
