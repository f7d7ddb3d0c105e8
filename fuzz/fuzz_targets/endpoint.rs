//! An endpoint that packets arrive at: no input may panic, break an invariant or make it send without end.
//! An input is a conversation, as `crates/plait-core/tests/fuzz/target.rs` splits it.
#![no_main]

#[path = "../../crates/plait-core/tests/common/mod.rs"]
mod common;
#[path = "../../crates/plait-core/tests/fuzz/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(init: plant(), |whole: &[u8]| {
    if let Err(broken) = target::play_whole(whole) {
        panic!("{broken}");
    }
});

/// With the feature `planted-bugs` the endpoint has a bug that has to be found.
fn plant() {
    #[cfg(feature = "planted-bugs")]
    plait_core::planted::plant(Some(plait_core::planted::Planted::WindowMovesLeft));
}
