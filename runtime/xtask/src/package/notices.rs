//! Collects the licence texts of the code that `redflow` links and that its console has, because each package must contain them. Reads
//! the crates that cargo has downloaded. Judges no licence: `tests/tidy/packages.rs` does.

use crate::console::BundledPackage;
use crate::process;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of the names of files with licences, in lower case.
const BEGINNINGS: &[&str] = &["licence", "license", "copying", "copyright", "notice", "unlicense"];

/// Endings of files that contain no licence text, whatever their name.
const NO_TEXT: &[&str] = &["rs", "toml", "yml", "yaml", "json", "py", "sh"];

/// The search for licences goes no deeper into a crate, and ignores larger files.
const MAX_FOLDERS: usize = 4;
const MAX_BYTES: u64 = 200_000;

/// The notices of the standard library, from the top folder of a Rust toolchain.
const LIBRARY_NOTICES: &str = "share/doc/rust/COPYRIGHT-library.html";

/// The text with the notices of all crates that `redflow` links on a platform, and of the packages in its console.
pub(crate) fn third_party(root: &Path, triple: &str, bundled: &[BundledPackage]) -> Result<String, String> {
    let tree =
        ["tree", "--package", "redflow-cli", "--edges", "normal", "--prefix", "none", "--target", triple];
    let tree = process::read_cargo(root, &tree)?;
    let metadata =
        process::read_cargo(root, &["metadata", "--format-version", "1", "--filter-platform", triple])?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let linked = linked_crates(&tree);
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let title = format!("{} {}", text("name"), text("version"));
        // Our own crates have no source.
        if !linked.contains(&title) || package["source"].is_null() {
            continue;
        }
        let authors: Vec<&str> =
            package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let by = if authors.is_empty() { String::new() } else { format!("; {}", authors.join(", ")) };
        let _ = writeln!(list, "  {title}: {}{by}; {}", text("license"), text("repository"));
        let Some(folder) = Path::new(text("manifest_path")).parent() else { continue };
        add_licences(&mut texts, folder, &title)?;
    }
    if list.is_empty() {
        return Err("cargo lists no crate that redflow links".to_owned());
    }
    for package in bundled {
        let _ = writeln!(list, "  {}: {}; {}", package.title, package.licence, package.repository);
        if add_licences(&mut texts, &package.folder, &package.title)? == 0 {
            return Err(format!("{} of the console has no licence text", package.title));
        }
    }
    Ok(page(&list, &texts))
}

/// Adds the licence texts in a folder, and returns how many there are.
fn add_licences(
    texts: &mut BTreeMap<String, BTreeSet<String>>,
    folder: &Path,
    title: &str,
) -> Result<usize, String> {
    let found = licences(folder, 0)?;
    for file in &found {
        let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let licence = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim().to_owned();
        texts.entry(licence).or_default().insert(title.to_owned());
    }
    Ok(found.len())
}

/// The file with the notices of Rust's standard library.
pub(crate) fn library_notices(root: &Path) -> Result<PathBuf, String> {
    let top = process::read(process::program(root, "rustc", ["--print", "sysroot"]))?;
    let file = Path::new(top.trim()).join(LIBRARY_NOTICES);
    let problem =
        || format!("{} is missing, but packages need it: use a toolchain of rustup", file.display());
    if file.exists() { Ok(file) } else { Err(problem()) }
}

/// The crates of a tree, each as `NAME VERSION`.
fn linked_crates(tree: &str) -> BTreeSet<String> {
    let name_and_version = |line: &str| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        Some(format!("{name} {version}"))
    };
    tree.lines().filter_map(name_and_version).collect()
}

/// The files with licences in a crate.
fn licences(folder: &Path, depth: usize) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let data = entry.metadata().map_err(failed)?;
        if data.is_dir() && depth < MAX_FOLDERS && !name.starts_with('.') {
            files.extend(licences(&entry.path(), depth + 1)?);
        } else if data.is_file() && data.len() <= MAX_BYTES && is_licence(&name) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

fn is_licence(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) && !NO_TEXT.contains(&ending)
}

fn page(list: &str, texts: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut lines: Vec<&str> = list.lines().collect();
    lines.sort_unstable();
    let mut out = format!(
        "redflow contains these packages. It also contains SQLite, which is in the public domain.\n\n{}\n",
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
    use super::{MAX_BYTES, is_licence, licences, linked_crates, page, third_party};
    use crate::console::BundledPackage;
    use crate::{process, root};
    use std::collections::BTreeMap;
    use std::fs;

    #[test]
    fn reads_each_linked_crate_once() {
        let tree = "redflow-cli v0.1.0 (/somewhere)\nbytes v1.2.3\nbytes v1.2.3 (*)\n\
                    serde_derive v1.0.0 (proc-macro)\n";
        let wanted = ["bytes 1.2.3", "redflow-cli 0.1.0", "serde_derive 1.0.0"];
        assert!(linked_crates(tree).iter().eq(wanted.iter()), "{:?}", linked_crates(tree));
    }

    #[test]
    fn finds_licences_by_their_names_and_within_limits() {
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
        fs::write(folder.path().join("NOTICE"), vec![b'x'; usize::try_from(MAX_BYTES).unwrap() + 1]).unwrap();
        let files = licences(folder.path(), 0).unwrap();
        assert_eq!(files, [folder.path().join("LICENSE-MIT"), folder.path().join("a/b/LICENSE")]);
    }

    #[test]
    fn lists_each_text_once_with_all_its_crates() {
        let titles = ["a 1.0.0".to_owned(), "b 2.0.0".to_owned()];
        let page = page(
            "  b 2.0.0: MIT\n  a 1.0.0: MIT\n",
            &BTreeMap::from([("MIT text".to_owned(), titles.into())]),
        );
        assert!(page.contains("\n  a 1.0.0: MIT\n  b 2.0.0: MIT\n"), "{page}");
        assert!(page.contains("\na 1.0.0, b 2.0.0\n\nMIT text\n"), "{page}");
    }

    #[test]
    fn contains_the_notices_of_the_crates_of_redflow() {
        let folder = tempfile::tempdir().unwrap();
        let bundled = [BundledPackage {
            title: "preact 11.2.0".to_owned(),
            licence: "MIT".to_owned(),
            repository: "https://a.example".to_owned(),
            folder: folder.path().to_owned(),
        }];
        let host = process::host(&root()).unwrap();
        assert!(third_party(&root(), &host, &bundled).unwrap_err().contains("preact 11.2.0"));
        fs::write(folder.path().join("LICENSE"), "The licence of Preact").unwrap();
        let notices = third_party(&root(), &host, &bundled).unwrap();
        for words in ["  preact 11.2.0: MIT; https://a.example", "preact 11.2.0\n\nThe licence of Preact"] {
            assert!(notices.contains(words), "{words}");
        }
        for words in ["  tokio 1.", "  ring 0.", "BoringSSL", "Permission is hereby granted", "SQLite"] {
            assert!(notices.contains(words), "{words}");
        }
        // No crate of ours, no crate that only tests use, and no path of this machine.
        for words in ["redflow-cli", "  proptest ", "  pretty_assertions ", env!("CARGO_MANIFEST_DIR")] {
            assert!(!notices.contains(words), "{words}");
        }
    }
}
