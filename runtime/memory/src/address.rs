//! The address of a node's Redis, with its user and password.
//!
//! Each field is read from the node's credentials, else from its properties, else from its `options`. A
//! number or a boolean may be written as text. A blank or null value counts as absent.

use redflow_contract::secret::is_reference;
use redflow_ports::{BuildError, NodeConfig};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::str::FromStr;

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 6379;
const FIELDS: [&str; 6] = ["url", "host", "port", "db", "tls", "username"];

/// Where a field was found. Earlier sources win.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FieldSource {
    Credentials,
    Properties,
    Options,
}

/// The properties without the fields of the address.
pub(crate) fn without_address_fields(props: &Map<String, Value>) -> Map<String, Value> {
    let mut props = props.clone();
    props.retain(|name, _| !FIELDS.contains(&name.as_str()));
    if let Some(Value::Object(options)) = props.get_mut("options") {
        options.retain(|name, _| !FIELDS.contains(&name.as_str()));
    }
    props
}

/// The node's `url` or `host`, whichever has the earlier source, else the environment's `REDIS_URL`, else
/// this machine.
pub(crate) fn connection_info(node: &NodeConfig<'_>) -> Result<ConnectionInfo, BuildError> {
    let url = read_field::<String>(node, "url", "a text")?;
    let host = read_field::<String>(node, "host", "a text")?;
    let mut url_is_secret = false;
    let mut password_variables: &[&str] = &[];
    let info = match (url, host) {
        // From the same source, the url wins.
        (Some((source, url)), host) if host.as_ref().is_none_or(|(other, _)| source <= *other) => {
            let problem = if is_reference(&url) { UNRESOLVED_URL } else { BAD_URL };
            let info = from_url(&url).ok_or_else(|| node.error(problem))?;
            url_is_secret = source == FieldSource::Credentials;
            match info.redis_settings().password() {
                Some(password) if url_is_secret => (node.on_secret)(password),
                Some(_) => return Err(node.error(PLAIN_PASSWORD)),
                None => (),
            }
            info
        }
        (_, Some((_, host))) => from_host(node, &host)?,
        _ => match (node.env)("REDIS_URL").filter(|url| !url.is_empty()) {
            Some(url) => {
                let info =
                    from_url(&url).ok_or_else(|| node.error("REDIS_URL is not redis://HOST:PORT/DB"))?;
                info.redis_settings().password().into_iter().for_each(node.on_secret);
                password_variables = PASSWORD_VARIABLES;
                info
            }
            None => from_host(node, DEFAULT_HOST)?,
        },
    };
    // The environment's password is for the environment's Redis: a flow must not send it to another host.
    if is_loopback(info.addr()) {
        password_variables = PASSWORD_VARIABLES;
    }
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    // A value in the url of the credentials counts as a value of the credentials.
    let is_in_secret_url = |name: &str, in_url: Option<&str>| {
        url_is_secret
            && in_url.is_some()
            && !matches!(find_field(node, name), Some((FieldSource::Credentials, _)))
    };
    let username = match is_in_secret_url("username", settings.username()) {
        true => None,
        false => read_field::<String>(node, "username", "a text")?,
    };
    let password = match is_in_secret_url("password", settings.password()) {
        true => None,
        false => node.secret("password", password_variables),
    };
    let settings = match username {
        Some((_, username)) => settings.set_username(username),
        None => settings,
    };
    let settings = match password {
        Some(password) => settings.set_password(password),
        None => settings,
    };
    Ok(info.set_redis_settings(settings))
}

const PASSWORD_VARIABLES: &[&str] = &["REDIS_PASSWORD"];
const BAD_URL: &str = "its url is not redis://HOST:PORT/DB or rediss://HOST:PORT/DB";
const UNRESOLVED_URL: &str = "its url names a variable that is not set or holds a password; put that url in the node's \
                              credentials";
const PLAIN_PASSWORD: &str = "a password in its url is stored in plain text; put it in the node's credentials, or write \
                             `${NAME}` as its password and set that environment variable";

/// The value of a field, and its source.
fn find_field<'a>(node: &NodeConfig<'a>, name: &str) -> Option<(FieldSource, &'a Value)> {
    let within = |group: &str| node.props.get(group).and_then(|all| all.get(name));
    let sources = [
        (FieldSource::Credentials, within("credentials")),
        (FieldSource::Properties, node.props.get(name)),
        (FieldSource::Options, within("options")),
    ];
    let is_set =
        |value: &Value| !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty());
    sources.into_iter().find_map(|(source, value)| Some((source, value.filter(|value| is_set(value))?)))
}

/// Parses a field. The error does not quote the value: it may be a secret.
fn read_field<T: FromStr>(
    node: &NodeConfig<'_>,
    name: &str,
    what: &str,
) -> Result<Option<(FieldSource, T)>, BuildError> {
    let Some((source, value)) = find_field(node, name) else { return Ok(None) };
    let text = match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Bool(value) => Some(value.to_string()),
        // As `f64`, so that `5.0` is `5`, as in JSON Schema.
        Value::Number(number) => number.as_f64().map(|number| number.to_string()),
        _ => None,
    };
    let parsed = text.and_then(|text| text.parse().ok());
    parsed.map(|parsed| Some((source, parsed))).ok_or_else(|| node.error(format!("its {name} is not {what}")))
}

fn is_loopback(addr: &ConnectionAddr) -> bool {
    let (ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. }) = addr else { return false };
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn from_url(url: &str) -> Option<ConnectionInfo> {
    let schemes = ["redis://", "rediss://"];
    if !schemes.iter().any(|scheme| url.starts_with(scheme)) {
        return None;
    }
    // The library's error is left out: it may quote the address with its password.
    let info = url.into_connection_info().ok()?;
    // Without a check of the certificate the encryption protects nothing.
    let trusts_all = matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. });
    (!trusts_all && info.redis_settings().db() >= 0).then_some(info)
}

fn from_host(node: &NodeConfig<'_>, host: &str) -> Result<ConnectionInfo, BuildError> {
    let port = read_field(node, "port", "a number up to 65535")?.map_or(DEFAULT_PORT, |(_, port)| port);
    let db: u32 = read_field(node, "db", "the number of a database")?.map_or(0, |(_, db)| db);
    let tls = read_field(node, "tls", "true or false")?.is_some_and(|(_, tls)| tls);
    let info = (host, port).into_connection_info().map_err(|_| node.error("its host is not a host name"))?;
    let settings = info.redis_settings().clone().set_db(i64::from(db));
    let info = info.set_redis_settings(settings);
    Ok(if tls {
        let host = host.to_owned();
        info.set_addr(ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None })
    } else {
        info
    })
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
