//! Images in files. The guest here is the smallest that there can be, so that compiling it takes no time.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use super::*;
use crate::Sandbox;
use coracle_abi::export;
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

/// A guest that does nothing; `marker` makes it another one.
fn guest(marker: u32) -> Guest {
    use wasm_encoder::{
        CodeSection, ExportKind, ExportSection, Function, FunctionSection, MemorySection,
        MemoryType, TypeSection, ValType,
    };
    let exports: [(&str, &[ValType], &[ValType]); 7] = [
        (export::ALLOCATE, &[ValType::I32], &[ValType::I32]),
        (
            export::LOAD,
            &[ValType::I32, ValType::I32, ValType::F64],
            &[],
        ),
        (
            export::INVOKE,
            &[ValType::I32, ValType::I32, ValType::F64],
            &[],
        ),
        (
            export::SETTLE,
            &[ValType::I64, ValType::I32, ValType::I32, ValType::F64],
            &[],
        ),
        (export::COLLECT, &[], &[]),
        (export::RESEED, &[ValType::I64], &[]),
        (export::INITIALIZE, &[], &[]),
    ];
    let (mut types, mut functions, mut table, mut code) = (
        TypeSection::new(),
        FunctionSection::new(),
        ExportSection::new(),
        CodeSection::new(),
    );
    for (index, (name, params, results)) in (0..).zip(exports) {
        types
            .ty()
            .function(params.iter().copied(), results.iter().copied());
        functions.function(index);
        table.export(name, ExportKind::Func, index);
        let mut body = Function::new([]);
        if !results.is_empty() {
            body.instructions().i32_const(marker.cast_signed());
        }
        body.instructions().end();
        code.function(&body);
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    table.export("memory", ExportKind::Memory, 0);
    let mut module = wasm_encoder::Module::new();
    module
        .section(&types)
        .section(&functions)
        .section(&memories)
        .section(&table)
        .section(&code);
    Guest::from_wasm(module.finish())
}

/// The only file in a cache folder.
fn only_file(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn an_image_is_found_behind_an_executable_whatever_that_executable_is() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, carrying) = (folder.path().join("plain"), folder.path().join("carrying"));
    fs::write(&plain, b"#!/bin/sh\nexit 7\n").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
    let image = Image::compile(&guest(1)).unwrap();
    image.append_to(&plain, &carrying).unwrap();
    assert!(Image::behind(&plain, &guest(1)).is_none());
    let found = Image::behind(&carrying, &guest(1)).unwrap();
    assert_eq!(found.code, image.code);
    // Another guest's image is not taken for this one's.
    assert!(Image::behind(&carrying, &guest(2)).is_none());
    // The copy can be run as before.
    assert_eq!(
        fs::metadata(&carrying).unwrap().permissions().mode() & 0o111,
        0o111
    );
    // A copy that already carries one carries the new one after the next time.
    let again = folder.path().join("again");
    Image::compile(&guest(2))
        .unwrap()
        .append_to(&carrying, &again)
        .unwrap();
    assert!(Image::behind(&again, &guest(2)).is_some());
    assert!(Image::behind(&again, &guest(1)).is_none());
}

#[test]
fn no_changed_byte_and_no_cut_leaves_a_valid_image() {
    let whole = Image::compile(&guest(1)).unwrap().bytes();
    assert!(Image::parse(&whole, &guest(1)).is_some());
    let step = (whole.len() / 500).max(1);
    let edges = (0..100).chain(whole.len() - 100..whole.len());
    for position in (0..whole.len()).step_by(step).chain(edges) {
        let mut changed = whole.clone();
        changed[position] ^= 1;
        assert!(
            Image::parse(&changed, &guest(1)).is_none(),
            "byte {position} may be anything"
        );
        assert!(
            Image::parse(&whole[..position], &guest(1)).is_none(),
            "{position} bytes are enough"
        );
    }
    let mut longer = whole;
    longer.push(0);
    assert!(Image::parse(&longer, &guest(1)).is_none());
}

#[test]
fn the_executables_end_may_be_cut_or_filled_with_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (source, file) = (folder.path().join("source"), folder.path().join("file"));
    fs::write(&source, b"\x7fELF").unwrap();
    Image::compile(&guest(1))
        .unwrap()
        .append_to(&source, &file)
        .unwrap();
    let whole = fs::read(&file).unwrap();
    for length in [0, 1, 23, 24, 25, whole.len() - 5] {
        // Without its end, and without its beginning.
        for part in [&whole[..length], &whole[whole.len() - length..]] {
            fs::write(&file, part).unwrap();
            assert!(Image::behind(&file, &guest(1)).is_none());
        }
    }
    for claimed in [0, 1, u64::MAX, whole.len() as u64 + 1] {
        let mut changed = whole.clone();
        let length_at = whole.len() - 24;
        changed[length_at..length_at + 8].copy_from_slice(&claimed.to_le_bytes());
        fs::write(&file, &changed).unwrap();
        assert!(Image::behind(&file, &guest(1)).is_none());
    }
}

#[test]
fn a_cached_image_is_used_again_and_one_that_is_broken_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("made/when/needed");
    Image::obtain(&guest(1), Some(&cache)).unwrap();
    let file = only_file(&cache);
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let whole = fs::read(&file).unwrap();
    let made = fs::metadata(&file).unwrap().modified().unwrap();
    Image::obtain(&guest(1), Some(&cache)).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), made);

    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for broken in [&changed[..], &whole[..whole.len() / 2], b""] {
        fs::write(&file, broken).unwrap();
        let image = Image::obtain(&guest(1), Some(&cache)).unwrap();
        assert_eq!(image.bytes(), whole);
        assert_eq!(fs::read(only_file(&cache)).unwrap(), whole);
    }
}

#[test]
fn a_cache_keeps_the_newest_images_only() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("not-ours.txt"), b"stays").unwrap();
    for marker in 1..=6 {
        Image::obtain(&guest(marker), Some(folder.path())).unwrap();
    }
    let kept: Vec<u32> = (1..=6)
        .filter(|marker| {
            let hash = &guest(*marker).hash()[..16];
            let mut names = fs::read_dir(folder.path()).unwrap();
            names.any(|name| {
                name.unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with(hash)
            })
        })
        .collect();
    assert_eq!(kept, [3, 4, 5, 6]);
    assert!(folder.path().join("not-ours.txt").exists());
}

#[test]
fn guests_and_cpus_do_not_share_a_cached_image() {
    let folder = tempfile::tempdir().unwrap();
    for (guest, cpu) in [
        (guest(1), Cpu::Baseline),
        (guest(2), Cpu::Baseline),
        (guest(1), Cpu::Native),
    ] {
        let image = Image::obtain_for(&guest, Some(folder.path()), cpu).unwrap();
        assert_eq!(image.guest_hash, guest.hash);
        let machine = crate::Machine::read();
        let config = crate::SandboxConfig {
            isolates_max: 1,
            running_max: 1,
            pagemap_scan: machine.pagemap_scan,
        };
        Sandbox::new(config, &image).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    // Put under the wrong name it is refused by what it says of itself, and replaced.
    let files: Vec<PathBuf> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let contents: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for (file, content) in files.iter().zip(contents.iter().cycle().skip(1)) {
        fs::write(file, content).unwrap();
    }
    for marker in [1, 2] {
        let image = Image::obtain(&guest(marker), Some(folder.path())).unwrap();
        assert_eq!(image.guest_hash, guest(marker).hash);
    }
}

#[test]
fn a_cache_folder_that_others_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (mode, exposed) in [
        (0o777, true),
        // As /tmp: others can't replace a file there, but they can be first.
        (0o1777, true),
        (0o702, true),
        (0o700, false),
        (0o755, false),
        // A volume of a container's, shared by the group.
        (0o2775, false),
    ] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let outcome = Image::obtain(&guest(1), Some(folder.path()));
        assert_eq!(
            matches!(outcome, Err(ImageError::CacheExposed { .. })),
            exposed,
            "{mode:o}"
        );
        assert_eq!(outcome.is_ok(), !exposed, "{mode:o}");
    }
}

#[test]
fn a_file_that_others_could_have_put_into_the_cache_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let honest = Image::obtain(&guest(1), Some(folder.path())).unwrap();
    let file = only_file(folder.path());
    // What an intruder would leave: whole, of this guest, but other code.
    let planted = Image {
        guest_hash: guest(1).hash,
        code: b"native code of somebody's".to_vec(),
    };
    let elsewhere = folder.path().join("elsewhere");

    fs::write(&file, planted.bytes()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let obtained = Image::obtain(&guest(1), Some(folder.path())).unwrap();
    assert_eq!(obtained.code, honest.code);

    fs::write(&elsewhere, planted.bytes()).unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    let obtained = Image::obtain(&guest(1), Some(folder.path())).unwrap();
    assert_eq!(obtained.code, honest.code);
    assert_eq!(fs::read(&elsewhere).unwrap(), planted.bytes());

    // To change a file's owner takes a privilege that tests may not have.
    if std::os::unix::fs::chown(&file, Some(65_534), None).is_ok() {
        fs::write(&file, planted.bytes()).unwrap();
        let obtained = Image::obtain(&guest(1), Some(folder.path())).unwrap();
        assert_eq!(obtained.code, honest.code);
    }
}

#[test]
fn without_a_cache_or_with_one_that_can_t_be_written_the_image_is_made_all_the_same() {
    assert!(Image::obtain(&guest(1), None).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    fs::write(&file, b"").unwrap();
    assert!(Image::obtain(&guest(1), Some(&file)).is_ok());
}

#[test]
fn a_guest_whose_set_up_fails_is_refused_with_what_it_said() {
    let error = Image::compile(&Guest::from_wasm(b"not Wasm".to_vec()));
    assert!(matches!(error, Err(ImageError::Compile(_))));
}
