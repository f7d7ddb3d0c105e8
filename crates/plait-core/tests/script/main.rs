//! Scripts of segments in virtual time: one real endpoint, whose peer the test plays. Each scenario
//! names its requirements (`R<n>` in `docs/requirements.toml`).
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value)]

mod audit;
mod harness;
mod segment;

mod addresses;
mod admission;
mod asked;
mod checksums;
mod closing;
mod cookies;
mod copies;
mod early_data;
mod fallback;
mod fastclose;
mod found;
mod handshake;
mod joins;
mod keepalive;
mod kernel;
mod lent;
mod mp_capable_blackhole;
mod pacing;
mod plans;
mod pmtu_black_hole;
mod prices;
mod receiving;
mod recovery;
mod segment_acceptability;
mod spurious_recovery;
mod user_timeout;
mod windows;
mod wrap;
