//! The text form of a workload.

use super::error::{MAX_MESSAGES, WorkloadError};
use super::field::{Files, pace, size, size_bytes, time};
use super::maps::Maps;
use super::video::Video;
use super::web::Web;
use super::{WORKLOADS, Workload};
use crate::name::nearest;
use crate::quantity::shortened;
use std::sync::Arc;

/// Maximum number of bytes of one connection. Segments are counted with [`MAX_SEGMENT`] bytes.
const MAX_BYTES: u128 = 1 << 62;
/// Upper bound of the payload of a segment, in bytes.
const MAX_SEGMENT: u64 = 65_535;
impl Workload {
    /// Reads the text of a workload: `download:512kB`, `upload:15seg`, `bulk:60s`, `burst:30seg`,
    /// `stream:8KiB@35ms,for=10s`.
    ///
    /// A text that names a file is refused, because no file is read.
    ///
    /// # Errors
    /// See [`Workload::parse_with`].
    pub fn parse(text: &str) -> Result<Workload, WorkloadError> {
        let none = std::io::ErrorKind::Unsupported;
        Workload::parse_with(text, &|_| Err(std::io::Error::new(none, "files cannot be read here")))
    }

    /// Reads the text of a workload, and the files that it names with `read`.
    ///
    /// # Errors
    /// Returns an error if the name is unknown, the text does not match the grammar, or a quantity
    /// is invalid or zero. A file that cannot be read or used, and a workload that is too large,
    /// are also errors.
    pub fn parse_with(text: &str, read: Files<'_>) -> Result<Workload, WorkloadError> {
        let trimmed = text.trim();
        let (name, arguments) = trimmed.split_once(':').unwrap_or((trimmed, ""));
        let Some(entry) = WORKLOADS.iter().find(|entry| entry.name == name) else {
            let nearest = nearest(name, WORKLOADS.iter().map(|entry| entry.name));
            return Err(WorkloadError::UnknownName { given: shortened(name), nearest });
        };
        let form = || WorkloadError::Form { given: shortened(trimmed), grammar: entry.grammar };
        if arguments.is_empty() {
            return Err(form());
        }
        let workload = match name {
            "download" => Workload::Download { size: size(arguments)? },
            "upload" => Workload::Upload { size: size(arguments)? },
            "burst" => Workload::Burst { size: size(arguments)? },
            "video" => Workload::Video(Arc::new(Video::parse(arguments, &form, read)?)),
            "blocks" => {
                let (bytes, rest) = arguments.split_once('@').ok_or_else(form)?;
                let (rate, duration) = rest.split_once(",for=").ok_or_else(form)?;
                Workload::Blocks {
                    bytes: size_bytes("SIZE", bytes)?,
                    rate: pace(rate)?,
                    duration: time("DURATION", duration)?,
                }
            }
            "maps" => Workload::Maps(Maps::parse(arguments, &form)?),
            "bulk" => Workload::Bulk { duration: time("DURATION", arguments)? },
            "web" => Workload::Web(Web::parse(arguments, form, read)?),
            _ => {
                let (message, rest) = arguments.split_once('@').ok_or_else(form)?;
                let (interval, duration) = rest.split_once(",for=").ok_or_else(form)?;
                Workload::Stream {
                    size: size(message)?,
                    interval: time("INTERVAL", interval)?,
                    duration: time("DURATION", duration)?,
                }
            }
        };
        if workload.fits() {
            Ok(workload)
        } else {
            Err(WorkloadError::TooLarge { given: shortened(trimmed) })
        }
    }

    /// Returns whether every position of the data fits a data sequence number with room to spare.
    fn fits(&self) -> bool {
        let bytes = match self {
            Workload::Bulk { .. } | Workload::Video(_) | Workload::Maps(_) | Workload::Web(_) => {
                return true;
            }
            Workload::Download { size }
            | Workload::Upload { size }
            | Workload::Burst { size }
            | Workload::Stream { size, .. } => size.bytes(MAX_SEGMENT),
            Workload::Blocks { bytes, .. } => *bytes,
        };
        self.messages() <= MAX_MESSAGES
            && u128::from(bytes) * u128::from(self.messages()) <= MAX_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Size;
    use plait_base::Span;
    use proptest::prelude::*;

    #[test]
    fn every_form_is_read() {
        let bytes = |n| Size::Bytes(n);
        assert_eq!(
            Workload::parse("download:512kB"),
            Ok(Workload::Download { size: bytes(512_000) })
        );
        assert_eq!(
            Workload::parse("upload:15seg"),
            Ok(Workload::Upload { size: Size::Segments(15) })
        );
        assert_eq!(
            Workload::parse("bulk:60s"),
            Ok(Workload::Bulk { duration: Span::from_secs(60) })
        );
        assert_eq!(
            Workload::parse("burst:30seg"),
            Ok(Workload::Burst { size: Size::Segments(30) })
        );
        assert_eq!(
            Workload::parse("stream:8KiB@35ms,for=10s"),
            Ok(Workload::Stream {
                size: bytes(8192),
                interval: Span::from_millis(35),
                duration: Span::from_secs(10),
            })
        );
    }

    #[test]
    fn examples_and_pages_of_the_list_are_right() {
        for entry in WORKLOADS {
            assert!(!entry.examples.is_empty());
            assert!(entry.page.len() > entry.summary.len());
            for example in entry.examples {
                let workload = Workload::parse(example).unwrap();
                assert_eq!(workload.name(), entry.name);
                assert!(crate::MEASURES.iter().any(|measure| {
                    measure.name == workload.primary() && measure.applies_to(&workload)
                }));
            }
        }
    }

    #[test]
    fn errors_name_the_field_and_the_form() {
        let message = |text: &str| Workload::parse(text).unwrap_err().to_string();
        assert_eq!(
            message("downlaod:1MB"),
            "unknown workload `downlaod`, did you mean `download`? \
             known: download, upload, bulk, burst, stream, blocks, video, maps, web"
        );
        assert_eq!(message("bulk"), "workload `bulk` does not have the form `bulk:DURATION`");
        assert_eq!(
            message("stream:8KiB@35ms"),
            "workload `stream:8KiB@35ms` does not have the form `stream:SIZE@INTERVAL,for=DURATION`"
        );
        assert!(message("download:512").starts_with("SIZE: `512` has no unit"));
        assert!(message("stream:1kB@5,for=1s").starts_with("INTERVAL: `5` has no unit"));
        assert_eq!(message("burst:0seg"), "SIZE must be above zero");
        assert_eq!(message("stream:1kB@0ms,for=1s"), "INTERVAL must be above zero");
        assert!(message("stream:1kB@1ns,for=1min").contains("too large"));
        assert!(message("stream:4000000000seg@1ms,for=1000s").contains("too large"));
        assert!(message("download:18446744073709551614B").contains("too large"));
    }

    #[test]
    fn messages_are_due_before_the_duration_is_over() {
        let count = |text| Workload::parse(text).unwrap().messages();
        assert_eq!(count("stream:1kB@100ms,for=1s"), 10);
        assert_eq!(count("stream:1kB@100ms,for=1001ms"), 11);
        assert_eq!(count("stream:1kB@100ms,for=1ms"), 1);
        assert_eq!(count("bulk:1s"), 0);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(
            which in 0..5, bytes in 1u64..1 << 40, segments in 1u32..1 << 20, in_segments: bool,
            interval in 1_000_000u64..1 << 40, duration in 1u64..1 << 40,
        ) {
            let size = if in_segments { Size::Segments(segments) } else { Size::Bytes(bytes) };
            let (interval, duration) = (Span::from_nanos(interval), Span::from_nanos(duration));
            let workload = match which {
                0 => Workload::Download { size },
                1 => Workload::Upload { size },
                2 => Workload::Bulk { duration },
                3 => Workload::Burst { size },
                _ => Workload::Stream { size, interval, duration },
            };
            if workload.fits() {
                prop_assert_eq!(Workload::parse(&workload.to_string()), Ok(workload));
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,60}", near in "(download|bulk|stream)?[:@,=0-9a-zA-Z.]{0,30}") {
            for text in [&text, &near] {
                if let Err(error) = Workload::parse(text) {
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
