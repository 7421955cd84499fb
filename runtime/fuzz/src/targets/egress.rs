//! Addresses that a model or a stranger writes, and the answers of a resolver.

use super::{Outcome, Target};
use redflow_egress::{
    Egress, EgressError, EgressPolicy, EgressRequest, EgressSettings, Refusal, Rule, ScriptedNet,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

/// An input is an address, and the answers of each lookup in the lines behind it.
pub(super) struct EgressAddress;

/// Sends a request in a network where nothing answers. Gives the error and what was dialled.
fn send(url: &str, answers: &[IpAddr]) -> Result<(Option<EgressError>, Vec<SocketAddr>), String> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let policy = EgressPolicy::new(&EgressSettings::default()).map_err(|_| "the defaults are wrong")?;
    let mut net = ScriptedNet::new();
    // The name as written, and as it is looked up.
    if let Ok(judged) = Egress::new(policy.clone()).judge(url) {
        net = net.answer(&judged.host, answers);
    }
    let net = Arc::new(net);
    let egress = Egress::with_net(policy, net.clone(), net.clone());
    let request = EgressRequest {
        method: http::Method::GET,
        url: url.to_owned(),
        headers: http::HeaderMap::new(),
        credential: None,
        hosts: None,
        body: bytes::Bytes::new(),
        max_redirects: 0,
        timeout: Duration::from_secs(5),
        max_body_bytes: 1024,
    };
    Ok((runtime.block_on(egress.send(request)).err(), net.dials()))
}

impl Target for EgressAddress {
    fn name(&self) -> &'static str {
        "egress"
    }

    fn seeds(&self) -> Vec<Vec<u8>> {
        let hostile = include_str!("../../../egress/tests/corpus/hostile-urls.txt").lines();
        let hostile = hostile.filter_map(|line| line.split_once(' ')).map(|(_, url)| url.to_owned());
        let plain = include_str!("../../../egress/tests/corpus/plain-urls.txt").lines();
        let plain = plain.filter_map(|line| line.split_once(' ')).map(|(url, _)| url.to_owned());
        let special = include_str!("../../../egress/tests/corpus/special-addresses.txt").lines();
        let answers = special.map(|line| format!("https://api.example.org/\n8.8.8.8\n{line}"));
        let public = include_str!("../../../egress/tests/corpus/public-addresses.txt").lines();
        let public = public.map(|line| format!("http://api.example.org/\n{line}"));
        hostile.chain(plain).chain(answers).chain(public).map(String::into_bytes).collect()
    }

    fn run(&self, input: &[u8]) -> Outcome {
        let text = String::from_utf8_lossy(input);
        let (url, answers) = text.split_once('\n').unwrap_or((&text, ""));
        let answers: Vec<IpAddr> = answers.lines().filter_map(|line| line.trim().parse().ok()).collect();
        let (error, dials) = send(url, &answers)?;
        if let Some(inside) = dials.iter().find(|address| is_inside(address.ip())) {
            return Err(format!("{inside} was dialled"));
        }
        match error {
            Some(EgressError::Refused(Refusal { rule, .. }))
                if rule != Rule::Connect && !dials.is_empty() =>
            {
                Err(format!("the rule {rule} refused what was dialled"))
            }
            Some(EgressError::Refused(refusal)) => Ok(refusal.rule.to_string()),
            Some(EgressError::Failed { sent: false, .. }) => Ok(format!("{} dials", dials.len())),
            other => Err(format!("nothing answers, but the outcome is {other:?}")),
        }
    }
}

/// Whether an address is certainly not on the public internet. Knows less than the tables, and shares nothing with them.
pub(super) fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            matches!(first, 0 | 10 | 127 | 224..)
                || matches!((first, second), (100, 64..=127) | (169, 254) | (172, 16..=31) | (192, 168))
        }
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                is_inside(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)).into())
            }
            [first, ..] => first & 0xe000 != 0x2000 || first == 0x2002,
        },
    }
}
