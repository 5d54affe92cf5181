//! `longtail calibrate`, in parts: the sink that the generators are pointed at (`subject`), what a run came to
//! (`account`), all rounds (`conduct`), the table (`text`), what lanes do here (`lanes`). The generators themselves are in `crate::generators`.

mod account;
mod conduct;
mod lanes;
mod subject;
mod text;

pub(crate) use conduct::{Contender, Ring};
pub(crate) use lanes::LaneReport;
pub(crate) use subject::Subject;
pub(crate) use text::{Findings, json, table};
