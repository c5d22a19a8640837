//! Credentials of sandboxes: told to the program before they are kept, and kept before anybody is
//! promised them. The program forgets all when it ends; here is what it is told again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use barchan_runtime::Trust;
use barchan_wire::egress::vault::{Vault, VaultState};
use barchan_wire::id::SandboxId;

use super::is_over;
use crate::egress::{Program, ProgramError};
use crate::lifecycle::LifecycleError;
use crate::lifecycle::guard::GuardError;
use crate::lifecycle::registry::Entry;
use crate::lifecycle::service::Lifecycle;
use crate::lifecycle::state::Record;
use crate::store::SealedVault;
use crate::vault::{Book, Change, Seals, VaultError, authority};

/// The status with which the program refuses what makes no sense.
const SENSELESS: u16 = 400;

/// The vaults of sandboxes that live.
#[derive(Debug)]
pub(super) struct Vaults {
    seals: Seals,
    held: Mutex<HashMap<SandboxId, Held>>,
}

#[derive(Debug, Clone)]
enum Held {
    Open(Arc<Book>),
    /// What is kept of it cannot be read.
    Unreadable,
}

impl Vaults {
    pub(super) fn new(seals: Seals) -> Self {
        Self {
            seals,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<SandboxId, Held>> {
        // Nothing panics half-way while it holds the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, id: &SandboxId, held: Held) {
        self.held().insert(id.clone(), held);
    }

    pub(super) fn forget(&self, id: &SandboxId) {
        self.held().remove(id);
    }

    fn open(&self, id: &SandboxId) -> Result<Arc<Book>, VaultError> {
        match self.held().get(id) {
            Some(Held::Open(book)) => Ok(Arc::clone(book)),
            Some(Held::Unreadable) => Err(VaultError::Unreadable),
            None => Err(VaultError::NotAsked),
        }
    }

    /// What the program is told of it.
    pub(super) fn told(&self, id: &SandboxId) -> Option<Vault> {
        self.open(id).ok().map(|book| book.told())
    }
}

impl Lifecycle {
    /// What callers see of a sandbox's credentials.
    ///
    /// # Errors
    /// When there is no such sandbox, it does not live, or it has no vault.
    pub(crate) fn vault(&self, id: &SandboxId) -> Result<VaultState, LifecycleError> {
        Ok(self.book(id)?.state()?)
    }

    /// Whether a sandbox may have credentials at all.
    ///
    /// # Errors
    /// When it may not, and why.
    pub(crate) fn may_have_vault(&self, id: &SandboxId) -> Result<(), LifecycleError> {
        self.book(id).map(drop)
    }

    fn book(&self, id: &SandboxId) -> Result<Arc<Book>, LifecycleError> {
        let record = self.reachable(id)?;
        if !record.origin().credential_proxy {
            return Err(VaultError::NotAsked.into());
        }
        if !self.has_guard() {
            return Err(VaultError::Unguarded.into());
        }
        Ok(self.0.guarding.vaults.open(id)?)
    }

    /// Changes the credentials of a sandbox. They hold and are kept when this returns; what cannot
    /// be kept does not hold either.
    ///
    /// # Errors
    /// When it has no vault, the change makes no sense, or it cannot be told or kept.
    pub(crate) async fn change_vault(
        &self,
        id: &SandboxId,
        change: Change,
    ) -> Result<VaultState, LifecycleError> {
        let entry = self.entry(id)?;
        self.book(id)?;
        self.touch(&entry);
        let this = self.clone();
        self.owned(async move {
            let _turn = entry.guarding.lock().await;
            this.change_book(&entry, change).await
        })
        .await
    }

    async fn change_book(
        &self,
        entry: &Entry,
        change: Change,
    ) -> Result<VaultState, LifecycleError> {
        let record = entry.record();
        let id = record.id();
        let before = self.book(id)?;
        let after = Arc::new(before.changed(change)?);
        let program = self.program().ok_or(VaultError::Unguarded)?;
        let mut guarded = self.0.guarding.guarded(&record, self.peers_of(&record));
        guarded.vault = Some(after.told());
        match program.guard(id, &guarded).await {
            Ok(()) => {}
            // All is as it was there.
            Err(ProgramError::Refused { status, text, .. }) if status == SENSELESS => {
                return Err(VaultError::Invalid(text).into());
            }
            Err(error) => {
                self.tell_or_later(entry, &program).await;
                return Err(GuardError::from(error).into());
            }
        }
        if let Err(error) = self.keep_book(id, &after).await {
            self.tell_or_later(entry, &program).await;
            return Err(error);
        }
        let vaults = &self.0.guarding.vaults;
        vaults.hold(id, Held::Open(Arc::clone(&after)));
        self.0.guarding.known().sandboxes.insert(id.clone());
        // It may have ended meanwhile, and its values do not outlive it.
        let record = entry.record();
        if is_over(&record) {
            let slot = self.0.store.slot().await?;
            slot.remove_vaults(vec![id.to_string()]).kept().await?;
            self.guard_changed(&record);
        }
        match after.state() {
            Err(VaultError::Absent) => Ok(before.state()?),
            state => Ok(state?),
        }
    }

    async fn keep_book(&self, id: &SandboxId, book: &Book) -> Result<(), LifecycleError> {
        let sealed = self.0.guarding.vaults.seals.seal(id, book)?;
        let slot = self.0.store.slot().await?;
        Ok(slot.put_vault(id, sealed).kept().await?)
    }

    /// Whom a sandbox that is about to be made believes, if it may have credentials. Its vault
    /// begins empty.
    pub(in crate::lifecycle::service) fn begin_vault(
        &self,
        record: &Record,
    ) -> Result<Option<Trust>, LifecycleError> {
        if !record.origin().credential_proxy {
            return Ok(None);
        }
        let id = record.id();
        let book = Book::new(authority(id, self.0.clock.now().wall)?);
        let trust = Trust {
            authority: book.certificate().to_owned(),
            roots: self.0.guarding.terms().roots.to_string(),
        };
        let vaults = &self.0.guarding.vaults;
        vaults.hold(id, Held::Open(Arc::new(book)));
        Ok(Some(trust))
    }

    /// Keeps the vault of a sandbox that is about to be made, before its record: nothing would come
    /// of a record without it.
    pub(in crate::lifecycle::service) async fn keep_vault(
        &self,
        id: &SandboxId,
    ) -> Result<(), LifecycleError> {
        match self.0.guarding.vaults.open(id) {
            Ok(book) => self.keep_book(id, &book).await,
            Err(_) => Ok(()),
        }
    }

    /// Takes up what was kept. A vault that cannot be read is its own sandbox's trouble alone.
    pub(in crate::lifecycle::service) async fn take_up_vaults(
        &self,
        kept: Vec<SealedVault>,
    ) -> Result<(), LifecycleError> {
        let vaults = &self.0.guarding.vaults;
        for record in self.0.registry.records() {
            if record.origin().credential_proxy && !is_over(&record) {
                vaults.hold(record.id(), Held::Unreadable);
            }
        }
        let mut orphans = Vec::new();
        for SealedVault { sandbox, bytes } in kept {
            let id: Option<SandboxId> = sandbox.parse().ok();
            let Some(id) = id.filter(|id| vaults.held().contains_key(id)) else {
                orphans.push(sandbox);
                continue;
            };
            match vaults.seals.open(&id, &bytes) {
                Ok(Some(book)) => vaults.hold(&id, Held::Open(Arc::new(book))),
                Ok(None) => tracing::warn!(%id, "the vault of a sandbox cannot be read"),
                Err(error) => tracing::warn!(%id, %error, "the vault of a sandbox cannot be read"),
            }
        }
        if !orphans.is_empty() {
            let slot = self.0.store.slot().await?;
            slot.remove_vaults(orphans).kept().await?;
        }
        Ok(())
    }

    /// Tells what a sandbox may send out. Where its credentials fit its policy no longer, it is
    /// guarded without them: one about which nothing is told reaches nothing.
    pub(super) async fn tell_guarded(
        &self,
        record: &Record,
        program: &Program,
    ) -> Result<(), ProgramError> {
        let mut guarded = self.0.guarding.guarded(record, self.peers_of(record));
        let told = program.guard(record.id(), &guarded).await;
        let vault = guarded.vault.as_mut().filter(|it| !it.bindings.is_empty());
        match (told, vault) {
            (Err(ProgramError::Refused { status, .. }), Some(vault)) if status == SENSELESS => {
                vault.credentials.clear();
                vault.bindings.clear();
                program.guard(record.id(), &guarded).await?;
                tracing::warn!(
                    id = %record.id(),
                    "the credentials of a sandbox do not fit its policy and are not used"
                );
                Ok(())
            }
            (told, _) => told,
        }
    }
}
