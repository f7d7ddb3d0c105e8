//! The decorators, one file each. A decorator wraps any scheduler (`minrtt+rp`).

mod bm;
mod copy;
mod rp;

use crate::Decorator;

/// All decorators.
pub static DECORATORS: &[Decorator] = &[rp::ENTRY, bm::ENTRY, copy::ENTRY];
