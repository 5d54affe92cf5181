//! The formulas against each other, and the page that lists them.

mod coverage;
mod mva;
mod tables;
mod theory;
