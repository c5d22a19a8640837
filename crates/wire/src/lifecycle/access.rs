//! Pure. Keys of the API and the tenants that own them: `/x/keys` and `/x/tenants`.

mod keys;
mod tenants;

use serde_json::Value;

use super::error::{Faults, ValidationBody};
use super::lax::Reader;

pub use keys::{
    CreateKey, GRACE_S_MAX, KeyList, KeyReport, LABEL_CHARS_MAX, NewKey, Role, RotateKey,
};
pub use tenants::{
    CreateTenant, Quota, Rate, TENANT_BYTES_MAX, TenantList, TenantReport, TenantTerms, Usage,
    is_tenant,
};

fn read<T>(
    body: Option<&Value>,
    with: impl FnOnce(&mut Reader<'_, '_>) -> Option<T>,
) -> Result<T, ValidationBody> {
    let mut faults = Faults::default();
    let read = Reader::body(body, &mut faults).and_then(|mut reader| with(&mut reader));
    match read {
        Some(read) => faults.or(read),
        None => Err(faults.refusal()),
    }
}
