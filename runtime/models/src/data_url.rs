//! An image as a data URL, written without a copy of its data.

use redflow_contract::transcript::Image;
use serde::{Serialize, Serializer};

#[derive(Clone, Copy)]
pub(crate) struct DataUrl<'a>(pub(crate) &'a Image);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Image { mime, data } = self.0;
        serializer.collect_str(&format_args!("data:{};base64,{data}", mime.as_str()))
    }
}
