//! Rewrites error messages of the JSON reader in the terms of docs/decide.md.

use plait_app::name::nearest;

/// Returns the reader's message without its line number, which the caller adds. Kinds of values get
/// the names that JSON has for them. For an unknown name, the nearest allowed name is suggested.
#[must_use]
pub fn plain(message: &str) -> String {
    let (text, column) = message.split_once(" at line 1 column ").unwrap_or((message, ""));
    let column = if column.is_empty() { String::new() } else { format!(" (column {column})") };
    let text = match text.strip_prefix("invalid ").and_then(|rest| rest.split_once(", expected ")) {
        Some((found, wanted)) => {
            let (_, found) = found.split_once(": ").unwrap_or(("", found));
            format!("expected {}, found {}", kind(wanted), kind(found))
        }
        None => text.to_owned(),
    };
    format!("{text}{}{column}", near(&text))
}

/// Returns the everyday name of a kind of value, or of a value with its kind.
fn kind(word: &str) -> String {
    let said = match word {
        "f32" | "f64" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "a sequence" | "sequence" => "a list",
        "a map" | "map" => "an object",
        "a boolean" => "true or false",
        "a string" => "text in quotes",
        "unit value" => "null",
        word if word.starts_with("struct ") => "an object",
        word => {
            let value = |kind: &str| word.strip_prefix(kind).map(str::trim);
            let bare = ["integer", "floating point", "boolean"].iter().find_map(|it| value(it));
            return match (bare, value("string")) {
                (Some(bare), _) => bare.replace('`', ""),
                (None, Some(text)) => format!("the text {text}"),
                (None, None) => word.to_owned(),
            };
        }
    };
    said.to_owned()
}

/// Returns "; did you mean" and a name for "unknown field `a`, expected one of `b`, `c`".
fn near(text: &str) -> String {
    let mut quoted = text.split('`').skip(1).step_by(2);
    let near = match (text.starts_with("unknown"), quoted.next()) {
        (true, Some(given)) => {
            let mut longer = quoted.clone().filter(|name| name.starts_with(given));
            longer.next().or_else(|| nearest(given, quoted))
        }
        _ => None,
    };
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_values_are_those_of_json() {
        for (message, words) in [
            (
                "invalid type: string \"x\", expected f64 at line 1 column 52",
                "expected a number, found the text \"x\" (column 52)",
            ),
            (
                "invalid value: integer `300`, expected u8 at line 1 column 40",
                "expected a whole number from 0 to 255, found 300 (column 40)",
            ),
            ("invalid type: map, expected a sequence", "expected a list, found an object"),
            ("invalid type: null, expected struct Connection", "expected an object, found null"),
            ("missing field `subflows` at line 1 column 9", "missing field `subflows` (column 9)"),
            (
                "unknown field `srtt`, expected one of `srtt_ms`, `cwnd` at line 1 column 2",
                "unknown field `srtt`, expected one of `srtt_ms`, `cwnd`; did you mean `srtt_ms`? (column 2)",
            ),
        ] {
            assert_eq!(plain(message), words);
        }
    }
}
