//! HTTP/2: all requests on one connection. Responses are interleaved in frames of 16 KiB, within
//! the flow-control windows.

mod client;
mod frames;
mod server;

pub(super) use client::Client;
pub(super) use frames::HEAD;
pub(super) use server::Server;
