//! The section `[egress]`: which addresses tools may reach.

use super::Flags;
use super::file::RawValue;
use super::layers::Layers;
use super::values::{integer_in, proxy_url, text};
use redflow_egress::{EgressPolicy, EgressSettings, MAX_SETTING_ENTRIES};
use url::Url;

const SECTION: &str = "egress";

/// Reads the section. `extra_ca` has more trusted certificates, as PEM.
pub(super) fn egress(layers: &mut Layers<'_>, flags: &Flags, extra_ca: &[u8]) -> EgressPolicy {
    let defaults = EgressSettings::default;
    let allow_private = Some(flags.allow_private.join(",")).filter(|entries| !entries.is_empty());
    let settings = EgressSettings {
        schemes: layers
            .key(SECTION, "schemes")
            .read_or(
                || defaults().schemes,
                |raw| checked(texts(raw)?, |schemes| EgressSettings { schemes, ..defaults() }),
            )
            .value,
        ports: layers
            .key(SECTION, "ports")
            .read_or(
                || defaults().ports,
                |raw| checked(ports(raw)?, |ports| EgressSettings { ports, ..defaults() }),
            )
            .value,
        allow: layers
            .key(SECTION, "allow")
            .read_or(Vec::new, |raw| checked(texts(raw)?, |allow| EgressSettings { allow, ..defaults() }))
            .value,
        deny: layers
            .key(SECTION, "deny")
            .read_or(Vec::new, |raw| checked(texts(raw)?, |deny| EgressSettings { deny, ..defaults() }))
            .value,
        private: layers
            .key(SECTION, "private")
            .variable("REDFLOW_EGRESS_PRIVATE")
            .flag("--allow-private", allow_private)
            .read_or(Vec::new, |raw| checked(texts(raw)?, |private| EgressSettings { private, ..defaults() }))
            .value,
        proxy: layers
            .key(SECTION, "proxy")
            .read_or(|| None, proxy)
            .value
            .map(String::from)
            .unwrap_or_default(),
        max_body_bytes: layers
            .key(SECTION, "max_body_bytes")
            .read_or(|| defaults().max_body_bytes, integer_in(1024..=1 << 30))
            .value,
    };
    // Wrong values are reported already, and nothing starts with them.
    let policy = EgressPolicy::new(&settings).unwrap_or_default();
    if extra_ca.is_empty() { policy } else { policy.clone().with_extra_ca(extra_ca).unwrap_or(policy) }
}

/// Gives a value back if the policy accepts it. No problem quotes a value.
fn checked<T: Clone>(value: T, settings: impl Fn(T) -> EgressSettings) -> Result<T, String> {
    match EgressPolicy::new(&settings(value.clone())) {
        Ok(_) => Ok(value),
        Err(problems) => {
            let sentences = problems.iter().map(|problem| format!("{}; {}", problem.problem, problem.fix));
            Err(sentences.collect::<Vec<_>>().join(". "))
        }
    }
}

/// A list of texts. A variable or flag separates them with commas.
fn texts(raw: &RawValue) -> Result<Vec<String>, String> {
    let list: Option<Vec<String>> = match raw {
        RawValue::Text(list) => Some(list.split(',').map(|entry| entry.trim().to_owned()).collect()),
        RawValue::List(items) => items.iter().map(|item| text(item).ok()).collect(),
        _ => None,
    };
    list.ok_or_else(|| format!("it must be a list of at most {MAX_SETTING_ENTRIES} texts"))
}

fn ports(raw: &RawValue) -> Result<Vec<u16>, String> {
    let ports: Option<Vec<u16>> = match raw {
        RawValue::List(items) => items.iter().map(|item| integer_in(1..=65535)(item).ok()).collect(),
        _ => None,
    };
    ports.ok_or_else(|| "it must be a list of ports from 1 to 65535, such as [80, 443]".to_owned())
}

/// A proxy, or none if the text is empty.
fn proxy(raw: &RawValue) -> Result<Option<Url>, String> {
    if text(raw).is_ok_and(|text| text.is_empty()) {
        return Ok(None);
    }
    let url = proxy_url(raw)?;
    checked(url, |url| EgressSettings { proxy: url.into(), ..EgressSettings::default() }).map(Some)
}
