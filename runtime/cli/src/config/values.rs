//! Converts raw values to typed settings, and settings to text.
//!
//! A conversion error says which values are allowed. It never quotes the value, because it may be a secret.

use super::file::RawValue;
use redflow_access::Origins;
use redflow_contract::flow::Profile;
use redflow_models::no_proxy::NoProxy;
use redflow_telemetry::{LogFormat, RedactionLevel};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use url::Url;

/// Replaces the secret part of a displayed value.
pub(super) const MASK: &str = "••••";
/// Displayed instead of a secret that is set.
pub(super) const IS_SET: &str = "[set]";

/// The most hosts or origins in a list.
const MAX_NAMES: usize = 64;

pub(super) fn text(raw: &RawValue) -> Result<String, String> {
    match raw {
        RawValue::Text(text) => Ok(text.clone()),
        RawValue::Os(_) => Err("it must be UTF-8 text".to_owned()),
        _ => Err("it must be text".to_owned()),
    }
}

pub(super) fn path(raw: &RawValue) -> Result<PathBuf, String> {
    match raw {
        RawValue::Text(text) if !text.is_empty() => Ok(PathBuf::from(text)),
        RawValue::Os(text) => Ok(PathBuf::from(text)),
        _ => Err("it must be a path".to_owned()),
    }
}

pub(super) fn boolean(raw: &RawValue) -> Result<bool, String> {
    match raw {
        RawValue::Bool(value) => Ok(*value),
        // Of a variable.
        RawValue::Text(text) if text == "true" => Ok(true),
        RawValue::Text(text) if text == "false" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// Accepts a whole number in a range.
pub(super) fn integer_in<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&RawValue) -> Result<T, String> {
    move |raw| {
        let number = match raw {
            RawValue::Integer(number) => u64::try_from(*number).ok().filter(|number| range.contains(number)),
            _ => None,
        };
        let problem = || format!("it must be a whole number from {} to {}", range.start(), range.end());
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(problem)
    }
}

/// An amount of money: a price or a cost.
pub(super) fn amount(raw: &RawValue) -> Result<f64, String> {
    let number = match raw {
        RawValue::Float(number) => *number,
        RawValue::Integer(number) => *number as f64,
        _ => f64::NAN,
    };
    match (0.0..=1e9).contains(&number) {
        true => Ok(number),
        false => Err("it must be a number from 0 to 1e9".to_owned()),
    }
}

/// An IP address and a port to listen on.
pub(super) fn listen_address(raw: &RawValue) -> Result<SocketAddr, String> {
    let problem = "it must be an IP address and a port, such as 127.0.0.1:1881 or [::1]:1881";
    text(raw)?.parse().map_err(|_| problem.to_owned())
}

pub(super) fn profile(raw: &RawValue) -> Result<Profile, String> {
    match raw {
        RawValue::Text(text) if text == "strict" => Ok(Profile::Strict),
        RawValue::Text(text) if text == "redflow" => Ok(Profile::Redflow),
        _ => Err("it must be \"strict\" or \"redflow\"".to_owned()),
    }
}

pub(super) fn log_format(raw: &RawValue) -> Result<LogFormat, String> {
    let known = text(raw).ok().and_then(|text| LogFormat::parse(&text));
    known.ok_or_else(|| "it must be \"auto\", \"human\" or \"json\"".to_owned())
}

pub(super) fn redaction(raw: &RawValue) -> Result<RedactionLevel, String> {
    let known = text(raw).ok().and_then(|text| RedactionLevel::parse(&text));
    known.ok_or_else(|| "it must be \"off\", \"secrets\" or \"all\"".to_owned())
}

/// The URL of a proxy, which may contain a password.
pub(super) fn proxy_url(raw: &RawValue) -> Result<Url, String> {
    let url = text(raw).ok().and_then(|text| Url::parse(&text).ok());
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    url.filter(is_http).ok_or_else(|| "it must be an address such as http://proxy.example:3128".to_owned())
}

/// The URL of a sidecar.
pub(super) fn sidecar_url(raw: &RawValue) -> Result<Url, String> {
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

/// The URL of a Node-RED.
pub(super) fn node_red_url(raw: &RawValue) -> Result<Url, String> {
    redflow_node_red::parse_address(&text(raw)?)
}

/// Host names, with or without a port.
pub(super) fn hosts(raw: &RawValue) -> Result<Vec<String>, String> {
    names(raw, "such as \"redflow.example\" or \"redflow.example:8443\"", |text| Origins::is_host(text))
}

/// Hosts that are reached without a proxy.
pub(super) fn no_proxy(raw: &RawValue) -> Result<Vec<String>, String> {
    let is_entry = |text: &String| NoProxy::parse(std::slice::from_ref(text)).is_some();
    names(raw, "such as \"intranet.example\", \"10.0.0.0/8\" or \"*\"", is_entry)
}

/// Origins of web pages.
pub(super) fn origins(raw: &RawValue) -> Result<Vec<String>, String> {
    names(raw, "such as \"https://console.example\"", |text| Origins::origin(text).is_some())
}

/// One origin, as browsers send it.
pub(super) fn origin(raw: &RawValue) -> Result<String, String> {
    let origin = text(raw).ok().and_then(|text| Origins::origin(&text));
    origin.ok_or_else(|| "it must be one origin such as http://localhost:5173, without a path".to_owned())
}

/// A list of texts that all pass `is_name`.
fn names(raw: &RawValue, such_as: &str, is_name: impl Fn(&String) -> bool) -> Result<Vec<String>, String> {
    let read = |item: &RawValue| text(item).ok().filter(&is_name);
    let read: Option<Vec<String>> = match raw {
        RawValue::List(items) if items.len() <= MAX_NAMES => items.iter().map(read).collect(),
        _ => None,
    };
    read.ok_or_else(|| format!("it must be a list of at most {MAX_NAMES} texts {such_as}"))
}

/// A setting as JSON, for `redflow config show`. Secrets are masked.
pub(super) trait DisplayValue {
    fn display_value(&self) -> Value;
}

macro_rules! display_as_json {
    ($($type:ty)+) => {
        $(impl DisplayValue for $type {
            fn display_value(&self) -> Value {
                json!(self)
            }
        })+
    };
}

display_as_json! { String bool u32 u64 usize f64 Vec<String> Vec<u16> SocketAddr Profile }

impl<T: DisplayValue> DisplayValue for Option<T> {
    fn display_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, DisplayValue::display_value)
    }
}

impl DisplayValue for PathBuf {
    fn display_value(&self) -> Value {
        json!(self.display().to_string())
    }
}

impl DisplayValue for LogFormat {
    fn display_value(&self) -> Value {
        json!(self.as_str())
    }
}

impl DisplayValue for RedactionLevel {
    fn display_value(&self) -> Value {
        json!(self.as_str())
    }
}

impl DisplayValue for Url {
    fn display_value(&self) -> Value {
        let has_secret = !self.username().is_empty() || self.password().is_some();
        if !has_secret {
            return json!(self.as_str());
        }
        let mut without_secret = self.clone();
        let _ = without_secret.set_username("");
        let _ = without_secret.set_password(None);
        json!(without_secret.as_str().replacen("://", &format!("://{MASK}@"), 1))
    }
}
