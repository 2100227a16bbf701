//! Which guest runs, and where its compiled image is kept between runs.

use crate::failure::Failure;
use clap::Args;
use coracle_isolate::Guest;
use std::{env, ffi::OsString, fs, path::PathBuf};

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Guest")]
pub(crate) struct GuestArgs {
    /// Another guest than the built-in one
    #[arg(long, value_name = "FILE.wasm", env = "CORACLE_GUEST")]
    guest: Option<PathBuf>,

    /// Where the compiled guest is kept, if it is not in this executable [default:
    /// $XDG_CACHE_HOME/coracle or ~/.cache/coracle]
    #[arg(long, value_name = "FOLDER", env = "CORACLE_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
}

impl GuestArgs {
    pub(crate) fn guest(&self) -> Result<Guest, Failure> {
        match &self.guest {
            None => Ok(Guest::embedded()),
            Some(path) => match fs::read(path) {
                Ok(wasm) => Ok(Guest::from_wasm(wasm).with_transpiler()),
                Err(error) => Err(Failure::usage(format!(
                    "can't read {}: {error}",
                    path.display()
                ))),
            },
        }
    }

    pub(crate) fn cache(&self) -> Option<PathBuf> {
        let chosen = self.cache_dir.clone();
        chosen.or_else(|| default_cache(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME")))
    }
}

/// By the XDG base directory rules, which have relative paths ignored. None: compile at each start.
fn default_cache(xdg_cache_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let folder = |variable: Option<OsString>| {
        variable
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = folder(xdg_cache_home).or_else(|| Some(folder(home)?.join(".cache")))?;
    Some(base.join("coracle"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_keeps_caches() {
        let cache = |xdg: Option<&str>, home: Option<&str>| {
            default_cache(xdg.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(
            cache(Some("/x"), Some("/home/a")),
            Some("/x/coracle".into())
        );
        assert_eq!(
            cache(None, Some("/home/a")),
            Some("/home/a/.cache/coracle".into())
        );
        assert_eq!(
            cache(Some("relative"), Some("/home/a")),
            Some("/home/a/.cache/coracle".into())
        );
        assert_eq!(cache(Some(""), None), None);
    }
}
