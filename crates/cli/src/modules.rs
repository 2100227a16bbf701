//! A worker's modules, read from disk: what each is called and what kind it is.
//!
//! A name is the file's path below the main module's folder, so that relative imports mean what
//! they mean on disk. Names are made from paths as they are written; links are not followed for
//! that. How much is read is bounded by what any server would take: `code_bytes_max` at its ceiling
//! and the number of modules. Whether the modules are any good is for `coracle_loader` to say.

use crate::failure::Failure;
use coracle_client::ModuleBody;
use coracle_loader::{LimitName, MODULES_MAX, limits::grouped};
use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    path::{Component, Path, PathBuf},
};

/// The main module of a folder, if it has exactly one of these.
const MAIN_NAMES: [&str; 6] = [
    "main.js",
    "main.mjs",
    "main.ts",
    "index.js",
    "index.mjs",
    "index.ts",
];

/// Not looked into when a folder is loaded, as are hidden ones: imports never resolve into it.
const FOLDER_SKIPPED: &str = "node_modules";

/// A module that was given a name on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    name: String,
    path: PathBuf,
}

/// A module and where it is from.
#[derive(Clone, Debug)]
pub(crate) struct ModuleFile {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) body: ModuleBody,
}

/// A worker's modules.
#[derive(Clone, Debug)]
pub(crate) struct ModuleFiles {
    pub(crate) main: String,
    pub(crate) files: Vec<ModuleFile>,
}

impl ModuleFiles {
    /// Reads the main module, which may be a folder's, further files and folders, and named ones.
    ///
    /// # Errors
    /// When something can't be read, is too much, or lies where it can have no name.
    pub(crate) fn read(main: &Path, more: &[PathBuf], named: &[Named]) -> Result<Self, Failure> {
        let folder = main.is_dir().then_some(main);
        let main = match folder {
            Some(folder) => main_of(folder)?,
            None => main.to_owned(),
        };
        let main_absolute = absolute(&main)?;
        let root = main_absolute.parent().unwrap_or(&main_absolute).to_owned();
        let mut reader = Reader::new(root);
        reader.add(&main)?;
        let main = reader
            .files
            .first()
            .map(|file| file.name.clone())
            .unwrap_or_default();
        for path in folder.into_iter().chain(more.iter().map(PathBuf::as_path)) {
            reader.add(path)?;
        }
        for Named { name, path } in named {
            reader.add_file(name.clone(), path)?;
        }
        Ok(Self {
            main,
            files: reader.files,
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ModuleFile> {
        self.files.iter().find(|file| file.name == name)
    }
}

impl ModuleFile {
    /// Its source, where it has one that errors can point into.
    pub(crate) fn source(&self) -> Option<&str> {
        match &self.body {
            ModuleBody::EsModule(text)
            | ModuleBody::CommonJs(text)
            | ModuleBody::Text(text)
            | ModuleBody::Json(text) => Some(text),
            ModuleBody::Data(_) => None,
        }
    }

    /// What it holds, if that is text.
    pub(crate) fn text(&self) -> Option<String> {
        match &self.body {
            ModuleBody::Data(bytes) => String::from_utf8(bytes.clone()).ok(),
            _ => self.source().map(str::to_owned),
        }
    }

    /// The size as `code_bytes_max` counts it.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.body {
            ModuleBody::Data(bytes) => bytes.len() as u64,
            _ => self.source().map_or(0, str::len) as u64,
        }
    }
}

/// Reads `NAME=PATH`.
pub(crate) fn parse_named(text: &str) -> Result<Named, String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(Named {
            name: name.to_owned(),
            path: PathBuf::from(path),
        }),
        _ => Err(format!(
            "write NAME=PATH, such as lib/config=./config.json, and not {text:?}"
        )),
    }
}

struct Reader {
    /// The main module's folder.
    root: PathBuf,
    files: Vec<ModuleFile>,
    /// What has been read without a name of its own, so that `main.js *.js` reads it once.
    read: HashSet<PathBuf>,
    bytes_max: u64,
    bytes_left: u64,
}

impl Reader {
    fn new(root: PathBuf) -> Self {
        let bytes_max = LimitName::CodeBytesMax.ceiling();
        Self {
            root,
            files: Vec::new(),
            read: HashSet::new(),
            bytes_max,
            bytes_left: bytes_max,
        }
    }

    /// Adds a file, or all files below a folder.
    fn add(&mut self, path: &Path) -> Result<(), Failure> {
        if path.is_dir() {
            return self.add_folder(path);
        }
        let absolute = absolute(path)?;
        let name = self.name_of(&absolute, path)?;
        match self.read.insert(absolute) {
            true => self.add_file(name, path),
            false => Ok(()),
        }
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let mut folders = vec![folder.to_owned()];
        let mut visited = 0;
        while let Some(folder) = folders.pop() {
            visited += 1;
            if visited > MODULES_MAX {
                return Err(too_many());
            }
            let entries = fs::read_dir(&folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let mut entries = entries.map_err(|error| cannot_read(&folder, &error))?;
            // The same order on every machine.
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let (name, path) = (entry.file_name(), entry.path());
                if name.as_encoded_bytes().starts_with(b".") || name == FOLDER_SKIPPED {
                    continue;
                }
                let kind = entry
                    .file_type()
                    .map_err(|error| cannot_read(&path, &error))?;
                if kind.is_dir() {
                    folders.push(path);
                // A link to a file is one; links to folders could go in circles, and pipes may block.
                } else if path.is_file() {
                    self.add(&path)?;
                }
            }
        }
        Ok(())
    }

    fn add_file(&mut self, name: String, path: &Path) -> Result<(), Failure> {
        if self.files.len() == MODULES_MAX {
            return Err(too_many());
        }
        let bytes = self.bytes_of(path)?;
        let body = body_of(&name, path, bytes)?;
        self.files.push(ModuleFile {
            name,
            path: path.to_owned(),
            body,
        });
        Ok(())
    }

    fn bytes_of(&mut self, path: &Path) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        // One byte more shows that there is one.
        let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
        let outcome = file.take(self.bytes_left + 1).read_to_end(&mut bytes);
        outcome.map_err(|error| cannot_read(path, &error))?;
        match self.bytes_left.checked_sub(bytes.len() as u64) {
            Some(left) => self.bytes_left = left,
            None => {
                let most = grouped(self.bytes_max);
                let path = path.display();
                return Err(Failure::usage(format!(
                    "with {path} the modules are larger than {most} bytes, more than any server takes"
                )));
            }
        }
        Ok(bytes)
    }

    /// The path below the main module's folder, with slashes.
    fn name_of(&self, absolute: &Path, written: &Path) -> Result<String, Failure> {
        let written = written.display();
        let below = absolute.strip_prefix(&self.root).map_err(|_| {
            Failure::usage(format!(
                "{written} is not below the main module's folder, so no relative import finds it: \
                 name it with --module NAME={written}"
            ))
        })?;
        let parts: Option<Vec<&str>> = below.iter().map(OsStr::to_str).collect();
        let parts = parts.ok_or_else(|| {
            Failure::usage(format!(
                "the path {written} is not UTF-8: name it with --module NAME=PATH"
            ))
        })?;
        Ok(parts.join("/"))
    }
}

fn main_of(folder: &Path) -> Result<PathBuf, Failure> {
    let mut found = MAIN_NAMES
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.is_file());
    let candidates = MAIN_NAMES.join(", ");
    let folder = folder.display();
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Failure::usage(format!(
            "the folder {folder} has none of {candidates}: name the main module, then the folder"
        ))),
        (Some(_), Some(_)) => Err(Failure::usage(format!(
            "the folder {folder} has more than one of {candidates}: name the main module, then the folder"
        ))),
    }
}

/// By the name's extension, or the path's where the name has none.
fn body_of(name: &str, path: &Path, bytes: Vec<u8>) -> Result<ModuleBody, Failure> {
    let extension = Path::new(name).extension().or_else(|| path.extension());
    let kind: fn(String) -> ModuleBody = match extension.and_then(OsStr::to_str) {
        Some("js" | "mjs" | "ts" | "mts" | "tsx" | "jsx") => ModuleBody::EsModule,
        Some("cjs" | "cts") => ModuleBody::CommonJs,
        Some("txt" | "md") => ModuleBody::Text,
        Some("json") => ModuleBody::Json,
        _ => return Ok(ModuleBody::Data(bytes)),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{} is not UTF-8 from byte {at} on", path.display()))
    })?;
    Ok(kind(text))
}

/// The path from the root, without `.` and `..`.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path).map_err(|error| cannot_read(path, &error))?;
    let mut normal = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    Ok(normal)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("can't read {}: {error}", path.display()))
}

fn too_many() -> Failure {
    let most = grouped(MODULES_MAX as u64);
    Failure::usage(format!(
        "more than {most} modules or folders, more than any server takes"
    ))
}

#[cfg(test)]
mod tests;
