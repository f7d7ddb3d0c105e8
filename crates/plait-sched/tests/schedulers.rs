//! The tests of the schedulers, as one program: each program links the whole crate.

mod ahead;
mod burst_table;
mod claims;
mod claims_csws;
mod claims_ecf;
mod claims_stms;
mod claims_ton;
mod copy;
mod daps;
mod linux;
mod model;
mod otias;
mod price;
mod references;
mod rules;
mod slot;
mod slot_stalls;
mod sttf;
