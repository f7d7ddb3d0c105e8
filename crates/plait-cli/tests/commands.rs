//! The tests of the commands, as one program: each program links every crate below.

mod acceptance;
mod browser;
mod captured;
mod captured_page;
mod captures;
mod cli;
mod decide;
mod decide_cc;
mod decoder;
#[cfg(target_os = "linux")]
mod emulated;
mod events;
mod explain;
mod links;
#[cfg(target_os = "linux")]
mod packages;
#[cfg(target_os = "linux")]
mod paths;
mod promise;
mod readme;
mod reproduce;
mod run_files;
mod schema;
mod swarm;
mod told;
mod web;
