//! Reads a clip from a size list, the JSON format of player simulators (Sabre, dash.js).

use super::clip::{Clip, MOST_BYTES, MOST_CHUNKS, MOST_RUNGS, Unfit};
use super::source::FileError;
use crate::file::Bounded;
use crate::quantity::shortened;
use plait_base::{Rate, Span};
use serde::Deserialize;

/// `{"segment_duration_ms": 3000, "bitrates_kbps": [230, 331], "segment_sizes_bits": [[..],
/// [..]]}`:
/// `segment_sizes_bits` has a row for each chunk, with one number for each bit rate.
#[derive(Deserialize, Debug)]
#[serde(expecting = "an object")]
struct List {
    segment_duration_ms: f64,
    bitrates_kbps: Bounded<f64, MOST_RUNGS>,
    segment_sizes_bits: Bounded<Bounded<f64, MOST_RUNGS>, MOST_CHUNKS>,
}

impl List {
    /// Returns the size of a chunk in the encoding `rung`, in bytes.
    fn size(&self, chunk: usize, rung: usize) -> Result<u64, String> {
        let (row, rates) = (&self.segment_sizes_bits.0[chunk].0, self.bitrates_kbps.0.len());
        let Some(bits) = row.get(rung).filter(|_| row.len() == rates) else {
            let sizes = row.len();
            return Err(format!(
                "segment_sizes_bits[{chunk}] has {sizes} sizes for {rates} bit rates"
            ));
        };
        whole((bits / 8.0).ceil()).filter(|bytes| *bytes <= MOST_BYTES).ok_or_else(|| {
            let bits = shortened(&bits.to_string());
            format!("segment_sizes_bits[{chunk}][{rung}] is {bits} bits; 1 to 2^43 are possible")
        })
    }
}

const FORM: &str = "an object with segment_duration_ms, bitrates_kbps and segment_sizes_bits";

/// Reads the list called `file`.
///
/// # Errors
/// Returns an error if the text does not have this form, or if its rows do not match its bit rates.
/// The error has the place.
pub(super) fn read(file: &str, text: &str) -> Result<Clip, FileError> {
    let list: List = serde_json::from_str(text).map_err(|error| {
        let (row, column) = (error.line() as u32, error.column() as u32);
        let text = error.to_string();
        let problem = text.split(" at line ").next().unwrap_or_default();
        FileError::at(file, row, column, problem, &format!("a size list is {FORM}"))
    })?;
    let wrong = |problem: &str| {
        let remedy = "give each chunk one size above zero for each bit rate";
        Err(FileError::of(file, problem, remedy))
    };
    let Some(lasts) = whole(list.segment_duration_ms * 1e6).map(Span::from_nanos) else {
        return wrong("segment_duration_ms is not a time above zero");
    };
    let mut encodings = Vec::new();
    for (rung, kbps) in list.bitrates_kbps.0.iter().enumerate() {
        let Some(rate) = whole(kbps * 1e3).map(Rate::from_bps) else {
            return wrong(&format!("bitrates_kbps[{rung}] is not a rate above zero"));
        };
        let sizes = (0..list.segment_sizes_bits.0.len()).map(|chunk| list.size(chunk, rung));
        let sizes = match sizes.collect::<Result<Vec<u64>, String>>() {
            Ok(sizes) => sizes,
            Err(problem) => return wrong(&problem),
        };
        encodings.push((rate, sizes));
    }
    let lasts = vec![lasts; list.segment_sizes_bits.0.len()];
    Clip::new(lasts, encodings).or_else(|Unfit(problem)| wrong(&problem))
}

/// Returns the integer part of a number from 1 up to 1e18.
fn whole(value: f64) -> Option<u64> {
    (1.0..1e18).contains(&value).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{ "segment_duration_ms": 3000, "bitrates_kbps": [400, 100],
        "segment_sizes_bits": [[1200000, 300001], [1100000, 290000]] }"#;

    #[test]
    fn a_list_is_read_lowest_rate_first() {
        let clip = read("a.json", GOOD).unwrap();
        assert_eq!((clip.chunks(), clip.length()), (2, Span::from_secs(6)));
        let rates: Vec<u64> = clip.rungs().iter().map(|rung| rung.rate.as_bps()).collect();
        assert_eq!(rates, [100_000, 400_000]);
        assert_eq!([clip.rungs()[0].size(0), clip.rungs()[1].size(1)], [37_501, 137_500]);
        assert_eq!(clip.rungs()[0].size(2), 0);
    }

    #[test]
    fn errors_say_where_and_what_would_help() {
        let message = |text: &str| read("a.json", text).unwrap_err().to_string();
        assert_eq!(
            message("{ \"segment_duration_ms\": 3000,\n \"bitrates_kbps\": 1 }"),
            "a.json:2:19: invalid type: integer `1`, expected a sequence; a size list is an object \
             with segment_duration_ms, bitrates_kbps and segment_sizes_bits"
        );
        let short = GOOD.replace("[1100000, 290000]", "[1]");
        assert!(message(&short).starts_with(
            "a.json: segment_sizes_bits[1] has 1 sizes for 2 bit rates; give each chunk"
        ));
        for size in ["0", "-1", "1000000000000000000000000000000", "8796093022209"] {
            assert_eq!(
                message(&GOOD.replace("290000", size)),
                format!(
                    "a.json: segment_sizes_bits[1][1] is {} bits; 1 to 2^43 are possible; give \
                     each chunk one size above zero for each bit rate",
                    size.parse::<f64>().unwrap()
                )
            );
        }
        assert!(read("a.json", &GOOD.replace("290000", "8796093022208")).is_ok());
        assert!(
            message("5").starts_with("a.json:1:1: invalid type: integer `5`, expected an object;")
        );
        assert!(
            message(&GOOD.replace("3000,", "-1,")).contains("segment_duration_ms is not a time")
        );
        assert!(
            message(&GOOD.replace("[400, 100]", "[]")).contains("2 sizes for 0")
                || message(&GOOD.replace("[400, 100]", "[]")).contains("no encoding")
        );
    }

    proptest! {
        #[test]
        fn a_mutated_list_is_read_or_refused(at in 0..GOOD.len(), with in ".{0,4}", cut in 0..9usize) {
            let end = (at + cut).min(GOOD.len());
            let text = format!("{}{with}{}", &GOOD[..at], &GOOD[end..]);
            if let Err(error) = read("a.json", &text) {
                prop_assert!(error.to_string().starts_with("a.json:"));
            }
        }
    }
}
