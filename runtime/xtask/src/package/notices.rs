//! The licences of what is linked into `redflow`, which have to go with it. Reads the sources of the crates as cargo has
//! downloaded them; judges no licence.

use crate::process;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// What the names of files with licences begin with, in any case.
const BEGINNINGS: &[&str] = &["licence", "license", "copying", "copyright", "notice", "unlicense"];

/// Endings of files that are no text of a licence, whatever their name.
const NO_TEXT: &[&str] = &["rs", "toml", "yml", "yaml", "json", "py", "sh"];

/// How deep in a crate they are looked for, and how large they may be.
const MOST_FOLDERS: usize = 4;
const MOST_BYTES: u64 = 200_000;

/// Where a Rust toolchain has the notices of its own library, from its top.
const OF_THE_LIBRARY: &str = "share/doc/rust/COPYRIGHT-library.html";

/// A crate that is linked in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Linked {
    name: String,
    version: String,
}

/// The notices of all crates that are linked in for a platform.
///
/// # Errors
/// If cargo does not tell, or a text cannot be read.
pub(crate) fn of_crates(root: &Path, triple: &str) -> Result<String, String> {
    let tree = asked(
        root,
        &["tree", "--package", "redflow-cli", "--edges", "normal", "--prefix", "none", "--target", triple],
    )?;
    let metadata = asked(root, &["metadata", "--format-version", "1"])?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let linked = linked(&tree);
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let known = Linked { name: text("name").to_owned(), version: text("version").to_owned() };
        // Our own have no source.
        if !linked.contains(&known) || package["source"].is_null() {
            continue;
        }
        let title = format!("{} {}", known.name, known.version);
        let authors: Vec<&str> =
            package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let by = if authors.is_empty() { String::new() } else { format!("; {}", authors.join(", ")) };
        let _ = writeln!(list, "  {title}: {}{by}; {}", text("license"), text("repository"));
        let Some(folder) = Path::new(text("manifest_path")).parent() else { continue };
        for file in licences(folder, 0)? {
            let said = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let said = String::from_utf8_lossy(&said).replace("\r\n", "\n").trim().to_owned();
            texts.entry(said).or_default().insert(title.clone());
        }
    }
    if list.is_empty() {
        return Err("cargo lists nothing that is linked into redflow".to_owned());
    }
    Ok(page(&list, &texts))
}

/// The file with the notices of Rust's own library, which is linked in too.
///
/// # Errors
/// If the toolchain has none.
pub(crate) fn of_the_library(root: &Path) -> Result<PathBuf, String> {
    let top = process::read(process::program(root, "rustc", ["--print", "sysroot"]))?;
    let file = Path::new(top.trim()).join(OF_THE_LIBRARY);
    if file.exists() {
        Ok(file)
    } else {
        Err(format!(
            "{} is not there, and has to go with the program: use a toolchain of rustup",
            file.display()
        ))
    }
}

/// Asks without the network first.
fn asked(root: &Path, args: &[&str]) -> Result<String, String> {
    let ask = |more: &[&str]| {
        let mut command = process::cargo(root, []);
        command.args(args).arg("--locked").args(more);
        process::read(command)
    };
    ask(&["--offline"]).or_else(|_| ask(&[]))
}

fn linked(tree: &str) -> BTreeSet<Linked> {
    tree.lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some(Linked { name: name.to_owned(), version: version.to_owned() })
        })
        .collect()
}

/// The files with licences in a crate.
fn licences(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, String> {
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(told)? {
        let entry = entry.map_err(told)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let data = entry.metadata().map_err(told)?;
        if data.is_dir() && depth < MOST_FOLDERS && !name.starts_with('.') {
            found.extend(licences(&entry.path(), depth + 1)?);
        } else if data.is_file() && data.len() <= MOST_BYTES && is_licence(&name) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn is_licence(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && !NO_TEXT.contains(&ending)
}

fn page(list: &str, texts: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut lines: Vec<&str> = list.lines().collect();
    lines.sort_unstable();
    let mut out = format!(
        "These packages are linked into redflow. SQLite, which is too, is in the public domain.\n\n{}\n",
        lines.join("\n")
    );
    for (text, titles) in texts {
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let _ = write!(out, "\n{}\n{}\n\n{text}\n", "=".repeat(80), titles.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Linked, MOST_BYTES, is_licence, licences, linked, of_crates, page};
    use crate::package::toolchain;
    use crate::root;
    use std::collections::BTreeMap;
    use std::fs;

    #[test]
    fn what_is_linked_in_is_read_once() {
        let tree = "redflow-cli v0.1.0 (/somewhere)\nbytes v1.2.3\nbytes v1.2.3 (*)\nserde_derive v1.0.0 (proc-macro)\n";
        let named = |name: &str, version: &str| Linked { name: name.into(), version: version.into() };
        let wanted = [named("bytes", "1.2.3"), named("redflow-cli", "0.1.0"), named("serde_derive", "1.0.0")];
        assert_eq!(linked(tree), wanted.into());
    }

    #[test]
    fn licences_are_found_by_their_names_and_within_bounds() {
        for name in [
            "license",
            "licence.md",
            "license-mit",
            "license.apache-2.0",
            "copying",
            "notice.txt",
            "unlicense",
        ] {
            assert!(is_licence(name), "{name}");
        }
        for name in ["licenses.rs", "copyrights.yml", "readme.md", "sublicense"] {
            assert!(!is_licence(name), "{name}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::create_dir(folder.path().join(".github")).unwrap();
        for name in ["LICENSE-MIT", "a/b/LICENSE", ".github/LICENSE", "lib.rs"] {
            fs::write(folder.path().join(name), "text").unwrap();
        }
        fs::write(folder.path().join("NOTICE"), vec![b'x'; usize::try_from(MOST_BYTES).unwrap() + 1])
            .unwrap();
        let found = licences(folder.path(), 0).unwrap();
        assert_eq!(found, [folder.path().join("LICENSE-MIT"), folder.path().join("a/b/LICENSE")]);
    }

    #[test]
    fn a_text_stands_once_with_all_that_have_it() {
        let titles = ["a 1.0.0".to_owned(), "b 2.0.0".to_owned()];
        let page = page(
            "  b 2.0.0: MIT\n  a 1.0.0: MIT\n",
            &BTreeMap::from([("MIT text".to_owned(), titles.into())]),
        );
        assert!(page.contains("\n  a 1.0.0: MIT\n  b 2.0.0: MIT\n"), "{page}");
        assert!(page.contains("\na 1.0.0, b 2.0.0\n\nMIT text\n"), "{page}");
    }

    #[test]
    fn the_crates_of_redflow_have_their_notices() {
        let notices = of_crates(&root(), &toolchain::host(&root()).unwrap()).unwrap();
        for words in ["  tokio 1.", "  ring 0.", "BoringSSL", "Permission is hereby granted", "SQLite"] {
            assert!(notices.contains(words), "{words}");
        }
        // Nothing of ours, nothing that only tests use, and no path of this machine.
        for words in ["redflow-cli", "  proptest ", "  pretty_assertions ", env!("CARGO_MANIFEST_DIR")] {
            assert!(!notices.contains(words), "{words}");
        }
    }
}
