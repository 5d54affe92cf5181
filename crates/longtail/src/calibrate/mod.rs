//! `longtail calibrate`, in parts: the generators and their command lines (`generator`), the sink they are pointed at
//! (`subject`), one of them as a process (`child`), what a run came to (`account`), all rounds (`conduct`), the table
//! (`text`).

mod account;
mod child;
mod conduct;
mod generator;
mod subject;
mod text;

pub(crate) use conduct::{Contender, Ring};
pub(crate) use generator::{Generator, Job};
pub(crate) use subject::Subject;
pub(crate) use text::{Findings, json, table};
