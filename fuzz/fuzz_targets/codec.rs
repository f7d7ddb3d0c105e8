//! The parser of packets, held to its promises by `crates/plait-wire/tests/fuzz/check.rs`.
#![no_main]

#[path = "../../crates/plait-wire/tests/fuzz/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|packet: &[u8]| {
    if let Err(broken) = check::check(packet, &mut check::Words::default()) {
        panic!("{broken}");
    }
});
