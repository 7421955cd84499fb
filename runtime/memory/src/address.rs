//! Where a node's Redis is, and as whom it is spoken to.

use redflow_contract::service_config::RedisMemoryConfig;
use redflow_ports::{BuildError, NodeConfig};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

const HOST: &str = "127.0.0.1";
const PORT: u16 = 6379;

/// The node's `url`, else its `host`, else the environment's `REDIS_URL`, else this machine.
pub(crate) fn of(node: &NodeConfig<'_>, config: &RedisMemoryConfig) -> Result<ConnectionInfo, BuildError> {
    let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (own_url, host) = (set(&config.url), set(&config.host));
    let mut info = match (own_url, host) {
        (Some(url), _) => {
            let info = by_url(&url).ok_or_else(|| node.error(BAD_URL))?;
            if info.redis_settings().password().is_some() {
                return Err(node.error(
                    "a password in its url is stored in the open; put it in the node's credentials, or in \
                     REDIS_PASSWORD",
                ));
            }
            info
        }
        (None, Some(host)) => by_host(node, &host, config)?,
        (None, None) => match (node.env)("REDIS_URL").filter(|url| !url.is_empty()) {
            Some(url) => {
                let info = by_url(&url).ok_or_else(|| node.error("REDIS_URL is not redis://HOST:PORT/DB"))?;
                info.redis_settings().password().into_iter().for_each(node.takes);
                info
            }
            None => by_host(node, HOST, config)?,
        },
    };
    let mut settings = info.redis_settings().clone().set_skip_set_lib_name();
    if let Some(username) = set(&config.username) {
        settings = settings.set_username(username);
    }
    if let Some(password) = node.secret("password", &["REDIS_PASSWORD"]) {
        settings = settings.set_password(password);
    }
    info = info.set_redis_settings(settings);
    Ok(info)
}

const BAD_URL: &str = "its url is not redis://HOST:PORT/DB or rediss://HOST:PORT/DB";

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

fn by_host(
    node: &NodeConfig<'_>,
    host: &str,
    config: &RedisMemoryConfig,
) -> Result<ConnectionInfo, BuildError> {
    let port = config.port.unwrap_or(PORT);
    let info = (host, port).into_connection_info().map_err(|_| node.error("its host is not one"))?;
    let settings = info.redis_settings().clone().set_db(i64::from(config.db.unwrap_or(0)));
    let info = info.set_redis_settings(settings);
    Ok(if config.tls == Some(true) {
        let host = host.to_owned();
        info.set_addr(ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None })
    } else {
        info
    })
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
