//! The images of results. Providers take none in the result of a tool, so the model gets those of a group in one message
//! of the user, after the results. A memory keeps neither the images nor this message.

use super::Run;
use crate::group::{CallGroup, CallState};
use redflow_contract::image::{MAX_IMAGES_BASE64, fit_images};
use redflow_contract::transcript::{ChatMessage, ChatRole, Image, MAX_IMAGES};
use redflow_machine::text::quote;
use std::sync::Arc;

/// The most images of a conversation. Each request sends all of them.
const MAX_CONVERSATION_IMAGES: usize = 20;

impl Run {
    /// Appends the images of these results, if there are any. They are taken out of the results. Digests in journals cover
    /// the sentences, so they keep their old word.
    pub(super) fn append_result_images(&mut self, group: &mut CallGroup) {
        let (mut images, mut tools): (Vec<Image>, Vec<String>) = (Vec::new(), Vec::new());
        for call in &mut group.0 {
            let CallState::Done(end) = &mut call.state else { continue };
            let of_call = std::mem::take(&mut end.result.images);
            tools.extend(of_call.iter().map(|_| quote(&call.tool)));
            images.extend(of_call);
        }
        if images.is_empty() {
            return;
        }
        let known: usize = self.record.transcript.segments().iter().map(|message| message.images.len()).sum();
        let left_out = fit_images(&mut images, MAX_CONVERSATION_IMAGES.saturating_sub(known));
        let named = (1..).zip(&tools).take(images.len());
        let mut sentences: Vec<String> =
            named.map(|(number, tool)| format!("Picture {number} is from the result of {tool}.")).collect();
        if left_out > 0 {
            sentences.push(format!(
                "Pictures left out: {left_out}. A message may have {MAX_IMAGES} pictures and {} MiB of them, a \
                 conversation {MAX_CONVERSATION_IMAGES} pictures.",
                MAX_IMAGES_BASE64 / (1024 * 1024)
            ));
        }
        let message = ChatMessage { images, ..ChatMessage::new(ChatRole::User, sentences.join(" ")) };
        self.record.transcript.push(Arc::new(message));
    }
}
