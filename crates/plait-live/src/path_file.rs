//! The file in which `plait get` and `plait proxy` keep the paths that they remember.
//!
//! It is TOML: `version = 1`, and a table `[[path]]` for each path. A process reads it at the start. At the end
//! the process reads it again and adds its own paths, so that processes at the same time lose nothing.

use plait_base::Span;
use plait_core::{PathEntry, PathKey, PathRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The version of the file.
const VERSION: i64 = 1;
/// Largest size of the file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Largest rate in bits per second, and largest RTT, that a file may have.
const MAX_RATE_BPS: u64 = 10_000_000_000_000;
const MAX_RTT_US: u64 = 600_000_000;

/// A remembered path, as in the file and in `plait paths --json`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StoredPath {
    /// The address of this host.
    pub local: IpAddr,
    /// The network of the other end: /24 for IPv4, /48 for IPv6.
    pub destination: String,
    /// Delivery rate of payload towards the destination, in bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Mean rate of payload from the destination, in bits per second: a lower bound of the path's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bps: Option<u64>,
    /// Minimum RTT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u64>,
    /// Smoothed RTT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_us: Option<u64>,
    /// Its variation.
    #[serde(default)]
    pub rttvar_us: u64,
    /// Lost segments per million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ppm: Option<u32>,
    /// Slow start threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssthresh_bytes: Option<u64>,
    /// Time of the last change, in seconds since 1970.
    pub learnt_s: u64,
    /// The command that changed it last.
    pub source: String,
}

/// The contents of a file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StoredPaths {
    /// The paths.
    pub paths: Vec<StoredPath>,
    /// Reasons for the tables that were left out.
    pub refused: Vec<String>,
}

/// A file of remembered paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathFile(PathBuf);

/// Why a file cannot be used.
#[derive(Debug)]
pub enum PathFileError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// It is not a file of remembered paths, for this reason.
    Malformed(String),
}

fn micros(span: Span) -> u64 {
    span.as_micros()
}

impl StoredPath {
    /// Converts an entry that was last changed `entry.age` before `now_s`, by the command `source`.
    #[must_use]
    pub fn of(entry: &PathEntry, now_s: u64, source: &str) -> StoredPath {
        let PathEntry { key, record, age } = entry;
        let bits = |rate: u64| rate.saturating_mul(8);
        StoredPath {
            local: key.own(),
            destination: format!("{}/{}", key.network(), key.bits()),
            rate_bps: record.rate.map(bits),
            received_bps: record.received.map(bits),
            min_rtt_us: record.min_rtt.map(micros),
            srtt_us: record.srtt.map(micros),
            rttvar_us: micros(record.rttvar),
            loss_ppm: record.loss_ppm,
            ssthresh_bytes: record.ssthresh,
            learnt_s: now_s.saturating_sub(age.as_nanos() / 1_000_000_000),
            source: source.to_owned(),
        }
    }

    /// Converts it to an entry; `None` if it is from the future.
    fn entry(&self, now_s: u64) -> Option<PathEntry> {
        let bytes = |bits: u64| bits / 8;
        let record = PathRecord {
            rate: self.rate_bps.map(bytes),
            received: self.received_bps.map(bytes),
            min_rtt: self.min_rtt_us.map(Span::from_micros),
            srtt: self.srtt_us.map(Span::from_micros),
            rttvar: Span::from_micros(self.rttvar_us),
            loss_ppm: self.loss_ppm,
            ssthresh: self.ssthresh_bytes,
        };
        let age = Span::from_secs(now_s.checked_sub(self.learnt_s)?);
        Some(PathEntry { key: self.key().ok()?, record, age })
    }

    fn key(&self) -> Result<PathKey, String> {
        let wrong =
            || format!("destination `{}` is not a /24 or a /48", self.destination.escape_debug());
        let (network, _) = self.destination.split_once('/').ok_or_else(wrong)?;
        let key = PathKey::new(self.local, network.parse().map_err(|_| wrong())?);
        let same = format!("{}/{}", key.network(), key.bits()) == self.destination;
        if same { Ok(key) } else { Err(wrong()) }
    }

    /// Returns true if the destination's network contains `address`.
    #[must_use]
    pub fn leads_to(&self, address: IpAddr) -> bool {
        self.key().is_ok_and(|key| PathKey::new(self.local, address) == key)
    }

    /// Checks the values.
    fn check(&self) -> Result<(), String> {
        self.key()?;
        let high = |value: Option<u64>, most: u64| value.is_some_and(|it| it > most);
        let problem = match self {
            _ if high(self.rate_bps, MAX_RATE_BPS) => "rate_bps is above 10 Tbit/s",
            _ if high(self.received_bps, MAX_RATE_BPS) => "received_bps is above 10 Tbit/s",
            _ if high(self.min_rtt_us, MAX_RTT_US) => "min_rtt_us is above 10 minutes",
            _ if high(self.srtt_us, MAX_RTT_US) => "srtt_us is above 10 minutes",
            _ if self.rttvar_us > MAX_RTT_US => "rttvar_us is above 10 minutes",
            _ if self.loss_ppm.is_some_and(|it| it > 1_000_000) => "loss_ppm is above 1000000",
            _ if !self.source.chars().all(|it| it.is_ascii_lowercase()) => {
                "source has other characters than a to z"
            }
            _ => return Ok(()),
        };
        Err(problem.to_owned())
    }
}

/// Parses a file. A table that is malformed is left out, with the reason.
fn parse(text: &str) -> Result<StoredPaths, String> {
    let line = |error: &toml::de::Error| {
        let line =
            error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        line.map_or_else(
            || error.message().to_owned(),
            |line| format!("line {line}: {}", error.message()),
        )
    };
    if text.trim().is_empty() {
        return Ok(StoredPaths::default());
    }
    let mut table: toml::Table = toml::from_str(text).map_err(|error| line(&error))?;
    match table.remove("version") {
        Some(toml::Value::Integer(VERSION)) => {}
        Some(other) => return Err(format!("version {other}, and this plait reads {VERSION}")),
        None => return Err("it has no `version`".to_owned()),
    }
    let tables = match table.remove("path") {
        None => Vec::new(),
        Some(toml::Value::Array(tables)) => tables,
        Some(_) => return Err("`path` is not a list of tables".to_owned()),
    };
    let mut stored = StoredPaths::default();
    for (index, table) in tables.into_iter().enumerate() {
        let read = table.try_into::<StoredPath>();
        let read = read.map_err(|error| error.message().to_owned());
        match read.and_then(|path| path.check().map(|()| path)) {
            Ok(path) => stored.paths.push(path),
            Err(why) => stored.refused.push(format!("[[path]] number {}: {why}", index + 1)),
        }
    }
    Ok(stored)
}

/// Returns the text of a file.
fn write(paths: &[StoredPath]) -> Result<String, toml::ser::Error> {
    #[derive(Serialize)]
    struct Document<'a> {
        version: i64,
        path: &'a [StoredPath],
    }
    let body = toml::to_string(&Document { version: VERSION, path: paths })?;
    Ok(format!("# The paths that plait remembers; see them: plait paths\n{body}"))
}

/// Returns the stored paths with the entries of a process that `source` names. Of two with the same addresses,
/// the one that was changed last stays. Those older than `lifetime`, and the oldest ones beyond `most`, are
/// dropped.
#[must_use]
pub fn merged(
    stored: Vec<StoredPath>,
    entries: &[PathEntry],
    (now_s, source): (u64, &str),
    (most, lifetime): (usize, Span),
) -> Vec<StoredPath> {
    let mut all = stored;
    for new in entries.iter().map(|entry| StoredPath::of(entry, now_s, source)) {
        let same =
            |old: &&mut StoredPath| (old.local, &old.destination) == (new.local, &new.destination);
        match all.iter_mut().find(same) {
            // An entry that was only read keeps its source. Its age was rounded.
            Some(old) if new.learnt_s <= old.learnt_s.saturating_add(1) => {}
            Some(old) => *old = new,
            None => all.push(new),
        }
    }
    let oldest = now_s.saturating_sub(lifetime.as_nanos() / 1_000_000_000);
    all.retain(|path| (oldest..=now_s).contains(&path.learnt_s));
    all.sort_by_key(|path| Reverse(path.learnt_s));
    all.truncate(most);
    all.sort_by(|a, b| (a.local, &a.destination).cmp(&(b.local, &b.destination)));
    all
}

/// Fails for a device, a pipe or a directory, which must not be replaced.
fn check_regular(present: &fs::Metadata) -> io::Result<()> {
    let problem = || io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
    if present.is_file() { Ok(()) } else { Err(problem()) }
}

impl PathFile {
    /// Returns the file at `path`.
    #[must_use]
    pub fn at(path: PathBuf) -> PathFile {
        PathFile(path)
    }

    /// Returns this user's file: `plait/paths.toml` below `$XDG_STATE_HOME`, or below `~/.local/state`. Returns
    /// `None` if neither is known.
    #[must_use]
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathFile> {
        // The specification of these directories ignores relative paths.
        let set = |name: &str| variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
        let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
        Some(PathFile(state.join("plait/paths.toml")))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the file. A file that does not exist has no paths.
    ///
    /// # Errors
    /// If it cannot be read, or if it is malformed.
    pub fn read(&self) -> Result<StoredPaths, PathFileError> {
        let mut text = String::new();
        let file = match fs::File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(StoredPaths::default()),
            Err(error) => return Err(PathFileError::Unreadable(error)),
        };
        check_regular(&file.metadata().map_err(PathFileError::Unreadable)?)
            .map_err(PathFileError::Unreadable)?;
        match file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text) {
            Ok(_) if text.len() as u64 > MAX_FILE_BYTES => {
                Err(PathFileError::Malformed("it has more than 1 MiB".to_owned()))
            }
            Ok(_) => parse(&text).map_err(PathFileError::Malformed),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                Err(PathFileError::Malformed("it is not UTF-8".to_owned()))
            }
            Err(error) => Err(PathFileError::Unreadable(error)),
        }
    }

    /// Replaces the file at once: readers see the old one or the new one.
    ///
    /// # Errors
    /// If it cannot be written; the old one stays.
    pub fn replace(&self, paths: &[StoredPath]) -> io::Result<()> {
        let text = write(paths).map_err(io::Error::other)?;
        // A symbolic link stays one.
        let target = self.0.canonicalize().unwrap_or_else(|_| self.0.clone());
        if let Ok(present) = fs::metadata(&target) {
            check_regular(&present)?;
        }
        let directory = target.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let temporary = directory.join(hidden);
        let written = (|| {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &target)
        })();
        if written.is_err() {
            // The error of the write is the one that counts.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Renames a malformed file, so that it is not lost. Returns its new path.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        let mut name = self.0.clone().into_os_string();
        name.push(".broken");
        let broken = PathBuf::from(name);
        fs::rename(&self.0, &broken)?;
        Ok(broken)
    }
}

impl StoredPaths {
    /// Returns the entries of all paths, except those from the future.
    #[must_use]
    pub fn entries(&self, now_s: u64) -> Vec<PathEntry> {
        self.paths.iter().filter_map(|path| path.entry(now_s)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;
    const HOUR: Span = Span::from_secs(3_600);

    fn entry(last: u8, age: u64) -> PathEntry {
        let theirs = IpAddr::from([192, 0, 2, 9]);
        let record = PathRecord {
            rate: Some(2_500_000),
            received: None,
            min_rtt: Some(Span::from_micros(20_123)),
            srtt: Some(Span::from_millis(25)),
            rttvar: Span::from_millis(3),
            loss_ppm: Some(1_200),
            ssthresh: Some(90_000),
        };
        let key = PathKey::new(IpAddr::from([10, 0, 0, last]), theirs);
        PathEntry { key, record, age: Span::from_secs(age) }
    }

    fn stored(last: u8, age: u64) -> StoredPath {
        StoredPath::of(&entry(last, age), NOW, "get")
    }

    /// Returns a directory of its own for a test.
    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("plait-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        directory
    }

    #[test]
    fn a_file_gives_back_its_paths() {
        let directory = directory("paths-back");
        let file = PathFile::at(directory.join("a/b/paths.toml"));
        assert_eq!(file.read().unwrap(), StoredPaths::default(), "it does not exist");
        let paths = [stored(7, 0), stored(8, 60)];
        file.replace(&paths).unwrap();
        file.replace(&paths).unwrap();
        let back = file.read().unwrap();
        assert_eq!((&back.paths[..], back.refused.len()), (&paths[..], 0));
        assert_eq!(back.entries(NOW), [entry(7, 0), entry(8, 60)]);
        // No temporary file is left.
        assert_eq!(fs::read_dir(directory.join("a/b")).unwrap().count(), 1);
        assert_eq!(back.entries(NOW - 30), [entry(8, 30)], "the clock was set back");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_path_has_the_addresses_of_its_family() {
        let own = "fd00::7".parse().unwrap();
        let key = PathKey::new(own, "2001:db8:1:2::9".parse().unwrap());
        let path = StoredPath::of(&PathEntry { key, ..entry(7, 0) }, NOW, "get");
        assert_eq!(path.destination, "2001:db8:1::/48");
        assert_eq!(path.check(), Ok(()));
        assert!(path.leads_to("2001:db8:1:ffff::".parse().unwrap()));
        assert!(!path.leads_to("2001:db8:2::".parse().unwrap()));
        assert!(!path.leads_to("192.0.2.1".parse().unwrap()));
        assert!(stored(7, 0).leads_to("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn a_table_that_is_wrong_loses_no_other() {
        let good = write(&[stored(7, 0)]).unwrap();
        for (wrong, why) in [
            ("local = \"10.0.0.8\"", "missing field `destination`"),
            ("local = 5", "invalid type: integer `5`, expected IP address"),
            (
                "local = \"10.0.0.8\"\ndestination = \"192.0.2.1/24\"\nlearnt_s = 1\nsource = \"get\"",
                "destination `192.0.2.1/24` is not a /24 or a /48",
            ),
            (
                "local = \"10.0.0.8\"\ndestination = \"192.0.2.0/24\"\nmin_rtt_us = 600000001\n\
                 learnt_s = 1\nsource = \"get\"",
                "min_rtt_us is above 10 minutes",
            ),
            (
                "local = \"10.0.0.8\"\ndestination = \"192.0.2.0/24\"\nlearnt_s = 1\nsource = \"\\u001b[2J\"",
                "source has other characters than a to z",
            ),
        ] {
            let read = parse(&format!("{good}\n[[path]]\n{wrong}\n")).unwrap();
            assert_eq!(read.paths, [stored(7, 0)]);
            assert_eq!(read.refused, [format!("[[path]] number 2: {why}")]);
        }
    }

    #[test]
    fn a_file_that_is_malformed_is_named_by_its_line() {
        for (text, why) in [
            ("path = []", "it has no `version`"),
            ("version = 2", "version 2, and this plait reads 1"),
            ("version = 1\npath = 3", "`path` is not a list of tables"),
            ("version = 1\n\n[[path]\n", "line 3: "),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.starts_with(why), "{text:?}: {found}");
        }
        let directory = directory("paths-malformed");
        fs::create_dir_all(&directory).unwrap();
        let file = PathFile::at(directory.join("paths.toml"));
        for bytes in [&b"\xff\xfe"[..], b"version = 3", &vec![b'#'; 2 << 20]] {
            fs::write(file.path(), bytes).unwrap();
            assert!(matches!(file.read(), Err(PathFileError::Malformed(_))));
        }
        let aside = file.set_aside().unwrap();
        assert_eq!(fs::read(aside).unwrap().len(), 2 << 20);
        assert_eq!(file.read().unwrap(), StoredPaths::default());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_device_or_a_directory_is_not_replaced() {
        let directory = directory("paths-device");
        fs::create_dir_all(&directory).unwrap();
        let link = directory.join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        for path in [directory.clone(), "/dev/null".into(), link] {
            let file = PathFile::at(path);
            assert!(matches!(file.read(), Err(PathFileError::Unreadable(_))));
            assert!(file.replace(&[stored(7, 0)]).is_err());
        }
        // A link to a file stays a link.
        fs::write(directory.join("file"), "").unwrap();
        let link = directory.join("to-file");
        std::os::unix::fs::symlink("file", &link).unwrap();
        let file = PathFile::at(link.clone());
        file.replace(&[stored(7, 0)]).unwrap();
        assert!(fs::symlink_metadata(link).unwrap().is_symlink());
        assert_eq!(file.read().unwrap().paths.len(), 1);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_path_that_was_changed_last_stays() {
        let merge = |stored, entries: &[PathEntry]| {
            let paths = merged(stored, entries, (NOW, "proxy"), (3, HOUR));
            let named = |path: &StoredPath| {
                let IpAddr::V4(local) = path.local else { unreachable!() };
                (local.octets()[3], NOW - path.learnt_s, path.source.clone())
            };
            paths.iter().map(named).collect::<Vec<_>>()
        };
        let get = |last, age| (last, age, "get".to_owned());
        let proxy = |last, age| (last, age, "proxy".to_owned());
        // 7 was read and not changed, 8 was changed here, and 9 by another process.
        let old = vec![stored(7, 50), stored(8, 50), stored(9, 1)];
        let new = [entry(7, 49), entry(8, 3), entry(9, 40)];
        assert_eq!(merge(old, &new), [get(7, 50), proxy(8, 3), get(9, 1)]);
        // The oldest one goes, and so does one that is too old.
        let old = vec![stored(1, 40), stored(2, 30), stored(3, 3_601)];
        assert_eq!(merge(old, &[entry(4, 5), entry(5, 6)]), [get(2, 30), proxy(4, 5), proxy(5, 6)]);
    }

    #[test]
    fn the_file_of_a_user_is_in_the_directory_for_state() {
        let of = |state: Option<&str>, home: Option<&str>| {
            let variable = |name: &str| match name {
                "XDG_STATE_HOME" => state.map(OsString::from),
                _ => home.map(OsString::from),
            };
            PathFile::of_user(variable).map(|it| it.path().to_owned())
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of(Some("/s"), Some("/h")), path("/s/plait/paths.toml"));
        assert_eq!(of(None, Some("/h")), path("/h/.local/state/plait/paths.toml"));
        assert_eq!(of(Some("relative"), Some("/h")), path("/h/.local/state/plait/paths.toml"));
        assert_eq!(of(Some(""), None), None);
    }
}
