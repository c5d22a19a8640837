//! Pure. The forms of a value, as clients read them: every one a text, the plain one under both
//! names by which it goes.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

const PLAIN: &str = "text/plain";
const PLAIN_AGAIN: &str = "text";

/// The forms with texts for values.
pub(crate) fn as_texts(forms: Map<String, Value>) -> Map<String, Value> {
    let mut texts: Map<_, _> = forms
        .into_iter()
        .map(|(kind, value)| (kind, Value::String(text_of(value))))
        .collect();
    if let Some(plain) = texts.get(PLAIN).cloned() {
        texts.insert(PLAIN_AGAIN.to_owned(), plain);
    }
    texts
}

/// JSON forms, such as charts to be drawn by the caller, are told as the text of their JSON.
fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        // As notebooks keep long texts: line by line.
        Value::Array(lines) if !lines.is_empty() && lines.iter().all(Value::is_string) => {
            lines.iter().filter_map(Value::as_str).collect()
        }
        other => other.to_string(),
    }
}

/// Tells a picture from others; `None` for what has none. A chart that is both the last value of a
/// cell and still open is shown twice by its library, and callers want it once.
pub(crate) fn picture(forms: &Map<String, Value>) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut found = false;
    for (kind, value) in forms.iter().filter(|(kind, _)| kind.starts_with("image/")) {
        found = true;
        kind.hash(&mut hasher);
        value.as_str().hash(&mut hasher);
    }
    found.then(|| hasher.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn every_form_is_a_text() {
        let forms = json!({
            "text/plain": "4",
            "text/html": ["<b>\n", "</b>"],
            "application/json": {"a": [1, null]},
            "application/vnd.vegalite.v5+json": [],
            "image/png": "iVBO",
        });
        let wanted = json!({
            "text": "4",
            "text/plain": "4",
            "text/html": "<b>\n</b>",
            "application/json": "{\"a\":[1,null]}",
            "application/vnd.vegalite.v5+json": "[]",
            "image/png": "iVBO",
        });
        assert_eq!(as_texts(map(&forms)), map(&wanted));
        assert_eq!(as_texts(map(&json!({"image/png": "x"}))).get("text"), None);
    }

    #[test]
    fn pictures_are_compared_and_nothing_else_is() {
        let picture = |value| picture(&map(&value));
        let first = picture(json!({"text/plain": "<Figure>", "image/png": "a"}));
        assert!(first.is_some());
        assert_eq!(first, picture(json!({"image/png": "a"})));
        assert_ne!(first, picture(json!({"image/png": "b"})));
        assert_ne!(first, picture(json!({"image/jpeg": "a"})));
        assert_eq!(picture(json!({"text/plain": "4"})), None);
    }
}
