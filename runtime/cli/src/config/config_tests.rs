//! Tests of the precedence of settings, their origins, and the error messages.

use super::{ConfigErrors, Flags, LogDefault, SettingOrigin, Settings};
use pretty_assertions::assert_eq;
use redflow_contract::flow::Profile;
use redflow_contract::node::Budget;
use redflow_telemetry::LogFormat;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;

const SECRET: &str = "s3cret-0123456789";

/// Loads settings from a file (unless it is empty), variables and flags. Errors call the file FILE.
fn load(file: &str, env: &[(&str, &str)], flags: Flags) -> Result<Settings, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("redflow.toml");
    std::fs::write(&path, file).unwrap();
    let config = (!file.is_empty()).then(|| path.clone());
    let env = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
    let name = path.display().to_string();
    Settings::load_with(&Flags { config, ..flags }, &env).map_err(|ConfigErrors(problems)| {
        problems.into_iter().map(|text| text.replace(&name, "FILE")).collect()
    })
}

fn problems(file: &str, env: &[(&str, &str)], flags: Flags) -> Vec<String> {
    load(file, env, flags).err().unwrap_or_default()
}

fn row(settings: &Settings, key: &str) -> (Value, SettingOrigin) {
    let row = settings.rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no {key}"));
    (row.value.clone(), row.origin.clone())
}

#[test]
fn flags_override_the_environment_which_overrides_the_file_which_overrides_defaults() {
    // Key, in the file, its variable, its flag, and how the four values are displayed.
    type Row = (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        fn(&mut Flags),
        [&'static str; 4],
    );
    let rows: [Row; 5] = [
        (
            "server.listen",
            "[server]\nlisten = \"127.0.0.1:2\"",
            "REDFLOW_LISTEN",
            "127.0.0.1:3",
            "--listen",
            |flags| flags.listen = Some("127.0.0.1:4".to_owned()),
            ["127.0.0.1:1881", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"],
        ),
        (
            "server.data",
            "[server]\ndata = \"/file\"",
            "REDFLOW_DATA",
            "/env",
            "--data",
            |flags| flags.data = Some("/flag".into()),
            ["/srv/.local/share/redflow", "/file", "/env", "/flag"],
        ),
        (
            "server.flows",
            "[server]\nflows = \"/file.json\"",
            "REDFLOW_FLOWS",
            "/env.json",
            "--flows",
            |flags| flags.flows = Some("/flag.json".into()),
            ["/srv/.local/share/redflow/flows.json", "/file.json", "/env.json", "/flag.json"],
        ),
        (
            "server.profile",
            "[server]\nprofile = \"redflow\"",
            "REDFLOW_PROFILE",
            "strict",
            "--profile",
            |flags| flags.profile = Some("redflow"),
            ["strict", "redflow", "strict", "redflow"],
        ),
        (
            "log.level",
            "[log]\nlevel = \"debug\"",
            "REDFLOW_LOG",
            "error",
            "--log",
            |flags| flags.log = Some("trace".to_owned()),
            ["warn", "debug", "error", "trace"],
        ),
    ];
    for (key, file, variable, in_env, flag, set, [default, from_file, from_env, from_flag]) in rows {
        // Every combination of the three layers that can set a value.
        for layers in 0..8_u8 {
            let has = |bit: u8| layers & bit != 0;
            let mut flags = Flags::default();
            if has(4) {
                set(&mut flags);
            }
            let home = ("HOME", "/srv");
            let env = if has(2) { vec![home, (variable, in_env)] } else { vec![home, (variable, " ")] };
            let settings = load(if has(1) { file } else { "" }, &env, flags).ok().unwrap();
            let (value, origin) = row(&settings, key);
            let expected = match layers {
                4.. => (from_flag, flag.to_owned()),
                2.. => (from_env, variable.to_owned()),
                1 => (from_file, "line 2".to_owned()),
                _ => (default, "default".to_owned()),
            };
            if cfg!(unix) || key != "server.data" && key != "server.flows" {
                assert_eq!(value, expected.0, "{key} {layers}");
            }
            let origin = origin.to_string();
            assert_eq!(origin.rsplit(", ").next().unwrap(), expected.1, "{key} {layers}");
        }
    }
}

#[test]
fn every_key_of_the_file_is_read() {
    let settings = load(
        "[server]\nlisten = \"[::1]:0\"\nhosts = [\"flows.example\", \"flows.example:8443\"]\n\
         origins = [\"https://console.example\"]\nhttps = true\nrate_per_second = 7\nrate_burst = 8\n\
         max_connections = 9\nmax_body_bytes = 0x1_000\nheader_timeout_ms = 11\nbody_timeout_ms = 12\ndrain_ms = 0\n\
         events_kept = 14\n\
         [limits]\nmax_active = 1\nmax_active_per_agent = 2\nmax_queued = 0\nmax_queued_per_agent = 4\nmax_runs = 5\n\
         max_deliveries = 6\n\
         [run_budget]\ntokens = 1000\ncost = 0.5\nmodel_calls = 3\ntool_calls = 0\n\
         [http]\nproxy = \"http://u:p@proxy:3128\"\nno_proxy = [\"intranet.example\", \"10.0.0.0/8\"]\nconnect_timeout_ms = 5\n\
         [egress]\nschemes = [\"https\"]\nports = [443, 8443]\nallow = [\"*.example.org\"]\n\
         deny = [\"secret.example.org\"]\nprivate = [\"nas.lan:8123\"]\nproxy = \"\"\nmax_body_bytes = 4096\n\
         [prices.\"gpt-5*\"]\ninput = 1\noutput = 2.5\ncached = 0.1\n\
         [archive]\nencrypt = true\n[memory]\nmax_sessions = 7\nmax_bytes = 8\n[log]\nlevel = \"debug\"\nformat = \"json\"\nredact = \"secrets\"\n",
        &[],
        Flags::default(),
    )
    .map_err(|problems| problems.join("\n"));
    let settings = settings.unwrap_or_else(|problems| panic!("{problems}"));
    let server = &settings.server;
    assert_eq!(server.listen.value.to_string(), "[::1]:0");
    assert_eq!(server.hosts.value, ["flows.example", "flows.example:8443"]);
    assert_eq!(server.origins.value, ["https://console.example"]);
    assert!(server.https.value);
    assert_eq!(
        (server.rate_per_second.value, server.rate_burst.value, server.max_connections.value),
        (7, 8, 9)
    );
    assert_eq!(
        (server.max_body_bytes.value, server.header_timeout_ms.value, server.body_timeout_ms.value),
        (4096, 11, 12)
    );
    assert_eq!((server.drain_ms.value, server.events_kept.value), (0, 14));
    let limits = settings.limits;
    assert_eq!((limits.max_active, limits.max_active_per_agent, limits.max_queued), (1, 2, 0));
    assert_eq!((limits.max_queued_per_agent, limits.max_runs, limits.max_deliveries), (4, 5, 6));
    let budget = Budget { tokens: Some(1000), cost: Some(0.5), model_calls: Some(3), tool_calls: Some(0) };
    assert_eq!(settings.run_budget, budget);
    assert_eq!(settings.http.connect_timeout.as_millis(), 5);
    assert_eq!(settings.http.proxy.as_ref().and_then(url::Url::port), Some(3128));
    for (url, is_listed) in
        [("http://a.intranet.example", true), ("http://10.9.9.9", true), ("http://a.example", false)]
    {
        assert_eq!(settings.http.no_proxy.contains(&url.parse().unwrap()), is_listed, "{url}");
    }
    let egress = redflow_egress::Egress::new(settings.egress.clone());
    let refused_by = |url: &str| egress.judge(url).err().map(|refusal| refusal.rule.as_str());
    assert_eq!(refused_by("https://a.example.org:8443/"), None);
    assert_eq!(refused_by("http://nas.lan:8123/"), None);
    assert_eq!(refused_by("http://a.example.org/"), Some("scheme"));
    assert_eq!(refused_by("https://a.example.org:80/"), Some("port"));
    assert_eq!(refused_by("https://example.net/"), Some("name"));
    assert_eq!(refused_by("https://secret.example.org/"), Some("name"));
    assert_eq!(settings.egress.max_body_bytes(), 4096);
    assert_eq!((settings.memory.max_sessions, settings.memory.max_bytes), (7, 8));
    assert!(settings.archive.encrypt);
    assert!((settings.prices["gpt-5*"].output - 2.5).abs() < 1e-9);
    assert_eq!(settings.log.format.value, LogFormat::Json);
}

#[test]
fn everything_has_a_default() {
    let settings =
        load("", &[("HOME", "/srv")], Flags { logs: LogDefault::Service, ..Flags::default() }).ok().unwrap();
    assert_eq!(settings.server.profile.value, Profile::Strict);
    assert_eq!((settings.log.level.value.as_str(), settings.log.format.value), ("info", LogFormat::Auto));
    let set: Vec<&str> = settings
        .rows
        .iter()
        .filter(|row| row.origin != SettingOrigin::Default)
        .map(|row| row.key.as_str())
        .collect();
    assert_eq!(set, [] as [&str; 0]);
    assert!(settings.token.is_none() && settings.url.value.is_none());
    assert!(!settings.archive.encrypt && settings.archive.key.is_none());
    assert_eq!(settings.limits.max_active, 1024);
    assert_eq!(settings.run_budget, Budget::default());
    let bounds = settings.server.max_body_bytes.value;
    assert_eq!(bounds, 40 * 1024 * 1024);
}

#[test]
fn an_unknown_key_is_reported_with_the_known_ones() {
    let rows = [
        (
            "[http]\nprox = 1\n",
            "is wrong in line 2: unknown field `prox`, expected one of `proxy`, `no_proxy`, `ca_file`, `connect_timeout_ms`",
        ),
        (
            "[htp]\nproxy = 1\n",
            "is wrong in line 1: unknown field `htp`, expected one of `archive`, `egress`, `http`, `limits`, `log`, `memory`, `prices`, `run_budget`, `sandbox`, `server`",
        ),
        ("\n\nlisten = 1\n", "is wrong in line 3: unknown field `listen`, expected one of `archive`"),
        (
            "[server]\ntoken = \"s3cret-0123456789\"\n",
            "is wrong in line 2: unknown field `token`, expected one of `listen`",
        ),
        (
            "[prices.x]\ninput = 1\noutput = 1\ninput_cached = 1\n",
            "is wrong in line 4: unknown field `input_cached`, expected one of `input`",
        ),
        ("server = 1\n", "is wrong in line 1: `server` must be a section: [server]"),
        ("prices = 1\n", "is wrong in line 1: `prices` must be a section: [prices]"),
        ("[prices]\nx = 1\n", "is wrong in line 2: `prices.x` must be a section"),
        ("[server.listen]\nport = 1\n", "is wrong in line 1: it must be text"),
    ];
    for (file, expected) in rows {
        let found = problems(file, &[], Flags::default());
        assert_eq!(found.len(), 1, "{file}: {found:?}");
        assert!(
            found[0].starts_with("the configuration FILE ") && found[0].contains(expected),
            "{file}: {found:?}"
        );
        assert!(!found[0].contains(SECRET), "{found:?}");
    }
}

// SECURITY: config-errors
#[test]
fn a_wrong_value_is_reported_with_the_allowed_ones() {
    let rows = [
        ("[log]\nredact = \"some\"", "must be \"off\", \"secrets\" or \"all\""),
        ("[log]\nformat = 1", "must be \"auto\", \"human\" or \"json\""),
        ("[log]\nlevel = 1", "must be text"),
        ("[http]\n\nproxy = 5", "in line 3: it must be an address such as http://proxy.example:3128"),
        ("[http]\nproxy = \"socks5://proxy:1\"", "must be an address such as"),
        ("[http]\nproxy = \"s3cret-0123456789\"", "must be an address such as"),
        (
            "[http]\nno_proxy = \"a.example\"",
            "must be a list of at most 64 texts such as \"intranet.example\"",
        ),
        ("[http]\nno_proxy = [\"s3cret-0123456789@a.example\"]", "must be a list of at most 64 texts"),
        (
            "[http]\nca_file = \"no/such.pem\"",
            "the certificates in no/such.pem cannot be read: there is no such file",
        ),
        ("[http]\nconnect_timeout_ms = 0", "must be a whole number from 1 to 3600000"),
        ("[server]\nlisten = \"localhost:1\"", "must be an IP address and a port, such as 127.0.0.1:1881"),
        ("[server]\nlisten = \"127.0.0.1\"", "must be an IP address and a port"),
        ("[server]\nflows = \"\"", "must be a path"),
        ("[server]\nprofile = \"loose\"", "must be \"strict\" or \"redflow\""),
        ("[server]\nhttps = \"yes\"", "must be true or false"),
        ("[archive]\nencrypt = 1", "must be true or false"),
        ("[server]\nhosts = \"flows.example\"", "must be a list of at most 64 texts"),
        ("[server]\nhosts = [\"https://flows.example\"]", "such as \"redflow.example\""),
        ("[server]\nhosts = [1]", "must be a list"),
        ("[server]\norigins = [\"*\"]", "such as \"https://console.example\""),
        ("[server]\norigins = [\"null\"]", "must be a list"),
        ("[server]\norigins = [\"https://console.example/path\"]", "must be a list"),
        ("[server]\nredflow_ui = \"*\"", "must be one origin such as http://localhost:5173, without a path"),
        ("[server]\nredflow_ui = \"http://localhost:5173/\"", "must be one origin"),
        ("[server]\nredflow_ui = [\"http://localhost:5173\"]", "must be one origin"),
        ("[server]\nrate_per_second = 0", "must be a whole number from 1 to 1000000"),
        ("[server]\nrate_burst = -1", "must be a whole number from 1"),
        ("[server]\nmax_body_bytes = 9223372036854775807", "must be a whole number from 1024 to 1073741824"),
        ("[server]\nevents_kept = 1.5", "must be a whole number from 1 to 100000000"),
        ("[server]\ndrain_ms = 1979-05-27", "must be a whole number"),
        ("[limits]\nmax_active = 0", "must be a whole number from 1 to 100000000"),
        ("[memory]\nmax_sessions = true", "must be a whole number"),
        ("[egress]\nschemes = [\"ftp\"]", "only `https` and `http` are known"),
        ("[egress]\nports = [0]", "must be a list of ports from 1 to 65535"),
        ("[egress]\nports = 443", "must be a list of ports"),
        ("[egress]\nallow = [\"a.example\", \"https://s3cret-0123456789\"]", "entry 2: "),
        ("[egress]\ndeny = 1", "must be a list of at most 1000 texts"),
        (
            "[egress]\nprivate = [\"s3cret-0123456789\"]",
            "entry 1: the port is missing; write HOST:PORT, such as",
        ),
        ("[egress]\nprivate = [\"169.254.0.0/16:80\"]", "can only be allowed one by one"),
        ("[egress]\nproxy = \"s3cret-0123456789\"", "must be an address such as"),
        ("[egress]\nproxy = \"http://s3cret-0123456789@proxy/path\"", "more than a host and a port"),
        ("[egress]\nmax_body_bytes = 0", "must be a whole number from 1024 to 1073741824"),
        ("[prices.x]\ninput = 1", "missing field `output`"),
        ("[prices.x]\ninput = nan\noutput = 1", "must be a number from 0 to 1e9"),
        ("[prices.x]\ninput = 1\noutput = -1", "must be a number from 0 to 1e9"),
        ("[prices.x]\ninput = 1\noutput = 1\ncached = inf", "must be a number from 0 to 1e9"),
        ("[prices.x]\ninput = \"s3cret-0123456789\"\noutput = 1", "must be a number"),
        ("[http\nproxy = \"s3cret-0123456789\"", "in line 1: it is not TOML"),
        ("[http]\nproxy = s3cret-0123456789", "in line 2: it is not TOML"),
        ("[http]\nproxy = \"http://a\"\nproxy = \"http://b\"", "in line 3: duplicate key"),
    ];
    for (file, expected) in rows {
        let found = problems(file, &[], Flags::default());
        assert_eq!(found.len(), 1, "{file}: {found:?}");
        assert!(found[0].contains(expected), "{file}: {found:?}");
        assert!(!found[0].contains(SECRET), "{found:?}");
    }
}

#[test]
fn a_wrong_variable_or_flag_is_named() {
    let env = |name, value, expected: &str| {
        let found = problems("", &[(name, value)], Flags::default());
        assert_eq!(found, [format!("the variable {name} is wrong: it must {expected}")], "{value}");
    };
    env("REDFLOW_LISTEN", "s3cret", "be an IP address and a port, such as 127.0.0.1:1881 or [::1]:1881");
    let found = problems("", &[("REDFLOW_EGRESS_PRIVATE", "nas.lan:80,s3cret")], Flags::default());
    assert!(
        found[0].starts_with("the variable REDFLOW_EGRESS_PRIVATE is wrong: entry 2: the port"),
        "{found:?}"
    );
    env("REDFLOW_PROFILE", "s3cret", "be \"strict\" or \"redflow\"");
    env("REDFLOW_ARCHIVE_ENCRYPT", "yes", "be true or false");
    env("REDFLOW_ARCHIVE_KEY", "s3cret", "be 32 bytes in base64 or in hexadecimal digits");
    env("REDFLOW_TOKEN", "short s3cret", "be 16 to 512 visible ASCII characters");
    env("REDFLOW_URL", "s3cret", "be an address such as http://127.0.0.1:1881");
    env("REDFLOW_URL", "ftp://host", "be an address such as http://127.0.0.1:1881");
    env(
        "REDFLOW_URL",
        "http://me:s3cret@host",
        "hold no name and no password: the token comes from REDFLOW_TOKEN or a file",
    );
    env("REDFLOW_URL", "http://host/?token=s3cret", "end with its path");
    let flags = Flags { listen: Some("9".to_owned()), url: Some("x".to_owned()), ..Flags::default() };
    let found = problems("", &[], flags);
    assert_eq!(found.len(), 2);
    assert!(found[0].starts_with("the flag --listen is wrong: it must be an IP address"), "{found:?}");
    assert!(found[1].starts_with("the flag --url is wrong: "), "{found:?}");
}

#[test]
fn all_problems_are_reported_at_once_even_in_overridden_layers() {
    let file = "[server]\nlisten = \"x\"\nport = 1\nrate_burst = 0\n[log]\nlevel = 5\n[more]\n[prices.x]\n";
    let env = [("REDFLOW_LISTEN", "127.0.0.1:1"), ("REDFLOW_PROFILE", "x"), ("REDFLOW_URL", "x")];
    let flags =
        Flags { listen: Some("[::1]:1".to_owned()), log: Some("info".to_owned()), ..Flags::default() };
    let found = problems(file, &env, flags);
    let beginnings: Vec<&str> = found.iter().map(|text| text.split(": ").next().unwrap()).collect();
    assert_eq!(
        beginnings,
        [
            "the configuration FILE is wrong in line 2",
            "the variable REDFLOW_PROFILE is wrong",
            "the configuration FILE is wrong in line 4",
            "the configuration FILE is wrong in line 8",
            "the configuration FILE is wrong in line 8",
            "the configuration FILE is wrong in line 6",
            "the variable REDFLOW_URL is wrong",
            "the configuration FILE is wrong in line 7",
            "the configuration FILE is wrong in line 3",
        ],
        "{found:#?}"
    );
    // A file that cannot be parsed does not hide the other problems.
    let found = problems("[a\n[b\n", &[("REDFLOW_LISTEN", "x")], Flags::default());
    assert!(found.len() >= 2 && found.last().unwrap().contains("REDFLOW_LISTEN"), "{found:?}");
    let missing = Flags { config: Some(PathBuf::from("no/such.toml")), ..Flags::default() };
    let Err(ConfigErrors(found)) = Settings::load_with(&missing, &|_| None) else {
        panic!("there is no such file")
    };
    assert_eq!(found, ["the configuration no/such.toml cannot be read: there is no such file"]);
}

// SECURITY: log-tokens
#[test]
fn secrets_are_not_displayed() {
    let file = "[http]\nproxy = \"http://me:s3cret-0123456789@proxy:3128\"\n";
    let env = [("REDFLOW_TOKEN", SECRET), ("REDFLOW_MEMORY_KEY", SECRET), ("HOME", "/srv")];
    let hex = "5ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2e75ec2";
    let env = [&env[..], &[("REDFLOW_ARCHIVE_KEY", hex), ("REDFLOW_ARCHIVE_ENCRYPT", "true")]].concat();
    let settings = load(file, &env, Flags::default()).ok().unwrap();
    let from = |name| SettingOrigin::Environment { name };
    assert_eq!(row(&settings, "archive_key"), ("[set]".into(), from("REDFLOW_ARCHIVE_KEY")));
    assert_eq!(row(&settings, "archive.encrypt"), (true.into(), from("REDFLOW_ARCHIVE_ENCRYPT")));
    assert_eq!(row(&settings, "http.proxy").0, "http://••••@proxy:3128/");
    assert_eq!(
        row(&settings, "token"),
        ("[set]".into(), SettingOrigin::Environment { name: "REDFLOW_TOKEN" })
    );
    assert_eq!(
        row(&settings, "memory_key"),
        ("[set]".into(), SettingOrigin::Environment { name: "REDFLOW_MEMORY_KEY" })
    );
    let rows = serde_json::to_string(&settings.rows).unwrap();
    assert!(!rows.contains("s3cret") && !rows.contains("5ec2e7"), "{rows}");
    for part in [
        format!("{:?}", settings.server),
        format!("{:?}", settings.http),
        format!("{:?} {:?}", settings.token, settings.archive),
    ] {
        assert!(!part.contains("s3cret") && !part.contains("5ec2e7"), "{part}");
    }
}

#[test]
fn the_redflow_ui_is_one_origin_and_implies_its_profile() {
    const UI: &str = "http://localhost:5173";
    let in_file = "[server]\nredflow_ui = \"http://localhost:5173\"\n";
    let flag = |origin: &str| Flags { redflow_ui: Some(origin.to_owned()), ..Flags::default() };
    let rows = [
        (in_file, "", Flags::default(), UI, "line 2"),
        (in_file, "http://b", Flags::default(), "http://b", "REDFLOW_UI"),
        (in_file, "http://b", flag("HTTPS://C:443"), "https://c", "--redflow-ui"),
    ];
    for (file, in_env, flags, origin, from) in rows {
        let settings = load(file, &[("REDFLOW_UI", in_env)], flags).ok().unwrap();
        assert_eq!(settings.server.redflow_ui.value.as_deref(), Some(origin));
        let (value, place) = row(&settings, "server.redflow_ui");
        assert_eq!((value, place.to_string().ends_with(from)), (Value::from(origin), true), "{place}");
        assert_eq!(settings.server.profile.value, Profile::Redflow);
        let (profile, place) = row(&settings, "server.profile");
        assert_eq!(
            (profile, place.to_string()),
            ("redflow".into(), "implied by server.redflow_ui".to_owned())
        );
        assert_eq!(serde_json::to_value(&place).unwrap()["from"], "implied");
    }
    // A profile that any layer sets overrides the implied one.
    let strict_file = "[server]\nprofile = \"strict\"\n";
    let strict_flag = Flags { profile: Some("strict"), ..flag(UI) };
    for (file, in_env, flags, from) in [
        (strict_file, "", flag(UI), "line 2"),
        ("", "strict", flag(UI), "REDFLOW_PROFILE"),
        ("", "", strict_flag, "--profile"),
    ] {
        let settings = load(file, &[("REDFLOW_PROFILE", in_env)], flags).ok().unwrap();
        assert_eq!(settings.server.profile.value, Profile::Strict);
        assert!(settings.server.profile.origin.to_string().ends_with(from), "{from}");
    }
}

#[test]
fn the_redflow_ui_requires_a_loopback_address() {
    let ui = Some("http://localhost:5173".to_owned());
    for listen in ["0.0.0.0:1880", "[::]:1880", "192.168.0.9:1880"] {
        let flags = Flags { redflow_ui: ui.clone(), listen: Some(listen.to_owned()), ..Flags::default() };
        let found = problems("", &[], flags);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("the flag --redflow-ui is wrong: pages of the Redflow UI need no token")
        );
        assert!(found[0].ends_with("with --listen 127.0.0.1:1880"), "{found:?}");
    }
    for listen in ["127.0.0.1:1880", "[::1]:1880"] {
        let flags = Flags { redflow_ui: ui.clone(), listen: Some(listen.to_owned()), ..Flags::default() };
        assert_eq!(problems("", &[], flags), [""; 0], "{listen}");
    }
}

#[test]
fn private_hosts_come_from_flags_the_environment_or_the_file() {
    let file = "[egress]\nprivate = [\"file.lan:1\"]";
    let env = [("REDFLOW_EGRESS_PRIVATE", "env.lan:2, env.lan:3")];
    let flags = || Flags {
        allow_private: vec!["flag.lan:4".to_owned(), "flag.lan:5".to_owned()],
        ..Flags::default()
    };
    let loaded = |file, env: &[_], flags| row(&load(file, env, flags).ok().unwrap(), "egress.private");
    assert_eq!(loaded(file, &[], Flags::default()).0, serde_json::json!(["file.lan:1"]));
    let (value, origin) = loaded(file, &env, Flags::default());
    assert_eq!(
        (value, origin.to_string()),
        (serde_json::json!(["env.lan:2", "env.lan:3"]), env[0].0.to_owned())
    );
    let (value, origin) = loaded(file, &env, flags());
    assert_eq!(value, serde_json::json!(["flag.lan:4", "flag.lan:5"]));
    assert_eq!(origin.to_string(), "--allow-private");
}

#[test]
fn the_password_of_the_proxy_for_tools_is_not_shown() {
    let file = "[egress]\nproxy = \"http://me:s3cret-0123456789@proxy.example:3128\"";
    let settings = load(file, &[], Flags::default()).ok().unwrap();
    let (value, _) = row(&settings, "egress.proxy");
    assert!(!value.to_string().contains(SECRET) && value.to_string().contains("proxy.example"), "{value}");
    assert!(!format!("{:?}", settings.egress).contains(SECRET));
}

#[test]
fn the_file_in_the_data_directory_counts_if_no_other_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, burst: u32| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("[server]\nrate_burst = {burst}\n")).unwrap();
        path
    };
    let in_data = file("data/redflow.toml", 1);
    let named = file("named.toml", 3);
    let at = |name: &str| Some(folder.path().join(name));
    let load = |flags: Flags, env: &[(&str, Option<PathBuf>)]| {
        let find = |name: &str| {
            let (_, value) = env.iter().find(|(key, _)| *key == name)?;
            value.clone().map(PathBuf::into_os_string)
        };
        let settings = Settings::load_with(&flags, &find).ok().unwrap();
        (settings.server.rate_burst.value, settings.file)
    };
    let data = Flags { data: at("data"), ..Flags::default() };
    let other = Flags { data: at("other"), ..Flags::default() };
    let with_file = Flags { config: Some(named.clone()), ..data.clone() };
    let by_variable = ("REDFLOW_CONFIG", Some(named.clone()));
    let moved = ("REDFLOW_DATA", at("data"));
    for (flags, env, expected) in [
        (&data, vec![], (1, Some(&in_data))),
        (&other, vec![], (200, None)),
        (&Flags::default(), vec![moved], (1, Some(&in_data))),
        (&with_file, vec![], (3, Some(&named))),
        (&data, vec![by_variable], (3, Some(&named))),
    ] {
        let (burst, file) = load(flags.clone(), &env);
        assert_eq!((burst, file.as_ref()), expected, "{flags:?} {env:?}");
    }
    // A file that is there must be readable.
    std::fs::create_dir_all(folder.path().join("wrong/redflow.toml")).unwrap();
    let wrong = Flags { data: at("wrong"), ..Flags::default() };
    assert!(Settings::load_with(&wrong, &|_| None).is_err());
}
