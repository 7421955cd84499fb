//! The images of the message: downloaded before anything else, so that a message without usable images calls neither
//! memory nor model.

use super::{Phase, Run};
use redflow_contract::Millis;
use redflow_contract::code::RunErrorCode;
use redflow_contract::envelope::EnvelopeAction;
use redflow_contract::event::RunEventKind;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, Image};
use redflow_machine::{ImageSource, MessageImages, image_label};
use std::sync::Arc;

/// The user's message while its images are downloaded.
#[derive(Debug)]
pub(super) struct PendingMessage {
    text: String,
    sources: Vec<ImageSource>,
}

impl Run {
    /// Downloads the images that the message names by their addresses, or goes on if there are none.
    pub(super) fn collect_images(
        &mut self,
        at: Millis,
        text: String,
        images: Result<MessageImages, Failure>,
    ) {
        let MessageImages { sources, taken } = match images {
            Ok(images) => images,
            Err(Failure { code, message }) => {
                let error = self.record.error(code, message);
                return self.fail(at, EnvelopeAction::Error, &error);
            }
        };
        self.record.keep_taken(taken);
        let addresses = sources.iter().filter_map(|source| match source {
            ImageSource::Address(url) => Some(url.clone()),
            ImageSource::Message(_) => None,
        });
        let urls: Vec<String> = addresses.collect();
        let pending = PendingMessage { text, sources };
        if urls.is_empty() {
            self.receive_message(at, pending, Vec::new());
        } else {
            self.phase = Phase::FetchingImages(pending);
            self.record.fetch_images(at, urls);
        }
    }

    pub(super) fn on_images_fetched(&mut self, at: Millis, pending: PendingMessage, fetched: Vec<Image>) {
        let is_address = |source: &&ImageSource| matches!(source, ImageSource::Address(_));
        if pending.sources.iter().filter(is_address).count() != fetched.len() {
            let message = "The download gave another number of pictures than there are addresses.";
            let error = self.record.error(RunErrorCode::ImageInvalid, message.to_owned());
            return self.fail(at, EnvelopeAction::Error, &error);
        }
        let images = u32::try_from(fetched.len()).unwrap_or(u32::MAX);
        self.record.emit(at, || RunEventKind::ImagesFetched { images });
        self.receive_message(at, pending, fetched);
    }

    /// Goes on with the user's message and its images, in the order of the message.
    fn receive_message(&mut self, at: Millis, pending: PendingMessage, fetched: Vec<Image>) {
        let PendingMessage { mut text, sources } = pending;
        let mut fetched = fetched.into_iter();
        let images: Vec<Image> = sources
            .into_iter()
            .filter_map(|source| match source {
                ImageSource::Message(image) => Some(image),
                ImageSource::Address(_) => fetched.next(),
            })
            .collect();
        if text.trim().is_empty() {
            if images.is_empty() {
                let message = "The user message is empty: set `userMessage` on the agent, or send a payload.";
                let error = self.record.error(RunErrorCode::ConfigInvalid, message.to_owned());
                return self.fail(at, EnvelopeAction::Error, &error);
            }
            // Providers refuse a message without text, and a memory keeps no image.
            text = (1..=images.len()).map(image_label).collect::<Vec<_>>().join(" ");
        }
        let message = ChatMessage { images, ..ChatMessage::new(ChatRole::User, text) };
        self.turn = vec![Arc::new(message)];
        self.phase = Phase::Recalling;
        if !self.record.recall_memory(at, &self.turn[0].content) {
            self.start_loop(at);
        }
    }
}
