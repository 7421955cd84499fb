//! What models, memories and tools share.

use super::declaration::{Kind, Property, Text, text};

/// The label of a service's input.
pub(super) const FROM_AGENT: Text = text("fromAgent", "from the agent");
/// The label of a service's output.
pub(super) const NO_WIRE: &[Text] = &[text("noWire", "needs no wire")];

pub(super) const CREDENTIALS: Property =
    Property::hidden("credentials", Kind::Other, "The credentials of the node.");
pub(super) const OPTIONS: Property = Property::hidden("options", Kind::Other, "The same properties again.");
