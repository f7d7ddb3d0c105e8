//! Reading of input files, with limits on the size of a file and on the length of its lists.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::marker::PhantomData;
use std::path::Path;

/// Largest data file that is read: a trace, a page or a manifest (64 MiB).
pub const MOST_DATA_BYTES: u64 = 64 << 20;
/// Largest file of settings that is read: a scenario, an experiment, rules or a case (1 MiB).
pub const MOST_SETTINGS_BYTES: u64 = 1 << 20;

/// Reads a data file of at most [`MOST_DATA_BYTES`].
///
/// # Errors
/// See [`text_within`].
pub fn text(file: impl AsRef<Path>) -> io::Result<String> {
    text_within(file, MOST_DATA_BYTES)
}

/// Reads a data file by its name, relative to the current directory. Pass this function to parsers
/// that need a reader of files.
///
/// # Errors
/// See [`text_within`].
pub fn named(file: &str) -> io::Result<String> {
    text(file)
}

/// Reads a file of settings of at most [`MOST_SETTINGS_BYTES`].
///
/// # Errors
/// See [`text_within`].
pub fn settings(file: impl AsRef<Path>) -> io::Result<String> {
    text_within(file, MOST_SETTINGS_BYTES)
}

/// Reads a file of at most `most` bytes. The file may be a pipe or a device, whose size is unknown
/// before it is read.
///
/// # Errors
/// Returns an error if the file cannot be read or is not UTF-8 ([`ErrorKind::InvalidData`]). A file
/// larger than `most` bytes is [`ErrorKind::FileTooLarge`]; the message names the limit.
pub fn text_within(file: impl AsRef<Path>, most: u64) -> io::Result<String> {
    let file = std::fs::File::open(file)?;
    // Refuse a regular file that is too large before reading any of it.
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.len() > most {
        return Err(too_large(most));
    }
    let mut text = String::new();
    if metadata.is_file() {
        text.reserve_exact(usize::try_from(metadata.len()).unwrap_or(0));
    }
    read_within(file, most, &mut text)?;
    Ok(text)
}

/// Appends at most `most` bytes of `source` to `text`.
///
/// # Errors
/// See [`text_within`].
pub fn read_within(source: impl Read, most: u64, text: &mut String) -> io::Result<()> {
    let before = text.len();
    source.take(most.saturating_add(1)).read_to_string(text)?;
    if (text.len() - before) as u64 > most { Err(too_large(most)) } else { Ok(()) }
}

/// Returns the error for an input longer than `most` bytes.
#[must_use]
pub fn too_large(most: u64) -> io::Error {
    let most = crate::quantity::Binary(most);
    io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {most}, the limit"))
}

/// A list that deserializes with an error as soon as it has more than `MOST` items.
#[derive(Debug)]
pub(crate) struct Bounded<T, const MOST: usize>(pub(crate) Vec<T>);

impl<T, const MOST: usize> Default for Bounded<T, MOST> {
    fn default() -> Self {
        Bounded(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Bounded<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T, const MOST: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    if items.len() == MOST {
                        return Err(A::Error::custom(format!("a list of more than {MOST} items")));
                    }
                    items.push(item);
                }
                Ok(items)
            }
        }

        deserializer.deserialize_seq(Items::<T, MOST>(PhantomData)).map(Bounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_refused_at_the_limit() {
        for (most, said) in [(MOST_DATA_BYTES, "64 MiB"), (MOST_SETTINGS_BYTES, "1 MiB")] {
            let error = text_within("/dev/zero", most).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileTooLarge);
            assert_eq!(error.to_string(), format!("it is larger than {said}, the limit"));
        }
    }

    #[test]
    fn the_limit_itself_is_read() {
        let mut text = String::from("ab");
        read_within(&b"cdef"[..], 4, &mut text).unwrap();
        assert_eq!(text, "abcdef");
        let error = read_within(&b"cdefg"[..], 4, &mut text).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 4 bytes, the limit");
        let error = read_within(&b"\xff"[..], 4, &mut text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_list_ends_at_its_limit() {
        let list: Bounded<u8, 2> = serde_json::from_str("[1, 2]").unwrap();
        assert_eq!(list.0, [1, 2]);
        let error = serde_json::from_str::<Bounded<u8, 2>>("[1, 2, 3, x").unwrap_err();
        assert!(error.to_string().starts_with("a list of more than 2 items at line 1"), "{error}");
    }
}
