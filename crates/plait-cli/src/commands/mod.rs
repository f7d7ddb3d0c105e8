//! The commands: one module each, with its arguments and its work.

pub(crate) mod advise;
mod cache;
mod cluster;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod decide;
pub(crate) mod experiment;
pub(crate) mod explain;
mod explain_capture;
pub(crate) mod list;
#[cfg(live)]
pub(crate) mod live;
pub(crate) mod making;
pub(crate) mod man;
pub(crate) mod measure;
pub(crate) mod regress;
mod replay;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod scoreboard;
pub(crate) mod swarm;
pub(crate) mod trace;
