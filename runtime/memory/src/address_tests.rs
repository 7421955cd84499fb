use super::connection_info;
use pretty_assertions::assert_eq;
use redflow_contract::id::NodeSummary;
use redflow_ports::NodeConfig;
use redis::{ConnectionAddr, ConnectionInfo};
use serde_json::{Value, json};

const ENV: [(&str, &str); 2] = [("REDIS_URL", "redis://eve:s3cret@env:1/2"), ("REDIS_PASSWORD", "from-env")];

fn address(props: &Value, env: &[(&str, &str)]) -> Result<ConnectionInfo, String> {
    address_with_secrets(props, env, &|_| ())
}

fn address_with_secrets(
    props: &Value,
    env: &[(&str, &str)],
    takes: &dyn Fn(&str),
) -> Result<ConnectionInfo, String> {
    let node = NodeSummary { id: "m".into(), type_name: "redis-memory".to_owned(), name: String::new() };
    let variable =
        |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let node = NodeConfig::new(&node, props.as_object().unwrap(), &variable, takes);
    connection_info(&node).map_err(|error| error.reason)
}

/// `[tls ]host:port/db user password`
fn format_info(info: &ConnectionInfo) -> String {
    let address = match info.addr() {
        ConnectionAddr::Tcp(host, port) => format!("{host}:{port}"),
        ConnectionAddr::TcpTls { host, port, insecure: false, .. } => format!("tls {host}:{port}"),
        other => format!("{other:?}"),
    };
    let settings = info.redis_settings();
    let (user, password) = (settings.username().unwrap_or("-"), settings.password().unwrap_or("-"));
    format!("{address}/{} {user} {password}", settings.db())
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
        (json!({"url": "redis://h", "password": "p"}), &ENV, "h:6379/0 - p"),
    ];
    for (props, env, expected) in rows {
        assert_eq!(address(&props, env).map(|info| format_info(&info)), Ok(expected.to_owned()), "{props}");
    }
}

#[test]
fn each_field_comes_from_the_credentials_then_the_properties_then_the_options() {
    let all = json!({"host": "c", "port": "7", "db": " 3 ", "tls": "true", "username": "u", "password": "p"});
    let properties = json!({"host": "o", "port": 8, "db": 4, "tls": false, "username": "v"});
    let nothing = json!({"url": "", "host": null, "port": "", "db": null, "tls": " ", "username": ""});
    let with = |properties: &Value, credentials: &Value, options: &Value| {
        let mut props = properties.clone();
        props["credentials"] = credentials.clone();
        props["options"] = options.clone();
        props
    };
    let rows = [
        (with(&json!({}), &all, &json!({})), "tls c:7/3 u p"),
        (with(&properties, &all, &json!({"host": "x", "port": 9})), "tls c:7/3 u p"),
        (with(&properties, &nothing, &all), "o:8/4 v p"),
        (with(&nothing, &nothing, &all), "tls c:7/3 u p"),
        (with(&nothing, &Value::Null, &nothing), "127.0.0.1:6379/0 - -"),
        (with(&properties, &json!({"port": 7.0, "tls": true}), &json!({})), "tls o:7/4 v -"),
        (with(&properties, &json!({"tls": "false", "username": 5}), &json!({"tls": "true"})), "o:8/4 5 -"),
        // A later source does not override an earlier one, whether it has a url or a host.
        (with(&json!({"url": "redis://o"}), &json!({"host": "c"}), &json!({})), "c:6379/0 - -"),
        (with(&json!({"host": "o"}), &json!({}), &json!({"url": "redis://x"})), "o:6379/0 - -"),
        (with(&json!({"host": "o"}), &json!({"url": "redis://c:1/2", "host": "x"}), &json!({})), "c:1/2 - -"),
    ];
    for (props, expected) in rows {
        assert_eq!(address(&props, &[]).map(|info| format_info(&info)), Ok(expected.to_owned()), "{props}");
    }
    let rows = [
        ("port", json!("s3cret"), "a number up to 65535"),
        ("port", json!(65_536), "a number up to 65535"),
        ("port", json!(6379.5), "a number up to 65535"),
        ("db", json!("-1"), "the number of a database"),
        ("tls", json!("maybe"), "true or false"),
        ("host", json!(["h"]), "a text"),
    ];
    for (name, value, what) in rows {
        let error = address(&json!({"credentials": {name: value}}), &[]).err().unwrap();
        assert_eq!(error, format!("its {name} is not {what}"), "{value}");
    }
}

#[test]
fn a_url_in_the_credentials_may_hold_a_password() {
    let url = "redis://u:s%40cret@127.0.0.1";
    let rows = [
        (json!({"credentials": {"url": url}}), "127.0.0.1:6379/0 u s@cret"),
        // Neither the flow nor the environment overrides the credentials.
        (json!({"credentials": {"url": url}, "username": "v", "password": "p"}), "127.0.0.1:6379/0 u s@cret"),
        (json!({"credentials": {"url": url, "username": "v", "password": "p"}}), "127.0.0.1:6379/0 v p"),
        (json!({"credentials": {"url": "redis://h"}, "username": "v", "password": "p"}), "h:6379/0 v p"),
    ];
    for (props, expected) in rows {
        let secrets = std::cell::RefCell::new(Vec::new());
        let takes = |secret: &str| secrets.borrow_mut().push(secret.to_owned());
        let info = address_with_secrets(&props, &ENV, &takes).map(|info| format_info(&info));
        assert_eq!(info, Ok(expected.to_owned()), "{props}");
        let (_, used) = expected.rsplit_once(' ').unwrap();
        assert_eq!(secrets.borrow().last().map(String::as_str), Some(used), "{props}");
        assert!(expected.starts_with("h:") || secrets.borrow()[0] == "s@cret", "{props}");
    }
    let bad = "its url is not redis://HOST:PORT/DB or rediss://HOST:PORT/DB";
    let error = address(&json!({"credentials": {"url": "http://u:s3cret@h"}}), &[]).err();
    assert_eq!(error.as_deref(), Some(bad));
}

#[test]
fn the_environments_password_goes_only_to_the_environments_redis_and_to_this_machine() {
    let password = |props: &Value, env: &[(&str, &str)]| {
        let secrets = std::cell::RefCell::new(Vec::new());
        let takes = |secret: &str| secrets.borrow_mut().push(secret.to_owned());
        let info = address_with_secrets(props, env, &takes).unwrap();
        let password = info.redis_settings().password().map(str::to_owned);
        assert_eq!(secrets.into_inner().pop(), password, "{props}");
        password
    };
    let (from_env, only) = (Some("from-env".to_owned()), &ENV[1..]);
    let here = ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"].map(|host| json!({"host": host}));
    let urls =
        ["redis://127.0.0.1:7", "rediss://[::1]/2", "redis://u@localhost"].map(|url| json!({"url": url}));
    for props in here.into_iter().chain(urls).chain([json!({}), json!({"port": 7, "tls": true})]) {
        assert_eq!(password(&props, only), from_env, "{props}");
    }
    assert_eq!(password(&json!({}), &[("REDIS_URL", "redis://far"), ENV[1]]), from_env);

    let far =
        ["h", "env", "128.0.0.1", "::2", "localhost.h", "127.0.0.1.h"].map(|host| json!({"host": host}));
    let urls = ["redis://h", "redis://localhost@h"].map(|url| json!({"url": url}));
    let more = [
        json!({"options": {"host": "h"}}),
        json!({"credentials": {"host": "h"}}),
        json!({"credentials": {"url": "redis://u@h"}}),
    ];
    for props in far.into_iter().chain(urls).chain(more) {
        assert_eq!(password(&props, &ENV), None, "{props}");
    }
    // A flow may name the variable itself with `${REDIS_PASSWORD}`.
    assert_eq!(password(&json!({"host": "h", "password": "from-env"}), &ENV), from_env);
}

#[test]
fn a_wrong_address_is_refused_without_quoting_it() {
    let bad = "its url is not redis://HOST:PORT/DB or rediss://HOST:PORT/DB";
    let urls =
        ["h:1", "http://h", "unix:///x", "redis://", "redis://h/x", "rediss://h#insecure", "redis://h/-1"];
    for url in urls {
        assert_eq!(address(&json!({"url": url}), &[]).err().as_deref(), Some(bad), "{url}");
    }
    let env = [("REDIS_URL", "http://:s3cret@h")];
    assert_eq!(address(&json!({}), &env).err().unwrap(), "REDIS_URL is not redis://HOST:PORT/DB");
    let error = address(&json!({"url": "redis://u:s3cret@h"}), &[]).err().unwrap();
    let expected = "a password in its url is stored in plain text; put it in the node's credentials, or write \
                    `${NAME}` as its password and set that environment variable";
    assert_eq!(error, expected);
    let error = address(&json!({"options": {"url": "redis://u:s3cret@h"}}), &[]).err().unwrap();
    assert_eq!(error, expected);
}

#[test]
fn every_password_is_reported_as_a_secret() {
    let secrets = std::cell::RefCell::new(Vec::new());
    let takes = |secret: &str| secrets.borrow_mut().push(secret.to_owned());
    address_with_secrets(&json!({}), &ENV[..1], &takes).unwrap();
    address_with_secrets(&json!({"host": "h", "password": "own"}), &[], &takes).unwrap();
    assert_eq!(*secrets.borrow(), ["s3cret", "own"]);
}
