//! Pure. What a binding makes of a request.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, RANGE};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue};

use super::Binding;
use super::replace::Replacer;

/// Longest head that is sent, in bytes: servers take no more.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest body that is sent.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why a request is not sent. No word of it holds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// A header would hold what none may.
    #[error("with its credential, a header would hold what none may")]
    Header,
    /// The path would be none.
    #[error("with its credential, the path would be none")]
    Path,
    /// It would be too long.
    #[error("with its credentials, the request would be too long")]
    Long,
}

impl Binding {
    /// Puts credentials into the head of a request.
    ///
    /// # Errors
    /// Why it must not be sent. It may be half changed then.
    pub fn rewrite(&self, head: &mut Parts) -> Result<(), RewriteError> {
        if let Some(replacer) = &self.changes.in_headers {
            in_headers(&mut head.headers, replacer)?;
        }
        for (name, value) in &self.changes.headers {
            head.headers.insert(name.clone(), value.clone());
        }
        if self.changes.scrub.is_some() {
            let identity = HeaderValue::from_static("identity");
            head.headers.insert(ACCEPT_ENCODING, identity);
            // A value could be cut in two by a range.
            head.headers.remove(RANGE);
        }
        self.rewrite_uri(&mut head.uri)?;
        let fields = head.headers.iter();
        let bytes: usize = fields
            .map(|(name, value)| name.as_str().len() + value.len() + 4)
            .sum();
        let target = head.uri.path_and_query().map_or(0, |it| it.as_str().len());
        if bytes + target > HEAD_BYTES_MAX {
            return Err(RewriteError::Long);
        }
        Ok(())
    }

    fn rewrite_uri(&self, uri: &mut Uri) -> Result<(), RewriteError> {
        let replaced = |replacer: &Option<Replacer>, text: &str| {
            let replaced = replacer
                .as_ref()
                .map(|it| it.replace(text.as_bytes(), HEAD_BYTES_MAX));
            let replaced = replaced.transpose()?.flatten();
            let replaced = replaced.map(|it| String::from_utf8(it).map_err(|_| RewriteError::Path));
            replaced.transpose()
        };
        let path = replaced(&self.changes.in_path, uri.path())?;
        let query = uri
            .query()
            .map(|text| replaced(&self.changes.in_query, text));
        let query = query.transpose()?.flatten();
        if path.is_none() && query.is_none() {
            return Ok(());
        }
        let path = path.as_deref().unwrap_or_else(|| uri.path());
        let target = match query.as_deref().or_else(|| uri.query()) {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        };
        if target.len() > HEAD_BYTES_MAX {
            return Err(RewriteError::Long);
        }
        let target = PathAndQuery::try_from(target).map_err(|_| RewriteError::Path)?;
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(target);
        *uri = Uri::from_parts(parts).map_err(|_| RewriteError::Path)?;
        Ok(())
    }

    /// Puts credentials into the body of a request; `None` if it stays as it is. One that is
    /// compressed does.
    ///
    /// # Errors
    /// When it must not be sent.
    pub fn rewrite_body(
        &self,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Option<Vec<u8>>, RewriteError> {
        let Some(bodies) = self
            .changes
            .in_body
            .as_ref()
            .filter(|_| !is_encoded(headers))
        else {
            return Ok(None);
        };
        let replacer = match kind(headers).as_str() {
            "application/x-www-form-urlencoded" => &bodies.form,
            kind if kind == "application/json" || kind.ends_with("+json") => &bodies.json,
            _ => &bodies.plain,
        };
        replacer.replace(body, BODY_BYTES_MAX)
    }
}

/// Whether a body is compressed or otherwise not what it says.
#[must_use]
pub fn is_encoded(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(CONTENT_ENCODING).iter();
    all.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn kind(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next();
    kind.unwrap_or_default().trim().to_ascii_lowercase()
}

fn in_headers(headers: &mut HeaderMap, replacer: &Replacer) -> Result<(), RewriteError> {
    let mut left = HEAD_BYTES_MAX;
    for (name, value) in headers.iter_mut() {
        let replaced = match replacer.replace(value.as_bytes(), left)? {
            None if *name == AUTHORIZATION => in_basic(value.as_bytes(), (replacer, left))?,
            replaced => replaced,
        };
        if let Some(replaced) = replaced {
            left = left.saturating_sub(replaced.len());
            *value = HeaderValue::from_bytes(&replaced).map_err(|_| RewriteError::Header)?;
            value.set_sensitive(true);
        }
    }
    Ok(())
}

/// A placeholder within what `Basic` hides from view.
fn in_basic(
    value: &[u8],
    (replacer, most): (&Replacer, usize),
) -> Result<Option<Vec<u8>>, RewriteError> {
    let split = value.split_at_checked(6);
    let Some((scheme, rest)) = split.filter(|it| it.0.eq_ignore_ascii_case(b"basic ")) else {
        return Ok(None);
    };
    let Ok(inside) = BASE64_STANDARD.decode(rest.trim_ascii()) else {
        return Ok(None);
    };
    let replaced = replacer.replace(&inside, most)?;
    Ok(replaced.map(|it| [scheme, BASE64_STANDARD.encode(it).as_bytes()].concat()))
}
