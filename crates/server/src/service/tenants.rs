//! Tenants: who they are to the core, what is measured of them, and what they send.

use super::{Service, State};
use coracle_isolate::TenantShare;
use coracle_loader::{Event, Sign, TenantId, Trust};

impl Service {
    /// Makes those known that are configured: from the start they have their part, whoever is there before.
    pub(super) fn admit_tenants(&self) {
        let mut state = self.lock();
        for name in self.tenancy.tenants.keys() {
            self.tenant(&mut state, name);
        }
    }

    /// The tenant of that name.
    pub(super) fn tenant(&self, state: &mut State, name: &str) -> TenantId {
        if let Some(known) = state.tenants.get(name) {
            return *known;
        }
        let policy = self.tenancy.policy_of(name).clone();
        let is_measured = policy.wants_measuring();
        let tenant = state.core.allocate_tenant(policy);
        state.tenants.insert(name.to_owned(), tenant);
        if is_measured {
            state.measured.insert(tenant);
        }
        tenant
    }

    /// How large a tenant's part is of what isolates share.
    pub(crate) fn share_of(&self, tenant: &str) -> TenantShare {
        let policy = self.tenancy.policy_of(tenant);
        TenantShare {
            weight: policy.weight,
            memory_bytes_max: policy.memory_bytes_max.unwrap_or(u64::MAX),
        }
    }

    /// Whom a tenant's isolates may share a process with.
    pub(crate) fn trust_of(&self, tenant: &str) -> Trust {
        self.tenancy.policy_of(tenant).trust.clone()
    }

    /// Tells the core what a tenant's isolates have used, if that is bounded.
    pub(super) fn measure(&self, state: &mut State, tenant: TenantId) {
        if !state.measured.contains(&tenant) {
            return;
        }
        let usage = self.scheduler().usage_of(tenant.0);
        state.tell(Event::TenantMeasured {
            tenant,
            cpu_us: usage.cpu_us,
            memory_bytes: usage.memory_bytes,
            fresh_bytes: usage.fresh_bytes,
        });
    }

    /// Whether it is bounded what a tenant's workers send.
    pub(super) fn bounds_bytes_out(&self, tenant: &str) -> bool {
        let policy = self.tenancy.policy_of(tenant);
        policy.bytes_out_per_minute_max.is_some()
    }

    /// A request of a tenant's is over.
    pub(super) fn count_request(&self, state: &mut State, tenant: &str, bytes: u64, probed: bool) {
        let Some(id) = state.tenants.get(tenant).copied() else {
            return;
        };
        if probed {
            self.scheduler().suspect(id.0, Sign::Probed);
        }
        if bytes > 0 && self.bounds_bytes_out(tenant) {
            state.tell(Event::BytesSent { tenant: id, bytes });
            self.act(state);
        }
    }
}
