//! The decorators, one file each, listed here: each wraps any scheduler (`minrtt+rp`).

mod bm;
mod copy;
mod rp;

use crate::Decorator;

/// Every decorator.
pub static DECORATORS: &[Decorator] = &[rp::ENTRY, bm::ENTRY, copy::ENTRY];
