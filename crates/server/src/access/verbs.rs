//! What admins do with keys and tenants.

use std::collections::BTreeMap;
use std::sync::Arc;

use barchan_wire::lifecycle::{
    CreateKey, CreateTenant, KeyReport, NewKey, Role, TenantReport, TenantTerms, Time, Usage,
};
use barchan_wire::secret::Secret;

use super::Access;
use super::error::{AccessError, shown};
use super::key::{ID_DIGITS, Key};
use super::table::{Entry, Life, Table};
use super::tenant::Tenant;
use crate::random;

/// Most keys and most tenants of a server.
const KEYS_MAX: usize = 10_000;
const TENANTS_MAX: usize = 10_000;

impl Access {
    /// All keys, the oldest first.
    #[must_use]
    pub fn list_keys(&self) -> Vec<KeyReport> {
        let now = self.now();
        let mut keys: Vec<KeyReport> = {
            let table = self.0.keys.read();
            table.keys.values().map(|entry| entry.report(now)).collect()
        };
        keys.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        keys
    }

    /// Makes a key. It is shown in this answer, and never again.
    ///
    /// # Errors
    /// When its tenant does not exist, it would be expired, there are too many, or it cannot be
    /// kept.
    pub async fn create_key(&self, asked: CreateKey) -> Result<NewKey, AccessError> {
        self.in_turn(async move |this: Self| {
            let now = this.now();
            if asked.expires_at.is_some_and(|at| at <= now) {
                return Err(AccessError::Past);
            }
            let id = {
                let table = this.0.keys.read();
                if let Some(name) = &asked.tenant {
                    table.tenant(name)?;
                }
                room("keys", table.keys.len(), KEYS_MAX)?;
                table.new_id()
            };
            let (key, text) = Key::made(id, &random::hex(), asked, now);
            let life = Arc::new(Life::new(None));
            this.put(key, life, text, now).await
        })
        .await
    }

    /// Replaces the secret part of a key. The old one works on for so many seconds.
    ///
    /// # Errors
    /// When there is no such key, or the change cannot be kept.
    pub async fn rotate_key(&self, id: String, grace_s: u64) -> Result<NewKey, AccessError> {
        self.in_turn(async move |this: Self| {
            let now = this.now();
            let entry = this.0.keys.read().key(&id)?;
            let (key, text) = entry.key.rotated(&random::hex(), grace_s, now);
            let made = this.put(key, Arc::clone(&entry.life), text, now).await;
            this.announce();
            made
        })
        .await
    }

    /// Takes a key away. From this answer on it opens nothing.
    ///
    /// # Errors
    /// When there is no such key, or the change cannot be kept.
    pub async fn revoke_key(&self, id: String) -> Result<(), AccessError> {
        self.in_turn(async move |this: Self| {
            this.0.keys.read().key(&id)?;
            this.0.store.slot().await?.remove_key(&id).kept().await?;
            this.0.keys.write().keys.remove(&id);
            this.announce();
            Ok(())
        })
        .await
    }

    async fn put(
        &self,
        key: Key,
        life: Arc<Life>,
        text: Secret,
        now: Time,
    ) -> Result<NewKey, AccessError> {
        self.0.store.slot().await?.put_key(&key).kept().await?;
        let entry = Arc::new(Entry { key, life });
        let report = entry.report(now);
        let mut table = self.0.keys.write();
        table.keys.insert(entry.key.id.clone(), entry);
        Ok(NewKey { report, key: text })
    }

    /// All tenants by name, with what their sandboxes have.
    #[must_use]
    pub fn list_tenants(&self, usages: &BTreeMap<String, Usage>) -> Vec<TenantReport> {
        let table = self.0.keys.read();
        let mut keys = BTreeMap::<&str, u64>::new();
        for tenant in table
            .keys
            .values()
            .filter_map(|it| it.key.tenant.as_deref())
        {
            *keys.entry(tenant).or_default() += 1;
        }
        let report = |tenant: &Arc<Tenant>| {
            let usage = usages.get(&tenant.owner()).copied().unwrap_or_default();
            let keys = keys.get(tenant.name.as_str()).copied().unwrap_or_default();
            report(tenant, usage, keys)
        };
        table.tenants.values().map(report).collect()
    }

    /// One tenant.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn tenant(
        &self,
        name: &str,
        usage: impl FnOnce(&str) -> Usage,
    ) -> Result<TenantReport, AccessError> {
        let (tenant, keys) = {
            let table = self.0.keys.read();
            (table.tenant(name)?, table.keys_of(name) as u64)
        };
        Ok(report(&tenant, usage(&tenant.owner()), keys))
    }

    /// A tenant as it is now, unless it was removed meanwhile.
    pub(crate) fn current(&self, was: &Tenant) -> Option<Arc<Tenant>> {
        let now = self.0.keys.read().tenants.get(&was.name).cloned();
        now.filter(|now| now.created_at == was.created_at)
    }

    /// Makes a tenant.
    ///
    /// # Errors
    /// When there is one of this name, there are too many, or it cannot be kept.
    pub async fn create_tenant(&self, asked: CreateTenant) -> Result<(), AccessError> {
        self.in_turn(async move |this: Self| {
            {
                let table = this.0.keys.read();
                if table.tenants.contains_key(&asked.name) {
                    return Err(AccessError::TenantExists(asked.name));
                }
                room("tenants", table.tenants.len(), TENANTS_MAX)?;
            }
            this.put_tenant(Tenant {
                name: asked.name,
                terms: asked.terms,
                created_at: this.now(),
            })
            .await
        })
        .await
    }

    /// Replaces what holds for a tenant. Sandboxes that are beyond it stay.
    ///
    /// # Errors
    /// When there is none of this name, or the change cannot be kept.
    pub async fn change_tenant(&self, name: String, terms: TenantTerms) -> Result<(), AccessError> {
        self.in_turn(async move |this: Self| {
            let before = this.0.keys.read().tenant(&name)?;
            let tenant = Tenant {
                terms,
                ..Tenant::clone(&before)
            };
            this.put_tenant(tenant).await
        })
        .await
    }

    async fn put_tenant(&self, tenant: Tenant) -> Result<(), AccessError> {
        self.0
            .store
            .slot()
            .await?
            .put_tenant(&tenant)
            .kept()
            .await?;
        let mut table = self.0.keys.write();
        table.tenants.insert(tenant.name.clone(), Arc::new(tenant));
        Ok(())
    }

    /// Removes a tenant that has no keys and no sandboxes. What it left besides is the operator's.
    ///
    /// # Errors
    /// When there is none of this name, when it has some, or when the change cannot be kept.
    pub async fn remove_tenant(
        &self,
        name: String,
        usage: impl FnOnce(&str) -> Usage + Send + 'static,
    ) -> Result<(), AccessError> {
        self.in_turn(async move |this: Self| {
            let tenant = this.0.keys.write().take_tenant(&name)?;
            // From here on no request finds it, and one that did before looks again after its
            // sandbox is counted: one of the two sees the other.
            let removed = async {
                let sandboxes = usage(&tenant.owner()).sandboxes;
                if sandboxes > 0 {
                    let tenant = name.clone();
                    return Err(AccessError::HasSandboxes { tenant, sandboxes });
                }
                let slot = this.0.store.slot().await?;
                Ok(slot.remove_tenant(&name).kept().await?)
            };
            let removed = removed.await;
            if removed.is_err() {
                this.0.keys.write().tenants.insert(name, tenant);
            }
            removed
        })
        .await
    }
}

impl Table {
    fn key(&self, id: &str) -> Result<Arc<Entry>, AccessError> {
        let entry = self.keys.get(id).cloned();
        entry.ok_or_else(|| AccessError::NoKey(shown(id)))
    }

    fn tenant(&self, name: &str) -> Result<Arc<Tenant>, AccessError> {
        let tenant = self.tenants.get(name).cloned();
        tenant.ok_or_else(|| AccessError::NoTenant(shown(name)))
    }

    /// Takes a tenant out that has no keys.
    fn take_tenant(&mut self, name: &str) -> Result<Arc<Tenant>, AccessError> {
        let tenant = self.tenant(name)?;
        let keys = self.keys_of(name);
        if keys > 0 {
            let tenant = name.to_owned();
            return Err(AccessError::HasKeys { tenant, keys });
        }
        self.tenants.remove(name);
        Ok(tenant)
    }

    fn keys_of(&self, tenant: &str) -> usize {
        let is_theirs = |entry: &&Arc<Entry>| entry.key.tenant.as_deref() == Some(tenant);
        self.keys.values().filter(is_theirs).count()
    }

    /// An id that no key has.
    fn new_id(&self) -> String {
        loop {
            let mut id = random::hex();
            id.truncate(ID_DIGITS);
            if !self.keys.contains_key(&id) {
                return id;
            }
        }
    }
}

impl Entry {
    fn report(&self, now: Time) -> KeyReport {
        let key = &self.key;
        KeyReport {
            id: key.id.clone(),
            label: key.label.clone(),
            role: match key.tenant {
                Some(_) => Role::Tenant,
                None => Role::Admin,
            },
            tenant: key.tenant.clone(),
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: self.life.used_at(),
            rotated_at: key.rotated_at,
            previous_until: key.previous_until(now),
        }
    }
}

fn report(tenant: &Tenant, usage: Usage, keys: u64) -> TenantReport {
    TenantReport {
        name: tenant.name.clone(),
        terms: tenant.terms,
        usage,
        keys,
        created_at: tenant.created_at,
    }
}

fn room(what: &'static str, count: usize, max: usize) -> Result<(), AccessError> {
    match count < max {
        true => Ok(()),
        false => Err(AccessError::TooMany { what, count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_up_to_the_most() {
        for (count, is_fine) in [(0, true), (9, true), (10, false), (11, false)] {
            assert_eq!(room("keys", count, 10).is_ok(), is_fine, "{count}");
        }
    }
}
