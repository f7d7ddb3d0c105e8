//! The directory in which finished runs are cached.

use crate::console::Console;
use crate::failure::Failure;
use std::io;
use std::path::{Path, PathBuf};

/// Opens the cache with `open`, in the directory `given` by `--cache` or in the user's own. Returns
/// `None` if `--no-cache` is given, or if the user's own cannot be opened. A remark then says that
/// `items` are not cached.
pub(super) fn open<T>(
    given: Option<&Path>,
    no_cache: bool,
    items: &str,
    console: Console,
    open: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<Option<T>, Failure> {
    if let Some(directory) = given {
        let cache = open(directory);
        return cache.map(Some).map_err(|it| Failure::unwritable("--cache", directory, &it));
    }
    let Some(directory) = of_user().filter(|_| !no_cache) else { return Ok(None) };
    match open(&directory) {
        Ok(cache) => Ok(Some(cache)),
        Err(error) => {
            let why = plait_lab::unreadable(&error);
            let place = directory.display();
            console.remark(1, &format!("plait: {items} are not cached: {place}: {why}"));
            Ok(None)
        }
    }
}

/// Returns the directory `given` by `--cache`, or the user's own.
pub(super) fn directory(given: Option<&Path>) -> Option<PathBuf> {
    given.map(Path::to_path_buf).or_else(of_user)
}

/// Returns the directory in which this user's programs cache plait's results.
fn of_user() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(home.join("plait"))
}
