//! The page at `/` and its files.

use crate::kit::{Setup, TestSidecar, plain_flow};
use pretty_assertions::assert_eq;
use std::path::Path;

const FILES: [(&str, &str, &str); 5] = [
    ("console.js", "let one = 1;", "text/javascript; charset=utf-8"),
    ("console.css", "a { color: red }", "text/css; charset=utf-8"),
    ("icon.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
    ("words.es.json", "{\"home\":\"Inicio\"}", "application/json"),
    ("words.de.json", "{\"home\":\"Start\"}", "application/json"),
];

fn write_console(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let page =
        "<script src=\"console/{digest}/console.js\"></script><link href=\"console/{digest}/icon.svg\">";
    std::fs::write(folder.join("index.html"), page).unwrap();
    for (name, content, _) in FILES {
        std::fs::write(folder.join(name), content).unwrap();
    }
}

/// The page without a token, and the folder of its files.
async fn page(sidecar: &TestSidecar) -> (String, String) {
    let answer = sidecar.request("GET", "/").send().await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                  base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                  trusted-types 'none'";
    assert_eq!(answer.header("content-security-policy"), Some(policy));
    let text = String::from_utf8(answer.body).unwrap();
    let start = text.find("console/").unwrap();
    let folder = text[start..].split('/').take(2).collect::<Vec<_>>().join("/");
    (text, folder)
}

// SECURITY: console-page
#[tokio::test]
async fn the_page_and_its_files_are_open_and_their_addresses_never_change_their_content() {
    let mut setup = Setup::default();
    let folder = setup.dir.path().join("dist");
    write_console(&folder);
    setup.settings.console_folder = Some(folder.clone());
    let sidecar = setup.start(Some(plain_flow())).await;
    let (text, address) = page(&sidecar).await;
    assert!(text.contains(&format!("{address}/icon.svg")) && !text.contains("{digest}"), "{text}");
    for (name, content, kind) in FILES {
        let answer = sidecar.request("GET", &format!("/{address}/{name}")).send().await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{name}");
        assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(
            (answer.header("vary"), answer.header("content-encoding")),
            (Some("Accept-Encoding"), None)
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(
            answer.header("content-security-policy").unwrap().starts_with("default-src 'none'; style-src")
        );
        assert_eq!(answer.body, content.as_bytes());
    }
    for missing in ["index.html", "console.js.map", "..", "%2e%2e", "", "console.js%00"] {
        let answer = sidecar.request("GET", &format!("/{address}/{missing}")).send().await;
        assert!([401, 404].contains(&answer.status), "{missing} {answer:?}");
    }
    // Another console has other addresses.
    std::fs::write(folder.join("words.es.json"), "{}").unwrap();
    let (_, next) = page(&sidecar).await;
    assert_ne!(next, address);
    let old = sidecar.request("GET", &format!("/{address}/console.js")).send().await;
    old.refused(404, "NOT_FOUND");
    assert!(old.json()["message"].as_str().unwrap().contains("updated: reload"));
}

// SECURITY: console-page
#[tokio::test]
async fn a_console_with_a_missing_file_is_not_served() {
    let mut setup = Setup::default();
    let folder = setup.dir.path().join("dist");
    write_console(&folder);
    std::fs::remove_file(folder.join("words.de.json")).unwrap();
    setup.settings.console_folder = Some(folder);
    let sidecar = setup.start(Some(plain_flow())).await;
    let (text, address) = page(&sidecar).await;
    // The small page instead: a form for the token, a table of runs, and how to build the console.
    for part in ["id=\"token\"", "Newest runs", "cargo xtask console", "redflow token --browser"] {
        assert!(text.contains(part), "{part}");
    }
    for name in ["console.js", "console.css"] {
        let request = || sidecar.request("GET", &format!("/{address}/{name}"));
        let plain = request().send().await;
        let compressed = request().header("accept-encoding", "br, gzip").send().await;
        assert_eq!(compressed.header("content-encoding"), Some("gzip"));
        assert!(compressed.body.len() < plain.body.len() && compressed.body.starts_with(&[0x1f, 0x8b]));
        let head = sidecar.request("HEAD", &format!("/{address}/{name}")).send().await;
        assert_eq!((head.status, head.body.len()), (200, 0));
    }
}
