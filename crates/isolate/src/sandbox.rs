//! The engine: Wasmtime's configuration, the pool of isolates, and the image in it.

use crate::{
    border, image::Image, instance::Entries, machine::Machine, snapshots::Snapshots,
    transpiler::Transpiler,
};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    thread,
    time::Duration,
};
use wasmtime::{
    Config, Enabled, Engine, ExternType, InstanceAllocationStrategy, InstancePre, Module,
    OperatorCost, OptLevel, PoolingAllocationConfig, RegallocAlgorithm, WasmFeatures,
};

/// Wasm stack of a running isolate: 24 times the JavaScript stack (256 KiB), so that deep recursion is a `RangeError`
/// in the guest before it is a trap here.
const WASM_STACK_BYTES: usize = 6 << 20;
/// A fiber's stack holds the Wasm stack and the host's frames above it.
pub(crate) const FIBER_STACK_BYTES: usize = 7 << 20;
/// What an instance of a memory may be configured to hold; a worker's own limit is lower or equal.
pub(crate) const MEMORY_BYTES_CEILING: u64 = 1 << 30;
/// Entries of the guest's function table, with room for compiled code.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 20_000;
/// Kept resident in a free slot: resetting these pages is cheaper than faulting them in again, where the kernel can say
/// which of them were written. Nobody is charged for it. It covers the memory that a fresh isolate has: whatever is beyond
/// is unmapped at each reset, for which every core is interrupted.
const MEMORY_KEEP_RESIDENT_BYTES: usize = 3 << 20;
const TABLE_KEEP_RESIDENT_BYTES: usize = 64 << 10;

/// How large the pool is.
#[derive(Clone, Copy, Debug)]
pub struct SandboxConfig {
    /// Isolates that can be alive at once.
    pub isolates_max: u32,
    /// Isolates that can be in the middle of running code at once; more wait until one of them is through. Each holds a
    /// stack, of which it has touched a few KiB, or some MiB where it recursed deeply.
    pub running_max: u32,
    /// Whether to reset slots by the kernel's list of dirty pages.
    pub pagemap_scan: bool,
    /// Bytes that may be kept of what workers became once their modules were evaluated, for the next isolates of the same
    /// workers. 0: none.
    pub snapshots_bytes_max: u64,
}

impl SandboxConfig {
    /// What fits this machine.
    #[must_use]
    pub fn for_machine(machine: &Machine) -> Self {
        let isolates_max = machine.isolates_max();
        Self {
            isolates_max,
            running_max: machine.running_max(isolates_max),
            pagemap_scan: machine.pagemap_scan,
            snapshots_bytes_max: machine.snapshots_bytes_max(),
        }
    }
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Wasmtime refused the configuration, or the address space for the pool is not to be had.
    #[error("the pool of {isolates_max} isolates could not be set up: {cause}")]
    Pool {
        /// Isolates asked for.
        isolates_max: u32,
        /// What Wasmtime said.
        cause: String,
    },
    /// The image does not fit this engine, CPU or guest interface.
    #[error("the image can't be used here: {cause}")]
    Image {
        /// What Wasmtime said.
        cause: String,
    },
}

/// An engine with one image in it.
pub struct Sandbox {
    pub(crate) engine: Engine,
    pub(crate) template: InstancePre<border::State>,
    pub(crate) entries: Entries,
    /// `None`: TypeScript and JSX are refused.
    pub(crate) transpiler: Option<Transpiler>,
    pub(crate) snapshots: Snapshots,
    fresh_bytes: u64,
    config: SandboxConfig,
}

impl Sandbox {
    /// Sets up the pool and loads the image into it.
    ///
    /// # Errors
    /// See [`SandboxError`].
    pub fn new(config: SandboxConfig, image: &Image) -> Result<Self, SandboxError> {
        let failed = |cause: wasmtime::Error| SandboxError::Pool {
            isolates_max: config.isolates_max,
            cause: format!("{cause:#}"),
        };
        let engine = Engine::new(&runtime_config(&config)).map_err(failed)?;
        let unusable = |cause: wasmtime::Error| SandboxError::Image {
            cause: format!("{cause:#}"),
        };
        let module = image.load_guest(&engine).map_err(unusable)?;
        make_memory_image(&module).map_err(unusable)?;
        let entries = Entries::find(&module).map_err(|cause| SandboxError::Image { cause })?;
        let template = border::linker(&engine)
            .and_then(|linker| linker.instantiate_pre(&module))
            .map_err(unusable)?;
        let transpiler = image.load_transpiler(&engine).map_err(unusable)?;
        if let Some(module) = &transpiler {
            make_memory_image(module).map_err(unusable)?;
        }
        let transpiler = transpiler
            .map(|module| Transpiler::new(&engine, &module))
            .transpose()
            .map_err(unusable)?;
        let fresh_bytes = match module.get_export("memory") {
            Some(ExternType::Memory(memory)) => memory.minimum() * memory.page_size(),
            _ => 0,
        };
        Ok(Self {
            engine,
            template,
            entries,
            transpiler,
            snapshots: Snapshots::new(config.snapshots_bytes_max),
            fresh_bytes,
            config,
        })
    }

    /// Linear memory that an isolate has from the start, in bytes.
    #[must_use]
    pub fn fresh_bytes(&self) -> u64 {
        self.fresh_bytes
    }

    /// How large the pool is.
    #[must_use]
    pub fn config(&self) -> SandboxConfig {
        self.config
    }
}

/// Has the image of the memory made now, and not when the first isolate starts. The kernel refuses to seal it while
/// somebody, such as its own compaction, looks at one of its pages; that passes.
#[expect(
    clippy::disallowed_methods,
    reason = "before there is a sandbox nobody is served"
)]
fn make_memory_image(module: &Module) -> wasmtime::Result<()> {
    const ATTEMPTS_MAX: u32 = 10;
    let mut made = module.initialize_copy_on_write_image();
    for _ in 1..ATTEMPTS_MAX {
        if made.is_ok() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
        made = module.initialize_copy_on_write_image();
    }
    made
}

/// What code generation depends on: the same for making an image and for loading it.
fn base_config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(operator_cost())
        .epoch_interruption(false)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_regalloc_algorithm(RegallocAlgorithm::Backtracking)
        .signals_based_traps(true)
        .memory_init_cow(true)
        .guard_before_linear_memory(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        .async_stack_zeroing(false)
        .wasm_backtrace_max_frames(None)
        .wasm_features(WasmFeatures::all(), false)
        .wasm_features(GUEST_FEATURES, true);
    config
}

/// Fuel of each Wasm instruction: one, but for those that call into Wasmtime, which take longer than their size says.
/// A loop of calls that do nothing (growing by nothing, copying nothing) would make a slice last for ages.
fn operator_cost() -> OperatorCost {
    const CALL: u8 = 20;
    OperatorCost {
        MemoryGrow: 250,
        TableGrow: 250,
        MemoryCopy: CALL,
        MemoryFill: CALL,
        MemoryInit: CALL,
        DataDrop: CALL,
        TableCopy: CALL,
        TableFill: CALL,
        TableInit: CALL,
        ElemDrop: CALL,
        RefFunc: 150,
        ..OperatorCost::new()
    }
}

/// What the guest is made of, and nothing else.
const GUEST_FEATURES: WasmFeatures = WasmFeatures::MUTABLE_GLOBAL
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::SIMD);

/// The CPU that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpu {
    /// What [`CPU_BASELINE`](crate::CPU_BASELINE) names.
    Baseline,
    /// This machine's.
    Native,
}

/// Calls another macro with what x86-64-v3 is: Cranelift's name of each feature, and the CPU's.
macro_rules! with_baseline_features {
    ($with:ident) => {
        $with! {
            "has_sse3" = "sse3",
            "has_ssse3" = "ssse3",
            "has_sse41" = "sse4.1",
            "has_sse42" = "sse4.2",
            "has_popcnt" = "popcnt",
            "has_avx" = "avx",
            "has_avx2" = "avx2",
            "has_bmi1" = "bmi1",
            "has_bmi2" = "bmi2",
            "has_lzcnt" = "lzcnt",
            "has_fma" = "fma",
        }
    };
}

impl Cpu {
    /// The baseline, unless this machine has less.
    pub(crate) fn of_this_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            macro_rules! all_detected {
                ($($flag:literal = $feature:tt,)*) => {
                    $(std::arch::is_x86_feature_detected!($feature))&&*
                };
            }
            if !with_baseline_features!(all_detected) {
                return Self::Native;
            }
        }
        Self::Baseline
    }
}

/// For making an image.
pub(crate) fn compile_config(cpu: Cpu) -> Config {
    let mut config = base_config();
    if cpu == Cpu::Baseline && cfg!(target_arch = "x86_64") {
        // Naming the target keeps this machine's features out of the code.
        config
            .target("x86_64-unknown-linux-gnu")
            .expect("Cranelift was built for this architecture");
        macro_rules! flags {
            ($($flag:literal = $feature:literal,)*) => { [$($flag),*] };
        }
        for flag in with_baseline_features!(flags) {
            #[expect(
                unsafe_code,
                reason = "Cranelift's flags are not checked against the CPU here"
            )]
            // SAFETY: these flags are the definition of x86-64-v3, and a module is refused at loading where the CPU
            // lacks one of them.
            unsafe {
                config.cranelift_flag_enable(flag);
            }
        }
    }
    config
}

/// For running the guest's set-up once: nothing metered, nothing pooled.
pub(crate) fn snapshot_config() -> Config {
    let mut config = base_config();
    config
        .consume_fuel(false)
        .cranelift_opt_level(OptLevel::None);
    config
}

fn runtime_config(sandbox: &SandboxConfig) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(sandbox.isolates_max)
        .total_memories(sandbox.isolates_max)
        .total_tables(sandbox.isolates_max)
        .total_stacks(sandbox.running_max)
        .max_memories_per_module(1)
        .max_tables_per_module(1)
        .max_core_instance_size(1 << 20)
        .max_memory_size(MEMORY_BYTES_CEILING as usize)
        .table_elements(TABLE_ELEMENTS_MAX);
    if sandbox.pagemap_scan {
        // Only together: without the scan the whole range would be written at every reset.
        pool.pagemap_scan(Enabled::Yes)
            .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT_BYTES)
            .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES);
    }
    let mut config = base_config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// A short name for what an image must agree with; part of its file name in a cache.
pub(crate) fn compatibility(cpu: Cpu) -> String {
    let mut hasher = DefaultHasher::new();
    if let Ok(engine) = Engine::new(&compile_config(cpu)) {
        engine.precompile_compatibility_hash().hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(config: &Config) -> Vec<String> {
        let text = format!("{config:#?}");
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    fn configs() -> Vec<Config> {
        let sandbox = SandboxConfig {
            isolates_max: 1,
            running_max: 1,
            pagemap_scan: false,
            snapshots_bytes_max: 0,
        };
        vec![
            compile_config(Cpu::Baseline),
            compile_config(Cpu::Native),
            runtime_config(&sandbox),
        ]
    }

    /// What a hostile guest may be made of. Each of these that is not needed is attack surface for nothing.
    #[test]
    fn exactly_these_proposals_are_on() {
        for config in configs() {
            let on: Vec<String> = lines_of(&config)
                .into_iter()
                .filter_map(|line| Some(line.strip_suffix(": true,")?.to_owned()))
                .filter(|name| name.starts_with("wasm_"))
                .collect();
            let expected = [
                "mutable_global",
                "saturating_float_to_int",
                "sign_extension",
                "reference_types",
                "multi_value",
                "bulk_memory",
                "simd",
                "floats",
                // Parts of reference types and bulk memory.
                "call_indirect_overlong",
                "bulk_memory_opt",
            ];
            assert_eq!(on, expected.map(|name| format!("wasm_{name}")));
        }
    }

    #[test]
    fn code_is_made_by_cranelift_metered_by_fuel_and_keeps_its_mitigations() {
        for config in configs() {
            let lines = lines_of(&config);
            for expected in [
                "Cranelift,",
                "consume_fuel: true,",
                "epoch_interruption: false,",
                "signals_based_traps: true,",
                "guard_before_linear_memory: true,",
                "memory_init_cow: true,",
            ] {
                assert!(lines.iter().any(|line| line == expected), "{expected}");
            }
            // On by default; nobody turns them off.
            assert!(!format!("{config:?}").contains("spectre"));
        }
    }

    #[test]
    fn code_for_the_baseline_asks_for_its_features_and_for_nothing_else() {
        let lines = lines_of(&compile_config(Cpu::Baseline));
        let flags = lines.iter().filter(|line| line.starts_with("\"has_"));
        assert_eq!(
            flags.count(),
            if cfg!(target_arch = "x86_64") { 11 } else { 0 }
        );
    }

    // The host has room above the guest, whose stack is 24 times JavaScript's: docs/decisions/0002-guest-engine.md.
    const _: () = assert!(FIBER_STACK_BYTES >= WASM_STACK_BYTES + (1 << 20));
    const _: () = assert!(WASM_STACK_BYTES == 24 * 256 * 1024);
}
