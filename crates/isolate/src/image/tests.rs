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
    let exports: [(&str, &[ValType], &[ValType]); 8] = [
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
        (
            export::RELEASE,
            &[ValType::I32, ValType::I32, ValType::F64],
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

/// Where the images are that are kept in this cache.
fn own(cache: &Path) -> PathBuf {
    cache.join(file::FOLDER)
}

/// The only file that is kept in a cache.
fn only_file(cache: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(own(cache))
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
    assert!(!Image::is_behind(&plain) && Image::is_behind(&carrying));
    assert!(!Image::is_behind(&folder.path().join("none")));
    let found = Image::behind(&carrying, &guest(1)).unwrap();
    assert_eq!(found.guest.bytes(), image.guest.bytes());
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
fn the_hash_of_the_guest_is_that_of_its_module() {
    let guest = Guest::embedded();
    assert_eq!(guest.hash(), Guest::from_wasm(guest.wasm().to_vec()).hash());
}

#[test]
fn no_changed_byte_and_no_cut_leaves_a_valid_image() {
    let whole = Image::compile(&guest(1)).unwrap().bytes();
    assert!(Image::parse(whole.clone(), &guest(1)).is_some());
    let step = (whole.len() / 500).max(1);
    let edges = (0..100).chain(whole.len() - 100..whole.len());
    for position in (0..whole.len()).step_by(step).chain(edges) {
        let mut changed = whole.clone();
        changed[position] ^= 1;
        assert!(
            Image::parse(changed, &guest(1)).is_none(),
            "byte {position} may be anything"
        );
        assert!(
            Image::parse(whole[..position].to_vec(), &guest(1)).is_none(),
            "{position} bytes are enough"
        );
    }
    let mut longer = whole;
    longer.push(0);
    assert!(Image::parse(longer, &guest(1)).is_none());
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
    let kept_in = own(folder.path());
    fs::create_dir(&kept_in).unwrap();
    fs::write(kept_in.join("not-ours.txt"), b"stays").unwrap();
    for marker in 1..=6 {
        Image::obtain(&guest(marker), Some(folder.path())).unwrap();
    }
    let kept: Vec<u32> = (1..=6)
        .filter(|marker| {
            let hash = &guest(*marker).hash()[..16];
            let mut names = fs::read_dir(&kept_in).unwrap();
            names.any(|name| {
                name.unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with(hash)
            })
        })
        .collect();
    assert_eq!(kept, [3, 4, 5, 6]);
    assert!(kept_in.join("not-ours.txt").exists());
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
        assert_eq!(image.hash, guest.image_hash);
        let machine = crate::Machine::read();
        let config = crate::SandboxConfig {
            isolates_max: 1,
            running_max: 1,
            pagemap_scan: machine.pagemap_scan,
            snapshots_bytes_max: 0,
        };
        Sandbox::new(config, &image).unwrap();
    }
    assert_eq!(fs::read_dir(own(folder.path())).unwrap().count(), 3);
    // Put under the wrong name it is refused by what it says of itself, and replaced.
    let files: Vec<PathBuf> = fs::read_dir(own(folder.path()))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let contents: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for (file, content) in files.iter().zip(contents.iter().cycle().skip(1)) {
        fs::write(file, content).unwrap();
    }
    for marker in [1, 2] {
        let image = Image::obtain(&guest(marker), Some(folder.path())).unwrap();
        assert_eq!(image.hash, guest(marker).image_hash);
    }
}

#[test]
fn a_cache_may_be_in_a_folder_that_everybody_can_write_to() {
    // As a folder of this user's, as Docker's and Kubernetes' volumes, as /tmp.
    for mode in [0o700, 0o755, 0o777, 0o1777, 0o2777] {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        Image::obtain(&guest(1), Some(folder.path())).unwrap();
        let own_mode = fs::metadata(own(folder.path())).unwrap().permissions();
        assert_eq!(own_mode.mode() & 0o777, 0o700, "{mode:o}");
        let made = fs::metadata(only_file(folder.path())).unwrap().modified();
        Image::obtain(&guest(1), Some(folder.path())).unwrap();
        let used = fs::metadata(only_file(folder.path())).unwrap().modified();
        assert_eq!(made.unwrap(), used.unwrap(), "{mode:o}");
    }
}

/// Whether a cache whose own folder is as it is now is refused. One that is not refused is used.
fn is_exposed(folder: &Path) -> bool {
    match Image::obtain(&guest(1), Some(folder)) {
        Ok(_) => false,
        Err(ImageError::CacheExposed { path }) => {
            assert_eq!(path, own(folder));
            true
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_folder_of_images_that_others_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(own(folder.path())).unwrap();
    for (mode, exposed) in [
        (0o777, true),
        // As /tmp: others can't replace a file there, but they can be first.
        (0o1777, true),
        (0o702, true),
        (0o700, false),
        (0o755, false),
        // In a volume of a container's, shared by the group.
        (0o2775, false),
    ] {
        fs::set_permissions(own(folder.path()), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(is_exposed(folder.path()), exposed, "{mode:o}");
    }
    // To change a folder's owner takes a privilege that tests may not have.
    if std::os::unix::fs::chown(own(folder.path()), Some(65_534), None).is_ok() {
        assert!(is_exposed(folder.path()));
    }
}

#[test]
fn a_folder_of_images_that_is_a_link_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), own(folder.path())).unwrap();
    assert!(is_exposed(folder.path()));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_put_in_the_place_of_an_open_cache_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let honest = Image::compile(&guest(1)).unwrap();
    cache.write("1.image", &honest).unwrap();
    let taken = folder.path().join("taken");
    fs::rename(own(folder.path()), &taken).unwrap();
    fs::create_dir(own(folder.path())).unwrap();
    let planted = Image {
        hash: guest(1).image_hash,
        guest: Code::Here(b"native code of somebody's".to_vec().into()),
        transpiler: None,
    };
    fs::write(own(folder.path()).join("1.image"), planted.bytes()).unwrap();
    assert_eq!(
        cache.read("1.image", &guest(1)).unwrap().guest.bytes(),
        honest.guest.bytes()
    );
    cache.write("2.image", &honest).unwrap();
    assert!(taken.join("2.image").exists());
    assert_eq!(fs::read_dir(own(folder.path())).unwrap().count(), 1);
}

#[test]
fn a_file_that_others_could_have_put_into_the_cache_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let honest = Image::obtain(&guest(1), Some(folder.path())).unwrap();
    let file = only_file(folder.path());
    // What an intruder would leave: whole, of this guest, but other code.
    let planted = Image {
        hash: guest(1).image_hash,
        guest: Code::Here(b"native code of somebody's".to_vec().into()),
        transpiler: None,
    };
    let elsewhere = folder.path().join("elsewhere");

    fs::write(&file, planted.bytes()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let obtained = Image::obtain(&guest(1), Some(folder.path())).unwrap();
    assert_eq!(obtained.guest.bytes(), honest.guest.bytes());

    fs::write(&elsewhere, planted.bytes()).unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    let obtained = Image::obtain(&guest(1), Some(folder.path())).unwrap();
    assert_eq!(obtained.guest.bytes(), honest.guest.bytes());
    assert_eq!(fs::read(&elsewhere).unwrap(), planted.bytes());

    // A pipe is not waited for.
    fs::remove_file(&file).unwrap();
    let read_and_write = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, read_and_write).unwrap();
    let obtained = Image::obtain(&guest(1), Some(folder.path())).unwrap();
    assert_eq!(obtained.guest.bytes(), honest.guest.bytes());

    // To change a file's owner takes a privilege that tests may not have.
    if std::os::unix::fs::chown(&file, Some(65_534), None).is_ok() {
        fs::write(&file, planted.bytes()).unwrap();
        let obtained = Image::obtain(&guest(1), Some(folder.path())).unwrap();
        assert_eq!(obtained.guest.bytes(), honest.guest.bytes());
    }
}

#[test]
fn without_a_cache_or_with_one_that_can_t_be_written_the_image_is_made_all_the_same() {
    assert!(Image::obtain(&guest(1), None).is_ok());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    fs::write(&file, b"").unwrap();
    assert!(Image::obtain(&guest(1), Some(&file)).is_ok());
    fs::write(own(folder.path()), b"").unwrap();
    assert!(Image::obtain(&guest(1), Some(folder.path())).is_ok());
}

#[test]
fn a_guest_whose_set_up_fails_is_refused_with_what_it_said() {
    let error = Image::compile(&Guest::from_wasm(b"not Wasm".to_vec()));
    assert!(matches!(error, Err(ImageError::Compile(_))));
}
