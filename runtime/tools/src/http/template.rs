//! Requests of the manifest's tools: an address with a fixed host, and values of the input in its path, its query,
//! its headers and its body. Pure: it sends nothing.

use super::input::is_json_type;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use redflow_contract::Message;
use redflow_contract::http_rules::{
    check_host_pattern, is_header_name, is_header_value, is_transport_header,
};
use redflow_contract::manifest::{HttpMethod, ManifestTool};
use redflow_contract::template::{TextTemplate, check_value, fill_value, value_at};
use serde_json::Value;
use std::fmt::Write as _;

/// A request with places for the values of an input.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTemplate {
    /// The method.
    pub method: HttpMethod,
    /// The host of every request, with its port.
    pub host: String,
    /// Scheme and authority.
    origin: String,
    /// The segments of the path, without their slashes.
    segments: Vec<TextTemplate>,
    /// The pairs of the query.
    query: Vec<QueryPair>,
    headers: Vec<(HeaderName, TextTemplate)>,
    body: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
struct QueryPair {
    /// The name with `=`; the whole pair if it has no value.
    name: String,
    value: TextTemplate,
}

/// A request for one input.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledRequest {
    /// The whole address.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; empty if there is none.
    pub body: Bytes,
}

impl RequestTemplate {
    /// Reads the request of a tool of the manifest.
    ///
    /// # Errors
    /// All problems, each as a sentence that begins with the property.
    pub fn read(tool: &ManifestTool) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut headers = Vec::new();
        for (name, value) in &tool.headers {
            match read_header(name, value) {
                Ok(header) => headers.push(header),
                Err(problem) => problems.push(format!("`headers`: {problem}")),
            }
        }
        if let Some(Err(problem)) = tool.body.as_ref().map(check_value) {
            problems.push(format!("`body`: {problem}"));
        }
        let url = read_url(&tool.url).map_err(|problem| problems.push(format!("`url`: {problem}")));
        let (Ok(UrlTemplate { origin, host, segments, query }), true) = (url, problems.is_empty()) else {
            return Err(problems);
        };
        let (method, body) = (tool.method.unwrap_or(HttpMethod::Get), tool.body.clone());
        Ok(Self { method, host, origin, segments, query, headers, body })
    }

    /// Makes the request for an input. Values cannot change the host, add a segment, a pair or a header.
    ///
    /// # Errors
    /// A sentence for the model, when a value is missing or cannot stand in its place.
    pub fn fill(&self, input: &Message) -> Result<FilledRequest, String> {
        let (headers, body) = self.fill_message(input)?;
        Ok(FilledRequest { url: self.fill_url(input)?, headers, body })
    }

    fn fill_url(&self, input: &Message) -> Result<String, String> {
        let mut url = self.origin.clone();
        for segment in &self.segments {
            let filled = segment.fill_text(input, encode_segment)?;
            let is_fixed = !has_placeholder(segment);
            if !is_fixed && is_dots(&filled) {
                return Err("a value would become `.` or `..` in the path; use another".to_owned());
            }
            url.push('/');
            url.push_str(&filled);
        }
        let mut mark = '?';
        for QueryPair { name, value } in &self.query {
            // A value that the input lacks is left out with its name.
            if value.single().is_some_and(|path| value_at(input, path).is_none()) {
                continue;
            }
            url.push(mark);
            url.push_str(name);
            url.push_str(&value.fill_text(input, |text| Ok(encode(text)))?);
            mark = '&';
        }
        Ok(url)
    }

    fn fill_message(&self, input: &Message) -> Result<(HeaderMap, Bytes), String> {
        let mut headers = HeaderMap::new();
        for (name, template) in &self.headers {
            if template.single().is_some_and(|path| value_at(input, path).is_none()) {
                continue;
            }
            let filled = template.fill_text(input, |text| Ok(text.to_owned()))?;
            let value = HeaderValue::from_str(&filled).ok().filter(|_| is_header_value(&filled));
            let problem = || format!("the value for the header `{name}` must be printable ASCII in one line");
            headers.insert(name.clone(), value.ok_or_else(problem)?);
        }
        let body = match (&self.body, self.method) {
            (Some(template), _) => fill_value(template, input)?,
            (None, HttpMethod::Post | HttpMethod::Put) => Value::Object(input.clone()),
            (None, HttpMethod::Get | HttpMethod::Delete) => return Ok((headers, Bytes::new())),
        };
        let is_json = |value: &HeaderValue| value.to_str().is_ok_and(is_json_type);
        if !headers.get(CONTENT_TYPE).is_some_and(is_json) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok((headers, Bytes::from(body.to_string())))
    }
}

struct UrlTemplate {
    origin: String,
    host: String,
    segments: Vec<TextTemplate>,
    query: Vec<QueryPair>,
}

fn read_url(url: &str) -> Result<UrlTemplate, String> {
    let (scheme, port, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => ("https", 443, rest),
        (None, Some(rest)) => ("http", 80, rest),
        (None, None) => return Err("it must begin with https:// or http://".to_owned()),
    };
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains(['\\', '#']) {
        return Err("it must be printable ASCII without spaces, `\\` and `#`".to_owned());
    }
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if authority.contains(['{', '}', '*']) {
        return Err("its host must be fixed; placeholders belong in the path and the query".to_owned());
    }
    check_host_pattern(authority).map_err(|problem| format!("its host cannot be used: {problem}"))?;
    let has_port = authority.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
    let host = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    let path = path.strip_prefix('/').unwrap_or(path);
    let segments = path.split('/').map(TextTemplate::parse).collect::<Result<Vec<_>, _>>()?;
    if segments.iter().any(|segment| !has_placeholder(segment) && is_dots(&fixed_text(segment))) {
        return Err("its path has a segment `.` or `..`".to_owned());
    }
    let query =
        query.into_iter().flat_map(|query| query.split('&')).map(read_pair).collect::<Result<Vec<_>, _>>()?;
    Ok(UrlTemplate { origin: format!("{scheme}://{authority}"), host, segments, query })
}

fn read_pair(pair: &str) -> Result<QueryPair, String> {
    let (name, value) = pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value)));
    if name.contains("{{") {
        return Err("a placeholder cannot be a name in the query".to_owned());
    }
    let name = if value.is_some() { format!("{name}=") } else { name.to_owned() };
    Ok(QueryPair { name, value: TextTemplate::parse(value.unwrap_or_default())? })
}

fn read_header(name: &str, value: &str) -> Result<(HeaderName, TextTemplate), String> {
    let parsed = HeaderName::from_bytes(name.as_bytes()).ok().filter(|_| is_header_name(name));
    let usable = parsed.filter(|parsed| !is_transport_header(parsed.as_str()));
    let name = usable.ok_or_else(|| format!("`{}` cannot be set", name.escape_default()))?;
    if !is_header_value(value) {
        return Err(format!("the value of `{name}` must be printable ASCII in one line"));
    }
    Ok((name, TextTemplate::parse(value)?))
}

fn has_placeholder(template: &TextTemplate) -> bool {
    template.parts.iter().any(|part| matches!(part, redflow_contract::template::TemplatePart::Input(_)))
}

fn fixed_text(template: &TextTemplate) -> String {
    template.fill_text(&Message::new(), |text| Ok(text.to_owned())).unwrap_or_default()
}

/// Whether a segment means the same or the parent folder. Servers read `%2e` as a dot.
fn is_dots(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    matches!(plain.as_str(), "." | "..")
}

/// One segment of a path. An empty one would join its neighbours.
fn encode_segment(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("a value in the path is empty; give one".to_owned()) } else { Ok(encode(text)) }
}

/// Percent-encodes everything but letters, digits, `-`, `_`, `.` and `~`.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
