//! The live tests, as one program: each program links every crate below. The name of a test begins with its file,
//! so that `cargo test -p plait-live --test kernels rough/` runs the tests of one file.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, reason = "each test file uses its own part")]

mod captured;
mod live;
mod net;
mod rough;
mod superpackets;
mod transfers;

fn main() {
    net::stamp::stamp();
    let files = [
        ("captured", captured::cases()),
        ("live", live::cases()),
        ("rough", rough::cases()),
        ("superpackets", superpackets::cases()),
        ("transfers", transfers::cases()),
    ];
    let conclusion = net::outcome(files.into_iter().flat_map(net::trials).collect());
    transfers::print_compared();
    conclusion.exit();
}
