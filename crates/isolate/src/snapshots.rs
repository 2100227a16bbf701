//! What the memory of a worker was once its modules had been evaluated, kept for the next fresh isolate of the same worker.
//!
//! Module scope can neither wait nor ask anybody outside, so evaluating the same modules with the same `env` makes the same
//! memory each time, and copying that memory replaces transpiling, compiling and evaluating. What does depend on the
//! moment, because it read the clock or asked `Math.random`, is not kept; nor is what left anything for the host to do.
//! Nothing crosses tenants: a key has the tenant in it, and all that the guest is told when it loads a worker. See
//! docs/decisions/0019-loaded-once.md.

use crate::{
    border::{self, Outbox, State},
    instance::Terms,
    message::Log,
    sandbox::Sandbox,
};
use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs::File,
    os::unix::fs::FileExt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use wasmtime::{Memory, Store};

/// Messages that are longer are not looked up: hashing them takes longer than a slice.
const LOAD_BYTES_MAX: usize = 1 << 20;
/// A snapshot that would be larger is not taken.
const SNAPSHOT_BYTES_MAX: usize = 2 << 20;
/// Memory beyond what a fresh isolate has is compared up to here.
const GROWTH_BYTES_MAX: usize = 16 << 20;
/// Loads that are remembered, so that what is loaded again is known.
const SEEN_MAX: usize = 4_096;
/// Memory is compared in pages and kept in lines.
const PAGE_BYTES: usize = 4_096;
const LINE_BYTES: usize = 64;

/// What a load depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    tenant: u64,
    load: [u8; 32],
}

/// The memory of a worker whose modules have been evaluated, as what sets it apart from that of a fresh isolate.
pub(crate) struct Snapshot {
    memory_bytes: u64,
    /// Where the bytes go that follow each other in `bytes`.
    stretches: Vec<Stretch>,
    bytes: Vec<u8>,
    /// What the modules wrote to the console; the time is that of who reads it.
    logs: Vec<Log>,
    /// What evaluating them has burnt. It is charged again, so that no verdict depends on what happens to be kept.
    fuel: u64,
}

#[derive(Clone, Copy)]
struct Stretch {
    start: usize,
    length: usize,
}

/// What there is for a load.
pub(crate) enum Found {
    /// A snapshot.
    Kept(Arc<Snapshot>),
    /// Nothing, but the worker has been loaded before: this time it is worth keeping.
    Wanted(Key),
    /// Nothing.
    Unknown,
}

/// The snapshots of one process.
pub(crate) struct Snapshots {
    bytes_max: u64,
    written: Written,
    pristine: Pristine,
    kept: Mutex<Kept>,
    hits: AtomicU64,
}

#[derive(Default)]
struct Kept {
    snapshots: HashMap<Key, Entry>,
    bytes: u64,
    /// Counts lookups, for telling what was used last.
    now: u64,
    seen: HashSet<Key>,
    seen_in_order: VecDeque<Key>,
}

struct Entry {
    snapshot: Arc<Snapshot>,
    used: u64,
}

impl Snapshots {
    /// Keeps so many bytes; none: nothing.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            written: Written::open(),
            pristine: Pristine::default(),
            kept: Mutex::default(),
            hits: AtomicU64::new(0),
        }
    }

    /// How often a snapshot was there for a load.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Looks for what the isolate of a tenant is told to load. A snapshot is only given where `terms` would have let the
    /// modules come as far.
    pub(crate) fn find(&self, tenant: u64, load: &[u8], terms: &Terms) -> Found {
        if self.bytes_max == 0 || load.len() > LOAD_BYTES_MAX {
            return Found::Unknown;
        }
        let key = Key {
            tenant,
            load: Sha256::digest(load).into(),
        };
        let mut kept = self.lock();
        kept.now += 1;
        let now = kept.now;
        if let Some(entry) = kept.snapshots.get_mut(&key) {
            entry.used = now;
            if !entry.snapshot.is_within(terms) {
                return Found::Unknown;
            }
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Found::Kept(Arc::clone(&entry.snapshot));
        }
        match kept.has_seen(key) {
            true => Found::Wanted(key),
            false => Found::Unknown,
        }
    }

    /// Keeps a snapshot, in the place of those that were not used for the longest time by who keeps the most.
    pub(crate) fn keep(&self, key: Key, snapshot: Snapshot) {
        let size = snapshot.size();
        if size > self.bytes_max {
            return;
        }
        let mut kept = self.lock();
        while kept.bytes + size > self.bytes_max && kept.drop_one() {}
        let used = kept.now;
        let snapshot = Arc::new(snapshot);
        kept.bytes += size;
        if let Some(before) = kept.snapshots.insert(key, Entry { snapshot, used }) {
            kept.bytes -= before.snapshot.size();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // What a panicking thread left is still whole enough: sums at worst too high.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Whether a load was seen before; from now on it was.
    fn has_seen(&mut self, key: Key) -> bool {
        if !self.seen.insert(key) {
            return true;
        }
        self.seen_in_order.push_back(key);
        if self.seen_in_order.len() > SEEN_MAX
            && let Some(oldest) = self.seen_in_order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        false
    }

    /// Drops the snapshot that the tenant with the most bytes has not used for the longest time. False: there is none.
    fn drop_one(&mut self) -> bool {
        let mut bytes = HashMap::<u64, u64>::new();
        for (key, entry) in &self.snapshots {
            *bytes.entry(key.tenant).or_default() += entry.snapshot.size();
        }
        let Some((tenant, _)) = bytes.into_iter().max_by_key(|(_, bytes)| *bytes) else {
            return false;
        };
        let of_tenant = self
            .snapshots
            .iter()
            .filter(|(key, _)| key.tenant == tenant);
        let Some(key) = of_tenant
            .min_by_key(|(_, entry)| entry.used)
            .map(|(key, _)| *key)
        else {
            return false;
        };
        if let Some(entry) = self.snapshots.remove(&key) {
            self.bytes -= entry.snapshot.size();
        }
        true
    }
}

impl Snapshot {
    /// Compares the memory of a worker that has just been loaded with that of a fresh isolate. `None`: it can't be kept.
    pub(crate) async fn take(
        sandbox: &Sandbox,
        store: &Store<State>,
        memory: Memory,
        fuel: u64,
    ) -> Option<Self> {
        let logs = store.data().logs_of_repeatable_load()?;
        let loaded = memory.data(store);
        if loaded.len() as u64 > sandbox.fresh_bytes() + GROWTH_BYTES_MAX as u64 {
            return None;
        }
        let pages = sandbox.snapshots.written.pages(loaded);
        sandbox.snapshots.pristine.learn(&pages, sandbox).await?;
        let (stretches, bytes) = sandbox.snapshots.pristine.differences(loaded, pages)?;
        Some(Self {
            memory_bytes: loaded.len() as u64,
            stretches,
            bytes,
            logs,
            fuel,
        })
    }

    /// Makes the memory of a fresh isolate that of the worker.
    pub(crate) fn restore(&self, store: &mut Store<State>, memory: Memory) -> wasmtime::Result<()> {
        let more = self
            .memory_bytes
            .saturating_sub(memory.data_size(&*store) as u64);
        if more > 0 {
            let pages = more / memory.page_size(&*store);
            memory.grow(&mut *store, pages)?;
        }
        let data = memory.data_mut(store);
        let mut from = &self.bytes[..];
        for Stretch { start, length } in &self.stretches {
            let (bytes, rest) = from.split_at(*length);
            let place = data.get_mut(*start..*start + *length);
            place
                .ok_or_else(|| wasmtime::Error::msg("the snapshot is larger than the memory"))?
                .copy_from_slice(bytes);
            from = rest;
        }
        Ok(())
    }

    /// Says in the guest's place what it said when the modules were evaluated.
    pub(crate) fn replay(&self, outbox: &mut Outbox, now_ms: f64) {
        let logs = self.logs.iter().cloned();
        outbox.logs.extend(logs.map(|log| Log {
            timestamp_ms: now_ms,
            ..log
        }));
        outbox.loaded(self.fuel);
    }

    /// What evaluating the modules has burnt.
    pub(crate) fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Whether evaluating the modules would have been possible on these terms.
    fn is_within(&self, terms: &Terms) -> bool {
        // Values of a console line are kept where twice their size is free.
        self.fuel <= terms.fuel
            && self.memory_bytes <= terms.allowance.memory_bytes_max
            && self.logs_cost() * 2 <= terms.allowance.log_bytes
    }

    /// Bytes that keeping it takes.
    fn size(&self) -> u64 {
        let stretches = self.stretches.len() * size_of::<Stretch>();
        (self.bytes.len() + stretches + size_of::<Self>()) as u64 + self.logs_cost()
    }

    fn logs_cost(&self) -> u64 {
        let costs = self.logs.iter().map(|log| border::log_cost(log.bytes()));
        costs.sum()
    }
}

/// What the kernel knows of the pages of this process.
struct Written(Option<File>);

impl Written {
    fn open() -> Self {
        // Now, and not later: in a cordon neither can be asked for any more.
        let known = rustix::param::page_size() == PAGE_BYTES;
        Self(
            known
                .then(|| File::open("/proc/self/pagemap").ok())
                .flatten(),
        )
    }

    /// The pages of `memory`, which maps a file, that may have been written to, by number. All of them, where the kernel does
    /// not say: looking at one that was not has it mapped, and each page that is mapped makes resetting the memory slower.
    fn pages(&self, memory: &[u8]) -> Vec<usize> {
        let count = memory.len() / PAGE_BYTES;
        self.told(memory, count)
            .unwrap_or_else(|| (0..count).collect())
    }

    fn told(&self, memory: &[u8], count: usize) -> Option<Vec<usize>> {
        // Linux, Documentation/admin-guide/mm/pagemap.rst: present, swapped, and of a file.
        const PRESENT: u64 = 1 << 63;
        const SWAPPED: u64 = 1 << 62;
        const OF_FILE: u64 = 1 << 61;
        let first = memory.as_ptr().addr() / PAGE_BYTES;
        let mut entries = vec![0; count * size_of::<u64>()];
        let at = (first * size_of::<u64>()) as u64;
        self.0.as_ref()?.read_exact_at(&mut entries, at).ok()?;
        let entries = entries
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u64::from_ne_bytes);
        let written = |entry: u64| entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0;
        let pages = entries.enumerate().filter(|(_, entry)| written(*entry));
        Some(pages.map(|(page, _)| page).collect())
    }
}

/// Pages of a fresh isolate's memory, by number, as far as anybody has asked for them.
#[derive(Default)]
struct Pristine(Mutex<HashMap<usize, Box<[u8]>>>);

impl Pristine {
    /// Looks pages up that are not known yet. `None`: there is no room for an isolate to look at.
    async fn learn(&self, pages: &[usize], sandbox: &Sandbox) -> Option<()> {
        let end = usize::try_from(sandbox.fresh_bytes()).ok()? / PAGE_BYTES;
        let unknown: Vec<usize> = {
            let known = self.lock();
            let pages = pages.iter().copied();
            let unknown = pages.filter(|page| *page < end && !known.contains_key(page));
            unknown.collect()
        };
        if unknown.is_empty() {
            return Some(());
        }
        // Nothing runs in it.
        let mut fresh = Store::new(&sandbox.engine, State::for_comparison());
        fresh.limiter(|state| state);
        let instance = sandbox.template.instantiate_async(&mut fresh).await.ok()?;
        let memory = instance.get_memory(&mut fresh, "memory")?;
        let mut known = self.lock();
        for page in unknown {
            let bytes = page_of(memory.data(&fresh), page)?;
            known.insert(page, bytes.into());
        }
        Some(())
    }

    /// Where `loaded` is not as fresh memory, beyond whose end there are zeros, in the pages of these numbers. `None`: in too
    /// many places.
    fn differences(&self, loaded: &[u8], pages: Vec<usize>) -> Option<(Vec<Stretch>, Vec<u8>)> {
        const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
        let known = self.lock();
        let mut stretches = Vec::<Stretch>::new();
        let mut bytes = Vec::new();
        for number in pages {
            let page = page_of(loaded, number)?;
            let before = known.get(&number).map_or(&ZEROS[..], |page| page);
            if page == before {
                continue;
            }
            let lines = page.chunks(LINE_BYTES).zip(before.chunks(LINE_BYTES));
            for (line, (now, before)) in lines.enumerate() {
                if now == before {
                    continue;
                }
                let start = number * PAGE_BYTES + line * LINE_BYTES;
                match stretches.last_mut() {
                    Some(last) if last.start + last.length == start => last.length += LINE_BYTES,
                    _ => stretches.push(Stretch {
                        start,
                        length: LINE_BYTES,
                    }),
                }
                bytes.extend_from_slice(now);
            }
            if bytes.len() > SNAPSHOT_BYTES_MAX {
                return None;
            }
        }
        Some((stretches, bytes))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn page_of(memory: &[u8], number: usize) -> Option<&[u8]> {
    memory.get(number * PAGE_BYTES..(number + 1) * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::border::Allowance;

    fn snapshot(bytes: usize) -> Snapshot {
        Snapshot {
            memory_bytes: 1_000,
            stretches: Vec::new(),
            bytes: vec![0; bytes],
            logs: Vec::new(),
            fuel: 10,
        }
    }

    fn terms() -> Terms {
        Terms {
            fuel: 10,
            slice: 1,
            now_ms: 0.0,
            allowance: Allowance {
                memory_bytes_max: 1_000,
                ..Allowance::default()
            },
        }
    }

    /// Loads a worker twice, the second time with a snapshot of so many bytes.
    fn load(snapshots: &Snapshots, tenant: u64, load: &[u8], bytes: usize) {
        for _ in 0..2 {
            if let Found::Wanted(key) = snapshots.find(tenant, load, &terms()) {
                snapshots.keep(key, snapshot(bytes));
            }
        }
    }

    fn is_kept(snapshots: &Snapshots, tenant: u64, load: &[u8]) -> bool {
        matches!(snapshots.find(tenant, load, &terms()), Found::Kept(_))
    }

    #[test]
    fn a_load_is_wanted_the_second_time_and_kept_for_its_tenant_alone() {
        let snapshots = Snapshots::new(1 << 20);
        assert!(matches!(snapshots.find(1, b"a", &terms()), Found::Unknown));
        let Found::Wanted(key) = snapshots.find(1, b"a", &terms()) else {
            panic!("it was loaded before");
        };
        snapshots.keep(key, snapshot(100));
        assert!(is_kept(&snapshots, 1, b"a"));
        assert!(matches!(snapshots.find(2, b"a", &terms()), Found::Unknown));
        assert!(matches!(snapshots.find(1, b"b", &terms()), Found::Unknown));
        assert_eq!(snapshots.hits(), 1);
    }

    #[test]
    fn a_snapshot_is_for_terms_on_which_the_modules_would_have_been_evaluated() {
        let snapshots = Snapshots::new(1 << 20);
        load(&snapshots, 1, b"a", 100);
        let mut short = terms();
        short.fuel -= 1;
        assert!(matches!(snapshots.find(1, b"a", &short), Found::Unknown));
        let mut small = terms();
        small.allowance.memory_bytes_max -= 1;
        assert!(matches!(snapshots.find(1, b"a", &small), Found::Unknown));
        assert!(is_kept(&snapshots, 1, b"a"));
    }

    #[test]
    fn who_keeps_the_most_loses_what_it_has_not_used_for_the_longest_time() {
        let size = snapshot(1_000).size();
        let snapshots = Snapshots::new(4 * size);
        load(&snapshots, 1, b"quiet", 1_000);
        for name in [b"a", b"b", b"c"] {
            load(&snapshots, 2, name, 1_000);
        }
        assert!(is_kept(&snapshots, 2, b"a"));
        load(&snapshots, 2, b"d", 1_000);
        assert!(!is_kept(&snapshots, 2, b"b"));
        for (tenant, name) in [(1, &b"quiet"[..]), (2, b"a"), (2, b"c"), (2, b"d")] {
            assert!(is_kept(&snapshots, tenant, name));
        }
        assert_eq!(snapshots.bytes(), 4 * size);
        load(&snapshots, 3, b"huge", 10_000);
        assert!(!is_kept(&snapshots, 3, b"huge"));
        assert_eq!(snapshots.bytes(), 4 * size);
    }

    #[test]
    fn nothing_is_kept_where_there_is_no_room() {
        let snapshots = Snapshots::new(0);
        load(&snapshots, 1, b"a", 0);
        assert!(!is_kept(&snapshots, 1, b"a"));
    }

    #[test]
    fn loads_that_are_remembered_are_bounded() {
        let snapshots = Snapshots::new(1 << 20);
        for number in 0..=SEEN_MAX {
            snapshots.find(1, &number.to_le_bytes(), &terms());
        }
        let again = |number: usize| snapshots.find(1, &number.to_le_bytes(), &terms());
        assert!(matches!(again(SEEN_MAX), Found::Wanted(_)));
        assert!(matches!(again(0), Found::Unknown));
        assert_eq!(snapshots.lock().seen.len(), SEEN_MAX);
    }

    #[test]
    fn the_kernel_tells_what_was_written_of_a_file() {
        let engine = wasmtime::Engine::default();
        let data = "x".repeat(70_000);
        let text =
            format!("(module (memory (export \"memory\") 4) (data (i32.const 0) \"{data}\"))");
        let module = wasmtime::Module::new(&engine, wat::parse_str(text).unwrap()).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = wasmtime::Instance::new(&mut store, &module, &[]).unwrap();
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        let written = Written::open();
        assert_eq!(memory.data(&store)[69_999], b'x');
        assert_eq!(written.told(memory.data(&store), 16), Some(Vec::new()));
        for page in [3, 5, 40] {
            memory.data_mut(&mut store)[page * PAGE_BYTES + 7] = 1;
        }
        assert_eq!(written.pages(memory.data(&store)), [3, 5, 40]);
        assert_eq!(Written(None).pages(memory.data(&store)).len(), 64);
    }

    #[test]
    fn differences_are_lines_that_are_not_alike() {
        let pristine = Pristine::default();
        for page in 0..2 {
            pristine.lock().insert(page, vec![7; PAGE_BYTES].into());
        }
        let mut loaded = vec![7; 3 * PAGE_BYTES];
        loaded[2 * PAGE_BYTES..].fill(0);
        loaded[100] = 1;
        loaded[130] = 2;
        loaded[PAGE_BYTES - 1] = 3;
        loaded[PAGE_BYTES] = 4;
        loaded[2 * PAGE_BYTES + 64] = 5;
        let found = |pages| {
            let (stretches, bytes) = pristine.differences(&loaded, pages).unwrap();
            let places = stretches
                .iter()
                .map(|stretch| (stretch.start, stretch.length));
            (places.collect::<Vec<_>>(), bytes)
        };
        let (places, bytes) = found(vec![0, 1, 2]);
        let expected = [(64, 128), (PAGE_BYTES - 64, 128), (2 * PAGE_BYTES + 64, 64)];
        assert_eq!(places, expected);
        let copied: Vec<u8> = expected
            .iter()
            .flat_map(|(start, length)| loaded[*start..*start + *length].to_vec())
            .collect();
        assert_eq!(bytes, copied);
        assert_eq!(found(vec![1]).0, [(PAGE_BYTES, 64)]);
        let large = vec![1; SNAPSHOT_BYTES_MAX + PAGE_BYTES];
        let pages = (0..large.len() / PAGE_BYTES).collect();
        assert!(pristine.differences(&large, pages).is_none());
    }
}
