//! The sidecar that runs on this machine with the data directory of a command.

use crate::context::AppContext;
use crate::errors::print_store_error;
use crate::exit::Exit;
use crate::sidecar::{SidecarClient, connect_local, local_address};
use crate::terminal::fail;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use redflow_contract::mcp::McpServerList;
use redflow_store::Driver;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use url::Url;

/// How long a sidecar that starts may take until it listens.
pub(super) const START_TIME: Duration = Duration::from_secs(3);

const PAUSE: Duration = Duration::from_millis(50);

/// How long a sidecar may take to answer the first request. A program that cannot be reached does not answer at all.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// A sidecar that may accept several tokens: one client for each, the likeliest token first.
pub(super) struct RunningSidecar {
    first: SidecarClient,
    others: Vec<SidecarClient>,
}

/// How a sidecar answers to a token.
enum TokenAnswer {
    Accepted,
    Refused,
    /// No sidecar answers.
    None,
}

impl RunningSidecar {
    /// A sidecar that the command line names, with its token.
    pub(super) fn named(sidecar: SidecarClient) -> Self {
        Self { first: sidecar, others: Vec::new() }
    }

    /// The sidecar that uses the data directory now; none if there is none. A process that never listens, such as
    /// `redflow run`, is none either. It waits so long for a driver that does not listen yet.
    pub(super) fn find(context: &AppContext, patience: Duration) -> Result<Option<Self>, Exit> {
        let settings = &context.settings;
        let data = settings.data_dir().map_err(print_store_error)?;
        let Some(address) = wait_for_address(|| Driver::find(&data), patience) else { return Ok(None) };
        let url = Url::parse(&format!("http://{address}")).map_err(|_| {
            fail("the sidecar of the data directory has no usable address: name it with --url URL")
        })?;
        let mut clients = connect_local(&url, settings)?.into_iter();
        Ok(clients.next().map(|first| Self { first, others: clients.collect() }))
    }

    pub(super) fn url(&self) -> &Url {
        self.first.url()
    }

    /// A client with the token that the sidecar accepts. It may start again later, so it need not answer now.
    pub(super) async fn client(self) -> SidecarClient {
        if self.others.is_empty() {
            return self.first;
        }
        let first = self.first.clone();
        self.answering_client().await.unwrap_or(first)
    }

    /// A client with the token that the sidecar accepts; none if no sidecar answers. If it refuses all of them, it says so
    /// to the command.
    pub(super) async fn answering_client(self) -> Option<SidecarClient> {
        for sidecar in std::iter::once(&self.first).chain(&self.others) {
            match try_token(sidecar).await {
                TokenAnswer::Accepted => return Some(sidecar.clone()),
                TokenAnswer::Refused => {}
                TokenAnswer::None => return None,
            }
        }
        Some(self.first)
    }
}

async fn try_token(sidecar: &SidecarClient) -> TokenAnswer {
    let list = sidecar.get::<McpServerList>(&["api", "mcp"], &[]);
    match timeout(ANSWER_TIME, list).await {
        Err(_) => TokenAnswer::None,
        Ok(Err(error)) if error.code == ProblemCode::Api(ApiCode::SidecarUnreachable) => TokenAnswer::None,
        Ok(Err(error)) if error.code == ProblemCode::Api(ApiCode::Unauthorized) => TokenAnswer::Refused,
        Ok(_) => TokenAnswer::Accepted,
    }
}

/// The address of a driver, at which this machine reaches it.
fn wait_for_address(mut find: impl FnMut() -> Driver, patience: Duration) -> Option<SocketAddr> {
    let began = Instant::now();
    loop {
        match find() {
            Driver::None => return None,
            Driver::Sidecar(address) => return Some(local_address(address)),
            Driver::Unreachable if began.elapsed() >= patience => return None,
            Driver::Unreachable => std::thread::park_timeout(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{START_TIME, wait_for_address};
    use redflow_store::Driver;
    use std::net::SocketAddr;
    use std::time::Duration;

    #[test]
    fn only_who_has_patience_waits_for_a_driver_that_does_not_listen_yet() {
        let (here, wanted): (SocketAddr, SocketAddr) = (([0, 0, 0, 0], 1).into(), ([127, 0, 0, 1], 1).into());
        let answers = [Driver::Unreachable, Driver::Unreachable, Driver::Sidecar(here)];
        for (patience, expected, looks) in [(Duration::ZERO, None, 1), (START_TIME, Some(wanted), 3)] {
            let mut count = 0;
            let find = || {
                count += 1;
                answers[count - 1]
            };
            assert_eq!(wait_for_address(find, patience), expected, "{patience:?}");
            assert_eq!(count, looks, "{patience:?}");
        }
        assert_eq!(wait_for_address(|| Driver::None, START_TIME), None);
    }
}
