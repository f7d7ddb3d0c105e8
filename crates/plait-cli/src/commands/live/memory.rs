//! The path memory of `serve`, `get` and `proxy`.

use crate::console::Console;
use crate::failure::Failure;
use plait_base::Span;
use plait_core::{MemorySettings, PathEntry};
use plait_live::{PathFile, PathFileError, StoredPath, merged, now_s};
use std::path::PathBuf;

/// Flags of `serve`, `get` and `proxy`.
#[derive(clap::Args, Debug)]
pub(crate) struct MemoryFlags {
    /// Remember the paths for later connections: in this file, only in this process (on), or not (off)
    ///
    /// `plait paths` shows a file. The default of `get` and `proxy` is a file of the user,
    /// ~/.local/state/plait/paths.toml or that of $XDG_STATE_HOME. The default of `serve` is `on`.
    #[arg(long, hide_short_help = true, value_name = "FILE|on|off", value_parser = place)]
    path_memory: Option<Place>,
    /// Age beyond which a remembered path is not used
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "60min", value_parser = age)]
    path_memory_age: Span,
}

/// The place of a path memory.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Off,
    Process,
    File(PathBuf),
}

fn place(text: &str) -> Result<Place, String> {
    Ok(match text {
        "off" => Place::Off,
        "on" => Place::Process,
        "" => return Err("it is empty\n  allowed: a file, on or off".to_owned()),
        _ => Place::File(text.into()),
    })
}

fn age(text: &str) -> Result<Span, String> {
    let allowed = "allowed: from 1s to 44640min";
    match plait_app::quantity::time(text) {
        Ok(time) if (Span::from_secs(1)..=Span::from_secs(31 * 86_400)).contains(&time) => Ok(time),
        Ok(_) => Err(format!("a network changes within a month\n  {allowed}")),
        Err(error) => Err(format!("{error}\n  {allowed}")),
    }
}

/// The path memory of a process.
pub(crate) struct Memory {
    pub(crate) settings: MemorySettings,
    /// The paths that its file had at the start.
    pub(crate) entries: Vec<PathEntry>,
    file: Option<PathFile>,
    /// The command, for the file.
    command: &'static str,
}

impl MemoryFlags {
    /// Opens the memory of `command`; `None` if it is off.
    pub(crate) fn open(
        &self,
        command: &'static str,
        console: Console,
    ) -> Result<Option<Memory>, Failure> {
        let user = || PathFile::of_user(|name| std::env::var_os(name));
        let (file, given) = match &self.path_memory {
            Some(Place::Off) => return Ok(None),
            Some(Place::Process) => (None, false),
            Some(Place::File(path)) => (Some(PathFile::at(path.clone())), true),
            None => (user().filter(|_| command != "serve"), false),
        };
        let settings =
            MemorySettings { lifetime: self.path_memory_age, ..MemorySettings::default() };
        let mut memory = Memory { settings, entries: Vec::new(), file, command };
        memory.load(given, console)?;
        Ok(Some(memory))
    }
}

impl Memory {
    /// Reads the file. If it was not `given`, the process does without one that cannot be read, and renames
    /// one that is malformed.
    fn load(&mut self, given: bool, console: Console) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        match file.read() {
            Ok(stored) => {
                let place = file.path().display();
                for why in &stored.refused {
                    console.remark(1, &format!("plait: {place}: {why}: this path is dropped"));
                }
                self.entries = stored.entries(now_s());
            }
            Err(PathFileError::Unreadable(error)) if given => {
                let allowed = "a file of remembered paths, or a new one";
                return Err(Failure::unreadable("--path-memory", file.path(), &error, allowed));
            }
            Err(PathFileError::Unreadable(error)) => {
                console.remark(1, &unkept(file, &plait_lab::unreadable(&error)));
                self.file = None;
            }
            Err(PathFileError::Malformed(why)) if given => {
                let (place, remedy) = (file.path().display(), "give another file, or remove it");
                return Err(Failure::Usage(format!("--path-memory: `{place}`: {why}\n  {remedy}")));
            }
            Err(PathFileError::Malformed(why)) => {
                let place = file.path().display();
                match file.set_aside() {
                    Ok(aside) => {
                        let aside = aside.display();
                        let text = format!(
                            "plait: {place} is not a file of remembered paths: {why}; it is now {aside}"
                        );
                        console.remark(1, &text);
                    }
                    Err(error) => {
                        console.remark(1, &unkept(file, &format!("{why}; {error}")));
                        self.file = None;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the paths of the process to the file. If that fails, a remark says so.
    pub(crate) fn close(self, entries: &[PathEntry], console: Console) {
        let Some(file) = &self.file else { return };
        // Another process may have written since.
        let stored = match file.read() {
            Ok(stored) => stored.paths,
            Err(PathFileError::Unreadable(error)) => {
                return console.remark(1, &unkept(file, &plait_lab::unreadable(&error)));
            }
            Err(PathFileError::Malformed(why)) => return console.remark(1, &unkept(file, &why)),
        };
        let new = self.added_to(stored.clone(), entries);
        if new != stored
            && let Err(error) = file.replace(&new)
        {
            console.remark(1, &unkept(file, &plait_lab::unreadable(&error)));
        }
    }

    fn added_to(&self, stored: Vec<StoredPath>, entries: &[PathEntry]) -> Vec<StoredPath> {
        let MemorySettings { entries: most, lifetime, .. } = self.settings;
        merged(stored, entries, (now_s(), self.command), (most, lifetime))
    }
}

/// Returns the remark that the paths are not kept.
fn unkept(file: &PathFile, why: &str) -> String {
    format!("plait: {}: {why}: paths are remembered in this process only", file.path().display())
}
