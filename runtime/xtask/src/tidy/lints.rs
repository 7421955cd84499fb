//! The clippy files of the pure crates. Clippy reads only the nearest `clippy.toml`, so theirs repeat the
//! root's and add the bans of clock, randomness and threads.

use super::PURE;
use crate::files;
use std::path::Path;

/// What a pure crate must ban.
const BANS: &[&str] = &[
    "std::time::SystemTime::now",
    "std::time::Instant::now",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "std::hash::RandomState::new",
    "std::thread::spawn",
];

/// Every pure crate has a clippy file with all that the root's has, and the bans.
#[must_use]
pub fn clippy_files(root: &Path) -> Vec<String> {
    let common = match files::read(root, "clippy.toml") {
        Ok(text) => text,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    let paths = PURE.iter().map(|name| format!("runtime/{name}/clippy.toml")).collect();
    for (path, text) in files::read_all(root, paths, &mut problems) {
        problems.extend(lacking(&path, &text, &common));
    }
    problems
}

fn lacking(path: &str, text: &str, common: &str) -> Vec<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let settings = common.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let unsaid = settings.filter(|setting| !lines().any(|line| line == *setting));
    let unbanned = BANS.iter().filter(|ban| !lines().any(|line| line.contains(&format!("\"{ban}\""))));
    let not_repeated = unsaid.map(|setting| format!("{path}: repeat the root's `{setting}`"));
    not_repeated.chain(unbanned.map(|ban| format!("{path}: ban {ban}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::{BANS, lacking};

    #[test]
    fn what_is_lacking_is_named() {
        let common = "# why\nallow-x = true\nlist = [\n    { path = \"a\" },\n]\n";
        let bans: String = BANS.iter().map(|ban| format!("    {{ path = \"{ban}\" }},\n")).collect();
        let good = format!("allow-x = true\nlist = [\n    {{ path = \"a\" }},\n{bans}]\n");
        assert!(lacking("c", &good, common).is_empty());
        assert_eq!(lacking("c", &good.replace("allow-x = true\n", ""), common).len(), 1);
        assert_eq!(lacking("c", &good.replace("{ path = \"a\" },", "# { path = \"a\" },"), common).len(), 1);
        let without_clock = good.replace("Instant::now", "Instant::later");
        assert_eq!(lacking("c", &without_clock, common), ["c: ban std::time::Instant::now"]);
    }
}
