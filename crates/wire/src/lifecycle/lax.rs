//! Pure. Reads JSON as leniently as the clients of this API rely on, and notes every fault.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::error::Faults;
use super::time::Time;

/// Whether a field may be left out. A field that may be is absent when it is null, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Its absence is a fault.
    Must,
    /// Its absence is no fault.
    May,
}

/// Reads the fields of one object. Reading goes on after a fault, so that all are told at once.
#[derive(Debug)]
pub struct Reader<'v, 'f> {
    object: &'v Map<String, Value>,
    loc: Vec<Value>,
    faults: &'f mut Faults,
}

/// A kind of fault and what is expected instead.
type Refusal = (&'static str, &'static str);

impl<'v, 'f> Reader<'v, 'f> {
    /// A reader of a request's body, which must be an object.
    pub fn body(body: Option<&'v Value>, faults: &'f mut Faults) -> Option<Self> {
        let loc = vec![json!("body")];
        match body {
            Some(Value::Object(object)) => Some(Self {
                object,
                loc,
                faults,
            }),
            Some(other) => {
                faults.add(
                    "model_attributes_type",
                    &loc,
                    "must be a JSON object",
                    other,
                );
                None
            }
            None => {
                faults.add("missing", &loc, "is required", &Value::Null);
                None
            }
        }
    }

    /// The value of a field under its camel-case name, else under its snake-case name.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'v Value> {
        self.object
            .get(name)
            .or_else(|| self.object.get(&snake(name)))
    }

    /// The field's value if it is there and not null; notes a fault when it must be.
    pub fn value(&mut self, name: &str, need: Need) -> Option<&'v Value> {
        match (self.raw(name), need) {
            (None, Need::Must) => {
                self.note("missing", name, "is required", &Value::Null);
                None
            }
            (None | Some(Value::Null), Need::May) => None,
            (Some(value), _) => Some(value),
        }
    }

    /// A text. No other type ever becomes one.
    pub fn string(&mut self, name: &str, need: Need) -> Option<String> {
        let value = self.value(name, need)?;
        self.kept(name, value, text(value))
    }

    /// A whole number within limits.
    pub fn integer(&mut self, name: &str, need: Need, min: i64, max: i64) -> Option<i64> {
        let value = self.value(name, need)?;
        let number = self.kept(name, value, integer(value))?;
        let (kind, limit, at) = if number < min {
            ("greater_than_equal", "ge", min)
        } else if number > max {
            ("less_than_equal", "le", max)
        } else {
            return Some(number);
        };
        let word = if limit == "ge" { "at least" } else { "at most" };
        let loc = self.at(name);
        let msg = format!("must be {word} {at}");
        self.faults
            .add_with(kind, &loc, msg, value, Some(json!({ limit: at })));
        None
    }

    /// A truth value.
    pub fn boolean(&mut self, name: &str, need: Need) -> Option<bool> {
        let value = self.value(name, need)?;
        self.kept(name, value, boolean(value))
    }

    /// A moment.
    pub fn time(&mut self, name: &str) -> Option<Time> {
        let value = self.value(name, Need::Must)?;
        let refusal = ("datetime_parsing", "must be a moment as RFC 3339");
        self.kept(name, value, Time::read(value).ok_or(refusal))
    }

    /// A list of texts with at least so many items.
    pub fn strings(&mut self, name: &str, need: Need, min: usize) -> Option<Vec<String>> {
        let items = self.list(name, need)?;
        if items.len() < min {
            let ctx = json!({"min_length": min, "actual_length": items.len()});
            let loc = self.at(name);
            let msg = format!("must have at least {min} items");
            self.faults
                .add_with("too_short", &loc, msg, &Value::Null, Some(ctx));
            return None;
        }
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match text(item) {
                Ok(text) => texts.push(text),
                Err((kind, msg)) => {
                    let mut loc = self.at(name);
                    loc.push(json!(at));
                    self.faults.add(kind, &loc, msg, item);
                }
            }
        }
        (texts.len() == items.len()).then_some(texts)
    }

    /// A list of anything.
    pub fn list(&mut self, name: &str, need: Need) -> Option<&'v Vec<Value>> {
        let value = self.value(name, need)?;
        self.kept(
            name,
            value,
            value.as_array().ok_or(("list_type", "must be a list")),
        )
    }

    /// A map of texts. Null values are dropped where `drop_null` says so, else they are faults.
    pub fn map(&mut self, name: &str, drop_null: bool) -> Option<BTreeMap<String, String>> {
        let value = self.value(name, Need::May)?;
        let object = value.as_object().ok_or(("dict_type", "must be an object"));
        let object = self.kept(name, value, object)?;
        let mut map = BTreeMap::new();
        for (key, item) in object {
            match text(item) {
                Ok(text) => {
                    map.insert(key.clone(), text);
                }
                Err(_) if drop_null && item.is_null() => {}
                Err((kind, msg)) => {
                    let mut loc = self.at(name);
                    loc.push(json!(key));
                    self.faults.add(kind, &loc, msg, item);
                }
            }
        }
        Some(map)
    }

    /// A reader of an object within.
    pub fn object<'s>(&'s mut self, name: &str, need: Need) -> Option<Reader<'v, 's>> {
        let value = self.value(name, need)?;
        let loc = self.at(name);
        self.inner(loc, value)
    }

    /// A reader of one item of a list that [`Self::list`] gave.
    pub fn item<'s>(
        &'s mut self,
        name: &str,
        at: usize,
        item: &'v Value,
    ) -> Option<Reader<'v, 's>> {
        let mut loc = self.at(name);
        loc.push(json!(at));
        self.inner(loc, item)
    }

    /// Notes a fault for every field that is none of these.
    pub fn closed(&mut self, names: &[&str]) {
        let known = |key: &str| names.iter().any(|name| key == *name || key == snake(name));
        let unknown: Vec<&String> = self.object.keys().filter(|key| !known(key)).collect();
        for key in unknown {
            self.note(
                "extra_forbidden",
                key,
                "is no field of this object",
                &Value::Null,
            );
        }
    }

    /// Notes a fault of a field.
    pub fn refuse(&mut self, kind: &str, name: &str, msg: &str) {
        let value = self.raw(name).unwrap_or(&Value::Null);
        self.note(kind, name, msg, value);
    }

    /// Notes a broken rule between fields of this object.
    pub fn refuse_whole(&mut self, msg: &str) {
        let msg = format!("Value error, {msg}");
        self.faults.add("value_error", &self.loc, msg, &Value::Null);
    }

    fn inner<'s>(&'s mut self, loc: Vec<Value>, value: &'v Value) -> Option<Reader<'v, 's>> {
        let Some(object) = value.as_object() else {
            self.faults
                .add("model_attributes_type", &loc, "must be an object", value);
            return None;
        };
        Some(Reader {
            object,
            loc,
            faults: self.faults,
        })
    }

    fn kept<T>(&mut self, name: &str, value: &Value, read: Result<T, Refusal>) -> Option<T> {
        read.map_err(|(kind, msg)| self.note(kind, name, msg, value))
            .ok()
    }

    fn note(&mut self, kind: &str, name: &str, msg: &str, value: &Value) {
        let loc = self.at(name);
        self.faults.add(kind, &loc, msg, value);
    }

    fn at(&self, name: &str) -> Vec<Value> {
        let mut loc = self.loc.clone();
        loc.push(json!(name));
        loc
    }
}

fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn text(value: &Value) -> Result<String, Refusal> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or(("string_type", "must be a text"))
}

/// Whole numbers also from text, from truth values and from fractions of zero; 64 bits at most.
///
/// # Errors
/// The kind of fault and what is expected.
pub fn integer(value: &Value) -> Result<i64, Refusal> {
    const WHOLE: &str = "must be a whole number";
    const SIZE: Refusal = ("int_parsing_size", "must fit in 64 bits");
    match value {
        Value::Bool(truth) => Ok(i64::from(*truth)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Ok(whole),
            (None, Some(float)) if float.fract() != 0.0 => Err(("int_from_float", WHOLE)),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the range is checked first"
            )]
            (None, Some(float)) if float.abs() < 9.2e18 => Ok(float as i64),
            _ => Err(SIZE),
        },
        Value::String(text) => {
            let text = text.trim();
            let (whole, zeros) = text.split_once('.').unwrap_or((text, ""));
            let digits = whole.strip_prefix(['+', '-']).unwrap_or(whole);
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !plain || zeros.bytes().any(|byte| byte != b'0') {
                return Err(("int_parsing", WHOLE));
            }
            whole.parse().map_err(|_| SIZE)
        }
        _ => Err(("int_type", WHOLE)),
    }
}

/// Truth values also from 0 and 1 and from the usual words.
///
/// # Errors
/// The kind of fault and what is expected.
pub fn boolean(value: &Value) -> Result<bool, Refusal> {
    const EITHER: &str = "must be true or false";
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::Number(_) if value.as_f64() == Some(0.0) => Ok(false),
        Value::Number(_) if value.as_f64() == Some(1.0) => Ok(true),
        Value::String(word) => match word.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "y" | "on" | "t" => Ok(true),
            "false" | "0" | "no" | "n" | "off" | "f" => Ok(false),
            _ => Err(("bool_parsing", EITHER)),
        },
        Value::Number(_) => Err(("bool_parsing", EITHER)),
        _ => Err(("bool_type", EITHER)),
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests;
