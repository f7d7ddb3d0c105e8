//! One file for each controller; `registry` lists them.

pub mod balia;
pub mod cubic;
pub(crate) mod fixed;
pub mod lia;
pub mod olia;
pub mod reno;
pub mod wvegas;
