//! Pure. Bindings of which more than one could fit a request.

use std::rc::Rc;

use super::{Binding, VaultError};

/// Refuses two bindings that could both fit: which credential goes out is no matter of order.
pub(super) fn check(bindings: &[Rc<Binding>]) -> Result<(), VaultError> {
    let mut rest = bindings;
    while let Some((one, others)) = rest.split_first() {
        if let Some(other) = others.iter().find(|other| may_meet(one, other)) {
            return Err(VaultError::Overlap {
                one: one.name.clone(),
                other: other.name.clone(),
            });
        }
        rest = others;
    }
    Ok(())
}

fn may_meet(one: &Binding, other: &Binding) -> bool {
    any(&one.schemes, &other.schemes, |a, b| a == b)
        && any(&one.methods, &other.methods, |a, b| a == b)
        && any(&one.hosts, &other.hosts, |a, b| a.meets(b))
        && any(&one.paths, &other.paths, |a, b| a.may_meet(b))
}

fn any<T>(some: &[T], others: &[T], both: impl Fn(&T, &T) -> bool) -> bool {
    some.iter().any(|a| others.iter().any(|b| both(a, b)))
}
