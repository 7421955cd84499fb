//! Images that a message names by their addresses.

use crate::future::BoxFuture;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::Image;

/// Downloads images. Never reaches a network that the policy of the sidecar forbids.
///
/// ```
/// use futures::FutureExt as _;
/// use redflow_contract::run_error::Failure;
/// use redflow_contract::transcript::{Image, ImageType};
/// use redflow_ports::{BoxFuture, ImageFetcher};
///
/// /// Has the same image for every address.
/// struct SameImage(Image);
///
/// impl ImageFetcher for SameImage {
///     fn fetch<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, Result<Image, Failure>> {
///         Box::pin(async { Ok(self.0.clone()) })
///     }
/// }
///
/// let fetcher = SameImage(Image { mime: ImageType::Gif, data: "R0lGODlh".into() });
/// let image = fetcher.fetch("https://example.org/a.gif").now_or_never();
/// assert_eq!(image.unwrap()?.mime, ImageType::Gif);
/// # Ok::<(), Failure>(())
/// ```
pub trait ImageFetcher: Send + Sync {
    /// Downloads one image and checks that it is one. The failure has the code `IMAGE_INVALID`.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Image, Failure>>;
}
