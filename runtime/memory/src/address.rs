//! Where a node's Redis is, and as whom it is spoken to.
//!
//! Each field counts from the node's credentials, else from its properties, else from its `options`. A number
//! or a yes may be written as text. What is blank or null is not there.

use redflow_ports::{BuildError, NodeConfig};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::str::FromStr;

const HOST: &str = "127.0.0.1";
const PORT: u16 = 6379;
const FIELDS: [&str; 6] = ["url", "host", "port", "db", "tls", "username"];

/// Where a field stands; the first counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Credentials,
    Outside,
    Options,
}

/// The properties without those that are read here.
pub(crate) fn others(props: &Map<String, Value>) -> Map<String, Value> {
    let mut props = props.clone();
    props.retain(|name, _| !FIELDS.contains(&name.as_str()));
    if let Some(Value::Object(options)) = props.get_mut("options") {
        options.retain(|name, _| !FIELDS.contains(&name.as_str()));
    }
    props
}

/// The node's `url` or `host`, whichever counts first, else the environment's `REDIS_URL`, else this machine.
pub(crate) fn of(node: &NodeConfig<'_>) -> Result<ConnectionInfo, BuildError> {
    let (url, host) = (read::<String>(node, "url", "a text")?, read::<String>(node, "host", "a text")?);
    let mut url_is_secret = false;
    let mut password_variables: &[&str] = &[];
    let info = match (url, host) {
        // In the same place, the url counts.
        (Some((place, url)), host) if host.as_ref().is_none_or(|(other, _)| place <= *other) => {
            let info = by_url(&url).ok_or_else(|| node.error(BAD_URL))?;
            url_is_secret = place == Place::Credentials;
            match info.redis_settings().password() {
                Some(password) if url_is_secret => (node.takes)(password),
                Some(_) => return Err(node.error(OPEN_PASSWORD)),
                None => (),
            }
            info
        }
        (_, Some((_, host))) => by_host(node, &host)?,
        _ => match (node.env)("REDIS_URL").filter(|url| !url.is_empty()) {
            Some(url) => {
                let info = by_url(&url).ok_or_else(|| node.error("REDIS_URL is not redis://HOST:PORT/DB"))?;
                info.redis_settings().password().into_iter().for_each(node.takes);
                password_variables = PASSWORD_VARIABLES;
                info
            }
            None => by_host(node, HOST)?,
        },
    };
    // The environment's password is for the environment's Redis: a flow cannot have it sent somewhere else.
    if is_loopback(info.addr()) {
        password_variables = PASSWORD_VARIABLES;
    }
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    // What stands in the credentials' url stands in the credentials.
    let is_settled = |name: &str, in_url: Option<&str>| {
        url_is_secret && in_url.is_some() && !matches!(find(node, name), Some((Place::Credentials, _)))
    };
    let username = match is_settled("username", settings.username()) {
        true => None,
        false => read::<String>(node, "username", "a text")?,
    };
    let password = match is_settled("password", settings.password()) {
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
const OPEN_PASSWORD: &str = "a password in its url is stored in the open; put it in the node's credentials, or write \
                             `${NAME}` as its password and set that environment variable";

/// The value that counts, and where it stands.
fn find<'a>(node: &NodeConfig<'a>, name: &str) -> Option<(Place, &'a Value)> {
    let within = |place: &str| node.props.get(place).and_then(|all| all.get(name));
    let places = [
        (Place::Credentials, within("credentials")),
        (Place::Outside, node.props.get(name)),
        (Place::Options, within("options")),
    ];
    let is_set =
        |value: &Value| !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty());
    places.into_iter().find_map(|(place, value)| Some((place, value.filter(|value| is_set(value))?)))
}

/// The same as what it has to be. A value that is not is not quoted: it may be a secret.
fn read<T: FromStr>(node: &NodeConfig<'_>, name: &str, what: &str) -> Result<Option<(Place, T)>, BuildError> {
    let Some((place, value)) = find(node, name) else { return Ok(None) };
    let text = match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Bool(yes) => Some(yes.to_string()),
        // Written so, `5.0` is `5`, as it is to JSON Schema.
        Value::Number(number) => number.as_f64().map(|number| number.to_string()),
        _ => None,
    };
    let read = text.and_then(|text| text.parse().ok());
    read.map(|read| Some((place, read))).ok_or_else(|| node.error(format!("its {name} is not {what}")))
}

fn is_loopback(addr: &ConnectionAddr) -> bool {
    let (ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. }) = addr else { return false };
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn by_url(url: &str) -> Option<ConnectionInfo> {
    let schemes = ["redis://", "rediss://"];
    if !schemes.iter().any(|scheme| url.starts_with(scheme)) {
        return None;
    }
    // The library's words may quote the address, and that may hold a password.
    let info = url.into_connection_info().ok()?;
    // A connection that trusts everybody is no encrypted one.
    let trusts_all = matches!(info.addr(), ConnectionAddr::TcpTls { insecure: true, .. });
    (!trusts_all && info.redis_settings().db() >= 0).then_some(info)
}

fn by_host(node: &NodeConfig<'_>, host: &str) -> Result<ConnectionInfo, BuildError> {
    let port = read(node, "port", "a number up to 65535")?.map_or(PORT, |(_, port)| port);
    let db: u32 = read(node, "db", "the number of a database")?.map_or(0, |(_, db)| db);
    let tls = read(node, "tls", "true or false")?.is_some_and(|(_, tls)| tls);
    let info = (host, port).into_connection_info().map_err(|_| node.error("its host is not one"))?;
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
