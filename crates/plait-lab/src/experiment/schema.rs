//! The JSON Schema of an experiment file, generated from the lists of keys that its reader uses.

use super::file::{CLAIM_KEYS, DIFFERS_KEYS, KEYS, NOT_OURS, PICTURE_KEYS, ROW_KEYS};
use super::{ClaimKind, PictureKind};
use crate::scenario::{PATH_KEYS, SETTINGS};
use serde_json::{Map, Value, json};

/// Returns the schema (draft 2020-12) of an experiment file.
#[must_use]
pub fn schema() -> Value {
    let keys = |names: &[&str]| -> Map<String, Value> {
        names.iter().map(|name| ((*name).to_owned(), texts())).collect()
    };
    let points = json!({ "anyOf": [text(), { "type": "array", "items": { "anyOf": [
        text(),
        { "type": "object", "properties": { "is": text() }, "required": ["is"], "additionalProperties": text() },
    ] } }, { "type": "object", "properties": { "design": { "type": "integer" } }, "required": ["design"] }] });
    let some = json!({ "type": "object", "additionalProperties": texts() });
    let mut row: Map<String, Value> = keys(ROW_KEYS);
    row.extend(settings().filter(|(name, _)| name != "schedulers"));
    row.insert("only".into(), some.clone());
    let mut claim = keys(CLAIM_KEYS);
    let kinds = [ClaimKind::Exact, ClaimKind::Hard, ClaimKind::Soft].map(ClaimKind::name);
    claim.insert("kind".into(), json!({ "enum": kinds }));
    let mut picture = keys(PICTURE_KEYS);
    picture.insert("kind".into(), json!({ "enum": PictureKind::NAMES }));
    let mut quick: Map<String, Value> = settings().collect();
    quick.insert("sweep".into(), some);
    let mut properties: Map<String, Value> = settings().collect();
    for key in KEYS {
        let mut schema = match key.name {
            "sweep" => json!({ "type": "object", "additionalProperties": points }),
            "label" => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            "row" => json!({ "type": "object", "additionalProperties": closed(&row, &[]) }),
            "claim" => {
                json!({ "type": "array", "items": closed(&claim, &["id", "kind", "says", "holds"]) })
            }
            "picture" => {
                json!({ "type": "array", "items": closed(&picture, &["kind", "measure"]) })
            }
            "differs" => {
                json!({ "type": "array", "items": closed(&keys(DIFFERS_KEYS), DIFFERS_KEYS) })
            }
            "quick" => closed(&quick, &[]),
            _ => texts(),
        };
        let members = match key.members {
            [] => String::new(),
            members => format!("[[{}]]: {}", key.name, members.join(", ")),
        };
        let said = [members.as_str(), key.help].into_iter().filter(|it| !it.is_empty());
        schema["description"] = said.collect::<Vec<_>>().join(": ").into();
        properties.insert(key.name.to_owned(), schema);
    }
    properties.insert(
        "path".into(),
        json!({ "type": "array", "items": { "anyOf": [text(), closed(&of_path(), &["name"])] } }),
    );
    let mut whole = closed(&properties, &["title"]);
    whole["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    whole["title"] = "An experiment of plait".into();
    whole
}

/// Returns the schema of a text in a file.
fn text() -> Value {
    json!({ "type": ["string", "integer", "boolean", "number"] })
}

/// Returns the schema of a text or a list of texts.
fn texts() -> Value {
    json!({ "anyOf": [text(), { "type": "array", "items": text() }] })
}

/// Adds a description with the purpose and the allowed values.
fn described(mut schema: Value, help: &str, values: &str) -> Value {
    schema["description"] = format!("{help}: {values}").into();
    schema
}

/// Returns the settings of a scenario that an experiment has.
fn settings() -> impl Iterator<Item = (String, Value)> {
    SETTINGS.iter().filter(|it| !NOT_OURS.contains(&it.name)).map(|it| {
        let schema = it.schema().unwrap_or_else(texts);
        (it.name.to_owned(), described(schema, it.help, &it.values()))
    })
}

/// Returns the keys of a path.
fn of_path() -> Map<String, Value> {
    let keys = PATH_KEYS.iter().map(|key| {
        let form = if key.is_switch() { "on or off" } else { key.form };
        (key.name.to_owned(), described(texts(), &key.help.replace('\n', " "), form))
    });
    keys.chain([("name".to_owned(), texts())]).collect()
}

/// Returns the schema of a table that allows no other keys.
fn closed(properties: &Map<String, Value>, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
