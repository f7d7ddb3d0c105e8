//! Requests and answers over one persistent connection. The client sends requests as bytes; the
//! server answers them in order, with the requested lengths.

mod request;
mod schedule;
mod server;

pub(crate) use request::Requests;
pub(crate) use schedule::{Asking, Due};
pub(crate) use server::Server;
