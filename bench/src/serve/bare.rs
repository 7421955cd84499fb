//! The raw limit of the section `serve`: plain tokio-tungstenite on one thread, as in the sidecar, in its own process.

use crate::probe::{print_figures, wait_for_end};
use crate::world::runtime;
use crate::{Failure, open_files};
use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config};

/// The first argument of a process that is a bare server.
pub(crate) const PROBE: &str = "--probe-bare";

/// The second argument.
pub(crate) const ECHO: &str = "echo";
pub(crate) const ECHO_WIDE: &str = "echo-wide";
pub(crate) const FAN_OUT: &str = "fan-out";

/// The read buffer. The library fills all of it with zeros before each read, and its own default is 128 KiB.
const READ_BYTES: usize = 4096;

/// Texts that wait for subscribers.
const MAX_WAITING: usize = 4096;

/// The work of such a process.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let mode = match args {
        [mode] if mode == ECHO => BareMode::Echo,
        [mode] if mode == ECHO_WIDE => BareMode::EchoWide,
        [mode] if mode == FAN_OUT => BareMode::FanOut,
        _ => return Err("a bare server echoes or fans out".into()),
    };
    open_files::raise_limit();
    runtime()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        print_figures(&json!({"port": listener.local_addr()?.port()}))?;
        let end = tokio::task::spawn_blocking(wait_for_end);
        tokio::select! {
            served = serve(listener, mode) => Ok(served?),
            _ = end => Ok(()),
        }
    })
}

/// The behaviour of a bare server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BareMode {
    Echo,
    /// With the default buffers of the library.
    EchoWide,
    FanOut,
}

/// Serves all clients.
pub(crate) async fn serve(listener: TcpListener, mode: BareMode) -> std::io::Result<()> {
    let all = broadcast::Sender::new(MAX_WAITING);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A closed connection is no failure.
        match mode {
            BareMode::Echo => drop(tokio::spawn(echo(stream, narrow()))),
            BareMode::EchoWide => drop(tokio::spawn(echo(stream, WebSocketConfig::default()))),
            BareMode::FanOut => drop(tokio::spawn(fan_out(stream, all.clone()))),
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

/// A client that sends `{"type":"subscribe"…` gets it back, and then the texts of all others.
async fn fan_out(stream: TcpStream, all: broadcast::Sender<Utf8Bytes>) -> Result<(), Error> {
    let mut socket = accept_async_with_config(stream, Some(narrow())).await?;
    while let Some(message) = socket.next().await {
        match message? {
            Message::Text(text) if text.starts_with(r#"{"type":"subscribe""#) => {
                let texts = all.subscribe();
                socket.send(Message::Text(text)).await?;
                return forward(socket, texts).await;
            }
            // There may be no subscriber.
            Message::Text(text) => drop(all.send(text)),
            _ => {}
        }
    }
    Ok(())
}

async fn forward(
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
    use super::{BareMode, serve};
    use crate::serve::client::{SUBSCRIBE, Socket};
    use crate::world::runtime;
    use tokio::net::TcpListener;

    #[test]
    fn echoes_to_the_sender_and_fans_out_to_subscribers() {
        runtime().unwrap().block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let addr = listener.local_addr().unwrap();
            tokio::spawn(serve(listener, BareMode::Echo));
            let mut socket = Socket::open(addr).await.unwrap();
            socket.send("a").await.unwrap();
            assert_eq!(socket.receive().await.unwrap().as_str(), "a");

            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let addr = listener.local_addr().unwrap();
            tokio::spawn(serve(listener, BareMode::FanOut));
            let mut readers = [Socket::open(addr).await.unwrap(), Socket::open(addr).await.unwrap()];
            for reader in &mut readers {
                reader.send(SUBSCRIBE).await.unwrap();
                assert_eq!(reader.receive().await.unwrap().as_str(), SUBSCRIBE);
            }
            let mut writer = Socket::open(addr).await.unwrap();
            writer.send_all(&["b".into(), "c".into()]).await.unwrap();
            for reader in &mut readers {
                assert_eq!(reader.receive().await.unwrap().as_str(), "b");
                assert_eq!(reader.receive().await.unwrap().as_str(), "c");
            }
        });
    }
}
