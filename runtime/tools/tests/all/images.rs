//! Images that are downloaded: by https, from public hosts, within bounds.

use crate::kit::{Authority, Net, Server, redirect, text};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::image::MAX_IMAGE_BYTES;
use redflow_contract::transcript::ImageType;
use redflow_ports::Adapters;
use std::sync::Arc;

const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0";

fn body(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}connection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// What the server answers for each path.
fn respond(path: &str) -> Vec<u8> {
    let path = path.split('?').next().unwrap_or_default();
    let mut bomb = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bomb.extend([0, 1, 0, 0, 0, 1, 0, 0]);
    match path {
        "/a.gif" => body("content-type: image/gif\r\ncontent-length: 13\r\n", GIF),
        "/untyped" => body("content-type: application/octet-stream\r\n", GIF),
        "/wrong.png" => body("content-type: image/png\r\n", GIF),
        "/page" => text(200, "content-type: text/html\r\n", "<html>"),
        "/bomb.png" => body("content-type: image/png\r\n", &bomb),
        // More than the bound, without a length.
        "/endless" => body("content-type: image/gif\r\n", &[GIF, &vec![0; 2 * MAX_IMAGE_BYTES]].concat()),
        "/huge" => body("content-type: image/gif\r\ncontent-length: 52428800\r\n", GIF),
        "/moved" => redirect(302, "/a.gif"),
        "/inside" => redirect(302, "https://169.254.169.254/latest"),
        "/open" => redirect(302, "http://images.example.org/a.gif"),
        "/loop" => redirect(302, "/loop"),
        _ => text(404, "", "no"),
    }
}

struct Images {
    net: Net,
    server: Server,
}

async fn images() -> Images {
    let authority = Authority::new();
    let server = Server::start_tls(&authority, "images.example.org", |request| respond(&request.path)).await;
    let net = Net::default().host("images.example.org", 443, &server).trust(&authority);
    Images { net, server }
}

async fn fetch(net: &Net, url: &str) -> Result<(ImageType, Arc<str>), String> {
    let mut adapters = Adapters::default();
    redflow_tools::register(&mut adapters, net.settings());
    let image = adapters.images.unwrap().fetch(url).await;
    image.map(|image| (image.mime, image.data)).map_err(|failure| {
        assert_eq!(failure.code, RunErrorCode::ImageInvalid);
        failure.message
    })
}

#[tokio::test]
async fn downloads_only_what_is_allowed() {
    let Images { net, server } = &images().await;
    let get = |path: &str| format!("https://images.example.org{path}?sig=secret-of-the-address");
    for path in ["/a.gif", "/untyped", "/moved"] {
        let image = fetch(net, &get(path)).await;
        assert_eq!(image, Ok((ImageType::Gif, "R0lGODlhAQABAIAAAA==".into())), "{path}");
    }
    assert_eq!(server.seen()[0].headers["accept"], "image/png, image/jpeg, image/gif, image/webp");
    let refused = [
        ("/wrong.png", "has the media type image/png, but its bytes are GIF; correct one of them"),
        ("/page", "is no PNG, JPEG, GIF or WebP file; convert it to one of these formats"),
        (
            "/bomb.png",
            "has 65536 × 65536 pixels; at most 40 million, and 16384 on each side, are allowed: make it smaller \
             before you send it",
        ),
        ("/endless", "has more than 3 MiB; make it smaller before you send it"),
        ("/huge", "has more than 3 MiB; make it smaller before you send it"),
        ("/missing", "cannot be downloaded: the server answered with status 404"),
    ];
    for (path, problem) in refused {
        let failure = fetch(net, &get(path)).await.unwrap_err();
        assert_eq!(failure, format!("The image of images.example.org {problem}."), "{path}");
    }
    for (path, rule) in [("/inside", "address"), ("/open", "redirect"), ("/loop", "redirect")] {
        let failure = fetch(net, &get(path)).await.unwrap_err();
        assert!(failure.contains(&format!("the rule `{rule}`")), "{path}: {failure}");
        assert!(!failure.contains("secret-of-the-address"), "{failure}");
    }
}

#[tokio::test]
async fn refuses_other_schemes_and_private_addresses_before_it_connects() {
    let Images { net, .. } = &images().await;
    let plain = fetch(net, "http://images.example.org/a.gif?sig=secret").await.unwrap_err();
    let problem = "has an address that begins with http://; only https:// is allowed";
    assert_eq!(plain, format!("The image of images.example.org {problem}."));
    for url in [
        "https://127.0.0.1/a.png?k=secret",
        "https://192.168.1.7/a.png",
        "https://[::1]/",
        "https://localhost/",
    ] {
        let failure = fetch(net, url).await.unwrap_err();
        let start = "The image of an address cannot be downloaded: the request is refused by the rule ";
        assert!(failure.starts_with(start) && !failure.contains("secret"), "{failure}");
    }
    assert!(fetch(net, "ftp://images.example.org/").await.is_err());
    assert!(net.verdicts.0.lock().unwrap().iter().any(|verdict| verdict == "address"));
}
