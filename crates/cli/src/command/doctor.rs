//! `barchan doctor`: what isolation this host offers, what is missing and how to get it.

use anyhow::Result;
use barchan_runtime::native::doctor::{self, Finding, Verdict};
use serde::Serialize;

use crate::output::{Output, Words};

/// A finding as scripts read it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a str,
    verdict: &'static str,
    detail: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    remedy: &'a str,
}

pub(super) fn run(output: &Output) -> Result<u8> {
    let findings = doctor::probe();
    if output.is_json() {
        output.json(&findings.iter().map(report).collect::<Vec<_>>())?;
    } else {
        for finding in &findings {
            tell(finding, output)?;
        }
        output.line("")?;
        output.line(summary(&findings, output))?;
    }
    Ok(u8::from(!is_safe(&findings)))
}

fn report(finding: &Finding) -> Report<'_> {
    Report {
        name: finding.name,
        verdict: word(finding.verdict),
        detail: &finding.detail,
        remedy: &finding.remedy,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "good",
        Verdict::Weaker => "weaker",
        Verdict::Missing => "missing",
    }
}

fn tell(finding: &Finding, output: &Output) -> Result<()> {
    let padded = format!("{:7}", word(finding.verdict));
    let mark = match finding.verdict {
        Verdict::Good => output.green(&padded),
        Verdict::Weaker => output.yellow(&padded),
        Verdict::Missing => output.red(&padded),
    };
    output.line(mark.and(&format!("  {}: {}", finding.name, finding.detail)))?;
    if !finding.remedy.is_empty() {
        output.line(&format!("         → {}", finding.remedy))?;
    }
    Ok(())
}

fn summary(findings: &[Finding], output: &Output) -> Words {
    let weaker = findings
        .iter()
        .filter(|it| it.verdict == Verdict::Weaker)
        .count();
    if !is_safe(findings) {
        output.red("No safe sandbox can be made here; what is missing stands above.")
    } else if weaker > 0 {
        output.yellow("Sandboxes can be made here; what is weaker is reported with each of them.")
    } else {
        output.green("Sandboxes can be made here, with every limit enforced.")
    }
}

/// Fails closed: finding nothing is no sign of health.
fn is_safe(findings: &[Finding]) -> bool {
    !findings.is_empty() && findings.iter().all(|it| it.verdict != Verdict::Missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(verdict: Verdict) -> Finding {
        Finding {
            name: "x",
            verdict,
            detail: String::new(),
            remedy: String::new(),
        }
    }

    #[test]
    fn one_missing_thing_or_none_at_all_is_not_safe() {
        use Verdict::{Good, Missing, Weaker};
        for (verdicts, safe) in [
            (&[Good, Weaker][..], true),
            (&[Good], true),
            (&[Good, Missing], false),
            (&[], false),
        ] {
            let findings: Vec<Finding> = verdicts.iter().map(|it| finding(*it)).collect();
            assert_eq!(is_safe(&findings), safe, "{verdicts:?}");
        }
    }
}
