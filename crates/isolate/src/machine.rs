//! What this machine, container and kernel allow.

use std::{fs, path::Path};

/// The facts that a pool is sized by.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Memory that this process may use: the cgroup's limit, or what the machine has.
    pub memory_bytes: u64,
    /// Mappings that the kernel lets a process have.
    pub map_count_max: u64,
    /// Cores that this process may use.
    pub cores: usize,
    /// Whether the kernel can tell dirty pages apart (`PAGEMAP_SCAN`, Linux 6.7), which makes resets cheap.
    pub pagemap_scan: bool,
}

/// Mappings that a live isolate needs, with what the rest of the process may hold kept free.
const MAPS_PER_ISOLATE: u64 = 5;
const MAPS_RESERVED: u64 = 4_096;
/// Memory that is planned for an isolate: what a small one touches, with room for its bookkeeping.
const PLANNED_BYTES_PER_ISOLATE: u64 = 1024 * 1024;
/// Isolates in the middle of running code, at least and at most: many endless loops must not keep others out.
const RUNNING_MIN: u64 = 128;
const RUNNING_CEILING: u64 = 1_000;
/// The least that an isolate which has been called holds in memory, and what a stack holds as a rule.
const ISOLATE_BYTES_MIN: u64 = 256 * 1024;
const STACK_BYTES_PLANNED: u64 = 64 * 1024;
/// Of the memory, what may be kept of workers that have been loaded, and the most of it.
const SNAPSHOTS_SHARE: u64 = 64;
const SNAPSHOTS_BYTES_CEILING: u64 = 256 << 20;
/// What the rest of the process needs.
const RESERVED_BYTES: u64 = 8 << 20;
/// So many isolates are always tried.
const ISOLATES_FLOOR: u64 = 16;
/// Address space is cut in slots of 8 GiB; more would not fit.
const ISOLATES_CEILING: u64 = 10_000;

impl Machine {
    /// Reads `/proc` and the cgroup. What can't be read is assumed small.
    #[must_use]
    pub fn read() -> Self {
        Self {
            memory_bytes: cgroup_memory_max(|path| fs::read_to_string(path).ok())
                .into_iter()
                .chain(physical_memory())
                .min()
                .unwrap_or(1 << 30),
            map_count_max: read_number("/proc/sys/vm/max_map_count").unwrap_or(65_530),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            pagemap_scan: wasmtime::PoolingAllocationConfig::is_pagemap_scan_available(),
        }
    }

    /// How many isolates fit: half of the memory at the planned size, and no more mappings than the kernel allows.
    #[must_use]
    pub fn isolates_max(&self) -> u32 {
        let by_memory = self.memory_bytes / 2 / PLANNED_BYTES_PER_ISOLATE;
        let by_maps = self.map_count_max.saturating_sub(MAPS_RESERVED) / MAPS_PER_ISOLATE;
        by_memory
            .min(by_maps)
            .clamp(ISOLATES_FLOOR, ISOLATES_CEILING) as u32
    }
}

impl Machine {
    /// How many isolates can be in the middle of running code: as many as fill a quarter of the memory with stacks that
    /// recursed as deeply as can be, which hardly any do.
    #[must_use]
    pub fn running_max(&self, isolates_max: u32) -> u32 {
        let by_memory = self.memory_bytes / 4 / crate::sandbox::FIBER_STACK_BYTES as u64;
        isolates_max.min(by_memory.clamp(RUNNING_MIN, RUNNING_CEILING) as u32)
    }
}

impl Machine {
    /// Bytes that may be kept of workers that have been loaded, of all processes together.
    #[must_use]
    pub fn snapshots_bytes_max(&self) -> u64 {
        (self.memory_bytes / SNAPSHOTS_SHARE).min(SNAPSHOTS_BYTES_CEILING)
    }
}

/// What a server is set up to hold.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Isolates at once.
    pub isolates_max: u64,
    /// Linear memory of all of them, in bytes.
    pub pool_memory_bytes_max: u64,
    /// What may be kept of workers that have been loaded, in bytes.
    pub snapshots_bytes_max: u64,
    /// What connections may make it hold, in bytes.
    pub connections_bytes_max: u64,
}

/// A server is set up to hold more than there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DoesNotFit {
    /// In memory.
    #[error(
        "the configuration needs {needed} bytes of memory and this process may use {available}: {isolates} for isolates \
         (pool_memory_bytes_max, and at least {ISOLATE_BYTES_MIN} for each of isolates_max), {stacks} for the stacks of those \
         that run, {connections} for connections (connections_bytes_max), {snapshots} for workers that were loaded \
         (snapshots_bytes_max), {RESERVED_BYTES} for the rest; lower one of them"
    )]
    Memory {
        /// The sum.
        needed: u64,
        /// What there is.
        available: u64,
        /// Of the sum, what isolates need.
        isolates: u64,
        /// Of the sum, what stacks need.
        stacks: u64,
        /// Of the sum, what connections may need.
        connections: u64,
        /// Of the sum, what may be kept of workers.
        snapshots: u64,
    },
    /// In mappings.
    #[error(
        "{isolates_max} isolates (isolates_max) need {needed} mappings and the kernel gives a process {available} \
         (vm.max_map_count); have {fitting} isolates at most, or raise it"
    )]
    Mappings {
        /// What is asked for.
        isolates_max: u64,
        /// The mappings that they need.
        needed: u64,
        /// What there is.
        available: u64,
        /// How many isolates fit.
        fitting: u64,
    },
    /// In the address space.
    #[error(
        "{isolates_max} isolates (isolates_max) are more than the {ISOLATES_CEILING} that a process has addresses for"
    )]
    Addresses {
        /// What is asked for.
        isolates_max: u64,
    },
}

impl Machine {
    /// Whether there is enough for what a server is set up to hold. What it holds by default always fits.
    ///
    /// Stacks count with what they hold as a rule, not with what the deepest recursion would make of each.
    ///
    /// # Errors
    /// There is not.
    pub fn fits(&self, plan: &Plan) -> Result<(), DoesNotFit> {
        let isolates_max = plan.isolates_max;
        if isolates_max > ISOLATES_CEILING {
            return Err(DoesNotFit::Addresses { isolates_max });
        }
        let mappings = isolates_max * MAPS_PER_ISOLATE + MAPS_RESERVED;
        if mappings > self.map_count_max && isolates_max > ISOLATES_FLOOR {
            return Err(DoesNotFit::Mappings {
                isolates_max,
                needed: mappings,
                available: self.map_count_max,
                fitting: self.map_count_max.saturating_sub(MAPS_RESERVED) / MAPS_PER_ISOLATE,
            });
        }
        let least = isolates_max * ISOLATE_BYTES_MIN;
        let isolates = plan.pool_memory_bytes_max.max(least);
        let running_max = self.running_max(u32::try_from(isolates_max).unwrap_or(u32::MAX));
        let stacks = u64::from(running_max) * STACK_BYTES_PLANNED;
        let connections = plan.connections_bytes_max;
        let snapshots = plan.snapshots_bytes_max;
        let parts = [isolates, stacks, connections, snapshots, RESERVED_BYTES];
        let needed = parts.into_iter().fold(0, u64::saturating_add);
        if needed > self.memory_bytes {
            return Err(DoesNotFit::Memory {
                needed,
                available: self.memory_bytes,
                isolates,
                stacks,
                connections,
                snapshots,
            });
        }
        Ok(())
    }
}

fn read_number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

const CGROUPS: &str = "/sys/fs/cgroup";

/// The lowest `memory.max` on the way from this process's cgroup to the root (version 2), or version 1's limit.
/// `read` gives the text of a file, if there is one.
fn cgroup_memory_max(read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let number = |path: &Path| read(path)?.trim().parse::<u64>().ok();
    let own = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    // Where there is only version 1, no line begins like this.
    let path = own.lines().find_map(|line| line.strip_prefix("0::"));
    let lowest = path.and_then(|path| {
        let folder = Path::new(CGROUPS).join(path.trim().trim_start_matches('/'));
        let on_the_way = folder
            .ancestors()
            .take_while(|folder| folder.starts_with(CGROUPS));
        on_the_way
            .filter_map(|folder| number(&folder.join("memory.max")))
            .min()
    });
    lowest.or_else(|| number(&Path::new(CGROUPS).join("memory/memory.limit_in_bytes")))
}

fn physical_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim()
        .trim_end_matches(" kB")
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(memory_bytes: u64, map_count_max: u64) -> Machine {
        Machine {
            memory_bytes,
            map_count_max,
            cores: 2,
            pagemap_scan: true,
        }
    }

    #[test]
    fn a_small_container_gets_a_small_pool() {
        assert_eq!(machine(512 << 20, 65_530).isolates_max(), 256);
    }

    #[test]
    fn mappings_bound_the_pool_before_memory_does() {
        assert_eq!(machine(64 << 30, 40_096).isolates_max(), 7_200);
        assert_eq!(machine(64 << 30, 1 << 30).isolates_max(), 10_000);
    }

    #[test]
    fn stacks_are_few_enough_for_the_memory_and_enough_for_a_hundred_endless_loops() {
        let running_max = |machine: Machine| machine.running_max(machine.isolates_max());
        assert_eq!(running_max(machine(512 << 20, 65_530)), 128);
        assert_eq!(running_max(machine(8 << 30, 65_530)), 292);
        assert_eq!(running_max(machine(64 << 30, 65_530)), 1_000);
        assert_eq!(running_max(machine(16 << 20, 65_530)), 16);
    }

    fn plan_of(machine: &Machine) -> Plan {
        Plan {
            isolates_max: machine.isolates_max().into(),
            pool_memory_bytes_max: machine.memory_bytes / 2,
            snapshots_bytes_max: machine.snapshots_bytes_max(),
            connections_bytes_max: machine.memory_bytes / 5,
        }
    }

    #[test]
    fn what_is_planned_by_default_fits() {
        for memory_bytes in [64 << 20, 512 << 20, 8 << 30, 1 << 40] {
            for map_count_max in [4_000, 65_530, 1 << 30] {
                let machine = machine(memory_bytes, map_count_max);
                assert_eq!(machine.fits(&plan_of(&machine)), Ok(()), "{machine:?}");
            }
        }
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused_with_its_parts() {
        let machine = machine(1 << 30, 65_530);
        let plan = plan_of(&machine);
        let greedy = Plan {
            pool_memory_bytes_max: 1 << 30,
            ..plan
        };
        let refused = machine.fits(&greedy).expect_err("more than there is");
        assert!(
            matches!(refused, DoesNotFit::Memory { available, isolates, .. }
                if (available, isolates) == (1 << 30, 1 << 30)),
            "{refused:?}"
        );
        let many = |isolates_max| Plan {
            isolates_max,
            ..plan
        };
        // 4,096 isolates of 256 KiB are all there is.
        let refused = machine
            .fits(&many(4_096))
            .expect_err("too many for the memory");
        assert!(refused.to_string().contains("isolates_max"), "{refused}");
        assert!(matches!(
            self::machine(64 << 30, 65_530).fits(&many(20_000)),
            Err(DoesNotFit::Addresses {
                isolates_max: 20_000
            })
        ));
        assert!(matches!(
            self::machine(64 << 30, 40_096).fits(&many(7_201)),
            Err(DoesNotFit::Mappings { fitting: 7_200, .. })
        ));
        assert_eq!(self::machine(64 << 30, 40_096).fits(&many(7_200)), Ok(()));
    }

    /// The limit that these files come to.
    fn limit_of(files: &[(&str, &str)]) -> Option<u64> {
        cgroup_memory_max(|path| {
            let mut files = files.iter();
            let (_, text) = files.find(|(name, _)| Path::new(name) == path)?;
            Some((*text).to_owned())
        })
    }

    #[test]
    fn the_lowest_limit_on_the_way_to_the_root_counts() {
        let own = ("/proc/self/cgroup", "0::/pods/one\n");
        let outer = ("/sys/fs/cgroup/pods/memory.max", "1000\n");
        let inner = |text| ("/sys/fs/cgroup/pods/one/memory.max", text);
        assert_eq!(limit_of(&[own, outer, inner("2000\n")]), Some(1000));
        assert_eq!(limit_of(&[own, outer, inner("500\n")]), Some(500));
        assert_eq!(limit_of(&[own, outer, inner("max\n")]), Some(1000));
        assert_eq!(limit_of(&[own, inner("max\n")]), None);
        // A cgroup namespace hides what is above.
        let root = ("/proc/self/cgroup", "0::/\n");
        let limit = ("/sys/fs/cgroup/memory.max", "700\n");
        assert_eq!(limit_of(&[root, limit]), Some(700));
    }

    #[test]
    fn version_1s_limit_counts_where_version_2_says_nothing() {
        let limit = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
        let version_1 = "4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n";
        let both = "4:memory:/docker/1\n0::/docker/1\n";
        for own in [version_1, both] {
            let own = ("/proc/self/cgroup", own);
            assert_eq!(limit_of(&[own, limit]), Some(512 << 20));
            assert_eq!(limit_of(&[own]), None);
        }
        assert_eq!(limit_of(&[limit]), Some(512 << 20));
        assert_eq!(limit_of(&[]), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let read = Machine::read();
        assert!(read.memory_bytes >= 64 << 20 && read.cores >= 1 && read.map_count_max > 0);
    }
}
