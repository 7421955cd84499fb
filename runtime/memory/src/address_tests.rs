use super::of;
use pretty_assertions::assert_eq;
use redflow_contract::id::NodeSummary;
use redflow_ports::NodeConfig;
use redis::{ConnectionAddr, ConnectionInfo};
use serde_json::{Value, json};

const ENV: [(&str, &str); 2] = [("REDIS_URL", "redis://eve:s3cret@env:1/2"), ("REDIS_PASSWORD", "from-env")];

fn address(props: &Value, env: &[(&str, &str)]) -> Result<ConnectionInfo, String> {
    taking(props, env, &|_| ())
}

fn taking(props: &Value, env: &[(&str, &str)], takes: &dyn Fn(&str)) -> Result<ConnectionInfo, String> {
    let node = NodeSummary { id: "m".into(), type_name: "redis-memory".to_owned(), name: String::new() };
    let look =
        |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let node = NodeConfig { node: &node, props: props.as_object().unwrap(), env: &look, takes };
    of(&node, &node.typed_with_options().unwrap()).map_err(|error| error.reason)
}

/// `[tls ]host:port/db user password`
fn written(info: &ConnectionInfo) -> String {
    let place = match info.addr() {
        ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
        ConnectionAddr::TcpTls { host, port, insecure: false, .. } => format!("tls {host}:{port}"),
        other => format!("{other:?}"),
    };
    let settings = info.redis_settings();
    let (user, password) = (settings.username().unwrap_or("-"), settings.password().unwrap_or("-"));
    format!("{place}/{} {user} {password}", settings.db())
}

#[test]
fn url_then_host_then_environment_then_this_machine() {
    let none: &[(&str, &str)] = &[];
    let url_only = &ENV[..1];
    let rows = [
        (json!({}), none, "127.0.0.1:6379/0 - -"),
        (json!({"url": "", "host": "", "username": ""}), none, "127.0.0.1:6379/0 - -"),
        (json!({"port": 7, "db": 3, "tls": true}), none, "tls 127.0.0.1:7/3 - -"),
        (json!({"host": "h", "username": "u", "password": "p"}), none, "h:6379/0 u p"),
        (json!({"options": {"host": "h", "credentials": {}}}), none, "h:6379/0 - -"),
        (json!({"host": "h", "credentials": {"password": "c"}, "password": "p"}), none, "h:6379/0 - c"),
        (json!({"url": "redis://u@h:9/4", "host": "other", "db": 1, "password": "p"}), none, "h:9/4 u p"),
        (json!({"url": "rediss://[::1]"}), none, "tls ::1:6379/0 - -"),
        (json!({}), url_only, "env:1/2 eve s3cret"),
        (json!({}), &ENV, "env:1/2 eve from-env"),
        (json!({"host": "h"}), &ENV, "h:6379/0 - from-env"),
        (json!({"url": "redis://h", "password": "p"}), &ENV, "h:6379/0 - p"),
    ];
    for (props, env, expected) in rows {
        assert_eq!(address(&props, env).map(|info| written(&info)), Ok(expected.to_owned()), "{props}");
    }
}

#[test]
fn what_is_no_address_is_refused_without_quoting_it() {
    let bad = "its url is not redis://HOST:PORT/DB or rediss://HOST:PORT/DB";
    let urls =
        ["h:1", "http://h", "unix:///x", "redis://", "redis://h/x", "rediss://h#insecure", "redis://h/-1"];
    for url in urls {
        assert_eq!(address(&json!({"url": url}), &[]).err().as_deref(), Some(bad), "{url}");
    }
    let env = [("REDIS_URL", "http://:s3cret@h")];
    assert_eq!(address(&json!({}), &env).err().unwrap(), "REDIS_URL is not redis://HOST:PORT/DB");
    let error = address(&json!({"url": "redis://u:s3cret@h"}), &[]).err().unwrap();
    let expected = "a password in its url is stored in the open; put it in the node's credentials, or in \
                    REDIS_PASSWORD";
    assert_eq!(error, expected);
}

#[test]
fn every_password_is_told_of() {
    let taken = std::cell::RefCell::new(Vec::new());
    let takes = |secret: &str| taken.borrow_mut().push(secret.to_owned());
    taking(&json!({}), &ENV[..1], &takes).unwrap();
    taking(&json!({"host": "h", "password": "own"}), &[], &takes).unwrap();
    assert_eq!(*taken.borrow(), ["s3cret", "own"]);
}
