//! The type of a key, and what its entries share.

use crate::error::ScenarioError;
use crate::scenario::path::Path;
use crate::scenario::path_parse::Reader;
use crate::scenario::placed_text::PlacedText;

pub(super) type Result<T> = core::result::Result<T, ScenarioError>;

/// A key of a path, such as `rtt`.
#[derive(Clone, Copy, Debug)]
pub struct PathKey {
    /// Name.
    pub name: &'static str,
    /// Form of its value, such as `TIME`; empty if it needs no value.
    pub form: &'static str,
    /// An example value.
    pub example: &'static str,
    /// Its effect: lines of at most 53 characters.
    pub help: &'static str,
    /// Its source: a standard, paper or kernel file; empty for the laboratory's own keys.
    pub clause: &'static str,
    /// Whether shared links have it, too.
    pub of_links: bool,
    /// Whether it may be given more than once.
    pub repeats: bool,
    /// Whether its value may contain a span of time, `1s..3s`.
    pub spans: bool,
    /// Keys that a sweep removes when it sets this one, because this one excludes or replaces them.
    pub(crate) displaces: &'static [&'static str],
    pub(super) field: Field,
}

/// Accessors of a key in a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Returns the texts that turn the second path into the first. The second is a profile, or
    /// blank.
    pub(super) get: fn(&Path, &Path) -> Vec<String>,
    /// Reads a text into the path. The reader gives the files that it names.
    pub(super) set: fn(&mut Path, &PlacedText, Reader<'_>) -> Result<()>,
}

/// The key is a field of the path. `$read` reads it and `$text` writes it.
macro_rules! kept {
    ($read:expr, $text:expr, $($at:ident).+) => {
        Field {
            get: |path, base| match path.$($at).+ == base.$($at).+ {
                true => Vec::new(),
                false => vec![$text(&path.$($at).+)],
            },
            set: |path, given, _| {
                path.$($at).+ = $read(given)?;
                Ok(())
            },
        }
    };
}

/// As `kept`, for a part of both ways of the field `$both`. A path has the same value each way.
macro_rules! kept_each_way {
    ($read:expr, $text:expr, $both:ident, $($at:ident).+) => {
        Field {
            get: |path, base| match path.$both.down.$($at).+ == base.$both.down.$($at).+ {
                true => Vec::new(),
                false => vec![$text(&path.$both.down.$($at).+)],
            },
            set: |path, given, _| {
                let value = $read(given)?;
                path.$both.down.$($at).+ = value;
                path.$both.up.$($at).+ = value;
                Ok(())
            },
        }
    };
}

/// As `kept`, for a field that may be `None`.
macro_rules! may_keep {
    ($read:expr, $text:expr, $($at:ident).+) => {
        Field {
            get: |path, base| match path.$($at).+ == base.$($at).+ {
                true => Vec::new(),
                false => path.$($at).+.iter().map($text).collect(),
            },
            set: |path, given, _| {
                path.$($at).+ = Some($read(given)?);
                Ok(())
            },
        }
    };
}

pub(super) use {kept, kept_each_way, may_keep};

/// The values that an entry leaves out: shared links have it too, and it is given once, without
/// spans.
pub(super) const BLANK: PathKey = PathKey {
    name: "",
    form: "",
    example: "",
    help: "",
    clause: "",
    of_links: true,
    repeats: false,
    spans: false,
    displaces: &[],
    field: Field { get: |_, _| Vec::new(), set: |_, _, _| Ok(()) },
};

impl PathKey {
    /// Returns true if it needs no value: alone it means `on`.
    #[must_use]
    pub const fn is_switch(&self) -> bool {
        self.form.is_empty()
    }

    /// Returns the texts that turn `base` into this path.
    pub(in crate::scenario) fn texts(&self, path: &Path, base: &Path) -> Vec<String> {
        (self.field.get)(path, base)
    }

    /// Reads a text of the key into the path.
    pub(in crate::scenario) fn read(
        &self,
        path: &mut Path,
        given: &PlacedText,
        read: Reader<'_>,
    ) -> Result<()> {
        (self.field.set)(path, given, read)
    }
}
