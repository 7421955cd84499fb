//! The place on this machine to which the issuer sends the browser after a sign-in.
//!
//! Reads one bounded request head for each connection, and answers with a fixed page. It repeats nothing that a browser
//! sends.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The path of the way back.
const PATH: &str = "/oauth/callback";

/// The most bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How long a connection has to send its request, and to take its answer. The next one waits meanwhile.
const REQUEST_TIME: Duration = Duration::from_secs(5);

pub(super) struct CallbackListener {
    listener: TcpListener,
    redirect: String,
}

/// The texts of the page.
#[derive(Debug, Clone, Copy)]
pub(super) enum PageText {
    SignedIn,
    Failed,
    NotHere,
}

/// A browser that waits for its page.
pub(super) struct WaitingPage(TcpStream);

impl CallbackListener {
    /// Listens at a free port, for this machine alone.
    pub(super) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let redirect = format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port());
        Ok(Self { listener, redirect })
    }

    /// The address that the issuer sends the browser to.
    pub(super) fn redirect(&self) -> &str {
        &self.redirect
    }

    /// Waits for the browser. Gives the whole address that it asked for. Other requests get an answer, and are ignored.
    pub(super) async fn next(&self) -> (String, WaitingPage) {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                // Too many files are open. Accepting at once would fail again.
                tokio::time::sleep(REQUEST_TIME).await;
                continue;
            };
            let head = tokio::time::timeout(REQUEST_TIME, read_head(&mut stream)).await;
            let Ok(Some(head)) = head else { continue };
            let page = WaitingPage(stream);
            match target(&head)
                .and_then(|target| target.strip_prefix(PATH))
                .filter(|rest| rest.starts_with('?'))
            {
                Some(query) => return (format!("{}{query}", self.redirect), page),
                None => page.send(PageText::NotHere).await,
            }
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() >= MAX_HEAD_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    Some(head)
}

/// The target of a GET request.
fn target(head: &[u8]) -> Option<&str> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = str::from_utf8(line).ok()?.split(' ');
    let target = words.next().filter(|method| *method == "GET").and_then(|_| words.next())?;
    (words.next() == Some("HTTP/1.1") && target.is_ascii() && !target.contains(char::is_control))
        .then_some(target)
}

impl WaitingPage {
    /// A browser that has gone misses nothing: the command prints the outcome too.
    pub(super) async fn send(mut self, text: PageText) {
        let answer = format_page(text);
        let _ = tokio::time::timeout(REQUEST_TIME, async {
            self.0.write_all(answer.as_bytes()).await?;
            self.0.shutdown().await
        })
        .await;
    }
}

fn format_page(text: PageText) -> String {
    let (status, text) = match text {
        PageText::SignedIn => ("200 OK", "You are signed in. You can close this page."),
        PageText::Failed => ("400 Bad Request", "The sign-in failed. The terminal says why."),
        PageText::NotHere => ("404 Not Found", "There is nothing here."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>Redflow</title><p>{text}</p>\n");
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-security-policy: default-src 'none'\r\n\
         referrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{page}",
        page.len()
    )
}

#[cfg(test)]
mod tests {
    use super::{CallbackListener, MAX_HEAD_BYTES, PageText, target};
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    #[test]
    fn only_a_get_has_a_target() {
        assert_eq!(
            target(b"GET /oauth/callback?code=a HTTP/1.1\r\nhost: x\r\n\r\n"),
            Some("/oauth/callback?code=a")
        );
        for other in
            ["POST / HTTP/1.1\r\n", "GET /\r\n", "GET  / HTTP/1.1\r\n", "GET /é HTTP/1.1\r\n", "", "\r\n"]
        {
            assert_eq!(target(other.as_bytes()), None, "{other}");
        }
    }

    fn ask(port: u16, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        // A request that is too long is not read to its end.
        let _ = stream.write_all(request);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn the_browser_comes_back_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = CallbackListener::bind().await.unwrap();
            let redirect = listener.redirect().to_owned();
            let port =
                redirect.trim_start_matches("http://127.0.0.1:").split('/').next().unwrap().parse().unwrap();
            let browser = std::thread::spawn(move || {
                let other = ask(port, b"GET /favicon.ico HTTP/1.1\r\n\r\n");
                let without_query = ask(port, b"GET /oauth/callback HTTP/1.1\r\n\r\n");
                let long = ask(port, &vec![b'x'; MAX_HEAD_BYTES + 1]);
                let back = ask(port, b"GET /oauth/callback?code=a&state=b HTTP/1.1\r\nhost: x\r\n\r\n");
                (other, without_query, long, back)
            });
            let (callback, page) = listener.next().await;
            assert_eq!(callback, format!("{redirect}?code=a&state=b"));
            page.send(PageText::SignedIn).await;
            let (other, without_query, long, back) = browser.join().unwrap();
            assert!(
                other.starts_with("HTTP/1.1 404 ") && without_query.starts_with("HTTP/1.1 404 "),
                "{other}"
            );
            assert_eq!(long, "");
            assert!(back.starts_with("HTTP/1.1 200 ") && back.contains("You are signed in"), "{back}");
        });
    }
}
