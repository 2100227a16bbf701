//! What each tenant may have, and what it has.

use super::bucket::Bucket;

const MINUTE_MS: u64 = 60_000;
const SECOND_MS: u64 = 1_000;
/// Calls begin as soon as this little is there of what is used up by the call itself and known only afterwards.
const SOMETHING: u64 = 1;

/// What a tenant may have. Where a quota is none, only what holds for the whole server bounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantPolicy {
    /// Its part of what others want too, against theirs: of CPU time and of free isolates. From 1 to
    /// [`WEIGHT_MAX`](super::WEIGHT_MAX). Default: 1.
    pub weight: u32,
    /// Isolates at once, those on their way out included.
    pub isolates_max: Option<u64>,
    /// CPU time of its workers in seconds, in a minute.
    pub cpu_seconds_per_minute_max: Option<u64>,
    /// Times a second that a worker of its is loaded into a fresh isolate.
    pub loads_per_second_max: Option<u64>,
    /// Linear memory of all its isolates together, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// Bytes that its workers send by policies, in a minute.
    pub bytes_out_per_minute_max: Option<u64>,
    /// Whom its isolates may live beside.
    pub trust: Trust,
}

impl Default for TenantPolicy {
    fn default() -> Self {
        Self {
            weight: 1,
            isolates_max: None,
            cpu_seconds_per_minute_max: None,
            loads_per_second_max: None,
            memory_bytes_max: None,
            bytes_out_per_minute_max: None,
            trust: Trust::Shared,
        }
    }
}

impl TenantPolicy {
    /// Whether its quota of memory, if there is one, has room for an isolate that takes so much before it runs anything.
    #[must_use]
    pub fn has_room_for_one(&self, fresh_bytes: u64) -> bool {
        let max = self.memory_bytes_max;
        max.is_none_or(|max| fresh_bytes <= for_fresh_ones(max))
    }

    /// Whether it bounds something that has to be measured where isolates run.
    #[must_use]
    pub fn wants_measuring(&self) -> bool {
        self.cpu_seconds_per_minute_max.is_some() || self.memory_bytes_max.is_some()
    }
}

/// How far fresh isolates may use a quota of memory up: a tenth is for those that grow.
fn for_fresh_ones(memory_bytes_max: u64) -> u64 {
    memory_bytes_max - memory_bytes_max / 10
}

/// Whom the isolates of a tenant may share a process with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// With nobody's.
    Isolated,
    /// With those of the tenants in the same group.
    Grouped(String),
    /// With those of all tenants that are shared.
    #[default]
    Shared,
}

/// A quota of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quota {
    /// [`TenantPolicy::isolates_max`].
    Isolates,
    /// [`TenantPolicy::cpu_seconds_per_minute_max`].
    CpuSecondsPerMinute,
    /// [`TenantPolicy::loads_per_second_max`].
    LoadsPerSecond,
    /// [`TenantPolicy::memory_bytes_max`].
    MemoryBytes,
    /// [`TenantPolicy::bytes_out_per_minute_max`].
    BytesOutPerMinute,
}

impl Quota {
    /// Every quota.
    pub const ALL: [Self; 5] = [
        Self::Isolates,
        Self::CpuSecondsPerMinute,
        Self::LoadsPerSecond,
        Self::MemoryBytes,
        Self::BytesOutPerMinute,
    ];

    /// The name as it is spelled in configuration, refusals, documentation and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Isolates => "isolates_max",
            Self::CpuSecondsPerMinute => "cpu_seconds_per_minute_max",
            Self::LoadsPerSecond => "loads_per_second_max",
            Self::MemoryBytes => "memory_bytes_max",
            Self::BytesOutPerMinute => "bytes_out_per_minute_max",
        }
    }
}

impl std::fmt::Display for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A quota that is used up, and until when if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceeded {
    pub(super) quota: Quota,
    pub(super) limit: u64,
    pub(super) used: u64,
    /// `None`: until something ends, and nobody knows when.
    pub(super) wait_ms: Option<u64>,
}

/// A tenant, as the core knows it.
pub(super) struct Tenant {
    pub(super) policy: TenantPolicy,
    /// In microseconds.
    cpu: Option<Bucket>,
    /// Of all its isolates since they are measured.
    cpu_us: u64,
    loads: Option<Bucket>,
    bytes_out: Option<Bucket>,
    memory_bytes: u64,
    /// What a fresh isolate takes at least.
    fresh_bytes: u64,
}

impl Tenant {
    pub(super) fn new(policy: TenantPolicy) -> Self {
        let bucket = |max: Option<u64>, period_ms| max.map(|max| Bucket::new(max, period_ms));
        let cpu_us_max = policy.cpu_seconds_per_minute_max;
        Self {
            cpu: bucket(
                cpu_us_max.map(|max| max.saturating_mul(1_000_000)),
                MINUTE_MS,
            ),
            cpu_us: 0,
            loads: bucket(policy.loads_per_second_max, SECOND_MS),
            bytes_out: bucket(policy.bytes_out_per_minute_max, MINUTE_MS),
            memory_bytes: 0,
            fresh_bytes: 0,
            policy,
        }
    }

    /// What its isolates have used, as it was measured.
    pub(super) fn measured(
        &mut self,
        cpu_us: u64,
        memory_bytes: u64,
        fresh_bytes: u64,
        now_ms: u64,
    ) {
        let more = cpu_us.saturating_sub(self.cpu_us);
        self.cpu_us = cpu_us.max(self.cpu_us);
        if let Some(cpu) = &mut self.cpu {
            cpu.take(more, now_ms);
        }
        (self.memory_bytes, self.fresh_bytes) = (memory_bytes, fresh_bytes);
    }

    pub(super) fn sent(&mut self, bytes: u64, now_ms: u64) {
        if let Some(bytes_out) = &mut self.bytes_out {
            bytes_out.take(bytes, now_ms);
        }
    }

    pub(super) fn started(&mut self, now_ms: u64) {
        if let Some(loads) = &mut self.loads {
            loads.take(1, now_ms);
        }
    }

    /// Why none of its calls may begin: what was used before has to be waited off.
    pub(super) fn in_debt(&self, now_ms: u64) -> Option<Exceeded> {
        let cpu = self.cpu.as_ref().map(|cpu| Exceeded {
            quota: Quota::CpuSecondsPerMinute,
            limit: self.policy.cpu_seconds_per_minute_max.unwrap_or(0),
            used: cpu.used(now_ms).div_ceil(1_000_000),
            wait_ms: Some(cpu.wait_ms(SOMETHING, now_ms)),
        });
        let bytes_out = self.bytes_out.as_ref().map(|bytes_out| Exceeded {
            quota: Quota::BytesOutPerMinute,
            limit: self.policy.bytes_out_per_minute_max.unwrap_or(0),
            used: bytes_out.used(now_ms),
            wait_ms: Some(bytes_out.wait_ms(SOMETHING, now_ms)),
        });
        // Both have to be waited off, so that the longer wait counts.
        let longest = cpu
            .into_iter()
            .chain(bytes_out)
            .max_by_key(|one| one.wait_ms);
        longest.filter(|one| one.wait_ms > Some(0))
    }

    /// How many fresh isolates its quotas leave room for, with `taken` there already.
    pub(super) fn room(&self, taken: u64, now_ms: u64) -> u64 {
        let by_count = self
            .policy
            .isolates_max
            .map(|max| max.saturating_sub(taken));
        let by_loads = self.loads.map(|loads| loads.left(now_ms));
        let by_memory = self.policy.memory_bytes_max.map(|max| {
            let left = for_fresh_ones(max).saturating_sub(self.memory_planned(taken));
            left / self.fresh_bytes.max(1)
        });
        let bounds = by_count.into_iter().chain(by_loads).chain(by_memory);
        bounds.min().unwrap_or(u64::MAX)
    }

    /// Which quota leaves no room for a fresh isolate.
    pub(super) fn no_room(&self, taken: u64, now_ms: u64) -> Option<Exceeded> {
        if let Some(limit) = self.policy.isolates_max
            && taken >= limit
        {
            let (quota, used) = (Quota::Isolates, taken);
            return Some(Exceeded {
                quota,
                limit,
                used,
                wait_ms: None,
            });
        }
        if let Some(limit) = self.policy.memory_bytes_max
            && self.memory_planned(taken).saturating_add(self.fresh_bytes) > for_fresh_ones(limit)
        {
            let (quota, used) = (Quota::MemoryBytes, self.memory_planned(taken));
            return Some(Exceeded {
                quota,
                limit,
                used,
                wait_ms: None,
            });
        }
        self.no_loads(1, now_ms)
    }

    /// How long the `more`-th load from now has to wait for its turn, if it does.
    pub(super) fn no_loads(&self, more: u64, now_ms: u64) -> Option<Exceeded> {
        let loads = self.loads.as_ref()?;
        let wait_ms = loads.wait_ms(more, now_ms);
        (wait_ms > 0).then(|| Exceeded {
            quota: Quota::LoadsPerSecond,
            limit: self.policy.loads_per_second_max.unwrap_or(0),
            used: loads.used(now_ms),
            wait_ms: Some(wait_ms),
        })
    }

    /// Whether its isolates have so much memory that soon one can't have more.
    pub(super) fn is_memory_short(&self) -> bool {
        let max = self.policy.memory_bytes_max;
        max.is_some_and(|max| self.memory_bytes > for_fresh_ones(max))
    }

    /// Memory with that of isolates which are there and have not begun to take theirs.
    fn memory_planned(&self, taken: u64) -> u64 {
        self.memory_bytes
            .max(taken.saturating_mul(self.fresh_bytes))
    }
}
