//! Real processes, started, stopped and killed. No test asserts how long anything takes.

mod guarded;
mod kit;
mod puma_command;
mod real_puma;
