//! The decorators, one file each. A decorator wraps any scheduler (`minrtt+rp`).

mod bm;
mod copy;
mod price;
mod rp;

use crate::Decorator;

pub(crate) use price::ENTRY as PRICE;
pub use price::Goal;

/// All decorators.
pub static DECORATORS: &[Decorator] = &[rp::ENTRY, bm::ENTRY, copy::ENTRY, price::ENTRY];
