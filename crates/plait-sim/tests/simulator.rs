//! The tests of the simulator, as one program: each program links the whole crate.

mod addresses;
mod bbr;
mod bufferbloat;
mod burst_table;
mod claims_csws;
mod claims_ton;
mod common;
mod hystart;
mod network;
mod outage;
mod pacing;
mod path_memory;
mod priority;
mod session;
mod shapes;
mod spurious;
mod stall;
mod stms;
mod stripping;
mod textbook;
mod timelines;
mod tsq;
mod web;
mod wraps;
