//! The tests of the laboratory, as one program: each program links the whole tree below it.

mod arithmetic;
mod buffers;
mod claims;
mod common;
mod corners;
mod digests;
mod explain;
mod fairness;
mod impairments;
mod outage;
mod path_memory;
mod pmtu_black_hole;
mod price;
mod recorded;
mod server;
mod ssthresh_cache;
mod swarm;
mod tables;
mod textbook;
mod verdicts;
