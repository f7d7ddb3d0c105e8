//! The path memory of `serve`, `get` and `proxy`.

use crate::console::Console;
use crate::failure::Failure;
use plait_base::Span;
use plait_core::{MemorySettings, PathEntry, PathKey};
use plait_live::{PathFile, PathFileError, StoredPath, merged, now_s};
use std::net::IpAddr;
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
    aliases: Vec<Alias>,
}

/// An address of this process that the file has under another address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alias {
    pub(crate) here: IpAddr,
    pub(crate) in_file: IpAddr,
}

impl MemoryFlags {
    /// Opens the memory of `command`; `None` if it is off.
    pub(crate) fn open(
        &self,
        command: &'static str,
        aliases: Vec<Alias>,
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
        let mut memory = Memory { settings, entries: Vec::new(), file, command, aliases };
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
                self.rename(|it| (it.in_file, it.here));
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

    /// Replaces addresses of this host in the entries, each alias from its first address to its second one.
    fn rename(&mut self, order: impl Fn(&Alias) -> (IpAddr, IpAddr)) {
        for entry in &mut self.entries {
            let mut names = self.aliases.iter().map(&order);
            if let Some((_, to)) = names.find(|(from, _)| *from == entry.key.own()) {
                entry.key = PathKey::new(to, entry.key.network());
            }
        }
    }

    /// Adds the paths of the process to the file. If that fails, a remark says so.
    pub(crate) fn close(mut self, entries: &[PathEntry], console: Console) {
        self.entries = entries.to_vec();
        self.rename(|it| (it.here, it.in_file));
        let Some(file) = &self.file else { return };
        // Another process may have written since.
        let stored = match file.read() {
            Ok(stored) => stored.paths,
            Err(PathFileError::Unreadable(error)) => {
                return console.remark(1, &unkept(file, &plait_lab::unreadable(&error)));
            }
            Err(PathFileError::Malformed(why)) => return console.remark(1, &unkept(file, &why)),
        };
        let new = self.added_to(stored.clone());
        if new != stored
            && let Err(error) = file.replace(&new)
        {
            console.remark(1, &unkept(file, &plait_lab::unreadable(&error)));
        }
    }

    fn added_to(&self, stored: Vec<StoredPath>) -> Vec<StoredPath> {
        let MemorySettings { entries: most, lifetime, .. } = self.settings;
        merged(stored, &self.entries, (now_s(), self.command), (most, lifetime))
    }
}

/// Returns the remark that the paths are not kept.
fn unkept(file: &PathFile, why: &str) -> String {
    format!("plait: {}: {why}: paths are remembered in this process only", file.path().display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_core::PathRecord;

    #[test]
    fn a_file_has_the_address_that_stays_the_same() {
        let path = std::env::temp_dir().join(format!("plait-alias-{}.toml", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let console = Console { width: 80, colour: false, animate: false, chatter: 0 };
        let open = |here: u8| {
            let aliases = vec![Alias { here: address(here), in_file: address(1) }];
            let flags = MemoryFlags {
                path_memory: Some(Place::File(path.clone())),
                path_memory_age: MemorySettings::LIFETIME,
            };
            flags.open("get", aliases, console).unwrap().unwrap()
        };
        let entry = |own: u8| PathEntry {
            key: PathKey::new(address(own), IpAddr::from([198, 51, 100, 0])),
            record: PathRecord { received: Some(1_000), ..PathRecord::default() },
            age: Span::ZERO,
        };
        open(7).close(&[entry(7), entry(9)], console);
        let own = |entries: &[PathEntry]| -> Vec<IpAddr> {
            entries.iter().map(|entry| entry.key.own()).collect()
        };
        // Another process has another stand-in.
        let memory = open(8);
        assert_eq!(own(&memory.entries), [address(8), address(9)]);
        memory.close(&[entry(8)], console);
        let stored = PathFile::at(path.clone()).read().unwrap();
        assert_eq!(own(&stored.entries(now_s())), [address(1), address(9)]);
        std::fs::remove_file(&path).unwrap();
    }
}
