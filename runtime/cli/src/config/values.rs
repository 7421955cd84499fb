//! From what was given to what is meant, and how that is shown again.
//!
//! A reading that fails says what is wanted. It never repeats what was given: that may be a secret.

use super::file::Raw;
use redflow_access::Origins;
use redflow_contract::flow::Profile;
use redflow_telemetry::{Format, Level};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use url::Url;

/// What stands where a secret is not shown.
pub(super) const MASK: &str = "••••";
/// What is shown of a secret: that there is one.
pub(super) const IS_SET: &str = "[set]";

/// Hosts or origins that can be named.
const MOST_NAMES: usize = 64;
/// Whether a name is well written does not depend on where somebody listens.
const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1881);

pub(super) fn text(raw: &Raw) -> Result<String, String> {
    match raw {
        Raw::Text(text) => Ok(text.clone()),
        Raw::Os(_) => Err("it must be UTF-8 text".to_owned()),
        _ => Err("it must be text".to_owned()),
    }
}

pub(super) fn path(raw: &Raw) -> Result<PathBuf, String> {
    match raw {
        Raw::Text(text) if !text.is_empty() => Ok(PathBuf::from(text)),
        Raw::Os(text) => Ok(PathBuf::from(text)),
        _ => Err("it must be a path".to_owned()),
    }
}

pub(super) fn yes_or_no(raw: &Raw) -> Result<bool, String> {
    match raw {
        Raw::Bool(is) => Ok(*is),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// A whole number in a range.
pub(super) fn whole<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&Raw) -> Result<T, String> {
    move |raw| {
        let number = match raw {
            Raw::Integer(number) => u64::try_from(*number).ok().filter(|number| range.contains(number)),
            _ => None,
        };
        let wanted = || format!("it must be a whole number from {} to {}", range.start(), range.end());
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(wanted)
    }
}

/// A price for a million tokens.
pub(super) fn price(raw: &Raw) -> Result<f64, String> {
    let number = match raw {
        Raw::Float(number) => *number,
        Raw::Integer(number) => *number as f64,
        _ => f64::NAN,
    };
    match (0.0..=1e9).contains(&number) {
        true => Ok(number),
        false => Err("it must be a number from 0 to 1e9".to_owned()),
    }
}

/// An address and a port to listen at.
pub(super) fn address(raw: &Raw) -> Result<SocketAddr, String> {
    let wanted = "it must be an IP address and a port, such as 127.0.0.1:1881 or [::1]:1881";
    text(raw)?.parse().map_err(|_| wanted.to_owned())
}

pub(super) fn profile(raw: &Raw) -> Result<Profile, String> {
    match raw {
        Raw::Text(text) if text == "strict" => Ok(Profile::Strict),
        Raw::Text(text) if text == "redflow" => Ok(Profile::Redflow),
        _ => Err("it must be \"strict\" or \"redflow\"".to_owned()),
    }
}

pub(super) fn format(raw: &Raw) -> Result<Format, String> {
    let known = text(raw).ok().and_then(|text| Format::parse(&text));
    known.ok_or_else(|| "it must be \"auto\", \"human\" or \"json\"".to_owned())
}

pub(super) fn level(raw: &Raw) -> Result<Level, String> {
    let known = text(raw).ok().and_then(|text| Level::parse(&text));
    known.ok_or_else(|| "it must be \"off\", \"secrets\" or \"all\"".to_owned())
}

/// A proxy. Its address may hold a password.
pub(super) fn proxy(raw: &Raw) -> Result<Url, String> {
    let url = text(raw).ok().and_then(|text| Url::parse(&text).ok());
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    url.filter(is_http).ok_or_else(|| "it must be an address such as http://proxy.example:3128".to_owned())
}

/// Where a sidecar answers.
pub(super) fn sidecar(raw: &Raw) -> Result<Url, String> {
    let url = text(raw).ok().and_then(|text| Url::parse(&text).ok());
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| "it must be an address such as http://127.0.0.1:1881".to_owned())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "it must hold no name and no password: the token comes from REDFLOW_TOKEN or a file".to_owned()
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must end with its path".to_owned());
    }
    Ok(url)
}

/// Where a Node-RED is.
pub(super) fn node_red(raw: &Raw) -> Result<Url, String> {
    redflow_node_red::parse_address(&text(raw)?)
}

/// Names of hosts, each perhaps with a port.
pub(super) fn hosts(raw: &Raw) -> Result<Vec<String>, String> {
    let is_host = |text: &String| Origins::new(ANYWHERE, std::slice::from_ref(text), &[], false).is_ok();
    names(raw, "such as \"redflow.example\" or \"redflow.example:8443\"", is_host)
}

/// Origins of web pages.
pub(super) fn origins(raw: &Raw) -> Result<Vec<String>, String> {
    let is_origin = |text: &String| Origins::new(ANYWHERE, &[], std::slice::from_ref(text), false).is_ok();
    names(raw, "such as \"https://console.example\"", is_origin)
}

/// The one origin of the Redflow UI, as browsers send it.
pub(super) fn redflow_ui(raw: &Raw) -> Result<String, String> {
    let origin = text(raw).ok().and_then(|text| Origins::origin(&text));
    origin.ok_or_else(|| "it must be one origin such as http://localhost:5173, without a path".to_owned())
}

/// A list of texts that are what they should be.
fn names(raw: &Raw, such_as: &str, is_name: impl Fn(&String) -> bool) -> Result<Vec<String>, String> {
    let read = |item: &Raw| text(item).ok().filter(&is_name);
    let read: Option<Vec<String>> = match raw {
        Raw::List(items) if items.len() <= MOST_NAMES => items.iter().map(read).collect(),
        _ => None,
    };
    read.ok_or_else(|| format!("it must be a list of at most {MOST_NAMES} texts {such_as}"))
}

/// How a value is shown to people and scripts; a secret is not.
pub(super) trait Shown {
    fn shown(&self) -> Value;
}

macro_rules! shown_as_they_are {
    ($($type:ty)+) => {
        $(impl Shown for $type {
            fn shown(&self) -> Value {
                json!(self)
            }
        })+
    };
}

shown_as_they_are! { String bool u32 u64 usize f64 Vec<String> SocketAddr }

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> Value {
        self.as_ref().map_or(Value::Null, Shown::shown)
    }
}

impl Shown for PathBuf {
    fn shown(&self) -> Value {
        json!(self.display().to_string())
    }
}

impl Shown for Profile {
    fn shown(&self) -> Value {
        json!(self)
    }
}

impl Shown for Format {
    fn shown(&self) -> Value {
        json!(self.as_str())
    }
}

impl Shown for Level {
    fn shown(&self) -> Value {
        json!(self.as_str())
    }
}

impl Shown for Url {
    fn shown(&self) -> Value {
        let has_secret = !self.username().is_empty() || self.password().is_some();
        if !has_secret {
            return json!(self.as_str());
        }
        let mut bare = self.clone();
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        json!(bare.as_str().replacen("://", &format!("://{MASK}@"), 1))
    }
}
