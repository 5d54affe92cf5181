//! `--inspect`: what is read of server, kernel and app while a run goes on.

use clap::Args;
use model::{Probe, Socket};

use super::limits::words;
use crate::mistake::{Mistake, wrong};

/// What everybody may read is `proc`; `kernel` adds its tracepoints; of `app`, no probe, each request says when it began and ended.
const INSPECTED: &[(&str, Option<Probe>)] = &[
    ("none", Some(Probe::None)),
    ("proc", Some(Probe::Proc)),
    ("kernel", Some(Probe::Bpf)),
    ("bpf", Some(Probe::Bpf)),
    ("app", None),
    ("auto", Some(Probe::Auto)),
];

/// What is inspected.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Also read: none, proc, kernel (as root), app [default: auto]
    #[arg(
        long,
        alias = "probe",
        value_parser = words(INSPECTED),
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Load"
    )]
    inspect: Vec<Option<Probe>>,
    /// The same as --inspect app
    #[arg(long, hide = true)]
    anatomy: bool,
}

impl InspectArgs {
    /// Whether the app is asked when it began and ended.
    pub(super) fn asks_app(&self) -> bool {
        self.anatomy || self.inspect.contains(&None)
    }

    /// What is read of server and kernel, of servers on these kinds of socket; `None` where that was left open.
    ///
    /// # Errors
    /// Where two things exclude each other, or the kernel's tracepoints cannot see one of the sockets.
    pub(super) fn probe(&self, sockets: &[Socket]) -> Result<Option<Probe>, Mistake> {
        let mut probes = self.inspect.iter().flatten().copied();
        let probe = probes.next();
        if probes.next().is_some() {
            return Err(wrong(
                "--inspect wants one of none, proc and kernel (kernel includes proc), and app beside it",
            ));
        }
        match sockets.iter().find(|socket| socket.is_unix()) {
            Some(socket) if probe == Some(Probe::Bpf) => {
                Err(wrong(format!("--inspect kernel sees TCP alone: leave it out with -s {socket}")))
            }
            _ => Ok(probe),
        }
    }
}
