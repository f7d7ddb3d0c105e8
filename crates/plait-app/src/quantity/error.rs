//! Errors of quantities.

use super::QuantityKind;
use core::fmt;
use plait_base::Rate;

/// The problem of a quantity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The text is empty.
    Empty,
    /// The text does not start with a number.
    NoNumber,
    /// The number is below zero.
    Negative,
    /// The number has no unit.
    NoUnit,
    /// The unit is unknown for this kind of quantity.
    UnknownUnit {
        /// The unit as given, shortened.
        unit: String,
        /// The closest known unit.
        nearest: Option<&'static str>,
    },
    /// The unit of a rate counts bytes (`MB/s`), or may count bytes (`M`).
    BitsOrBytes {
        /// The unit as given, shortened.
        unit: String,
        /// Whether the unit can only mean bytes.
        bytes: bool,
        /// The rates to write instead: if bits are meant, and if bytes are meant.
        write: [Rate; 2],
    },
    /// The number is finer than the smallest unit.
    TooFine,
    /// The number is too large.
    TooLarge,
}

/// The error of a quantity: the text, the expected kind, and the problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuantityError {
    /// The text, shortened to 40 characters.
    pub given: String,
    /// The expected kind.
    pub kind: QuantityKind,
    /// The problem.
    pub problem: Problem,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (given, noun, example) = (&self.given, self.kind.noun(), self.kind.example());
        match &self.problem {
            Problem::Empty => return write!(f, "{noun} is missing, such as `{example}`"),
            Problem::NoNumber => {
                return write!(f, "`{given}` is not {noun}: expected one such as `{example}`");
            }
            Problem::Negative => {
                return write!(f, "`{given}` is below zero: expected {noun} such as `{example}`");
            }
            Problem::BitsOrBytes { bytes: true, write: [bits, bytes], .. } => {
                return write!(
                    f,
                    "`{given}` counts bytes: write `{bytes}`, or `{bits}` if bits are meant"
                );
            }
            Problem::BitsOrBytes { unit, write: [bits, bytes], .. } => {
                return write!(
                    f,
                    "`{given}`: the unit `{unit}` may mean bits or bytes: write `{bits}` or `{bytes}`"
                );
            }
            Problem::TooFine => {
                return write!(f, "`{given}` is finer than {}", smallest(self.kind));
            }
            Problem::TooLarge => return write!(f, "`{given}` is too large for {noun}"),
            Problem::NoUnit => write!(f, "`{given}` has no unit: {noun} needs one of ")?,
            Problem::UnknownUnit { unit, nearest } => {
                write!(f, "`{given}`: unknown unit `{unit}`")?;
                match nearest {
                    Some(nearest) => write!(f, ", did you mean `{nearest}`?")?,
                    None => f.write_str(";")?,
                }
                write!(f, " {noun} takes ")?;
            }
        }
        for (position, unit) in self.kind.units().enumerate() {
            write!(f, "{}{unit}", if position == 0 { "" } else { ", " })?;
        }
        if self.kind.takes_infinity() { f.write_str(" (or `inf`)") } else { Ok(()) }
    }
}

impl core::error::Error for QuantityError {}

const fn smallest(kind: QuantityKind) -> &'static str {
    match kind {
        QuantityKind::Size | QuantityKind::Bytes => "1 byte",
        QuantityKind::Time => "1 ns",
        QuantityKind::Rate => "1 bit/s",
        QuantityKind::Percent => "one part in a billion",
        QuantityKind::Packets => "1 packet",
        QuantityKind::Segments => "1 segment",
        QuantityKind::Limit => "1 ns, 1 byte or 1 packet",
    }
}
