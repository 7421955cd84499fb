#![cfg(unix)]

use super::{Source, fetch, find};
use pretty_assertions::assert_eq;
use redflow_egress::{Egress, EgressPolicy};
use std::os::unix::fs::symlink;
use std::path::Path;

async fn text(source: &Source) -> Result<String, String> {
    let fetched =
        fetch(source, &Egress::new(EgressPolicy::default())).await.map_err(|error| error.message)?;
    Ok(String::from_utf8(fetched.bytes).unwrap())
}

/// A folder with `docs/a.md` and `docs/sub/b.md`, and a file beside `docs`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("docs/a.md", "a"), ("docs/sub/b.md", "b"), ("secret/b.md", "secret")] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn found(path: &Path) -> Vec<Source> {
    find(&[path.to_str().unwrap().to_owned()]).unwrap().documents
}

#[tokio::test]
async fn a_file_that_became_a_link_is_not_followed() {
    let folder = folder();
    let (docs, secret) = (folder.path().join("docs"), folder.path().join("secret"));
    let documents = found(&docs);
    assert_eq!((text(&documents[0]).await, text(&documents[1]).await), (Ok("a".into()), Ok("b".into())));
    // Somebody puts links there, after the folder was listed: in place of a file, and of a folder.
    std::fs::remove_file(docs.join("a.md")).unwrap();
    symlink(secret.join("b.md"), docs.join("a.md")).unwrap();
    std::fs::remove_dir_all(docs.join("sub")).unwrap();
    symlink(&secret, docs.join("sub")).unwrap();
    for document in &documents {
        let problem = text(document).await.unwrap_err();
        assert!(problem.contains("it cannot be read"), "{problem}");
    }
    // A path that the user names may be a link, or have one.
    let link = folder.path().join("link.md");
    symlink(secret.join("b.md"), &link).unwrap();
    assert_eq!(text(&found(&link)[0]).await, Ok("secret".into()));
    assert_eq!(text(&found(&docs.join("sub"))[0]).await, Ok("secret".into()));
}

#[tokio::test]
async fn what_is_no_file_any_more_is_refused_at_once() {
    let folder = folder();
    let docs = folder.path().join("docs");
    let documents = found(&docs);
    std::fs::remove_file(docs.join("a.md")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(docs.join("a.md")).status().unwrap().success());
    assert_eq!(text(&documents[0]).await, Err("`a.md`: it is not a file any more.".to_owned()));
}

#[test]
fn names_lose_what_cannot_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a\u{202e}b\u{200b}.md"), "x").unwrap();
    assert_eq!(found(folder.path())[0].name, "ab.md");
}
