//! The content of a message, with its images.

use crate::data_url::DataUrl;
use redflow_contract::transcript::Image;
use serde::{Serialize, Serializer};

/// The text of a message, or a list of its text and its images.
#[derive(Clone)]
pub(super) struct MessageContent<'a> {
    pub(super) text: &'a str,
    pub(super) images: &'a [Image],
}

impl Serialize for MessageContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Part<'a> {
            InputText { text: &'a str },
            InputImage { detail: &'static str, image_url: DataUrl<'a> },
        }
        if self.images.is_empty() {
            return self.text.serialize(serializer);
        }
        let text = (!self.text.trim().is_empty()).then_some(Part::InputText { text: self.text });
        let images =
            self.images.iter().map(|image| Part::InputImage { detail: "auto", image_url: DataUrl(image) });
        serializer.collect_seq(text.into_iter().chain(images))
    }
}
