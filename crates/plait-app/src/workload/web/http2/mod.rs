//! HTTP/2: all requests on one connection, answers in turns of frames of 16 KiB, within windows.

mod client;
mod frames;
mod server;

pub(super) use client::Client;
pub(super) use frames::HEAD;
pub(super) use server::Server;
