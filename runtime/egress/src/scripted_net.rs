//! A network for tests: names have the answers of a script, and addresses lead to ports of this machine.

use crate::net::{Dial, Dialled, NetFuture, Resolve};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use tokio::net::TcpStream;

/// A scripted resolver and dialler. What the script does not name fails, so a test never reaches the network.
#[derive(Debug, Default)]
pub struct ScriptedNet {
    names: Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>,
    ports: HashMap<SocketAddr, u16>,
    lookups: Mutex<Vec<String>>,
    dials: Mutex<Vec<SocketAddr>>,
}

impl ScriptedNet {
    /// A network without names and addresses.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the answer to the next lookup of a name. The last answer is repeated.
    #[must_use]
    pub fn answer(self, name: &str, addresses: &[IpAddr]) -> Self {
        lock(&self.names).entry(name.to_owned()).or_default().push_back(addresses.to_vec());
        self
    }

    /// Lets connections to an address go to a port of this machine.
    #[must_use]
    pub fn lead(mut self, address: SocketAddr, port: u16) -> Self {
        self.ports.insert(address, port);
        self
    }

    /// The names that were looked up.
    #[must_use]
    pub fn lookups(&self) -> Vec<String> {
        lock(&self.lookups).clone()
    }

    /// The addresses that were dialled.
    #[must_use]
    pub fn dials(&self) -> Vec<SocketAddr> {
        lock(&self.dials).clone()
    }

    /// Reads a script: `{"names": {"NAME": [["ADDRESS"]]}, "addresses": {"ADDRESS:PORT": PORT}}`. A name has a list of
    /// answers, one for each lookup.
    ///
    /// # Errors
    /// A sentence, when it cannot be read.
    #[cfg(feature = "failpoints")]
    pub fn parse(script: &str) -> Result<Self, String> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Script {
            #[serde(default)]
            names: HashMap<String, VecDeque<Vec<IpAddr>>>,
            #[serde(default)]
            addresses: HashMap<SocketAddr, u16>,
        }
        let script: Script = serde_json::from_str(script).map_err(|error| error.to_string())?;
        Ok(Self { names: Mutex::new(script.names), ports: script.addresses, ..Self::default() })
    }

    /// The network of the file that `REDFLOW_TEST_NET` names. A file that cannot be read is a network without names.
    #[cfg(feature = "failpoints")]
    pub(crate) fn of_environment() -> Option<Self> {
        let path = std::env::var_os("REDFLOW_TEST_NET")?;
        let script = std::fs::read_to_string(path).unwrap_or_default();
        Some(Self::parse(&script).unwrap_or_default())
    }
}

impl Resolve for ScriptedNet {
    fn resolve<'a>(&'a self, name: &'a str) -> NetFuture<'a, Vec<IpAddr>> {
        lock(&self.lookups).push(name.to_owned());
        let mut names = lock(&self.names);
        let answers = names.get_mut(name);
        let answer =
            answers.and_then(
                |answers| {
                    if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
                },
            );
        Box::pin(async move { answer.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

impl Dial for ScriptedNet {
    fn dial(&self, address: SocketAddr) -> NetFuture<'_, Dialled> {
        lock(&self.dials).push(address);
        let port = self.ports.get(&address).copied();
        Box::pin(async move {
            let port = port.ok_or(io::ErrorKind::ConnectionRefused)?;
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Dialled { stream: Box::new(stream), peer: address })
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
