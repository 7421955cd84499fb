//! Edits of an encoded request. Everything that an edit does not name stays as it is, byte for byte.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// What happens to a field.
pub(super) enum Edit<'a> {
    /// It is left out.
    Remove,
    /// It gets this JSON.
    Replace(&'a str),
    /// It gets another name.
    Rename(&'a str),
}

/// The fields of an object in their order.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;
        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = Fields<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldVisitor)
    }
}

/// The names of the fields of a request.
pub(super) fn field_names(json: &str) -> Vec<String> {
    let fields = serde_json::from_str::<Fields<'_>>(json).map(|fields| fields.0).unwrap_or_default();
    fields.into_iter().map(|(name, _)| name.into_owned()).collect()
}

/// The JSON at a path; none if it is not there. `*` stands for the first item of a list that has the rest.
pub(super) fn find<'a>(json: &'a str, path: &[&str]) -> Option<&'a str> {
    let Some((first, rest)) = path.split_first() else { return Some(json) };
    if *first == "*" {
        let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        return items.into_iter().find_map(|item| find(item.get(), rest));
    }
    let Fields(fields) = serde_json::from_str(json).ok()?;
    let (_, value) = fields.into_iter().find(|(name, _)| name == first)?;
    find(value.get(), rest)
}

/// The JSON after an edit of what stands at a path, in every item of a list for `*`. None if nothing stands there.
pub(super) fn edit(json: &str, path: &[&str], how: &Edit<'_>) -> Option<String> {
    let (first, rest) = path.split_first()?;
    if *first == "*" {
        let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        let edited: Vec<Option<String>> = items.iter().map(|item| edit(item.get(), rest, how)).collect();
        edited.iter().any(Option::is_some).then_some(())?;
        let texts = items.iter().zip(&edited);
        let texts: Vec<&str> = texts.map(|(item, edited)| edited.as_deref().unwrap_or(item.get())).collect();
        return Some(format!("[{}]", texts.join(",")));
    }
    let Fields(fields) = serde_json::from_str(json).ok()?;
    let position = fields.iter().position(|(name, _)| name == first)?;
    let inner = if rest.is_empty() { None } else { Some(edit(fields[position].1.get(), rest, how)?) };
    let mut out = String::with_capacity(json.len());
    for (index, (name, value)) in fields.iter().enumerate() {
        let is_it = index == position;
        let (name, value) = match (how, &inner) {
            (_, Some(inner)) if is_it => (name.as_ref(), inner.as_str()),
            (Edit::Remove, None) if is_it => continue,
            (Edit::Replace(json), None) if is_it => (name.as_ref(), *json),
            (Edit::Rename(new), None) if is_it => (*new, value.get()),
            _ => (name.as_ref(), value.get()),
        };
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(&serde_json::to_string(name).ok()?);
        out.push(':');
        out.push_str(value);
    }
    if out.is_empty() {
        out.push('{');
    }
    out.push('}');
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Edit, edit, field_names, find};

    const BODY: &str =
        r#"{"model":"m","n":1e400,"tools":[{"a":1,"f":{"strict":true}},{"b":2}],"r":{"effort":"low"}}"#;

    #[test]
    fn the_rest_stays_byte_for_byte() {
        for (path, how, expected) in [
            (&["n"][..], Edit::Remove, Some(BODY.replace(r#""n":1e400,"#, ""))),
            (&["n"], Edit::Rename("max"), Some(BODY.replace(r#""n""#, r#""max""#))),
            (&["r", "effort"], Edit::Replace(r#""high""#), Some(BODY.replace("low", "high"))),
            (&["r", "effort"], Edit::Remove, Some(BODY.replace(r#"{"effort":"low"}"#, "{}"))),
            (&["tools", "*", "f", "strict"], Edit::Remove, Some(BODY.replace(r#"{"strict":true}"#, "{}"))),
            (&["absent"], Edit::Remove, None),
            (&["r", "absent"], Edit::Remove, None),
            (&["model", "x"], Edit::Remove, None),
            (&["tools", "*", "x"], Edit::Remove, None),
            (&[], Edit::Remove, None),
        ] {
            assert_eq!(edit(BODY, path, &how), expected, "{path:?}");
        }
        assert_eq!(edit(r#"{"ü\"":1}"#, &["ü\""], &Edit::Rename("\n")), Some(r#"{"\n":1}"#.to_owned()));
        assert_eq!(edit("no json", &["a"], &Edit::Remove), None);
    }

    #[test]
    fn finds_fields() {
        assert_eq!(find(BODY, &["n"]), Some("1e400"));
        assert_eq!(find(BODY, &["tools", "*", "f", "strict"]), Some("true"));
        assert_eq!(find(BODY, &["tools", "*", "x"]), None);
        assert_eq!(field_names(BODY), ["model", "n", "tools", "r"]);
        assert!(field_names("[]").is_empty());
    }
}
