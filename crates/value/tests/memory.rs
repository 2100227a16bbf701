//! Memory: a constant times the input, whatever lengths the input claims.

#![allow(unsafe_code, reason = "a counting allocator can't be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use coracle_value::{Bounds, decode, encode, from_json, select, validate};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        PEAK.fetch_max(now, Ordering::SeqCst);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory that was taken at once while this ran.
fn peak(run: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::SeqCst);
    PEAK.store(before, Ordering::SeqCst);
    run();
    PEAK.load(Ordering::SeqCst) - before
}

const BOUNDS: Bounds = Bounds {
    depth_max: 1000,
    bytes_max: usize::MAX,
    externals: 1,
};

/// A byte of input takes at most this much: a three-byte array without a length makes room for four values.
const DECODE_FACTOR: usize = 160;
/// The list of used externals while it grows.
const VALIDATE_FACTOR: usize = 4;
/// Stacks of the walk and the builder at full depth.
const CONSTANT: usize = 192 << 10;

/// All in one test: tests that run at once would count each other's memory.
#[test]
fn memory_is_a_constant_times_the_input() {
    let filled = |prefix: &[u8], unit: &[u8]| [prefix, &unit.repeat(200_000)].concat();
    let claim = |head: u8| [&[head][..], &0x7fff_ffff_ffff_ffff_u64.to_be_bytes()].concat();
    let claims_nested = [&b"\x9a\x00\x10\x00\x00".repeat(900)[..], &[0; 1 << 20]].concat();
    let claims_of_maps_nested =
        [&b"\xba\x00\x08\x00\x00\x60".repeat(900)[..], &[0; 1 << 20]].concat();
    let inputs: &[(&str, Vec<u8>)] = &[
        ("claimed array", claim(0x9b)),
        ("claimed map", claim(0xbb)),
        ("claimed bytes", claim(0x5b)),
        ("claimed text", claim(0x7b)),
        (
            "claimed tag content",
            [b"\xd8\x40", &claim(0x5b)[..]].concat(),
        ),
        ("claimed array before a little", filled(&claim(0x9b), b"\0")),
        ("claims in claims", claims_nested),
        ("claims of maps in claims", claims_of_maps_nested),
        ("many small values", filled(b"\x9a\x00\x03\x0d\x40", b"\0")),
        ("many small values without a length", filled(b"\x9f", b"\0")),
        ("many empty arrays", filled(b"\x9f", b"\x80")),
        (
            "many arrays without a length",
            filled(b"\x9f", b"\x9f\0\xff"),
        ),
        (
            "many objects without a length",
            filled(b"\x9f", b"\xbf\x60\0\xff"),
        ),
        ("many shared arrays", filled(b"\x9f", b"\xd8\x1c\x9f\0\xff")),
        ("many boxed bools", filled(b"\x9f", b"\xd9\x9c\x43\xf4")),
        (
            "many references",
            filled(b"\x9f\xd8\x1c\x80", b"\xd8\x1d\0"),
        ),
        ("many externals", filled(b"\x9f", b"\xd9\x9c\x40\0")),
        ("many empty chunks", filled(b"\x5f", b"\x40")),
        (
            "many errors",
            filled(b"\x9f", b"\xd9\x9c\x41\xa2\x64name\x60\x67message\x60"),
        ),
        ("many map entries", filled(b"\xd9\x01\x03\xbf", b"\0\0")),
    ];
    for (name, input) in inputs {
        for ended in [input.clone(), [&input[..], b"\xff"].concat()] {
            let taken = peak(|| drop(validate(&ended, &BOUNDS)));
            assert!(
                taken <= VALIDATE_FACTOR * ended.len() + CONSTANT,
                "{name}: validate took {taken}"
            );
            let taken = peak(|| drop(select(&ended, &["1", "a"], &BOUNDS)));
            assert!(
                taken <= VALIDATE_FACTOR * ended.len() + CONSTANT,
                "{name}: select took {taken}"
            );
            let taken = peak(|| drop(decode(&ended, &BOUNDS)));
            assert!(
                taken <= DECODE_FACTOR * ended.len() + CONSTANT,
                "{name}: decode took {taken}"
            );
            if let Ok(value) = decode(&ended, &BOUNDS) {
                let taken = peak(|| drop(encode(&value)));
                assert!(
                    taken <= 4 * ended.len() + CONSTANT,
                    "{name}: encode took {taken}"
                );
            }
        }
    }
    for unit in ["[],", "0,", "{\"\":0},", "[0],", "\"\\u0000\",", "{},"] {
        let json = format!("[{}0]", unit.repeat(200_000));
        let taken = peak(|| drop(from_json(&json, &BOUNDS)));
        assert!(
            taken <= DECODE_FACTOR * json.len() + CONSTANT,
            "{unit}: from_json took {taken}"
        );
    }
}
