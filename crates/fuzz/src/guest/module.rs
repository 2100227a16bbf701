//! Guests that do anything: random Wasm modules with a guest's exports, as if an exploit had replaced the engine.
//!
//! One source of choices, one module. Every body calls the imports with wild pointers, lengths, ids and kinds in any order, grows
//! memory and tables, recurses, loops, traps and lies. So that it gets somewhere, some of the numbers are right: the
//! invocation's id, pointers into memory, well-formed values. An isolate whose load message is [`HONEST_LOAD_BYTES`]
//! long behaves, whatever the others do.

use crate::Source;
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType,
    ExportKind, ExportSection, Function, FunctionSection, GlobalSection, GlobalType, HeapType,
    ImportSection, InstructionSink, MemArg, MemorySection, MemoryType, Module, RefType,
    StartSection, TableSection, TableType, TypeSection, ValType,
};

/// A load message of this length asks an isolate to behave.
pub(crate) const HONEST_LOAD_BYTES: usize = 777;

/// A module, and what is known of it.
pub(crate) struct Hostile {
    pub(crate) wasm: Vec<u8>,
    /// Instances of it may not even come to life.
    pub(crate) hostile_birth: bool,
}

// Functions: the imports, then the exports, then helpers.
const START: u32 = 0;
const FINISH: u32 = 1;
const LOG: u32 = 2;
const RANDOM: u32 = 3;
const ALLOCATE: u32 = 4;
const LOAD: u32 = 5;
const INVOKE: u32 = 6;
const SETTLE: u32 = 7;
const COLLECT: u32 = 8;
const RESEED: u32 = 9;
const READ_ID: u32 = 10;
const RECURSE: u32 = 11;
const BIRTH: u32 = 12;

// Globals.
const IS_HONEST: u32 = 0;
const INVOCATION: u32 = 1;
const COUNTER: u32 = 2;
const DEPTH: u32 = 3;

// Memory: what the host writes, and data that is well formed.
const MESSAGES_AT: u32 = 4096;
/// `coracle_abi::Call`: import 0, an empty path, to be called, with the arguments `undefined`.
const SHORTEST_CALL: [u8; 8] = [0x84, 0x00, 0x80, 0x00, 0x83, 0x00, 0x40, 0x80];
const NUMBERS_AT: u32 = 1024;
const VALUE_AT: u32 = 2048;
const VALUE: &[u8] = b"\x66honest";
const THROWN_AT: u32 = 2100;
/// `Thrown` in CBOR: name, message, stack, module, line, column, value, during_load.
const THROWN: &[u8] = b"\x88\x65Error\x62no\x60\x60\x00\x00\x40\xf4";

/// Numbers that a timer may be asked for.
const TIMES_MS: [f64; 10] = [
    0.0,
    1.0,
    20.0,
    1e3,
    -1.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e300,
    1.8e19,
];

pub(crate) fn module(mut random: Source<'_>) -> Hostile {
    let hostile_birth = random.once_in(6);
    let wild_once_in = random.pick(&[1, 4, 30]);
    let mut generator = Generator {
        random,
        hostile_birth,
        wild_once_in,
    };
    Hostile {
        wasm: generator.module(),
        hostile_birth,
    }
}

struct Generator<'a> {
    random: Source<'a>,
    hostile_birth: bool,
    /// How often a pointer or length may be out of bounds: who is always wild does not get far.
    wild_once_in: usize,
}

impl Generator<'_> {
    fn module(&mut self) -> Vec<u8> {
        use ValType::{F64, I32, I64};
        let mut types = TypeSection::new();
        let signatures: [(&[ValType], &[ValType]); 13] = [
            (&[I32, I32, I32], &[I64]),
            (&[I64, I32, I32, I32], &[]),
            (&[I32, I32, I32], &[]),
            (&[I32, I32], &[]),
            (&[I32], &[I32]),
            (&[I32, I32, F64], &[]),
            (&[I32, I32, F64], &[]),
            (&[I64, I32, I32, F64], &[]),
            (&[], &[]),
            (&[I64], &[]),
            (&[I32], &[I64]),
            (&[I32], &[]),
            (&[], &[]),
        ];
        for (params, results) in signatures {
            types
                .ty()
                .function(params.iter().copied(), results.iter().copied());
        }
        let mut imports = ImportSection::new();
        for (index, name) in (0..).zip(coracle_abi::IMPORTS) {
            imports.import(
                coracle_abi::IMPORT_MODULE,
                name,
                EntityType::Function(index),
            );
        }
        let mut functions = FunctionSection::new();
        for index in ALLOCATE..=BIRTH {
            functions.function(index);
        }
        let mut tables = TableSection::new();
        tables.table(TableType {
            element_type: RefType::FUNCREF,
            minimum: 16,
            maximum: self.random.once_in(2).then_some(64),
            table64: false,
            shared: false,
        });
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: 1 + self.random.below(4) as u64,
            maximum: self.random.once_in(4).then_some(40),
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut globals = GlobalSection::new();
        for val_type in [I32, I64, I32, I32] {
            let zero = match val_type {
                I64 => ConstExpr::i64_const(0),
                _ => ConstExpr::i32_const(0),
            };
            let global = GlobalType {
                val_type,
                mutable: true,
                shared: false,
            };
            globals.global(global, &zero);
        }
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        for (name, index) in [
            ("allocate", ALLOCATE),
            ("load", LOAD),
            ("invoke", INVOKE),
            ("settle", SETTLE),
            // Of the same type, and as hostile.
            ("release", INVOKE),
            ("collect", COLLECT),
            ("reseed", RESEED),
        ] {
            exports.export(name, ExportKind::Func, index);
        }
        let mut elements = ElementSection::new();
        let entries = [RECURSE, COLLECT, INVOKE, LOG, FINISH];
        elements.active(
            None,
            &ConstExpr::i32_const(1),
            Elements::Functions(entries[..].into()),
        );
        let mut code = CodeSection::new();
        for index in ALLOCATE..=BIRTH {
            code.function(&self.function(index));
        }
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(VALUE_AT as i32), VALUE.to_vec());
        data.active(0, &ConstExpr::i32_const(THROWN_AT as i32), THROWN.to_vec());
        let mut module = Module::new();
        module
            .section(&types)
            .section(&imports)
            .section(&functions)
            .section(&tables)
            .section(&memories)
            .section(&globals)
            .section(&exports);
        if self.hostile_birth && self.random.once_in(2) {
            module.section(&StartSection {
                function_index: BIRTH,
            });
        }
        module.section(&elements).section(&code).section(&data);
        module.finish()
    }

    fn function(&mut self, index: u32) -> Function {
        // A local of each kind beyond the parameters, for loops.
        let mut function = Function::new([(2, ValType::I32)]);
        let mut sink = function.instructions();
        match index {
            READ_ID => read_id(&mut sink),
            RECURSE => self.recurse(&mut sink),
            ALLOCATE => self.allocate(&mut sink),
            LOAD => self.load(&mut sink),
            INVOKE => self.invoke(&mut sink),
            RESEED | BIRTH if !self.hostile_birth => {}
            _ => {
                let first_local = match index {
                    SETTLE => 4,
                    RESEED => 1,
                    _ => 0,
                };
                self.unless_honest(&mut sink, |this, sink| this.variants(sink, first_local));
            }
        }
        sink.end();
        function
    }

    /// The size tells who is to behave.
    fn allocate(&mut self, sink: &mut InstructionSink<'_>) {
        sink.local_get(0)
            .i32_const(HONEST_LOAD_BYTES as i32)
            .i32_eq()
            .if_(BlockType::Empty)
            .i32_const(1)
            .global_set(IS_HONEST)
            .end()
            .global_get(IS_HONEST)
            .if_(BlockType::Empty)
            .i32_const(MESSAGES_AT as i32)
            .return_()
            .end();
        if self.random.once_in(8) {
            self.variants(sink, 1);
        }
        match self.random.below(16) {
            0 => self.wild_pointer(sink),
            1 => {
                sink.i32_const(0);
            }
            _ => {
                sink.i32_const(MESSAGES_AT as i32);
            }
        }
    }

    fn load(&mut self, sink: &mut InstructionSink<'_>) {
        sink.global_get(IS_HONEST)
            .if_(BlockType::Empty)
            .i64_const(0)
            .i32_const(coracle_abi::finish::UNDEFINED as i32)
            .i32_const(0)
            .i32_const(0)
            .call(FINISH)
            .return_()
            .end();
        if self.random.once_in(3) {
            self.variants(sink, 3);
        }
        // Mostly the load succeeds, or nothing else would ever be reached.
        if !self.random.once_in(5) {
            sink.i64_const(0)
                .i32_const(coracle_abi::finish::UNDEFINED as i32)
                .i32_const(0)
                .i32_const(0)
                .call(FINISH);
        }
        if self.random.once_in(3) {
            self.variants(sink, 3);
        }
    }

    fn invoke(&mut self, sink: &mut InstructionSink<'_>) {
        sink.global_get(IS_HONEST)
            .if_(BlockType::Empty)
            .local_get(0)
            .call(READ_ID)
            .i32_const(coracle_abi::finish::CBOR as i32)
            .i32_const(VALUE_AT as i32)
            .i32_const(VALUE.len() as i32)
            .call(FINISH)
            .return_()
            .end();
        // A wild buffer may not be readable; the last one is as good.
        sink.i32_const(MESSAGES_AT as i32)
            .call(READ_ID)
            .global_set(INVOCATION);
        self.variants(sink, 3);
        if self.random.once_in(2) {
            self.finish_rightly(sink);
        }
    }

    fn unless_honest(
        &mut self,
        sink: &mut InstructionSink<'_>,
        body: impl FnOnce(&mut Self, &mut InstructionSink<'_>),
    ) {
        sink.global_get(IS_HONEST).i32_eqz().if_(BlockType::Empty);
        body(self, sink);
        sink.end();
    }

    /// One of several bodies, another one each time.
    fn variants(&mut self, sink: &mut InstructionSink<'_>, local: u32) {
        sink.global_get(COUNTER)
            .i32_const(1)
            .i32_add()
            .global_set(COUNTER);
        let count = 1 + self.random.below(3) as i32;
        for variant in 0..count {
            sink.global_get(COUNTER)
                .i32_const(count)
                .i32_rem_u()
                .i32_const(variant)
                .i32_eq()
                .if_(BlockType::Empty);
            for _ in 0..1 + self.random.below(4) {
                self.statement(sink, local, 2);
            }
            sink.end();
        }
    }

    fn statement(&mut self, sink: &mut InstructionSink<'_>, local: u32, nesting: u32) {
        match self.random.below(24) {
            0..=3 => self.start_operation(sink),
            4..=6 => self.finish_wildly(sink),
            7 => self.finish_rightly(sink),
            8..=10 => {
                self.wild_number(sink);
                self.wild_range(sink);
                sink.call(LOG);
            }
            11 | 12 => {
                self.wild_range(sink);
                sink.call(RANDOM);
            }
            13 | 14 => {
                let pages = self.random.pick(&[0, 1, 1, 4, 30, 100, 20_000, 65_536, -1]);
                sink.i32_const(pages).memory_grow(0).drop();
            }
            15 => {
                sink.ref_null(HeapType::FUNC);
                self.wild_number(sink);
                sink.table_grow(0).drop();
            }
            16 => {
                self.wild_pointer(sink);
                self.wild_number(sink);
                self.wild_number(sink);
                sink.memory_fill(0);
            }
            17 => {
                // Anything in the table, by any signature.
                self.wild_number(sink);
                sink.i32_const(self.random.below(20) as i32);
                sink.call_indirect(0, RECURSE);
            }
            18 => {
                sink.i32_const(self.random.pick(&[1, 50, 5_000, i32::MAX]))
                    .call(RECURSE);
            }
            19 if self.random.once_in(3) => self.trap(sink),
            20 if self.random.once_in(3) => {
                sink.loop_(BlockType::Empty).br(0).end();
            }
            19..=21 if nesting > 0 => {
                let rounds = self.random.pick(&[2, 10, 300, 3_000, 40_000]);
                let counter = local + nesting - 1;
                sink.i32_const(rounds)
                    .local_set(counter)
                    .loop_(BlockType::Empty);
                for _ in 0..1 + self.random.below(2) {
                    self.statement(sink, local, nesting - 1);
                }
                sink.local_get(counter)
                    .i32_const(1)
                    .i32_sub()
                    .local_tee(counter)
                    .br_if(0)
                    .end();
            }
            // More timers or requests than there may be.
            22 => {
                let kind = self
                    .random
                    .pick(&[coracle_abi::operation::TIMER, coracle_abi::operation::CALL]);
                // A time far off, or the shortest call there is: of the outbound, without names and arguments.
                let argument = match kind {
                    coracle_abi::operation::CALL => SHORTEST_CALL,
                    _ => 1e6f64.to_le_bytes(),
                };
                sink.i32_const(NUMBERS_AT as i32)
                    .i64_const(i64::from_le_bytes(argument))
                    .i64_store(MemArg {
                        offset: 0,
                        align: 0,
                        memory_index: 0,
                    })
                    .loop_(BlockType::Empty)
                    .i32_const(kind as i32)
                    .i32_const(NUMBERS_AT as i32)
                    .i32_const(8)
                    .call(START)
                    .drop()
                    .br(0)
                    .end();
            }
            23 if self.random.once_in(3) => {
                // Leaves the innermost block, which every statement has around it.
                sink.br(0);
            }
            _ => {
                // Bytes somewhere, which may be the host's message.
                self.wild_pointer(sink);
                sink.i64_const(self.random.number() as i64)
                    .i64_store(MemArg {
                        offset: 0,
                        align: 0,
                        memory_index: 0,
                    });
            }
        }
    }

    fn start_operation(&mut self, sink: &mut InstructionSink<'_>) {
        if self.random.once_in(3) {
            self.wild_number(sink);
            self.wild_range(sink);
        } else {
            let kind = self.random.pick(&[
                coracle_abi::operation::TIMER,
                coracle_abi::operation::TIMER,
                coracle_abi::operation::CANCEL,
                coracle_abi::operation::STREAM,
                coracle_abi::operation::CALL,
                coracle_abi::operation::RELEASE,
                coracle_abi::operation::HOLD,
                coracle_abi::operation::HOLD,
                coracle_abi::operation::ABORT,
                coracle_abi::operation::LOAD,
                coracle_abi::operation::ENTRYPOINT,
                coracle_abi::operation::GET,
                coracle_abi::operation::NOT_PROVIDED,
            ]);
            sink.i32_const(NUMBERS_AT as i32);
            if kind == coracle_abi::operation::CANCEL {
                sink.i64_const(self.random.below(12) as i64);
            } else {
                sink.i64_const(self.random.pick(&TIMES_MS).to_bits() as i64);
            }
            sink.i64_store(MemArg {
                offset: 0,
                align: 0,
                memory_index: 0,
            });
            sink.i32_const(kind as i32)
                .i32_const(NUMBERS_AT as i32)
                .i32_const(8);
        }
        sink.call(START).drop();
    }

    fn finish_wildly(&mut self, sink: &mut InstructionSink<'_>) {
        match self.random.below(4) {
            0 => sink.i64_const(0),
            1 => sink.i64_const(self.random.number() as i64),
            2 => sink.i64_const(self.random.below(2_000) as i64),
            _ => sink.global_get(INVOCATION),
        };
        sink.i32_const(self.random.below(12) as i32);
        self.wild_range(sink);
        sink.call(FINISH);
    }

    fn finish_rightly(&mut self, sink: &mut InstructionSink<'_>) {
        let (kind, at, length) = self.random.pick(&[
            (coracle_abi::finish::UNDEFINED, 0, 0),
            (coracle_abi::finish::UNDEFINED, 0, 0),
            (coracle_abi::finish::CBOR, VALUE_AT, VALUE.len()),
            (coracle_abi::finish::CBOR, VALUE_AT, VALUE.len()),
            (coracle_abi::finish::CBOR, VALUE_AT, VALUE.len()),
            (coracle_abi::finish::THREW, THROWN_AT, THROWN.len()),
            (coracle_abi::finish::RESULT_TOO_LARGE, NUMBERS_AT, 8),
            (coracle_abi::finish::VALUE_TOO_DEEP, 0, 0),
            (coracle_abi::finish::VALUE_TOO_DEEP, 0, 1),
        ]);
        sink.global_get(INVOCATION)
            .i32_const(kind as i32)
            .i32_const(at as i32)
            .i32_const(length as i32)
            .call(FINISH);
    }

    fn trap(&mut self, sink: &mut InstructionSink<'_>) {
        match self.random.below(3) {
            0 => sink.unreachable(),
            1 => sink.i32_const(1).i32_const(0).i32_div_s().drop(),
            _ => sink
                .i32_const(-4)
                .i32_load(MemArg {
                    offset: 0xffff_fff0,
                    align: 0,
                    memory_index: 0,
                })
                .drop(),
        };
    }

    fn wild_number(&mut self, sink: &mut InstructionSink<'_>) {
        let number = match self.random.below(4) {
            0 => self.random.below(6) as i32,
            1 => self
                .random
                .pick(&[-1, i32::MIN, i32::MAX, 65_536, 65_537, 8]),
            2 => self.random.below(100_000) as i32,
            _ => self.random.number() as i32,
        };
        sink.i32_const(number);
    }

    fn wild_pointer(&mut self, sink: &mut InstructionSink<'_>) {
        let choices = if self.random.once_in(self.wild_once_in) {
            self.random.below(6)
        } else {
            2 + self.random.below(4)
        };
        match choices {
            0 => self.wild_number(sink),
            // Just before the end of the memory, wherever that is.
            1 => {
                sink.memory_size(0)
                    .i32_const(65_536)
                    .i32_mul()
                    .i32_const(self.random.below(20) as i32)
                    .i32_sub();
            }
            2 => {
                sink.i32_const(self.random.below(60_000) as i32);
            }
            _ => {
                sink.i32_const(self.random.pick(&[NUMBERS_AT, VALUE_AT, MESSAGES_AT]) as i32);
            }
        }
    }

    /// A pointer and a length.
    fn wild_range(&mut self, sink: &mut InstructionSink<'_>) {
        self.wild_pointer(sink);
        let choices = if self.random.once_in(self.wild_once_in) {
            self.random.below(8)
        } else {
            7
        };
        let length = match choices {
            0 => self.random.number() as i32,
            1 => self.random.pick(&[-1, 65_536, 65_537, 1 << 20, i32::MAX]),
            2 => self.random.below(70_000) as i32,
            _ => self.random.below(40) as i32,
        };
        sink.i32_const(length);
    }

    /// `recurse(n)`: calls itself as often, with imports on the way.
    fn recurse(&mut self, sink: &mut InstructionSink<'_>) {
        sink.global_get(DEPTH)
            .i32_const(1)
            .i32_add()
            .global_set(DEPTH);
        if self.random.once_in(2) {
            self.wild_number(sink);
            self.wild_range(sink);
            sink.call(LOG);
        }
        sink.local_get(0)
            .i32_const(0)
            .i32_gt_s()
            .if_(BlockType::Empty)
            .local_get(0)
            .i32_const(1)
            .i32_sub()
            .call(RECURSE)
            .end();
    }
}

/// `read_id(pointer)`: the second item of a CBOR array, an unsigned integer of up to 32 bits.
fn read_id(sink: &mut InstructionSink<'_>) {
    let byte = |sink: &mut InstructionSink<'_>, offset: u64| {
        sink.local_get(0).i64_load8_u(MemArg {
            offset,
            align: 0,
            memory_index: 0,
        });
    };
    let is = |sink: &mut InstructionSink<'_>, head: i64| {
        byte(sink, 1);
        sink.i64_const(head).i64_eq().if_(BlockType::Empty);
    };
    for (head, bytes) in [(0x18, 1), (0x19, 2), (0x1a, 4)] {
        is(sink, head);
        sink.i64_const(0);
        for offset in 0..bytes {
            sink.i64_const(8).i64_shl();
            byte(sink, 2 + offset);
            sink.i64_or();
        }
        sink.return_().end();
    }
    byte(sink, 1);
}
