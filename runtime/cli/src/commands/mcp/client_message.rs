//! A message of an MCP client on standard input, with the headers that it needs over HTTP.
//!
//! Since 2026-07-28 a request names its method, its tool or resource, and some arguments in headers too. A client on
//! standard input sends no headers, so they are made from the message.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use redflow_contract::tool::provider_name;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::HashMap;

/// The first version of the protocol without sessions.
const MODERN: &str = "2026-07-28";

pub(super) const VERSION_HEADER: &str = "mcp-protocol-version";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The property of a schema that names the header of an argument.
const ANNOTATION: &str = "x-mcp-header";

/// The most tools whose arguments are sent as headers, and the most such arguments of a tool.
const MAX_TOOLS: usize = 1_000;
const MAX_PARAMS: usize = 32;

/// The deepest argument that is sent as a header.
const MAX_DEPTH: usize = 8;

/// A value that cannot be sent as it is has base64 between these.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

pub(super) struct ClientMessage {
    pub(super) method: String,
    /// None for a notification or a response.
    pub(super) id: Option<Value>,
    /// The id of the request that the message cancels, as JSON.
    pub(super) cancels: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    is_modern: bool,
}

impl ClientMessage {
    pub(super) fn new(message: &Value, line: Vec<u8>, params: &ParamHeaders) -> Self {
        let method = message["method"].as_str().unwrap_or_default();
        let version = message["params"]["_meta"][VERSION_KEY].as_str().filter(|version| *version >= MODERN);
        let mut headers = HeaderMap::new();
        if let Some(version) = version {
            let name = message["params"]["name"].as_str().or_else(|| message["params"]["uri"].as_str());
            let own = [(VERSION_HEADER, Some(version)), ("mcp-method", Some(method)), ("mcp-name", name)];
            for (name, value) in own {
                if let Some(value) = value.and_then(header_value) {
                    headers.insert(name, value);
                }
            }
            if method == "tools/call" {
                params.insert(name.unwrap_or_default(), &message["params"]["arguments"], &mut headers);
            }
        }
        let is_cancel = method == "notifications/cancelled";
        Self {
            method: method.to_owned(),
            id: message.get("id").filter(|_| !method.is_empty()).cloned(),
            cancels: is_cancel.then(|| message["params"]["requestId"].to_string()),
            headers,
            body: Bytes::from(line),
            is_modern: version.is_some(),
        }
    }

    /// Whether the version of the message has no sessions.
    pub(super) fn is_modern(&self) -> bool {
        self.is_modern
    }

    pub(super) fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }
}

/// A text as the value of a header. One with other characters than visible ASCII is encoded.
fn header_value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && text.trim() == text;
    let looks_encoded = text.starts_with(ENCODED.0) && text.ends_with(ENCODED.1);
    if is_plain && !looks_encoded {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("{}{}{}", ENCODED.0, BASE64_STANDARD.encode(text), ENCODED.1)).ok()
}

/// The arguments that are sent as headers too, of each tool that the sidecar has listed.
#[derive(Default)]
pub(super) struct ParamHeaders(HashMap<String, Vec<ParamHeader>>);

struct ParamHeader {
    /// The names of the properties from the arguments to the value.
    path: Vec<String>,
    header: HeaderName,
}

impl ParamHeaders {
    /// Reads the schemas of listed tools.
    pub(super) fn add(&mut self, tools: &[Value]) {
        for tool in tools {
            let Some(name) = tool["name"].as_str() else { continue };
            let mut found = Vec::new();
            find_params(&tool["inputSchema"], &mut Vec::new(), &mut found);
            if found.is_empty() {
                self.0.remove(name);
            } else if self.0.contains_key(name) || self.0.len() < MAX_TOOLS {
                self.0.insert(name.to_owned(), found);
            }
        }
    }

    fn insert(&self, tool: &str, arguments: &Value, headers: &mut HeaderMap) {
        // A call may use the id with dots, of which the listed name is made.
        let params = self.0.get(tool).or_else(|| self.0.get(&provider_name(tool)));
        for ParamHeader { path, header } in params.into_iter().flatten() {
            let value = path.iter().try_fold(arguments, |value, name| value.get(name));
            let text = match value {
                Some(Value::String(text)) => text.clone(),
                Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
                _ => continue,
            };
            if let Some(value) = header_value(&text) {
                headers.insert(header.clone(), value);
            }
        }
    }
}

fn find_params(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
    let Some(properties) = schema["properties"].as_object().filter(|_| path.len() < MAX_DEPTH) else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        let header = property[ANNOTATION].as_str().map(|header| format!("mcp-param-{header}"));
        let header = header.and_then(|header| HeaderName::from_bytes(header.as_bytes()).ok());
        if let Some(header) = header.filter(|_| found.len() < MAX_PARAMS) {
            found.push(ParamHeader { path: path.clone(), header });
        }
        find_params(property, path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientMessage, MAX_PARAMS, MAX_TOOLS, ParamHeaders};
    use serde_json::{Value, json};

    fn call(name: &str, arguments: &Value, params: &ParamHeaders) -> ClientMessage {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let params_of_call = json!({"name": name, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params_of_call});
        ClientMessage::new(&message, Vec::new(), params)
    }

    fn header<'m>(message: &'m ClientMessage, name: &str) -> Option<&'m str> {
        message.headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn a_name_that_is_no_header_value_is_encoded() {
        let params = ParamHeaders::default();
        for (name, expected) in [
            ("agent.Ümlaut", "=?base64?YWdlbnQuw5xtbGF1dA==?="),
            ("a b", "a b"),
            (" a", "=?base64?IGE=?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(header(&call(name, &json!({}), &params), "mcp-name"), Some(expected), "{name}");
        }
        let old = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}});
        let old = ClientMessage::new(&old, Vec::new(), &params);
        assert!(!old.is_modern() && old.headers.is_empty());
    }

    #[test]
    fn arguments_with_a_header_are_sent_twice() {
        let mut params = ParamHeaders::default();
        let inner =
            json!({"type": "object", "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}}});
        let properties = json!({"region": {"type": "string", "x-mcp-header": "Region"}, "inner": inner,
            "fast": {"type": "boolean", "x-mcp-header": "Fast"}, "bad": {"type": "string", "x-mcp-header": "a b"}});
        params.add(&[json!({"name": "t", "inputSchema": {"type": "object", "properties": properties}})]);
        let sent =
            call("t", &json!({"region": "süd", "fast": true, "inner": {"tenant": "x"}, "bad": "y"}), &params);
        assert_eq!(header(&sent, "mcp-param-region"), Some("=?base64?c8O8ZA==?="));
        assert_eq!(
            (header(&sent, "mcp-param-fast"), header(&sent, "mcp-param-tenant")),
            (Some("true"), Some("x"))
        );
        assert_eq!(sent.headers.len(), 6);
        assert_eq!(header(&call("t", &json!({"region": null}), &params), "mcp-param-region"), None);
        // The next list counts.
        params.add(&[json!({"name": "t", "inputSchema": {"type": "object"}})]);
        assert_eq!(header(&call("t", &json!({"region": "x"}), &params), "mcp-param-region"), None);
    }

    #[test]
    fn a_call_by_the_id_with_dots_has_the_headers_of_the_listed_name() {
        let mut params = ParamHeaders::default();
        let properties = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
        let schema = json!({"type": "object", "properties": properties});
        params.add(&[json!({"name": "test__shop", "inputSchema": schema})]);
        for name in ["test__shop", "test.shop"] {
            let sent = call(name, &json!({"region": "x"}), &params);
            assert_eq!(header(&sent, "mcp-param-region"), Some("x"), "{name}");
        }
        assert_eq!(header(&call("shop", &json!({"region": "x"}), &params), "mcp-param-region"), None);
    }

    #[test]
    fn a_list_cannot_grow_without_end() {
        let mut params = ParamHeaders::default();
        let many = |count: usize| {
            let property = |number: usize| {
                (format!("p{number}"), json!({"type": "string", "x-mcp-header": format!("H{number}")}))
            };
            Value::Object((0..count).map(property).collect())
        };
        let tool = |number: usize, properties: Value| json!({"name": format!("t{number}"), "inputSchema": {"type": "object", "properties": properties}});
        params.add(&[tool(0, many(MAX_PARAMS + 1))]);
        assert_eq!(params.0["t0"].len(), MAX_PARAMS);
        let tools: Vec<Value> = (0..=MAX_TOOLS).map(|number| tool(number, many(1))).collect();
        params.add(&tools);
        assert_eq!(params.0.len(), MAX_TOOLS);
        let mut deep = many(1);
        for _ in 0..20 {
            deep = json!({"p": {"type": "object", "properties": deep}});
        }
        params.add(&[tool(0, deep)]);
        assert!(!params.0.contains_key("t0"));
    }
}
