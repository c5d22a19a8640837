//! Pure. Amounts of CPU and memory as callers write them.

/// Thousandths of a core from `500m` or `1.5`; `None` when it is no positive amount.
#[must_use]
pub fn cpu_millis(text: &str) -> Option<u64> {
    let millis = match text.strip_suffix('m') {
        Some(whole) => digits(whole)?,
        None => decimal_millis(text)?,
    };
    (millis > 0).then_some(millis)
}

/// Bytes from `512Mi`, `1G`, `64kb` or a plain number; `None` when it is no positive amount.
/// With an `i` the unit is a power of 1024, without one of 1000.
#[must_use]
pub fn bytes(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let end = lower
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(lower.len());
    let (number, unit) = lower.split_at(end);
    let factor = match unit {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "ki" | "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mi" | "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gi" | "gib" => 1 << 30,
        "t" | "tb" => 1_000_000_000_000,
        "ti" | "tib" => 1 << 40,
        _ => return None,
    };
    digits(number)?
        .checked_mul(factor)
        .filter(|amount| *amount > 0)
}

/// A positive whole number in ASCII digits.
#[must_use]
pub fn count(text: &str) -> Option<u64> {
    digits(text).filter(|amount| *amount > 0)
}

/// Only ASCII digits: other scripts' digits, signs and underscores are no numbers here.
fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn decimal_millis(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    whole.checked_mul(1000)?.checked_add(thousandths)
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_cpu() {
        for (text, expected) in [
            ("500m", Some(500)),
            ("1", Some(1000)),
            ("1.5", Some(1500)),
            (".25", Some(250)),
            ("2.", Some(2000)),
            ("0.0015", Some(1)),
            ("0", None),
            ("0m", None),
            ("0.0001", None),
            ("-1", None),
            ("abc", None),
            ("", None),
            (".", None),
            ("1e3", None),
            ("1_0", None),
            ("١", None),
            ("99999999999999999999", None),
            ("18446744073709551615", None),
            ("inf", None),
            ("NaN", None),
        ] {
            assert_eq!(cpu_millis(text), expected, "{text}");
        }
    }

    #[test]
    fn amounts_of_bytes() {
        for (text, expected) in [
            ("512Mi", Some(512 << 20)),
            ("1G", Some(1_000_000_000)),
            ("1gib", Some(1 << 30)),
            ("2KB", Some(2000)),
            ("77", Some(77)),
            ("0", None),
            ("Mi", None),
            ("1.5Gi", None),
            ("-1Gi", None),
            ("1 Gi", None),
            ("1Gx", None),
            ("1E", None),
            ("99999999T", None),
            ("١Gi", None),
            ("é", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
