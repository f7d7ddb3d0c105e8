//! Whether a document follows its schema.
#![allow(clippy::panic, unreachable_pub)]

use serde_json::Value;

/// Returns the violations of `schema` in `value`. Supports only the keywords that our schemas use.
pub fn violation(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#'));
        return violation(root, target.unwrap_or_else(|| panic!("{reference}")), value, at);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[word].as_array() {
            let fits = choices.iter().any(|choice| violation(root, choice, value, at).is_none());
            return (!fits).then(|| format!("{at} fits none of {word}"));
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    if !kinds.is_empty() && !kinds.iter().any(is) {
        return Some(format!("{at} is no {kinds:?}: {value}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            return Some(format!("{at}.{name} is missing"));
        }
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        let at = format!("{at}.{name}");
        let known = schema["properties"].get(name);
        match known.or_else(|| schema.get("additionalProperties")) {
            Some(Value::Bool(true)) => {}
            Some(schema) if schema.is_object() => {
                if let Some(wrong) = violation(root, schema, inner, &at) {
                    return Some(wrong);
                }
            }
            // Documents contain only fields that their schemas name.
            _ => return Some(format!("{at} is not in the schema")),
        }
    }
    let items = value.as_array().into_iter().flatten().enumerate();
    items
        .filter(|_| schema["items"].is_object())
        .find_map(|(n, item)| violation(root, &schema["items"], item, &format!("{at}[{n}]")))
}
