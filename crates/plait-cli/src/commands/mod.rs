//! The commands: one module each, with its arguments and its work.

pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod decide;
pub(crate) mod doctor;
pub(crate) mod endpoint;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod get;
mod limits;
pub(crate) mod list;
mod making;
pub(crate) mod man;
pub(crate) mod proxy;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod scoreboard;
pub(crate) mod serve;
pub(crate) mod swarm;
pub(crate) mod trace;
