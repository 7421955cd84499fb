//! The credential of a node: one of four kinds, bound to the hosts of the node.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;
use http::header::AUTHORIZATION;
use redflow_contract::http_rules::{is_header_value, is_transport_header};
use redflow_contract::node::{ApiKeyPlace, HttpAuthentication, HttpRequestConfig};
use redflow_egress::{EgressCredential, HostPattern};
use redflow_ports::{BuildError, NodeConfig};
use secrecy::SecretString;
use serde_json::Value;

/// Names of an API key that the node does not name.
const API_KEY_HEADER: &str = "X-Api-Key";
const API_KEY_PARAMETER: &str = "api_key";

/// Reads the credential of a node; none if it has none. Reports every spelling in which a server can send it back.
///
/// # Errors
/// When a value is missing or cannot be sent, or no host is named.
pub(crate) fn read_credential(
    config: &NodeConfig<'_>,
    settings: &HttpRequestConfig,
    hosts: Option<&[HostPattern]>,
) -> Result<Option<EgressCredential>, BuildError> {
    let authentication = settings.authentication.unwrap_or_default();
    if authentication == HttpAuthentication::None {
        return Ok(None);
    }
    let Some(hosts) = hosts.map(<[_]>::to_vec) else {
        return Err(config.error("`authentication` needs `hosts`: the hosts that may get the credentials"));
    };
    let stored = |name: &str| {
        let text = settings.credentials.as_ref().and_then(|all| all.get(name)).and_then(Value::as_str);
        text.map(str::trim).filter(|text| !text.is_empty())
    };
    let text = |name: &str, own: &Option<String>| {
        let text = stored(name).or(own.as_deref()).map(str::trim).filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let missing = |name: &str| config.error(format!("`{name}` is missing; set it on the node"));
    let secret = |name: &str| {
        let secret = config.secret(name, &[]).ok_or_else(|| missing(name))?;
        let secret = secret.trim().to_owned();
        if !is_header_value(&secret) {
            return Err(config.error(format!("`{name}` has characters that cannot be sent in a header")));
        }
        Ok(secret)
    };
    let header = |name: &str, value: String| {
        let parsed =
            HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !is_transport_header(name.as_str()));
        let name =
            parsed.ok_or_else(|| config.error("the name of its header cannot be used; choose another"))?;
        Ok(EgressCredential::Header { name, value: SecretString::from(value), hosts: hosts.clone() })
    };
    let credential = match authentication {
        HttpAuthentication::None => return Ok(None),
        HttpAuthentication::Basic => {
            let user = text("user", &settings.user).ok_or_else(|| missing("user"))?;
            let (value, spellings) =
                basic(&user, &secret("password")?).map_err(|problem| config.error(problem))?;
            spellings.iter().for_each(|spelling| (config.on_secret)(spelling));
            header(AUTHORIZATION.as_str(), value)?
        }
        HttpAuthentication::Bearer => header(AUTHORIZATION.as_str(), format!("Bearer {}", secret("token")?))?,
        HttpAuthentication::Header => {
            let name = text("headerName", &settings.header_name).ok_or_else(|| missing("headerName"))?;
            header(&name, secret("headerValue")?)?
        }
        HttpAuthentication::ApiKey => {
            let place = match stored("apiKeyIn") {
                Some("query") => ApiKeyPlace::Query,
                Some(_) => ApiKeyPlace::Header,
                None => settings.api_key_in.unwrap_or_default(),
            };
            let name = text("apiKeyName", &settings.api_key_name);
            let key = secret("apiKey")?;
            match place {
                ApiKeyPlace::Header => header(name.as_deref().unwrap_or(API_KEY_HEADER), key)?,
                ApiKeyPlace::Query => {
                    let name = name.unwrap_or_else(|| API_KEY_PARAMETER.to_owned());
                    EgressCredential::Query { name, value: SecretString::from(key), hosts }
                }
            }
        }
    };
    Ok(Some(credential))
}

/// The header that carries a credential; none if it is in the query.
pub(crate) fn header_of(credential: &EgressCredential) -> Option<HeaderName> {
    match credential {
        EgressCredential::Header { name, .. } => Some(name.clone()),
        EgressCredential::Query { .. } => None,
    }
}

/// The header value of a user and a password, and the spellings in which a server can send them back. A short password
/// alone is not scrubbed.
///
/// # Errors
/// A sentence, when the user cannot be sent.
pub(crate) fn basic(user: &str, password: &str) -> Result<(String, [String; 2]), String> {
    if user.contains(':') || !is_header_value(user) {
        return Err("`user` has characters that a user cannot have".to_owned());
    }
    let pair = format!("{user}:{password}");
    let encoded = STANDARD.encode(&pair);
    Ok((format!("Basic {encoded}"), [pair, encoded]))
}
