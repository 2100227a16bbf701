//! docs/decisions/0008: what a small worker writes to must be few pages, in few stretches, or resets become ten times as
//! dear. Counted in /proc/self/pagemap; a file of its own, because it looks at the whole process.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

#[path = "support/lab.rs"]
mod lab;
mod support;

use coracle_isolate::Outcome;
use coracle_value::Value;
use lab::Lab;
use std::{
    fs,
    io::{Read, Seek, SeekFrom},
};
use support::worker;

const PAGE_BYTES: u64 = 4096;
/// Well below what Wasmtime restores in place (`MAX_REGIONS` in its pagemap.rs): what is beyond is unmapped, which costs.
const STRETCHES_MAX: usize = 20;

/// Pages of each memory that are private to it, by their number.
fn written() -> Vec<Vec<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let memories = maps
        .lines()
        .filter(|line| line.contains("wasm-memory-image"));
    let mut pagemap = fs::File::open("/proc/self/pagemap").unwrap();
    let pages_of = |line: &str| {
        let (start, end) = line
            .split_whitespace()
            .next()
            .unwrap()
            .split_once('-')
            .unwrap();
        let page = |text: &str| u64::from_str_radix(text, 16).unwrap() / PAGE_BYTES;
        let (start, end) = (page(start), page(end));
        let mut entries = vec![0; ((end - start) * 8) as usize];
        pagemap.seek(SeekFrom::Start(start * 8)).unwrap();
        pagemap.read_exact(&mut entries).unwrap();
        let (present, of_file) = (1 << 63, 1 << 61);
        let entries = entries
            .chunks_exact(8)
            .map(|entry| u64::from_le_bytes(entry.try_into().unwrap()));
        (start..end)
            .zip(entries)
            .filter(|(_, entry)| entry & present != 0 && entry & of_file == 0)
            .map(|(page, _)| page)
            .collect()
    };
    memories.map(pages_of).collect()
}

#[test]
fn a_small_worker_writes_to_few_pages_in_few_stretches() {
    // Another engine lays its memory out in another way.
    if std::env::var_os("CORACLE_TEST_GUEST").is_some() {
        return;
    }
    let lab = Lab::new();
    let source = "// a small worker that doubles\nconst factor = 2;\nexport default {\n  name: 'double',\n  async run(a) {\n    \
                  const x = a * factor;\n    return x;\n  },\n};\n";
    let isolate = lab.isolate(worker(&[("main.js", source)]));
    let report = lab.call(isolate, "run", Value::from(21));
    assert!(matches!(report.outcome, Outcome::Value(_)), "{report:?}");
    let written: Vec<Vec<u64>> = written()
        .into_iter()
        .filter(|pages| !pages.is_empty())
        .collect();
    let [pages] = &written[..] else {
        panic!("one isolate, but {} memories", written.len());
    };
    let stretches = pages.chunk_by(|one, next| one + 1 == *next).count();
    assert!(pages.len() <= 40, "{} pages: {pages:?}", pages.len());
    assert!(
        stretches <= STRETCHES_MAX,
        "{stretches} stretches: {pages:?}"
    );
}
