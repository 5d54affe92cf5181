//! What the flags of a load ask for: its requests, how to connect, the event in the middle of it, and
//! what to ask of another generator (`--generator wrk`). `sweep` conducts it; `request_log`
//! writes the log of requests meanwhile.

mod connecting;
mod event;
mod log_times;
mod other_generator;
mod prepare;
mod request_log;
mod what_is_sent;

pub(crate) use self::log_times::LogTimes;
pub(crate) use self::other_generator::order_load;
pub(crate) use self::prepare::prepare;
pub(crate) use self::request_log::Recorder;
