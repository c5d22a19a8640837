//! `barchan tenant`: who shares a server.

use anyhow::{Context, Result};
use barchan_wire::lifecycle::{CreateTenant, Quota, Rate, TenantReport, TenantTerms, resources};

use crate::args::{Global, Tenant, Terms};
use crate::output::Output;
use crate::server;

pub(super) async fn run(global: &Global, flags: Tenant, output: &Output) -> Result<()> {
    let client = server::connect(global).await?;
    match flags {
        Tenant::Create { terms, name } => {
            let terms = read(&terms)?;
            let made = client.create_tenant(&CreateTenant { name, terms }).await?;
            show(&[made], output)
        }
        Tenant::List => show(&client.tenants().await?, output),
        Tenant::Set { terms, name } => {
            let changed = client.change_tenant(&name, &read(&terms)?).await;
            let changed = changed.with_context(|| format!("tenant `{name}` stays as it is"))?;
            show(&[changed], output)
        }
        Tenant::Rm { names } => {
            for name in &names {
                let removed = client.remove_tenant(name).await;
                removed.with_context(|| format!("tenant `{name}` stays"))?;
                output.note(&format!("{name} is removed"));
            }
            Ok(())
        }
    }
}

fn read(terms: &Terms) -> Result<TenantTerms> {
    let cpu = |text: &String| {
        resources::cpu_millis(text).with_context(|| format!("`{text}` is no number of cores"))
    };
    let bytes = |text: &String| {
        resources::bytes(text).with_context(|| format!("`{text}` is no size; write 64Gi"))
    };
    let rate = terms.rate.map(|per_second| Rate {
        per_second,
        burst: terms.burst.unwrap_or(per_second),
    });
    let quota = Quota {
        sandboxes: terms.sandboxes,
        cpu_millis: terms.cpu.as_ref().map(cpu).transpose()?,
        memory_bytes: terms.memory.as_ref().map(bytes).transpose()?,
        disk_bytes: terms.disk.as_ref().map(bytes).transpose()?,
        snapshots: terms.snapshots,
    };
    Ok(TenantTerms { quota, rate })
}

fn show(tenants: &[TenantReport], output: &Output) -> Result<()> {
    if output.is_json() {
        return Ok(output.json(&tenants)?);
    }
    let heading = ["NAME", "KEYS", "SANDBOXES", "CPU", "MEMORY", "DISK", "RATE"];
    Ok(output.table(&heading, tenants.iter().map(row).collect())?)
}

/// What a tenant has, of what it may have.
fn row(tenant: &TenantReport) -> Vec<String> {
    let (used, quota) = (tenant.usage, tenant.terms.quota);
    let of = |used: u64, most: Option<u64>, word: &dyn Fn(u64) -> String| match most {
        Some(most) => format!("{} of {}", word(used), word(most)),
        None => word(used),
    };
    let cores = |millis: u64| format!("{}.{:03}", millis / 1000, millis % 1000);
    let size = |bytes: u64| indicatif::HumanBytes(bytes).to_string();
    let rate = tenant
        .terms
        .rate
        .map(|rate| format!("{}/s", rate.per_second));
    vec![
        tenant.name.clone(),
        tenant.keys.to_string(),
        of(used.sandboxes, quota.sandboxes, &|count| count.to_string()),
        of(used.cpu_millis, quota.cpu_millis, &cores),
        of(used.memory_bytes, quota.memory_bytes, &size),
        of(used.disk_bytes, quota.disk_bytes, &size),
        rate.unwrap_or_else(|| "-".to_owned()),
    ]
}
