//! What tenants may have and have, counted in another way than the core does: a millisecond at a time.

use super::*;

/// Amounts are in units times the milliseconds of a period, so that a millisecond brings a whole number.
#[derive(Clone, Copy)]
struct Level {
    max: u64,
    period_ms: u64,
    left: i128,
}

impl Level {
    fn new(max: u64, period_ms: u64) -> Self {
        let left = i128::from(max) * i128::from(period_ms);
        Self {
            max,
            period_ms,
            left,
        }
    }

    fn millisecond_passes(&mut self) {
        let full = i128::from(self.max) * i128::from(self.period_ms);
        self.left = (self.left + i128::from(self.max)).min(full);
    }

    fn take(&mut self, units: u64) {
        self.left -= i128::from(units) * i128::from(self.period_ms);
    }

    fn has(&self, units: u64) -> bool {
        self.left >= i128::from(units) * i128::from(self.period_ms)
    }

    /// Milliseconds until there are so many, found by waiting for them.
    fn wait_ms(&self, units: u64) -> u64 {
        let wanted = i128::from(units) * i128::from(self.period_ms);
        let mut ahead = *self;
        // Turns are counted on although more than a period allows is wanted: those before take theirs.
        let mut waited = 0;
        while ahead.left < wanted {
            ahead.left += i128::from(ahead.max);
            waited += 1;
        }
        waited
    }

    fn used(&self) -> u64 {
        let full = i128::from(self.max) * i128::from(self.period_ms);
        let period = i128::from(self.period_ms);
        u64::try_from((full - self.left + period - 1) / period).unwrap_or(0)
    }
}

pub(in super::super) struct Tenant {
    pub(in super::super) policy: TenantPolicy,
    cpu: Option<Level>,
    /// The last measure of it.
    pub(in super::super) cpu_us: u64,
    loads: Option<Level>,
    bytes_out: Option<Level>,
    memory_bytes: u64,
    pub(super) fresh_bytes: u64,
}

impl Tenant {
    pub(in super::super) fn new(policy: TenantPolicy) -> Self {
        let cpu_seconds = policy.cpu_seconds_per_minute_max;
        Self {
            cpu: cpu_seconds.map(|max| Level::new(max * 1_000_000, 60_000)),
            cpu_us: 0,
            loads: policy
                .loads_per_second_max
                .map(|max| Level::new(max, 1_000)),
            bytes_out: policy
                .bytes_out_per_minute_max
                .map(|max| Level::new(max, 60_000)),
            memory_bytes: 0,
            fresh_bytes: 0,
            policy,
        }
    }

    pub(super) fn time_passes(&mut self, ms: u64) {
        for _ in 0..ms {
            let levels = [&mut self.cpu, &mut self.loads, &mut self.bytes_out];
            for level in levels.into_iter().flatten() {
                level.millisecond_passes();
            }
        }
    }

    pub(super) fn measured(&mut self, cpu_us: u64, memory_bytes: u64, fresh_bytes: u64) {
        if let Some(cpu) = &mut self.cpu {
            cpu.take(cpu_us.saturating_sub(self.cpu_us));
        }
        self.cpu_us = self.cpu_us.max(cpu_us);
        (self.memory_bytes, self.fresh_bytes) = (memory_bytes, fresh_bytes);
    }

    pub(super) fn sent(&mut self, bytes: u64) {
        if let Some(bytes_out) = &mut self.bytes_out {
            bytes_out.take(bytes);
        }
    }

    pub(super) fn loaded(&mut self) {
        if let Some(loads) = &mut self.loads {
            loads.take(1);
        }
    }

    /// How long none of its calls may begin; 0 if they may.
    pub(super) fn debt_ms(&self) -> u64 {
        let levels = [self.cpu, self.bytes_out].into_iter().flatten();
        levels.map(|level| level.wait_ms(1)).max().unwrap_or(0)
    }

    pub(super) fn in_debt(&self) -> bool {
        let levels = [self.cpu, self.bytes_out].into_iter().flatten();
        levels.into_iter().any(|level| !level.has(1))
    }

    /// How long its `position`-th load from now has to wait.
    pub(super) fn load_ms(&self, position: u64) -> u64 {
        self.loads.map_or(0, |loads| loads.wait_ms(position))
    }

    /// Whether its quotas let it have one more isolate besides `taken`, of which `more` are taken in mind only.
    pub(super) fn may_have_one_more(&self, taken: u64, more: u64) -> bool {
        let by_count = self.policy.isolates_max.is_none_or(|max| taken < max);
        let by_loads = self.loads.is_none_or(|loads| loads.has(more + 1));
        let there = self.memory_planned(taken - more);
        let by_memory = self
            .policy
            .memory_bytes_max
            .is_none_or(|max| there + (more + 1) * self.fresh_bytes.max(1) <= max - max / 10);
        !self.in_debt() && by_count && by_loads && by_memory
    }

    pub(super) fn is_memory_short(&self) -> bool {
        let max = self.policy.memory_bytes_max;
        max.is_some_and(|max| self.memory_bytes > max - max / 10)
    }

    fn memory_planned(&self, taken: u64) -> u64 {
        self.memory_bytes.max(taken * self.fresh_bytes)
    }

    /// The quota's value and its use, if it is used up; `taken` isolates are there. Of loads the first in line is asked for.
    pub(super) fn used_up(&self, quota: Quota, taken: u64) -> Option<(u64, u64)> {
        let TenantPolicy {
            isolates_max,
            cpu_seconds_per_minute_max,
            loads_per_second_max,
            memory_bytes_max,
            bytes_out_per_minute_max,
            ..
        } = self.policy;
        let (limit, used) = match quota {
            Quota::Isolates => (isolates_max, taken),
            Quota::CpuSecondsPerMinute => {
                let used = self.cpu.map_or(0, |cpu| cpu.used().div_ceil(1_000_000));
                (cpu_seconds_per_minute_max, used)
            }
            Quota::LoadsPerSecond => {
                let used = self.loads.map_or(0, |loads| loads.used());
                (loads_per_second_max, used)
            }
            Quota::MemoryBytes => (memory_bytes_max, self.memory_planned(taken)),
            Quota::BytesOutPerMinute => {
                let used = self.bytes_out.map_or(0, |bytes_out| bytes_out.used());
                (bytes_out_per_minute_max, used)
            }
        };
        let limit = limit?;
        let is_used_up = match quota {
            Quota::MemoryBytes => used + self.fresh_bytes > limit - limit / 10,
            // Those that stand in line before may be what the call waits for.
            Quota::LoadsPerSecond => true,
            _ => used >= limit,
        };
        is_used_up.then_some((limit, used))
    }
}
