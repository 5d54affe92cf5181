//! Other load generators, as `longtail calibrate` and `--with` run them: who they are (`generator`), what one can be
//! asked for (`order`, `abilities`), its command line (`commands`), its process (`child`), what it says of its run
//! (`claimed`), one run for a load or a sweep (`driver`).

mod abilities;
mod child;
mod claimed;
mod commands;
mod driver;
mod generator;
mod order;
#[cfg(test)]
pub(crate) mod samples;

pub(crate) use child::{Load, used_by_children};
pub(crate) use claimed::Known;
pub(crate) use driver::{Driver, Found};
pub(crate) use generator::{Generator, Job, Words};
pub(crate) use order::{End, Errand};
