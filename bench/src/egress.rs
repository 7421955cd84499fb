//! The cost of a guarded request, compared with the same request by hyper's own client. The server is another process.

use crate::clock::{Stopwatch, figure, median};
use crate::live::provider::{AfterCalls, Provider, base};
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure};
use bytes::Bytes;
use futures::future::try_join_all;
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use redflow_egress::{Egress, EgressPolicy, EgressRequest, EgressSettings};
use std::time::Duration;

/// Requests at a time: one, and as many as a host may have.
const AT_ONCE: [usize; 2] = [1, redflow_egress::MAX_CALLS_PER_HOST];
const REQUESTS: usize = 4_000;

/// The highest cost of a guarded request, relative to the raw one.
const TARGET: f64 = 1.15;

/// What sends the requests.
enum Sender {
    Guarded(Box<Egress>),
    Raw(Box<Client<HttpConnector, Full<Bytes>>>),
}

impl Sender {
    fn guarded(port: u16) -> Result<Self, Failure> {
        let private = vec![format!("127.0.0.1:{port}")];
        let settings = EgressSettings { private, ..EgressSettings::default() };
        let policy = EgressPolicy::new(&settings).map_err(|_| "the settings cannot be used")?;
        Ok(Self::Guarded(Box::new(Egress::new(policy))))
    }

    fn raw() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self::Raw(Box::new(Client::builder(TokioExecutor::new()).build(connector)))
    }

    /// Sends one request, and counts the bytes of the answer.
    async fn send(&self, url: &str) -> Result<usize, Failure> {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert("x-city", HeaderValue::from_static("Porto"));
        match self {
            Self::Guarded(egress) => {
                let request = EgressRequest {
                    method: Method::GET,
                    url: url.to_owned(),
                    headers,
                    credential: None,
                    hosts: None,
                    body: Bytes::new(),
                    max_redirects: 5,
                    timeout: Duration::from_secs(30),
                    max_body_bytes: 131_072,
                };
                let mut answer = egress.send(request).await?;
                let mut bytes = 0;
                while let Some(chunk) = answer.body.chunk().await? {
                    bytes += chunk.len();
                }
                Ok(bytes)
            }
            Self::Raw(client) => {
                // The same headers as those of a guarded request.
                headers.insert("accept", HeaderValue::from_static("*/*"));
                headers.insert("user-agent", HeaderValue::from_static("redflow/0.1.0"));
                headers.insert("accept-encoding", HeaderValue::from_static("gzip"));
                let mut request = Request::new(Full::new(Bytes::new()));
                *request.uri_mut() = url.parse::<Uri>()?;
                *request.headers_mut() = headers;
                let mut body = client.request(request).await?.into_body();
                let mut bytes = 0;
                while let Some(frame) = body.frame().await {
                    bytes += frame?.into_data().map_or(0, |data| data.len());
                }
                Ok(bytes)
            }
        }
    }

    /// Sends requests, some at a time.
    async fn drive(&self, url: &str, requests: usize, at_once: usize) -> Result<(), Failure> {
        let send_some = || async {
            for _ in 0..requests / at_once {
                if self.send(url).await? == 0 {
                    return Err(Failure::from("the answer is empty"));
                }
            }
            Ok(())
        };
        try_join_all((0..at_once).map(|_| send_some())).await.map(drop)
    }
}

/// Microseconds of processor time per request, once all connections are open.
fn measure_round(sender: &Sender, url: &str, requests: usize, at_once: usize) -> Result<f64, Failure> {
    runtime()?.block_on(async {
        // In a sidecar some timer always waits.
        let timer = tokio::spawn(tokio::time::sleep(Duration::from_secs(3600)));
        sender.drive(url, at_once, at_once).await?;
        let watch = Stopwatch::start();
        sender.drive(url, requests, at_once).await?;
        timer.abort();
        Ok(watch.spent().cpu / figure(requests as u64))
    })
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (rounds, requests) = if extent == Extent::Quick { (1, 400) } else { (9, REQUESTS) };
    let provider = Provider::start()?;
    let url = base(provider.port, 0, AfterCalls::Answer);
    let columns = [
        ("atOnce", "at once", 0),
        ("rawMicros", "raw µs", 1),
        ("guardedMicros", "guarded µs", 1),
        ("ratio", "× raw", 3),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "GET requests of a tool over open connections, to a server that answers at once";
    let mut table = Table::new("egress", heading, columns.into());
    let mut met = true;
    for at_once in AT_ONCE {
        let (mut raw, mut guarded) = (Vec::new(), Vec::new());
        // The first round warms up and is dropped, unless it is the only one.
        let warm_up = usize::from(rounds > 1);
        for round in 0..rounds + warm_up {
            let raw_micros = measure_round(&Sender::raw(), &url, requests, at_once)?;
            let guarded_micros = measure_round(&Sender::guarded(provider.port)?, &url, requests, at_once)?;
            if round >= warm_up {
                raw.push(raw_micros);
                guarded.push(guarded_micros);
            }
        }
        let ratio = median(guarded.iter().zip(&raw).map(|(guarded, raw)| guarded / raw).collect());
        met &= ratio <= TARGET;
        table.row(vec![
            figure(at_once as u64).into(),
            median(raw).into(),
            median(guarded).into(),
            ratio.into(),
        ]);
    }
    table.note("µs: processor time of the asking process per request, with the kernel's; medians of rounds");
    table.note("raw: hyper's own client with the same headers, without rules, bounds and deadline");
    table.note(format!("target: at most {TARGET} × raw at each: {}", target_word(met)));
    show(table)
}
