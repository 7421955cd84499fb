use super::{
    LONGEST_WORD, is_auth_scheme, is_connection_setting, is_credential_detail, is_credential_key,
    is_credential_wrapper, is_empty_value, is_encrypted_key, is_secret_name, is_secret_parameter,
    is_secret_phrase, is_secret_storage_name, is_secret_variable, last_words, redact, words,
};
use serde_json::json;

#[test]
fn names_that_hold_secrets() {
    let secret = "apiKey apikey OPENAI_API_KEY api-key apiKeys API_KEY_1 key.api.key password PASSWORD2 passwords \
        dbpassword GITHUB_TOKEN token tokens accessToken accesstoken accessTokens credentials credential \
        clientSecret secrets pwd dbPwd pass smtp_pass passwd passphrase auth basicAuth bearer cookie \
        cookies Set-Cookie authorization Proxy-Authorization openaiKey SSH_KEY signingKey x-api-key pin \
        userPIN SECRET_KEY_BASE secretKeyBase GITHUB_PAT pat SENTRY_DSN dsn CONNECTION_STRING connectionStrings \
        AZURE_STORAGE_CONNECTION_STRING DB_CONN_STR SSH_PASSPHRASE TLS_PRIVATE_KEY AUTH_JWT AWS_CREDS headerValue";
    for name in secret.split_whitespace() {
        assert!(is_secret_name(name), "{name}");
    }
    let open = "promptTokens maxTokens max_tokens totalTokens maxtokens author oauthor key keys KEY_1 keyPrefix \
        monkey monkeys publicKey primaryKey primary_keys foreignKey sortKey partitionKey cacheKey \
        idempotencyKey Idempotency-Key tokenizer name compass bypass passes spin pins_count authority \
        cookieless secretary 1 _ é pattern path compat base baseURL DATABASE_URL connection string strings";
    for name in open.split_whitespace().chain([""]) {
        assert!(!is_secret_name(name), "{name}");
    }
}

// SECURITY: secret-variables
#[test]
fn variables_are_secret_by_name_or_value() {
    let secret = "DATABASE_URL database_url POSTGRES_URI MONGODB_URI REDIS_URL APP_DB_URL BROKER_URL SLACK_WEBHOOK_URL \
        DATABASE_URL_2 API_KEY GITHUB_PAT SECRET_KEY_BASE";
    for name in secret.split_whitespace() {
        assert!(is_secret_variable(name, None), "{name}");
    }
    for (name, value) in [
        ("DATABASE_URL", "Server=db;Password=s3cret"),
        ("DATABASE_URL", "host=db.example user=app password=s3cret"),
        ("DATABASE_URL", "mysql://db/app?password=s3cret"),
        ("DATABASE_URL", "libsql://db.example?tls=0&authToken=s3cret"),
        ("DATABASE_URL", "jdbc:oracle:thin:scott/tiger@db"),
        ("BROKER_URL", "ada:s3cret@mqtt.local:1883"),
        // The path is the secret.
        ("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T0/B0/XXXX"),
        ("DISCORD_WEBHOOK", "https://discord.com/api/webhooks/1/XXXX"),
        ("WEBHOOK_URIS", "https://hooks.example/a https://hooks.example/b"),
    ] {
        assert!(is_secret_variable(name, Some(value)), "{name}={value}");
    }
    for (name, value) in [
        ("REDIS_URL", "redis://cache.example:6379/0"),
        ("BROKER_URL", "mqtt.local:1883"),
        ("DATABASE_URL", "sqlite:./dev.db"),
        ("DATABASE_URL", "host=db.example user=app"),
        ("MONGODB_URI", "mongodb://localhost/app?retryWrites=true&authSource=admin"),
        ("WEBHOOK", "true"),
        ("VOICE", "sk-SK-LukasNeural"),
        ("TOPIC", "home/rf_temperature_sensor_livingroom"),
        ("SETTING", "npm_config_registry_mirror_url"),
    ] {
        assert!(!is_secret_variable(name, Some(value)), "{name}={value}");
    }
    for name in ["BASE_URL", "OPENAI_BASE_URL", "HOME", "URL", "MODEL_URL", "TOWN", "DATABASE"] {
        assert!(!is_secret_variable(name, Some("https://host.example/v1")), "{name}");
        assert!(is_secret_variable(name, Some("https://ada:s3cret@host.example/v1")), "{name}");
    }
}

#[test]
fn splits_names_into_words() {
    for (name, expected) in [
        ("APIKey_v2", "api key v"),
        ("x-api.key_1_2", "x api key"),
        ("oauth2Token", "oauth2 token"),
        ("__a__b", "a b"),
        ("ÄpfelZahl", "äpfel zahl"),
    ] {
        assert_eq!(words(name).join(" "), expected, "{name}");
    }
}

#[test]
fn a_key_in_a_phrase_is_secret_by_the_word_before_it() {
    for (before, name, secret) in [
        ("api", "key", true),
        ("Signing", "KEY", true),
        ("the", "password", true),
        ("primary", "key", false),
        ("", "key", false),
        ("api", "keys", false),
        ("api", "name", false),
    ] {
        assert_eq!(is_secret_phrase(before, name), secret, "{before} {name}");
    }
}

#[test]
fn names_of_secret_url_parameters() {
    for (name, secret) in
        [("key", true), ("code", true), ("sig", true), ("signature", true), ("token", true), ("q", false)]
    {
        assert_eq!(is_secret_parameter(name), secret, "{name}");
    }
}

#[test]
fn names_of_secrets_in_the_storage_of_the_ui() {
    for name in ["key", "KEY", "connectionString", "connection_string", "DSN", "creds", "apiKey", "password"]
    {
        assert!(is_secret_storage_name(name), "{name}");
    }
    for name in ["keys", "keyPrefix", "connection", "theme", ""] {
        assert!(!is_secret_storage_name(name), "{name}");
    }
}

#[test]
fn settings_and_details_of_credentials_are_not_secret() {
    for (name, setting, detail) in [
        ("host", true, false),
        ("BaseURL", true, false),
        ("name", true, true),
        ("endpoint", true, true),
        ("apiVersion", false, true),
        ("apiversion", false, false),
        ("password", false, false),
        ("data", false, false),
    ] {
        assert_eq!(is_connection_setting(name), setting, "{name}");
        assert_eq!(is_credential_detail(name), detail, "{name}");
        assert_eq!(is_credential_wrapper(name), name == "data", "{name}");
    }
}

#[test]
fn storage_keys_of_credentials_and_of_encrypted_values() {
    for (key, credential, encrypted) in [
        ("node-credentials:m", true, false),
        (" Node_Credentials:m", true, false),
        ("credential:1", true, false),
        ("credentials:1", true, false),
        ("encrypted:credential:1", true, true),
        ("ENCRYPTED: credential:1", true, true),
        ("encrypted:theme", false, true),
        ("node-config:m", false, false),
        ("my-credential:1", false, false),
        ("", false, false),
    ] {
        assert_eq!(is_credential_key(key), credential, "{key}");
        assert_eq!(is_encrypted_key(key), encrypted, "{key}");
    }
}

#[test]
fn words_around_a_secret_in_free_text() {
    assert!(is_auth_scheme("Bearer") && is_auth_scheme("basic") && !is_auth_scheme("sk-1"));
    assert!(is_empty_value("None") && is_empty_value("undefined") && !is_empty_value("0"));
}

#[test]
fn redacts_at_any_depth_and_keeps_references() {
    let value =
        json!({"apiKey": "sk-1", "a": [{"password": {"p": 1}, "n": 1}], "token": "${T}", "secret": ""});
    let safe = json!({"apiKey": "[redacted]", "a": [{"password": "[redacted]", "n": 1}], "token": "${T}", "secret": ""});
    assert_eq!(redact(&value), safe);
}

#[test]
fn only_a_whole_reference_stays() {
    for kept in [json!("${T}"), json!("$(T)"), json!("${$parent.T}"), json!(null), json!(true), json!([])] {
        assert_eq!(redact(&json!({"apiKey": kept})), json!({"apiKey": kept}));
    }
    for hidden in [
        json!("${PFX}sk-1${SFX}"),
        json!("${A}}"),
        json!("${A B}"),
        json!("${}"),
        json!("$(A)sk-1$(B)"),
        json!("${A} "),
        json!("x${A}"),
        json!(1234),
        json!(["${A}"]),
    ] {
        assert_eq!(redact(&json!({"pin": hidden})), json!({"pin": "[redacted]"}), "{hidden}");
    }
}

/// The words that are read without a copy are those of the copy.
#[test]
fn the_last_words_of_a_name_are_the_last_of_its_words() {
    let names = [
        "",
        "_",
        "x",
        "id",
        "apiKey",
        "APIKey_v2",
        "OPENAI_API_KEY_2",
        "a.b-c",
        "maxTokens",
        "HTTPServer",
        "aB",
        "AB",
        "ABc",
        "x1y2Z3",
        "__key__",
        "key9",
        "9key",
        "some key: ",
        "accessTokens",
        "connectionString",
    ];
    for name in names {
        let mut words = words(name);
        let last = words.pop().unwrap();
        let mut small = [[0; LONGEST_WORD]; 2];
        assert_eq!(
            last_words(name, &mut small),
            Some((words.last().map(String::as_str), last.as_str())),
            "{name}"
        );
    }
    for name in ["schlüssel", &"x".repeat(LONGEST_WORD + 1)] {
        assert_eq!(last_words(name, &mut [[0; LONGEST_WORD]; 2]), None);
    }
}
