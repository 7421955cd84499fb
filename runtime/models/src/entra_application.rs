//! Reads how an Azure node signs in as an application of Microsoft Entra ID.
//!
//! Owns which addresses the secret of the application and its token may go to.

use crate::address::join;
use crate::build::{is_at_provider, or_default, parse_address};
use crate::entra::EntraSignIn;
use crate::transport::{Endpoint, is_local};
use redflow_ports::{BuildError, NodeConfig};
use secrecy::SecretString;
use std::sync::Arc;
use url::Url;

/// The address that gives tokens in the public cloud.
const AUTHORITY: &str = "https://login.microsoftonline.com";
/// The hosts that give tokens, in every cloud. The secret of the environment goes only to them.
const AUTHORITY_HOSTS: [&str; 3] =
    ["login.microsoftonline.com", "login.microsoftonline.us", "login.partner.microsoftonline.cn"];
/// The environment variable with the secret.
const SECRET_VARIABLE: &str = "AZURE_CLIENT_SECRET";
/// The longest id of a tenant.
const MAX_TENANT_CHARS: usize = 100;

/// The properties of a node that name an application.
pub(crate) struct EntraApplication {
    pub(crate) tenant_id: Option<String>,
    pub(crate) client_id: Option<String>,
    pub(crate) authority: Option<String>,
}

/// Reads how a node signs in. `base` is the address that gets the token; `at_azure` says that Azure owns it.
pub(crate) fn sign_in(
    config: &NodeConfig<'_>,
    application: EntraApplication,
    base: &Url,
    at_azure: bool,
) -> Result<Arc<EntraSignIn>, BuildError> {
    let required = |value: Option<String>, name: &str| {
        let value = or_default(value, "");
        if value.is_empty() {
            return Err(config.error(format!(
                "it has no `{name}`; set it, or set `authentication` to \"key\" to use the resource's key"
            )));
        }
        Ok(value)
    };
    let tenant = required(application.tenant_id, "tenantId")?;
    let is_tenant = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    if tenant.chars().count() > MAX_TENANT_CHARS || !tenant.chars().all(is_tenant) {
        return Err(config.error("`tenantId` must be the id or the domain of a tenant"));
    }
    let client_id = required(application.client_id, "clientId")?;
    let authority = parse_address(config, "authority", &or_default(application.authority, AUTHORITY))?;
    for (name, address) in [("authority", &authority), ("endpoint", base)] {
        if address.scheme() != "https" && !is_local(address) {
            return Err(
                config.error(format!("`{name}` must begin with https://, or others can read the token"))
            );
        }
    }
    let is_trusted = (is_at_provider(&authority, &AUTHORITY_HOSTS) || is_local(&authority))
        && (at_azure || is_local(base));
    let secret = config.secret("clientSecret", if is_trusted { &[SECRET_VARIABLE] } else { &[] });
    let secret = secret.map(|secret| secret.trim().to_owned()).filter(|secret| !secret.is_empty());
    let client_secret = secret.map(SecretString::from).ok_or_else(|| {
        let reason = format!(
            "it has no secret of the application; put `clientSecret` into the node's credentials or set the \
             environment variable {SECRET_VARIABLE}"
        );
        BuildError { missing_key: Some(SECRET_VARIABLE), ..config.error(reason) }
    })?;
    let endpoint = Endpoint::new(join(&authority, &[&tenant, "oauth2", "v2.0", "token"]))
        .header("content-type", "application/x-www-form-urlencoded")
        .map_err(|_| config.error("`tenantId` must be the id or the domain of a tenant"))?;
    Ok(Arc::new(EntraSignIn::new(endpoint, client_id, client_secret, scope_for(base))))
}

/// The scope of the resources in a cloud.
fn scope_for(base: &Url) -> &'static str {
    match base.host_str().unwrap_or_default().rsplit('.').next() {
        Some("us") => "https://cognitiveservices.azure.us/.default",
        Some("cn") => "https://cognitiveservices.azure.cn/.default",
        _ => "https://cognitiveservices.azure.com/.default",
    }
}
