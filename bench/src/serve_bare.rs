//! The raw limit of the section `serve`: tokio-tungstenite on a listener and nothing else, on one thread as the
//! sidecar has it, in a process of its own.

use crate::Failure;
use crate::live_provider::allow_files;
use crate::probe::{tell, wait_for_the_end};
use crate::world::runtime;
use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config};

/// The first argument of a benchmark that was started to serve.
pub(crate) const PROBE: &str = "--probe-bare";

/// The second one.
pub(crate) const ECHO: &str = "echo";
pub(crate) const ECHO_WIDE: &str = "echo-wide";
pub(crate) const FAN_OUT: &str = "fan-out";

/// What is read at once. The library writes zeros over all of it before each reading, and its own choice is 128 KiB.
const READ_BYTES: usize = 4096;

/// Texts on their way to everybody.
const MAX_WAITING: usize = 4096;

/// What such a process does.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let does = match args {
        [does] if does == ECHO => Does::Echo,
        [does] if does == ECHO_WIDE => Does::EchoWide,
        [does] if does == FAN_OUT => Does::FanOut,
        _ => return Err("a bare server echoes or fans out".into()),
    };
    allow_files();
    runtime()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        tell(&json!({"port": listener.local_addr()?.port()}))?;
        let end = tokio::task::spawn_blocking(wait_for_the_end);
        tokio::select! {
            served = serve(listener, does) => Ok(served?),
            _ = end => Ok(()),
        }
    })
}

/// What a bare server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    Echo,
    /// With the buffers that the library chooses.
    EchoWide,
    FanOut,
}

/// Serves whoever comes.
pub(crate) async fn serve(listener: TcpListener, does: Does) -> std::io::Result<()> {
    let all = broadcast::Sender::new(MAX_WAITING);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A client that goes away is no failure of anything.
        match does {
            Does::Echo => drop(tokio::spawn(echo(stream, narrow()))),
            Does::EchoWide => drop(tokio::spawn(echo(stream, WebSocketConfig::default()))),
            Does::FanOut => drop(tokio::spawn(fan_out(stream, all.clone()))),
        }
    }
}

fn narrow() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(READ_BYTES)
}

async fn echo(stream: TcpStream, config: WebSocketConfig) -> Result<(), Error> {
    let mut socket = accept_async_with_config(stream, Some(config)).await?;
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() {
            socket.send(message).await?;
        }
    }
    Ok(())
}

/// Who says something that begins with `{"type":"subscribe"` gets it back, and then what all others say.
async fn fan_out(stream: TcpStream, all: broadcast::Sender<Utf8Bytes>) -> Result<(), Error> {
    let mut socket = accept_async_with_config(stream, Some(narrow())).await?;
    while let Some(message) = socket.next().await {
        match message? {
            Message::Text(text) if text.starts_with(r#"{"type":"subscribe""#) => {
                let texts = all.subscribe();
                socket.send(Message::Text(text)).await?;
                return follow(socket, texts).await;
            }
            // There may be nobody.
            Message::Text(text) => drop(all.send(text)),
            _ => {}
        }
    }
    Ok(())
}

async fn follow(
    mut socket: WebSocketStream<TcpStream>,
    mut texts: broadcast::Receiver<Utf8Bytes>,
) -> Result<(), Error> {
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(message) => drop(message?),
                None => return Ok(()),
            },
            text = texts.recv() => {
                let Ok(text) = text else { return Ok(()) };
                socket.feed(Message::Text(text)).await?;
                while let Ok(text) = texts.try_recv() {
                    socket.feed(Message::Text(text)).await?;
                }
                socket.flush().await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Does, serve};
    use crate::serve_client::{SUBSCRIBE, Socket};
    use crate::world::runtime;
    use tokio::net::TcpListener;

    #[test]
    fn an_echo_comes_back_and_a_fan_out_goes_to_who_subscribed() {
        runtime().unwrap().block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let addr = listener.local_addr().unwrap();
            tokio::spawn(serve(listener, Does::Echo));
            let mut socket = Socket::open(addr).await.unwrap();
            socket.say("a").await.unwrap();
            assert_eq!(socket.hear().await.unwrap().as_str(), "a");

            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let addr = listener.local_addr().unwrap();
            tokio::spawn(serve(listener, Does::FanOut));
            let mut readers = [Socket::open(addr).await.unwrap(), Socket::open(addr).await.unwrap()];
            for reader in &mut readers {
                reader.say(SUBSCRIBE).await.unwrap();
                assert_eq!(reader.hear().await.unwrap().as_str(), SUBSCRIBE);
            }
            let mut writer = Socket::open(addr).await.unwrap();
            writer.say_all(&["b".into(), "c".into()]).await.unwrap();
            for reader in &mut readers {
                assert_eq!(reader.hear().await.unwrap().as_str(), "b");
                assert_eq!(reader.hear().await.unwrap().as_str(), "c");
            }
        });
    }
}
