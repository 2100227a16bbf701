//! What modules are called and what kind they are.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use super::*;

/// A folder with these files.
fn folder(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}").unwrap();
    }
    folder
}

fn names(modules: &ModuleFiles) -> Vec<&str> {
    modules.files.iter().map(|file| &file.name[..]).collect()
}

fn read(folder: &Path, main: &str, more: &[&str]) -> Result<ModuleFiles, Failure> {
    let more: Vec<PathBuf> = more.iter().map(|path| folder.join(path)).collect();
    ModuleFiles::read(&folder.join(main), &more, &[])
}

#[test]
fn names_are_relative_to_the_folder_of_the_main_module() {
    let folder = folder(&["src/main.js", "src/lib/a.js", "src/data.json"]);
    let modules = read(
        folder.path(),
        "src/main.js",
        &["src/lib/a.js", "src/../src/./data.json"],
    )
    .unwrap();
    assert_eq!(modules.main, "main.js");
    assert_eq!(names(&modules), ["main.js", "lib/a.js", "data.json"]);
    assert_eq!(
        modules.get("lib/a.js").unwrap().path,
        folder.path().join("src/lib/a.js")
    );
}

#[test]
fn a_file_outside_of_that_folder_needs_a_name() {
    let folder = folder(&["src/main.js", "shared.js"]);
    let error = read(folder.path(), "src/main.js", &["shared.js"])
        .unwrap_err()
        .to_string();
    assert!(error.contains("--module NAME="), "{error}");

    let named = Named {
        name: "shared.js".into(),
        path: folder.path().join("shared.js"),
    };
    let modules = ModuleFiles::read(&folder.path().join("src/main.js"), &[], &[named]).unwrap();
    assert_eq!(names(&modules), ["main.js", "shared.js"]);
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let folder = folder(&["main.js", "a.js"]);
    let modules = read(
        folder.path(),
        "main.js",
        &["a.js", "main.js", "./a.js", "."],
    )
    .unwrap();
    assert_eq!(names(&modules), ["main.js", "a.js"]);
}

#[test]
fn a_folder_is_all_files_below_it_but_hidden_ones_and_packages() {
    let folder = folder(&[
        "index.js",
        "b/c.txt",
        "b/a.bin",
        ".git/x",
        "node_modules/y.js",
        ".hidden.js",
    ]);
    let modules = read(folder.path(), "", &[]).unwrap();
    assert_eq!(modules.main, "index.js");
    assert_eq!(names(&modules), ["index.js", "b/a.bin", "b/c.txt"]);
}

#[test]
fn a_folder_without_one_main_module_is_refused() {
    let none = folder(&["a.js"]);
    assert!(
        read(none.path(), "", &[])
            .unwrap_err()
            .to_string()
            .contains("has none of main.js")
    );
    let two = folder(&["main.js", "index.js"]);
    assert!(
        read(two.path(), "", &[])
            .unwrap_err()
            .to_string()
            .contains("more than one")
    );
}

#[test]
fn the_extension_says_the_kind() {
    let kind = |name: &str, path: &str| {
        let body = body_of(name, Path::new(path), b"{}".to_vec()).unwrap();
        match body {
            ModuleBody::EsModule(_) => "es",
            ModuleBody::CommonJs(_) => "cjs",
            ModuleBody::Text(_) => "text",
            ModuleBody::Json(_) => "json",
            ModuleBody::Data(_) => "data",
        }
    };
    let same = |path| kind(path, path);
    assert_eq!(
        ["a.js", "a.mjs", "a.ts", "a.mts", "a.tsx", "a.jsx"].map(same),
        ["es"; 6]
    );
    assert_eq!(
        ["a.cjs", "a.txt", "a.md", "a.json"].map(same),
        ["cjs", "text", "text", "json"]
    );
    assert_eq!(["a.wasm", "a", ".js"].map(same), ["data"; 3]);
    assert_eq!(kind("config", "x/config.json"), "json");
    assert_eq!(kind("main.js", "/dev/fd/63"), "es");
}

#[test]
fn text_that_is_not_utf8_says_where() {
    let error = body_of("a.js", Path::new("src/a.js"), b"ab\xff".to_vec()).unwrap_err();
    assert_eq!(error.to_string(), "src/a.js is not UTF-8 from byte 2 on");
}

#[test]
fn no_more_is_read_than_any_server_takes() {
    let folder = folder(&["main.js", "a.js"]);
    let mut reader = Reader::new(folder.path().to_owned());
    reader.bytes_left = 3;
    reader.add(&folder.path().join("main.js")).unwrap();
    let error = reader
        .add(&folder.path().join("a.js"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("larger than 67,108,864 bytes"), "{error}");
}

#[test]
fn a_name_on_the_command_line_ends_at_the_first_equals_sign() {
    let named = Named {
        name: "a".into(),
        path: "b=c".into(),
    };
    assert_eq!(parse_named("a=b=c"), Ok(named));
    for text in ["a", "=b", "a="] {
        assert!(parse_named(text).is_err(), "{text}");
    }
}
