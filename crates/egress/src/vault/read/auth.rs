//! Pure. Reads what a binding does to requests.

use std::sync::Arc;

use barchan_wire::egress::vault as wire;
use barchan_wire::egress::vault::{Auth, Part, Substitution};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};

use super::Values;
use crate::vault::replace::{Bodies, Replacer};
use crate::vault::scrub::INSTEAD;
use crate::vault::{Changes, escape};

/// Most texts that one binding replaces.
const SUBSTITUTIONS_MAX: usize = 32;
/// Fewest and most bytes of a text that is replaced.
const PLACEHOLDER_BYTES: core::ops::RangeInclusive<usize> = 4..=256;
/// Fewest bytes of a value that is taken out of answers: shorter ones stand everywhere.
const SCRUBBED_BYTES_MIN: usize = 8;
/// Headers that say where a request ends, where it goes or whose connection it is on.
const RESERVED: [&str; 12] = [
    "host",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
    "http2-settings",
];

pub(super) fn read(binding: &wire::Binding, values: &Values<'_>) -> Result<Changes, String> {
    let auth = &binding.auth;
    let pairs = pairs(auth.substitutions(), values)?;
    let of = |part: Part| {
        let all = auth.substitutions().iter().zip(&pairs);
        let all = all.filter(|(one, _)| one.places.contains(&part));
        all.map(|(_, pair)| pair.clone()).collect::<Vec<_>>()
    };
    Ok(Changes {
        headers: headers(auth, values)?,
        in_headers: Replacer::of(&of(Part::Header), str::to_owned),
        in_path: Replacer::of(&of(Part::Path), escape::url),
        in_query: Replacer::of(&of(Part::Query), escape::url),
        in_body: Bodies::of(&of(Part::Body)),
        scrub: match binding.scrub_responses {
            true => scrub(auth, values)?,
            false => None,
        },
    })
}

fn value<'a>(values: &Values<'a>, name: &str) -> Result<&'a str, String> {
    let found = values.get(name).copied();
    found.ok_or_else(|| format!("it names the credential `{name}`, which is not there"))
}

/// The headers that it sets.
fn headers(auth: &Auth, values: &Values<'_>) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let set = |name: HeaderName, credential: &str, text: String| {
        let value = HeaderValue::from_str(&text);
        let mut value = value
            .map_err(|_| format!("no header can hold the value of credential `{credential}`"))?;
        value.set_sensitive(true);
        Ok::<_, String>((name, value))
    };
    match auth {
        Auth::Bearer { credential, .. } => {
            let text = format!("Bearer {}", value(values, credential)?);
            Ok(vec![set(AUTHORIZATION, credential, text)?])
        }
        Auth::Basic { credential, .. } => {
            let text = value(values, credential)?;
            // Base64 has no colon, so that both ways to give it are told apart.
            let text = match text.contains(':') {
                true => escape::base64(text),
                false => text.to_owned(),
            };
            Ok(vec![set(
                AUTHORIZATION,
                credential,
                format!("Basic {text}"),
            )?])
        }
        Auth::ApiKey {
            name, credential, ..
        } => {
            let text = value(values, credential)?.to_owned();
            Ok(vec![set(header(name)?, credential, text)?])
        }
        Auth::CustomHeaders { headers, .. } => {
            let mut all: Vec<(HeaderName, HeaderValue)> = Vec::new();
            for field in headers {
                let name = header(&field.name)?;
                if all.iter().any(|(other, _)| *other == name) {
                    return Err(format!("it sets the header `{name}` twice"));
                }
                let text = value(values, &field.credential)?.to_owned();
                all.push(set(name, &field.credential, text)?);
            }
            match all.is_empty() {
                true => Err("it sets no header".to_owned()),
                false => Ok(all),
            }
        }
        Auth::Passthrough { substitutions } if substitutions.is_empty() => {
            Err("it replaces nothing".to_owned())
        }
        Auth::Passthrough { .. } => Ok(Vec::new()),
    }
}

fn header(text: &str) -> Result<HeaderName, String> {
    let shown: String = text.chars().take(80).collect();
    let name = HeaderName::from_bytes(text.as_bytes())
        .map_err(|_| format!("{shown:?} is no name of a header"))?;
    if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
        return Err(format!(
            "the header `{name}` is reserved: it says how requests travel"
        ));
    }
    Ok(name)
}

/// What is replaced, and by which values.
fn pairs(all: &[Substitution], values: &Values<'_>) -> Result<Vec<(String, String)>, String> {
    if all.len() > SUBSTITUTIONS_MAX {
        return Err(format!("it replaces more than {SUBSTITUTIONS_MAX} texts"));
    }
    let mut pairs: Vec<(String, String)> = Vec::new();
    for one in all {
        check_placeholder(
            &one.placeholder,
            pairs.iter().map(|(text, _)| text.as_str()),
        )?;
        if one.places.is_empty() {
            return Err("a substitution says nowhere: give `in` a part of the request".to_owned());
        }
        let value = value(values, &one.credential)?.to_owned();
        pairs.push((one.placeholder.clone(), value));
    }
    Ok(pairs)
}

fn check_placeholder<'a>(
    text: &str,
    mut others: impl Iterator<Item = &'a str>,
) -> Result<(), String> {
    let is_fine = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if !PLACEHOLDER_BYTES.contains(&text.len()) || !text.bytes().all(is_fine) {
        let (least, most) = (PLACEHOLDER_BYTES.start(), PLACEHOLDER_BYTES.end());
        return Err(format!(
            "a placeholder has {least} to {most} visible ASCII characters, without `\"` and `\\`"
        ));
    }
    match others.any(|other| other.contains(text) || text.contains(other)) {
        true => Err("one of its placeholders is a part of another".to_owned()),
        false => Ok(()),
    }
}

/// Takes out every value that it sends, in each form in which a server may say it again.
fn scrub(auth: &Auth, values: &Values<'_>) -> Result<Option<Arc<Replacer>>, String> {
    let mut pairs = Vec::new();
    for name in auth.credentials() {
        let text = value(values, name)?;
        if text.len() < SCRUBBED_BYTES_MIN {
            return Err(format!(
                "the value of credential `{name}` is too short to be taken out of answers; it \
                 needs {SCRUBBED_BYTES_MIN} bytes"
            ));
        }
        let mut forms = escape::forms(text);
        forms.extend([
            escape::form(text),
            escape::json(text),
            escape::json(text).replace('/', "\\/"),
            escape::base64(text),
        ]);
        pairs.extend(
            forms
                .into_iter()
                .map(|it| (it.into_bytes(), INSTEAD.into())),
        );
    }
    Ok(Replacer::new(pairs).map(Arc::new))
}
