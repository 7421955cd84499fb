//! Checks the clippy files of the pure crates. Clippy reads only the nearest `clippy.toml`, so they repeat
//! the root's file and add bans of the clock, randomness and threads.

use super::check_paths;
use redflow_xtask::files;
use std::path::Path;

/// The calls that a pure crate must ban.
const BANS: &[&str] = &[
    "std::time::SystemTime::now",
    "std::time::Instant::now",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
    "std::hash::RandomState::new",
    "std::thread::spawn",
];

/// Every pure crate has a clippy file with the root's settings and the bans.
pub(crate) fn pure_crates(root: &Path) -> Vec<String> {
    let common = match files::read(root, "clippy.toml") {
        Ok(text) => text,
        Err(problem) => return vec![problem],
    };
    let paths = super::pure_crates(root).iter().map(|name| format!("runtime/{name}/clippy.toml")).collect();
    check_paths(root, paths, |path, text| missing_settings(path, text, &common))
}

fn missing_settings(path: &str, text: &str, common: &str) -> Vec<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let settings = common.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let missing = settings.filter(|setting| !lines().any(|line| line == *setting));
    let unbanned = BANS.iter().filter(|ban| !lines().any(|line| line.contains(&format!("\"{ban}\""))));
    let not_repeated = missing.map(|setting| format!("{path}: repeat the root's `{setting}`"));
    not_repeated.chain(unbanned.map(|ban| format!("{path}: ban {ban}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::{BANS, missing_settings};

    #[test]
    fn names_what_is_missing() {
        let common = "# why\nallow-x = true\nlist = [\n    { path = \"a\" },\n]\n";
        let bans: String = BANS.iter().map(|ban| format!("    {{ path = \"{ban}\" }},\n")).collect();
        let good = format!("allow-x = true\nlist = [\n    {{ path = \"a\" }},\n{bans}]\n");
        let count = |text: &str| missing_settings("c", text, common).len();
        assert_eq!(count(&good), 0);
        assert_eq!(count(&good.replace("allow-x = true\n", "")), 1);
        assert_eq!(count(&good.replace("{ path = \"a\" },", "# { path = \"a\" },")), 1);
        let without_clock = good.replace("Instant::now", "Instant::later");
        assert_eq!(missing_settings("c", &without_clock, common), ["c: ban std::time::Instant::now"]);
    }
}
