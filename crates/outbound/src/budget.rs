//! How much may go to a destination in a time, and what has gone.
//!
//! A [`Budget`] is of a rule, and counts for each destination of the rule apart. [`Budgets`] hold what has been used, for
//! all whose requests count together; a request opens a [`Meter`] there and takes from it. Time is passed in.

mod usage;

use crate::{Decision, PolicyOrigin};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use usage::{Amount, Usage};

/// The longest time that a budget can be for: 31 days.
pub const PER_SECONDS_MAX: u64 = 31 * 24 * 60 * 60;
/// The most destinations whose use is kept in mind.
pub const DESTINATIONS_MAX: usize = 10_000;
/// Of these, the most that one session has brought up.
pub const DESTINATIONS_PER_SESSION_MAX: usize = 1_000;

/// What a rule allows to each of its destinations (scheme, host and port) in any stretch of `per_seconds`, however it is
/// laid. What was used is forgotten up to a sixteenth of that time late, never early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    /// The most requests, from 1; none is any number.
    pub requests_max: Option<u64>,
    /// The most bytes, of what is sent and what is received together, from 1; none is any number.
    pub bytes_max: Option<u64>,
    /// In how many seconds, from 1 to [`PER_SECONDS_MAX`].
    pub per_seconds: u64,
}

/// A budget is used up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// There is not enough left.
    #[error("{}", spent(rule, destination, limit, *used, *max, *per_seconds, *retry_after))]
    Spent {
        /// The rule that it is of, as people call it.
        rule: String,
        /// The origin that it counts for.
        destination: String,
        /// `requests_max` or `bytes_max`.
        limit: &'static str,
        /// What is used.
        used: u64,
        /// What may be used.
        max: u64,
        /// In which time.
        per_seconds: u64,
        /// When there will be enough; none if there never is, for more is asked than the whole.
        retry_after: Option<Duration>,
    },
    /// So many destinations are being counted that no other can be.
    #[error(
        "the budgets of {destinations_max} destinations are counting, and no other is counted: retry when one is idle"
    )]
    Crowded {
        /// How many.
        destinations_max: usize,
    },
}

fn spent(
    rule: &str,
    destination: &str,
    limit: &str,
    used: u64,
    max: u64,
    per_seconds: u64,
    retry_after: Option<Duration>,
) -> String {
    let unit = limit.strip_suffix("_max").unwrap_or(limit);
    let retry = match retry_after {
        // Rounded up, so that who waits as long as is said has waited long enough.
        Some(after) => format!("retry in {} seconds", after.as_millis().div_ceil(1000)),
        None => "this is more than there ever is".into(),
    };
    format!(
        "the budget of {rule} for {destination} is used up: {limit} is {max} in {per_seconds} seconds, and {used} {unit} \
         are used: {retry}"
    )
}

/// What has been used, by rule and destination. Cheap to ask: where no rule has a budget nothing is locked.
#[derive(Debug)]
pub struct Budgets {
    destinations_max: usize,
    per_session_max: usize,
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    by_key: HashMap<Key, Arc<Account>>,
    /// How many of them each session has brought up.
    by_session: HashMap<u64, usize>,
    /// Until when it is known that none of them is idle.
    crowded_until: Option<Instant>,
}

/// A rule is known by its place and its budget, so that a policy that is read again goes on counting; one of a client's
/// counts for the session that gave it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    rule: Arc<str>,
    given_by: Option<u64>,
    budget: Budget,
    destination: String,
}

#[derive(Debug)]
struct Account {
    key: Key,
    /// The session that made it count.
    session: u64,
    usage: Mutex<Usage>,
}

/// What one request takes from, with all that is sent and received for it.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Each once, in one order for all meters, so that no two wait for each other.
    accounts: Vec<Arc<Account>>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self::new(DESTINATIONS_MAX, DESTINATIONS_PER_SESSION_MAX)
    }
}

impl Budgets {
    /// With room for so many destinations, and for so many of each session.
    #[must_use]
    pub fn new(destinations_max: usize, per_session_max: usize) -> Self {
        Self {
            destinations_max,
            per_session_max,
            accounts: Mutex::default(),
        }
    }

    /// A meter for the budgets of a decision about a request of that session's. Takes nothing yet.
    ///
    /// # Errors
    /// There is no room for the destination.
    pub fn open(
        &self,
        decision: &Decision<'_>,
        session: u64,
        now: Instant,
    ) -> Result<Meter, BudgetError> {
        let mut budgets = decision.budgets().peekable();
        if budgets.peek().is_none() {
            return Ok(Meter::default());
        }
        let destination = decision.destination().origin();
        let mut accounts = Vec::new();
        for (decider, budget) in budgets {
            let key = Key {
                rule: decider.label(),
                given_by: match decider.policy().origin() {
                    PolicyOrigin::Operator => None,
                    PolicyOrigin::Client => Some(session),
                },
                budget,
                destination: destination.clone(),
            };
            accounts.push(self.account(key, session, now)?);
        }
        accounts.sort_by_key(|account| Arc::as_ptr(account).addr());
        accounts.dedup_by(|one, other| Arc::ptr_eq(one, other));
        Ok(Meter { accounts })
    }

    fn account(&self, key: Key, session: u64, now: Instant) -> Result<Arc<Account>, BudgetError> {
        let mut accounts = locked(&self.accounts);
        if let Some(account) = accounts.by_key.get(&key) {
            return Ok(account.clone());
        }
        let crowded = |accounts: &Accounts| {
            let of_session = accounts.by_session.get(&session).copied();
            if of_session.unwrap_or_default() >= self.per_session_max {
                return Some(self.per_session_max);
            }
            (accounts.by_key.len() >= self.destinations_max).then_some(self.destinations_max)
        };
        if crowded(&accounts).is_some() {
            accounts.forget_idle(now);
        }
        if let Some(destinations_max) = crowded(&accounts) {
            return Err(BudgetError::Crowded { destinations_max });
        }
        *accounts.by_session.entry(session).or_default() += 1;
        let usage = Mutex::new(Usage::new(key.budget.per_seconds, now));
        let account = Arc::new(Account {
            key: key.clone(),
            session,
            usage,
        });
        accounts.by_key.insert(key, account.clone());
        Ok(account)
    }
}

impl Accounts {
    /// Forgets those that say nothing that a new one would not: without use that counts still, and without a meter.
    fn forget_idle(&mut self, now: Instant) {
        if self.crowded_until.is_some_and(|until| now < until) {
            return;
        }
        // Those with a meter can become idle at any time; looking once a second is often enough.
        let mut crowded_until = now + Duration::from_secs(1);
        let mut is_counting = |account: &Arc<Account>| {
            let idle_at = locked(&account.usage).idle_at(now);
            let is_held = Arc::strong_count(account) > 1;
            if let (Some(at), false) = (idle_at, is_held) {
                crowded_until = crowded_until.min(at);
            }
            is_held || idle_at.is_some()
        };
        let by_session = &mut self.by_session;
        self.by_key.retain(|_, account| {
            let is_counting = is_counting(account);
            if !is_counting && let Some(count) = by_session.get_mut(&account.session) {
                *count -= 1;
            }
            is_counting
        });
        self.by_session.retain(|_, count| *count > 0);
        self.crowded_until = Some(crowded_until);
    }
}

impl Meter {
    /// Takes one request from each budget, or none from any.
    ///
    /// # Errors
    /// One has none left, or no byte: then there is no use in sending.
    pub fn take_request(&self, now: Instant) -> Result<(), BudgetError> {
        let mut usages = self.usages(now);
        for (account, usage) in &usages {
            account.check(usage, Amount::Requests, 1, now)?;
            // A byte will be needed, and is not taken yet.
            account.check(usage, Amount::Bytes, 1, now)?;
        }
        for (_, usage) in &mut usages {
            usage.add(Amount::Requests, 1);
        }
        Ok(())
    }

    /// Takes bytes from each budget. Where there are not so many the rest is taken all the same: received bytes have been
    /// received, whether or not they are let through.
    ///
    /// # Errors
    /// One has not so many left.
    pub fn take_bytes(&self, bytes: u64, now: Instant) -> Result<(), BudgetError> {
        let mut taken = Ok(());
        for (account, usage) in &mut self.usages(now) {
            let checked = account.check(usage, Amount::Bytes, bytes, now);
            let left = account.max(Amount::Bytes).unwrap_or(u64::MAX) - usage.used(Amount::Bytes);
            usage.add(Amount::Bytes, bytes.min(left));
            taken = taken.and(checked);
        }
        taken
    }

    /// Whether any budget takes note of anything.
    #[must_use]
    pub fn is_counting(&self) -> bool {
        !self.accounts.is_empty()
    }

    /// Gives back what was taken for a request that nobody got: the request, and so many bytes.
    pub fn give_back(&self, bytes: u64, now: Instant) {
        for (_, usage) in &mut self.usages(now) {
            usage.remove(Amount::Requests, 1);
            usage.remove(Amount::Bytes, bytes);
        }
    }

    /// All of them at one moment.
    fn usages(&self, now: Instant) -> Vec<(&Account, MutexGuard<'_, Usage>)> {
        let accounts = self.accounts.iter();
        let mut usages: Vec<_> = accounts
            .map(|account| (&**account, locked(&account.usage)))
            .collect();
        usages.iter_mut().for_each(|(_, usage)| usage.advance(now));
        usages
    }
}

impl Account {
    fn max(&self, amount: Amount) -> Option<u64> {
        match amount {
            Amount::Requests => self.key.budget.requests_max,
            Amount::Bytes => self.key.budget.bytes_max,
        }
    }

    fn check(
        &self,
        usage: &Usage,
        amount: Amount,
        wanted: u64,
        now: Instant,
    ) -> Result<(), BudgetError> {
        let Some(max) = self.max(amount) else {
            return Ok(());
        };
        let used = usage.used(amount);
        if used.saturating_add(wanted) <= max {
            return Ok(());
        }
        let limit = match amount {
            Amount::Requests => "requests_max",
            Amount::Bytes => "bytes_max",
        };
        let room = max.checked_sub(wanted);
        Err(BudgetError::Spent {
            rule: self.key.rule.to_string(),
            destination: self.key.destination.clone(),
            limit,
            used,
            max,
            per_seconds: self.key.budget.per_seconds,
            retry_after: room.map(|room| usage.at_most_after(amount, room, now)),
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Counts are whole after each step, also where a thread was stopped between two.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.requests_max.map(|max| format!("{max} requests"));
        let bytes = self.bytes_max.map(|max| format!("{max} bytes"));
        let amounts: Vec<String> = requests.into_iter().chain(bytes).collect();
        write!(
            formatter,
            "{} in {} seconds",
            amounts.join(" and "),
            self.per_seconds
        )
    }
}

#[cfg(test)]
mod tests;
