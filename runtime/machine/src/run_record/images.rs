//! What a run records about images of its message and of results.

use super::RunRecord;
use crate::image::TakenImage;
use redflow_contract::Millis;
use redflow_contract::effect::Effect;
use redflow_contract::transcript::Image;

/// The bytes of the file of an image, for events.
pub(super) fn file_bytes(image: &Image) -> u32 {
    u32::try_from(image.file_bytes()).unwrap_or(u32::MAX)
}

impl RunRecord {
    /// Keeps what was taken out of the message, until the message of the result is built.
    pub fn keep_taken(&mut self, taken: Vec<TakenImage>) {
        self.taken_images = taken;
    }

    /// Downloads images.
    pub fn fetch_images(&mut self, at: Millis, urls: Vec<String>) {
        let id = self.open_effect(at);
        self.effects.push_back(Effect::FetchImages { id, urls });
    }

    /// Puts what was taken out of the message back.
    pub(super) fn put_images_back(&mut self) {
        for taken in std::mem::take(&mut self.taken_images) {
            taken.put_back(&mut self.message, &mut self.envelope.input);
        }
    }
}
