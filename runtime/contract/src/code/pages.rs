//! The documentation pages of the codes. Codes of one family share a page, with a section for each code.

/// The pages of `docs/codes`.
pub(super) const PAGES: [&str; 19] = [
    include_str!("../../../../docs/codes/access.md"),
    include_str!("../../../../docs/codes/answers.md"),
    include_str!("../../../../docs/codes/archive.md"),
    include_str!("../../../../docs/codes/credentials.md"),
    include_str!("../../../../docs/codes/data-directory.md"),
    include_str!("../../../../docs/codes/edges.md"),
    include_str!("../../../../docs/codes/egress.md"),
    include_str!("../../../../docs/codes/events.md"),
    include_str!("../../../../docs/codes/flow-files.md"),
    include_str!("../../../../docs/codes/mcp.md"),
    include_str!("../../../../docs/codes/memory.md"),
    include_str!("../../../../docs/codes/models.md"),
    include_str!("../../../../docs/codes/node-red.md"),
    include_str!("../../../../docs/codes/properties.md"),
    include_str!("../../../../docs/codes/requests.md"),
    include_str!("../../../../docs/codes/runs.md"),
    include_str!("../../../../docs/codes/sidecar.md"),
    include_str!("../../../../docs/codes/tool-calls.md"),
    include_str!("../../../../docs/codes/tools.md"),
];

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
