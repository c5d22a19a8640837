//! Commands that are run once: which key stands for which command, and what came of it.

use std::sync::OnceLock;

use rusqlite::{OptionalExtension, Transaction, params};

use super::{Receipt, StoreError};

/// How long a key is known, in microseconds.
const KNOWN_US: i64 = 24 * 3600 * 1_000_000;
/// Most keys that are known of one sandbox: fewer than its daemon remembers.
const PER_SANDBOX_MAX: i64 = 8192;
/// Most keys that are known in all.
const IN_ALL_MAX: i64 = 262_144;
/// Most bytes of all results together.
const RESULTS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How many results are dropped at once when there are too many bytes of them.
const DROPPED_AT_ONCE: i64 = 64;

/// Asks what a key stands for.
#[derive(Debug)]
pub struct Claim {
    /// The sandbox that the key belongs to.
    pub sandbox: String,
    /// The key as the caller chose it.
    pub key: String,
    /// A hash of the request that the key stands for.
    pub fingerprint: [u8; 32],
    /// The id of the command, should the key be new.
    pub command: String,
    /// Whether a new key is taken at all.
    pub may_begin: bool,
    /// The time of day, in microseconds.
    pub now_us: i64,
}

/// What a key stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing, and it was not to be taken.
    Unknown,
    /// Another request.
    Other,
    /// A command of this id, whose end is not known.
    Begun(String),
    /// A command of this id, and what came of it.
    Ended(String, Outcome),
}

/// What came of a command, as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Status of the answer.
    pub status: u16,
    /// Media type of the answer.
    pub kind: String,
    /// The answer; `None` once it was dropped to save space.
    pub body: Option<Vec<u8>>,
    /// Whether that is all of it.
    pub is_whole: bool,
}

/// The end of a command.
#[derive(Debug)]
pub struct Settled {
    /// The sandbox that the key belongs to.
    pub sandbox: String,
    /// The key.
    pub key: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// Tells what a key stands for, once that is kept.
#[derive(Debug)]
pub struct Claimed {
    pub(super) receipt: Receipt,
    pub(super) standing: std::sync::Arc<OnceLock<Standing>>,
}

impl Claimed {
    /// Returns once the answer would survive the death of this process.
    ///
    /// # Errors
    /// When it was not kept.
    pub async fn standing(self) -> Result<Standing, StoreError> {
        self.receipt.kept().await?;
        self.standing.get().cloned().ok_or(StoreError::Closed)
    }
}

/// Keeps count of the bytes of all results.
#[derive(Debug)]
pub(super) struct Results {
    bytes: u64,
}

impl Results {
    /// Counts what is there.
    pub(super) fn count(database: &rusqlite::Connection) -> rusqlite::Result<Self> {
        let sum = "SELECT COALESCE(SUM(length(result)), 0) FROM commands_once";
        let bytes: i64 = database.query_row(sum, [], |line| line.get(0))?;
        let bytes = bytes.unsigned_abs();
        Ok(Self { bytes })
    }

    /// Finds out what a key stands for; a new one is taken if it may.
    pub(super) fn claim(
        &mut self,
        transaction: &Transaction<'_>,
        claim: &Claim,
    ) -> rusqlite::Result<Standing> {
        let old = claim.now_us.saturating_sub(KNOWN_US);
        self.delete(transaction, "begun_us < ?1", params![old])?;
        if let Some(standing) = look(transaction, claim)? {
            return Ok(standing);
        }
        if !claim.may_begin {
            return Ok(Standing::Unknown);
        }
        let insert = "INSERT INTO commands_once
                (sandbox, key, place, fingerprint, command, begun_us)
             VALUES (?1, ?2, 1 + COALESCE(
                (SELECT MAX(place) FROM commands_once WHERE sandbox = ?1), 0), ?3, ?4, ?5)
             RETURNING number, place";
        let (number, place): (i64, i64) = transaction.prepare_cached(insert)?.query_row(
            params![
                claim.sandbox,
                claim.key,
                claim.fingerprint.as_slice(),
                claim.command,
                claim.now_us
            ],
            |line| Ok((line.get(0)?, line.get(1)?)),
        )?;
        let oldest = params![claim.sandbox, place - PER_SANDBOX_MAX];
        self.delete(transaction, "sandbox = ?1 AND place <= ?2", oldest)?;
        self.delete(transaction, "number <= ?1", params![number - IN_ALL_MAX])?;
        Ok(Standing::Begun(claim.command.clone()))
    }

    fn delete(
        &mut self,
        transaction: &Transaction<'_>,
        which: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> rusqlite::Result<()> {
        let delete = format!(
            "DELETE FROM commands_once WHERE {which} RETURNING COALESCE(length(result), 0)"
        );
        let mut delete = transaction.prepare_cached(&delete)?;
        for bytes in delete.query_map(values, |line| line.get::<_, i64>(0))? {
            self.bytes = self.bytes.saturating_sub(bytes?.unsigned_abs());
        }
        Ok(())
    }

    /// Keeps the end of a command. A refusal does not replace an end.
    pub(super) fn settle(
        &mut self,
        transaction: &Transaction<'_>,
        settled: &Settled,
    ) -> rusqlite::Result<()> {
        let outcome = &settled.outcome;
        let before = "SELECT COALESCE(length(result), 0) FROM commands_once
             WHERE sandbox = ?1 AND key = ?2 AND (status IS NULL OR ?3 = 200)";
        let key = params![settled.sandbox, settled.key, outcome.status];
        let before: Option<i64> = transaction
            .prepare_cached(before)?
            .query_row(key, |line| line.get(0))
            .optional()?;
        let Some(before) = before else {
            return Ok(());
        };
        let update = "UPDATE commands_once
             SET status = ?3, kind = ?4, is_whole = ?5, result = ?6
             WHERE sandbox = ?1 AND key = ?2";
        transaction.prepare_cached(update)?.execute(params![
            settled.sandbox,
            settled.key,
            outcome.status,
            outcome.kind,
            outcome.is_whole,
            outcome.body
        ])?;
        let after = outcome.body.as_ref().map_or(0, Vec::len) as u64;
        self.bytes = self.bytes.saturating_sub(before.unsigned_abs()) + after;
        while self.bytes > RESULTS_BYTES_MAX && self.drop_oldest(transaction)? {}
        Ok(())
    }

    /// Drops some results, the oldest first; false when there are none.
    fn drop_oldest(&mut self, transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
        let oldest = "SELECT number, length(result) FROM commands_once
             WHERE result IS NOT NULL ORDER BY number LIMIT ?1";
        let mut oldest = transaction.prepare_cached(oldest)?;
        let found = oldest.query_map(params![DROPPED_AT_ONCE], |line| {
            Ok((line.get::<_, i64>(0)?, line.get::<_, i64>(1)?))
        })?;
        let found: Vec<(i64, i64)> = found.collect::<rusqlite::Result<_>>()?;
        for (number, bytes) in &found {
            transaction
                .prepare_cached("UPDATE commands_once SET result = NULL WHERE number = ?1")?
                .execute(params![number])?;
            self.bytes = self.bytes.saturating_sub(bytes.unsigned_abs());
        }
        Ok(!found.is_empty())
    }
}

fn look(transaction: &Transaction<'_>, claim: &Claim) -> rusqlite::Result<Option<Standing>> {
    let select = "SELECT fingerprint, command, status, kind, is_whole, result FROM commands_once
         WHERE sandbox = ?1 AND key = ?2";
    transaction
        .prepare_cached(select)?
        .query_row(params![claim.sandbox, claim.key], |line| {
            if line.get::<_, Vec<u8>>(0)? != claim.fingerprint {
                return Ok(Standing::Other);
            }
            let command = line.get(1)?;
            let Some(status) = line.get(2)? else {
                return Ok(Standing::Begun(command));
            };
            let outcome = Outcome {
                status,
                kind: line.get(3)?,
                is_whole: line.get(4)?,
                body: line.get(5)?,
            };
            Ok(Standing::Ended(command, outcome))
        })
        .optional()
}
