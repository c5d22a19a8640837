//! Pure. Pools of sandboxes that are ready before anybody asks for one.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::{Faults, ValidationBody};
use super::lax::Need::Must;
use super::lax::Reader;
use super::time::Time;

/// Longest name of a pool, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// Most sandboxes that a number of a capacity may name.
const COUNT_MAX: i64 = 1_000_000;

/// How many sandboxes a pool has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// Most that stand ready; more are removed.
    pub buffer_max: u64,
    /// Fewest that stand ready; with fewer, new ones are made.
    pub buffer_min: u64,
    /// Most of all, those in use among them.
    pub pool_max: u64,
    /// Fewest of all, those in use among them.
    pub pool_min: u64,
}

/// A request for a pool.
#[derive(Clone, PartialEq)]
pub struct CreatePool {
    /// Its name.
    pub name: String,
    /// What its sandboxes are, as a Kubernetes pod template.
    pub template: Map<String, Value>,
    /// How many there are.
    pub capacity: Capacity,
}

/// A pool as callers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// How many sandboxes it is to have.
    pub capacity_spec: Capacity,
    /// How many it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PoolStatus>,
    /// When it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// How many sandboxes a pool has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// All of them.
    pub total: u64,
    /// Those that somebody has.
    pub allocated: u64,
    /// Those that stand ready.
    pub available: u64,
    /// Tells one template from another.
    pub revision: String,
}

/// All pools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolList {
    /// By name.
    pub items: Vec<Pool>,
}

/// The pool that a sandbox was taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allocation {
    /// Always `pool`.
    pub mode: String,
    /// The pool's name.
    pub pool_ref: String,
    /// Always `allocated`: others are nobody's yet, and are not shown.
    pub state: String,
}

impl Allocation {
    /// Of a sandbox of a pool.
    #[must_use]
    pub fn from_pool(name: &str) -> Self {
        Self {
            mode: "pool".to_owned(),
            pool_ref: name.to_owned(),
            state: "allocated".to_owned(),
        }
    }
}

/// Templates hold environments, and those hold secrets.
impl fmt::Debug for CreatePool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CreatePool")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl CreatePool {
    /// Reads a request's body.
    ///
    /// # Errors
    /// With every fault of it.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let mut faults = Faults::default();
        let read = Reader::body(body, &mut faults).and_then(|mut reader| {
            let name = reader.string("name", Must);
            if name.as_deref().is_some_and(|name| !is_name(name)) {
                let rule = "must be 1 to 253 lower-case letters, digits and '-', no '-' at an end";
                reader.refuse("string_pattern_mismatch", "name", rule);
            }
            let template = match reader.value("template", Must) {
                Some(Value::Object(template)) => Some(template.clone()),
                Some(_) => {
                    reader.refuse("dict_type", "template", "must be a JSON object");
                    None
                }
                None => None,
            };
            let capacity = capacity(&mut reader);
            Some(Self {
                name: name?,
                template: template?,
                capacity: capacity?,
            })
        });
        match read {
            Some(read) => faults.or(read),
            None => Err(faults.refusal()),
        }
    }
}

impl Capacity {
    /// Reads the body of a change: nothing but the capacity changes.
    ///
    /// # Errors
    /// With every fault of it.
    pub fn read(body: Option<&Value>) -> Result<Self, ValidationBody> {
        let mut faults = Faults::default();
        let read = Reader::body(body, &mut faults).and_then(|mut reader| capacity(&mut reader));
        match read {
            Some(read) => faults.or(read),
            None => Err(faults.refusal()),
        }
    }

    /// What is wrong between its numbers, if anything is.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        if self.buffer_min > self.buffer_max {
            return Some("bufferMin is larger than bufferMax");
        }
        (self.pool_min > self.pool_max).then_some("poolMin is larger than poolMax")
    }
}

fn capacity(reader: &mut Reader<'_, '_>) -> Option<Capacity> {
    let mut spec = reader.object("capacitySpec", Must)?;
    let mut count = |name| {
        let count = spec.integer(name, Must, 0, COUNT_MAX);
        count.map(i64::unsigned_abs)
    };
    let (buffer_max, buffer_min) = (count("bufferMax"), count("bufferMin"));
    let (pool_max, pool_min) = (count("poolMax"), count("poolMin"));
    Some(Capacity {
        buffer_max: buffer_max?,
        buffer_min: buffer_min?,
        pool_max: pool_max?,
        pool_min: pool_min?,
    })
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    bytes.len() <= NAME_BYTES_MAX
        && ends.is_some_and(|(first, last)| plain(*first) && plain(*last))
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
}

/// Why a pod template cannot be made into a sandbox: where, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template.{place}: {why}")]
pub struct BadTemplate {
    place: &'static str,
    why: &'static str,
}

/// What the first container of a pod template asks for, as the body of a request for a sandbox.
///
/// # Errors
/// When the template has no container with an image, or one that asks for what is elsewhere.
pub fn sandbox_of(template: &Map<String, Value>) -> Result<Value, BadTemplate> {
    let bad = |place, why| BadTemplate { place, why };
    let containers = template.get("spec").and_then(|spec| spec.get("containers"));
    let container = containers.and_then(|all| all.as_array()?.first());
    let container = container
        .and_then(Value::as_object)
        .ok_or_else(|| bad("spec.containers", "needs a container"))?;
    let image = container.get("image").and_then(Value::as_str);
    let image = image.filter(|image| !image.trim().is_empty());
    let image = image.ok_or_else(|| bad("spec.containers[0].image", "needs a name"))?;
    let words = |name, place| match container.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(words)) if words.iter().all(Value::is_string) => Ok(words.clone()),
        Some(_) => Err(bad(place, "must be a list of texts")),
    };
    let mut entrypoint = words("command", "spec.containers[0].command")?;
    entrypoint.extend(words("args", "spec.containers[0].args")?);
    if entrypoint.is_empty() {
        entrypoint = ["tail", "-f", "/dev/null"].map(|word| json!(word)).to_vec();
    }
    let limits = container.get("resources").and_then(|it| it.get("limits"));
    let limits = match limits {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(limits)) => limits.iter().map(as_text).collect(),
        Some(_) => {
            let place = "spec.containers[0].resources.limits";
            return Err(bad(place, "must be an object"));
        }
    };
    Ok(json!({
        "image": {"uri": image},
        "entrypoint": entrypoint,
        "env": env(container)?,
        "resourceLimits": limits,
    }))
}

/// A quantity may be a number there.
fn as_text((name, value): (&String, &Value)) -> (String, Value) {
    let text = match value {
        Value::Number(number) => json!(number.to_string()),
        other => other.clone(),
    };
    (name.clone(), text)
}

fn env(container: &Map<String, Value>) -> Result<BTreeMap<String, String>, BadTemplate> {
    let place = "spec.containers[0].env";
    let bad = |why| BadTemplate { place, why };
    let variables = match container.get("env") {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Array(variables)) => variables,
        Some(_) => return Err(bad("must be a list of names and values")),
    };
    let mut env = BTreeMap::new();
    for variable in variables {
        let name = variable.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| bad("each variable needs a name"))?;
        if variable
            .get("valueFrom")
            .is_some_and(|from| !from.is_null())
        {
            return Err(bad(
                "values come from the template itself: valueFrom is not offered",
            ));
        }
        let value = match variable.get("value") {
            None | Some(Value::Null) => "",
            Some(Value::String(value)) => value,
            Some(_) => return Err(bad("a value is a text")),
        };
        env.insert(name.to_owned(), value.to_owned());
    }
    Ok(env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_pools_are_checked() {
        let whole = json!({
            "name": "p-1", "template": {},
            "capacitySpec": {"bufferMax": 3, "bufferMin": "1", "poolMax": 5, "poolMin": 0},
        });
        let read = CreatePool::read(Some(&whole)).unwrap();
        assert_eq!((read.capacity.buffer_min, read.capacity.pool_max), (1, 5));
        for (name, value) in [
            ("name", json!("P")),
            ("name", json!("-p")),
            ("name", json!("p.q")),
            ("name", json!("")),
            ("name", json!("a".repeat(254))),
            ("template", json!([])),
            ("template", Value::Null),
            ("capacitySpec", json!({})),
            ("capacitySpec", json!({"bufferMax": -1})),
        ] {
            let mut broken = whole.clone();
            broken[name] = value.clone();
            assert!(CreatePool::read(Some(&broken)).is_err(), "{name}: {value}");
        }
    }

    #[test]
    fn a_pod_template_is_a_request_for_a_sandbox() {
        let template = |container: Value| {
            let template = json!({"spec": {"containers": [container]}});
            sandbox_of(template.as_object().unwrap())
        };
        let whole = template(json!({
            "image": "host", "command": ["sh", "-c"], "args": ["sleep 9"],
            "env": [{"name": "A", "value": "1"}, {"name": "B"}],
            "resources": {"limits": {"cpu": 2, "memory": "1Gi"}},
        }));
        let expected = json!({
            "image": {"uri": "host"}, "entrypoint": ["sh", "-c", "sleep 9"],
            "env": {"A": "1", "B": ""}, "resourceLimits": {"cpu": "2", "memory": "1Gi"},
        });
        assert_eq!(whole.unwrap(), expected);
        let least = template(json!({"image": "host"})).unwrap();
        assert_eq!(least["entrypoint"], json!(["tail", "-f", "/dev/null"]));
        for broken in [
            json!({}),
            json!({"image": " "}),
            json!({"image": "host", "command": "sh"}),
            json!({"image": "host", "env": {"A": "1"}}),
            json!({"image": "host", "env": [{"value": "1"}]}),
            json!({"image": "host", "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}]}),
            json!({"image": "host", "resources": {"limits": []}}),
        ] {
            assert!(template(broken.clone()).is_err(), "{broken}");
        }
        assert!(sandbox_of(&Map::new()).is_err());
    }
}
