//! The documentation pages of the codes. Codes of one family share a page, with a section for each code.

use crate::packed_text::PackedText;
use std::sync::LazyLock;

/// The pages of `docs/codes`, embedded compressed.
static PACKED: &[(&str, PackedText)] = include!(concat!(env!("OUT_DIR"), "/codes.rs"));

/// The same as texts, from the first question about a code on.
pub(super) static PAGES: LazyLock<Vec<String>> =
    LazyLock::new(|| PACKED.iter().map(|(_, packed)| packed.text()).collect());

/// The start of the line that begins the section of a code.
const HEADING: &str = "\n## ";

/// The heading of the part of a section that says what to do.
const REMEDY: &str = "\n### How to fix it\n";

/// The section of a code, with its heading.
pub(super) fn section(code: &str) -> Option<&'static str> {
    let heading = format!("{HEADING}{code}\n");
    PAGES.iter().find_map(|page| {
        let (_, section) = page.split_at_checked(page.find(&heading)? + 1)?;
        // The empty line before the next section belongs to neither.
        Some(section.find(&format!("\n{HEADING}")).map_or(section, |end| &section[..=end]))
    })
}

/// What a section says about what to do.
pub(super) fn remedy(section: &'static str) -> Option<&'static str> {
    section.split_once(REMEDY).map(|(_, remedy)| remedy.trim())
}
