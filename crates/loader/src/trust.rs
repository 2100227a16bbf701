//! Trust: which tenants may share a cordon, and when that ends.
//!
//! A tenant's configured [`Trust`] says with whom its isolates may share a process. Trust can fall at run time: a tenant
//! whose code shows signs of an attack gets a cordon of its own until it has behaved for a while ([`Suspicions`]).

use crate::core::{TenantId, Trust};
use std::{collections::HashMap, time::Duration};

/// Which cordon an isolate belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CordonKey {
    /// That of one tenant.
    Tenant(TenantId),
    /// That of a group.
    Group(String),
    /// That of all tenants who share.
    Shared,
}

/// What makes a tenant suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The engine broke, or the process did, while its code ran.
    Broke,
    /// Its code had to be stopped by a limit.
    Stopped,
    /// It asked for what nobody asks for by accident, such as the address of a metadata service.
    Probed,
}

impl Sign {
    /// Three broken engines, thirty probes, or a hundred stopped calls at once, make a suspect: half a sign
    /// less, because the first ones are forgotten a little when the last one comes.
    fn weight(self) -> f64 {
        match self {
            Self::Broke => SUSPECT_AT / 2.5,
            Self::Probed => SUSPECT_AT / 29.5,
            Self::Stopped => SUSPECT_AT / 99.5,
        }
    }
}

/// Where a tenant becomes suspect.
const SUSPECT_AT: f64 = 1.0;
/// Where it is one no longer.
const TRUSTED_AGAIN_AT: f64 = 0.1;
/// In which time half of what speaks against a tenant is forgotten.
const HALF_LIFE: Duration = Duration::from_secs(60);
/// Tenants that are remembered. Beyond, those that least speaks against are forgotten.
const TENANTS_MAX: usize = 10_000;

/// What speaks against tenants. Time comes in with what happens, counted from any moment on.
#[derive(Debug, Default)]
pub struct Suspicions {
    tenants: HashMap<TenantId, Record>,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    score: f64,
    at: Duration,
    suspect: bool,
}

impl Record {
    fn score(&self, now: Duration) -> f64 {
        let halves = now.saturating_sub(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.score * (-halves).exp2()
    }
}

impl Suspicions {
    /// Takes a sign in. True where it is the one that makes the tenant suspect.
    pub fn note(&mut self, tenant: TenantId, sign: Sign, now: Duration) -> bool {
        if self.tenants.len() >= TENANTS_MAX && !self.tenants.contains_key(&tenant) {
            self.forget_some(now);
        }
        let record = self.tenants.entry(tenant).or_insert(Record {
            score: 0.0,
            at: now,
            suspect: false,
        });
        *record = Record {
            score: record.score(now) + sign.weight(),
            at: now,
            suspect: record.suspect,
        };
        let becomes = !record.suspect && record.score >= SUSPECT_AT;
        record.suspect |= becomes;
        becomes
    }

    /// Whether the tenant gets a cordon of its own, whatever its trust.
    pub fn is_suspect(&mut self, tenant: TenantId, now: Duration) -> bool {
        let Some(record) = self.tenants.get(&tenant) else {
            return false;
        };
        if record.suspect && record.score(now) < TRUSTED_AGAIN_AT {
            self.tenants.remove(&tenant);
            return false;
        }
        record.suspect
    }

    /// The cordon for a new isolate of a tenant.
    pub fn place(&mut self, tenant: TenantId, trust: &Trust, now: Duration) -> CordonKey {
        match trust {
            Trust::Isolated => CordonKey::Tenant(tenant),
            _ if self.is_suspect(tenant, now) => CordonKey::Tenant(tenant),
            Trust::Grouped(group) => CordonKey::Group(group.clone()),
            Trust::Shared => CordonKey::Shared,
        }
    }

    /// Half of those that are remembered go.
    fn forget_some(&mut self, now: Duration) {
        let mut scores: Vec<f64> = self
            .tenants
            .values()
            .map(|record| record.score(now))
            .collect();
        scores.sort_by(f64::total_cmp);
        let middle = scores[scores.len() / 2];
        self.tenants.retain(|_, record| record.score(now) > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;
    const ONE: TenantId = TenantId(1);
    const OTHER: TenantId = TenantId(2);

    /// How many of a sign it takes, `apart` from each other.
    fn signs_until_suspect(sign: Sign, apart: Duration) -> Option<u32> {
        let mut suspicions = Suspicions::default();
        (1..=1_000).find(|count| suspicions.note(ONE, sign, apart * *count))
    }

    #[test]
    fn some_signs_at_once_make_a_suspect_and_the_same_over_hours_do_not() {
        let at_once = Duration::from_millis(1);
        assert_eq!(signs_until_suspect(Sign::Broke, at_once), Some(3));
        assert_eq!(signs_until_suspect(Sign::Probed, at_once), Some(30));
        assert_eq!(signs_until_suspect(Sign::Stopped, at_once), Some(100));
        let now_and_then = Duration::from_secs(600);
        assert_eq!(signs_until_suspect(Sign::Broke, now_and_then), None);
        assert_eq!(signs_until_suspect(Sign::Stopped, now_and_then), None);
    }

    #[test]
    fn a_suspect_has_a_cordon_of_its_own_until_it_has_behaved_for_a_while() {
        let mut suspicions = Suspicions::default();
        for _ in 0..3 {
            suspicions.note(ONE, Sign::Broke, START);
        }
        assert_eq!(
            suspicions.place(ONE, &Trust::Shared, START),
            CordonKey::Tenant(ONE)
        );
        assert_eq!(
            suspicions.place(OTHER, &Trust::Shared, START),
            CordonKey::Shared
        );
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        // A tenth of it is left after 3.3 half lives.
        assert!(suspicions.is_suspect(ONE, minutes(3)));
        assert_eq!(
            suspicions.place(ONE, &Trust::Shared, minutes(4)),
            CordonKey::Shared
        );
    }

    #[test]
    fn trust_says_who_shares() {
        let mut suspicions = Suspicions::default();
        let group = || Trust::Grouped("a".into());
        let mut place = |tenant, trust| suspicions.place(tenant, &trust, START);
        assert_eq!(place(ONE, group()), place(OTHER, group()));
        assert_ne!(place(ONE, group()), place(ONE, Trust::Shared));
        assert_ne!(place(ONE, Trust::Isolated), place(OTHER, Trust::Isolated));
    }

    #[test]
    fn no_more_tenants_are_remembered_than_there_is_room_for_and_suspects_stay() {
        let mut suspicions = Suspicions::default();
        for _ in 0..3 {
            suspicions.note(ONE, Sign::Broke, START);
        }
        for tenant in 2..30_000 {
            suspicions.note(TenantId(tenant), Sign::Stopped, START);
            assert!(suspicions.tenants.len() <= TENANTS_MAX);
        }
        assert!(suspicions.is_suspect(ONE, START));
    }
}
