//! Requests and answers over one persistent connection: requests go up as bytes, answers of the
//! lengths that they ask for come down in their order.

mod request;
mod schedule;
mod server;

pub(crate) use request::Requests;
pub(crate) use schedule::{Asking, Due};
pub(crate) use server::Server;
