//! A fuzzer that knows the structure of a packet. It splits the packets of the corpus
//! (`fuzz/corpus/codec`), then changes, splices and cuts options and headers. It usually corrects lengths
//! and checksums, and sometimes quotes a packet in an ICMP error. `check.rs` checks the codec.
//!
//! `PLAIT_FUZZ_SECONDS=600 cargo test --release -p plait-wire --test fuzz` runs for that time. Without the
//! variable, the number of rounds does not depend on the machine. A finding is printed in hexadecimal.
//! `cargo +nightly fuzz run codec` runs the same checks with coverage guidance.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod check;
mod mutate;

use check::{Words, check};
use mutate::Mutator;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Names of the cases that occurred, with counts.
type Met = BTreeMap<String, u64>;

/// Bytes that break a guarantee, and the guarantee.
struct Finding {
    #[cfg_attr(feature = "planted-bugs", allow(dead_code, reason = "the bug is known"))]
    packet: Vec<u8>,
    broken: String,
    round: u64,
}

/// The packets of the corpus, sorted by file name.
fn corpus() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/codec");
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "bin"));
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Checks one packet. A panic counts as a broken guarantee.
fn examine(packet: &[u8], words: &mut Words, met: &mut Met) -> Result<(), String> {
    words.clear();
    let outcome = catch_unwind(AssertUnwindSafe(|| check(packet, words)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", text.unwrap_or("without words")))
    })?;
    for word in words.iter() {
        match met.get_mut(word) {
            Some(times) => *times += 1,
            None => _ = met.insert(word.to_owned(), 1),
        }
    }
    Ok(())
}

/// Runs rounds until a guarantee is broken or `go_on` returns false.
fn fuzz(seed: u64, met: &mut Met, go_on: impl Fn(u64) -> bool) -> Result<u64, Finding> {
    let mut mutator = Mutator::new(seed, &corpus());
    let (mut words, mut round) = (Words::default(), 0);
    while go_on(round) {
        let packet = mutator.next();
        if let Err(broken) = examine(packet, &mut words, met) {
            return Err(Finding { packet: packet.to_vec(), broken, round });
        }
        round += 1;
    }
    Ok(round)
}

#[cfg(not(feature = "planted-bugs"))]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// F18: every packet of the corpus parses, and no option is skipped.
#[cfg(not(feature = "planted-bugs"))]
#[test]
fn the_corpus_is_sound() {
    let corpus = corpus();
    assert!(corpus.len() >= 30, "{}", corpus.len());
    for packet in corpus {
        let mut met = Met::new();
        examine(&packet, &mut Words::default(), &mut met).unwrap();
        let parsed = plait_wire::codec::parse(&packet, plait_wire::codec::Verify::Checksum);
        assert!(parsed.is_ok(), "{parsed:?}, {packet:02x?}");
        assert!(!met.keys().any(|word| word.starts_with("skipped")), "{met:?}, {packet:02x?}");
    }
}

/// R1, R3, R79, F18: no bytes break a guarantee. Every shape of every option, every reason to skip an
/// option and every error occurred.
#[cfg(not(feature = "planted-bugs"))]
#[test]
fn no_bytes_break_the_codec() {
    let seconds = number("PLAIT_FUZZ_SECONDS");
    #[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "asked for")]
    let started = std::time::Instant::now();
    let go_on = |round: u64| match seconds {
        Some(seconds) => !round.is_multiple_of(1_000) || started.elapsed().as_secs() < seconds,
        None => round < 28_000_000,
    };
    let mut met = Met::new();
    let outcome = fuzz(number("PLAIT_SEED").unwrap_or(1), &mut met, go_on);
    let rounds = outcome.unwrap_or_else(|Finding { packet, broken, round }| {
        let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{broken}\n  round {round}\n  {hex}");
    });
    println!("{rounds} rounds");
    met.iter().for_each(|(word, times)| println!("{times:>10}  {word}"));
    let missing: Vec<&&str> = EXPECTED.iter().filter(|word| !met.contains_key(**word)).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}

/// All cases that the parser distinguishes.
#[cfg(not(feature = "planted-bugs"))]
const EXPECTED: [&str; 73] = [
    "MSS",
    "window scale",
    "SACK permitted",
    "early joins",
    "timestamps",
    "SACK 1",
    "SACK 2",
    "SACK 3",
    "SACK 4",
    "DSS 4",
    "DSS 8",
    "DSS 12",
    "DSS 14",
    "DSS 16",
    "DSS 18",
    "DSS 20",
    "DSS 22",
    "DSS 24",
    "DSS 26",
    "DSS 28",
    "DATA_FIN",
    "infinite mapping",
    "MP_CAPABLE 4",
    "MP_CAPABLE 12",
    "MP_CAPABLE 20",
    "MP_CAPABLE 22",
    "MP_CAPABLE 24",
    "MP_JOIN 12",
    "MP_JOIN 16",
    "MP_JOIN 24",
    "ADD_ADDR v4 8",
    "ADD_ADDR v4 10",
    "ADD_ADDR v4 16",
    "ADD_ADDR v4 18",
    "ADD_ADDR v6 20",
    "ADD_ADDR v6 22",
    "ADD_ADDR v6 28",
    "ADD_ADDR v6 30",
    "REMOVE_ADDR",
    "MP_PRIO",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_TCPRST Unspecified",
    "MP_TCPRST Mptcp",
    "MP_TCPRST Resources",
    "MP_TCPRST Prohibited",
    "MP_TCPRST TooMuchOutstanding",
    "MP_TCPRST Performance",
    "MP_TCPRST Middlebox",
    "skipped: Kind",
    "skipped: Broken",
    "skipped: Length",
    "skipped: Subtype",
    "skipped: Version",
    "skipped: Flags",
    "skipped: Place",
    "skipped: Twice",
    "Short(Ipv4Header",
    "Short(Ipv6Header",
    "Short(Extension",
    "Short(TcpHeader",
    "Version",
    "Length(Ipv4Header",
    "Length(TotalLength",
    "Length(PayloadLength",
    "Length(Extension",
    "Length(DataOffset",
    "Checksum(Ipv4Header",
    "Fragment",
    "Protocol",
    "Extension",
    "too big v4",
    "too big v6",
];

/// Tests the fuzzer: it finds each bug that can be planted in the codec.
#[cfg(feature = "planted-bugs")]
#[test]
fn every_planted_bug_is_found() {
    use plait_wire::planted::{IN_PLACE, Planted, plant};
    const {
        assert!(IN_PLACE, "build it in the tree with the patch: `tests/planted cargo test ...`");
    };
    for &bug in Planted::ALL {
        plant(Some(bug));
        let found = fuzz(1, &mut Met::new(), |round| round < 400_000);
        plant(None);
        match found {
            Err(Finding { broken, round, .. }) => println!("{bug:?}: round {round}: {broken}"),
            Ok(rounds) => panic!("{bug:?} was not found in {rounds} rounds"),
        }
    }
}
