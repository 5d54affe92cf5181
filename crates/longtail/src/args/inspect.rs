//! `--inspect`: what is read of server, kernel and app while a run goes on.

use clap::{Args, ValueEnum};
use model::{Probe, Socket};

use crate::mistake::{Mistake, wrong};

/// Something that can be inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InspectWord {
    /// Nothing of server and kernel
    None,
    /// What everybody may read: accept queue, connections, CPU time, the server's statistics
    Proc,
    /// That, and the kernel's tracepoints: how long each request waited where (needs root or two capabilities)
    #[value(alias = "bpf")]
    Kernel,
    /// The app says when it began and ended each request (x-app-stamps, or Server-Timing)
    App,
    /// kernel where it is allowed and up to 5000 requests/s, else proc
    Auto,
}

/// What is inspected.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Also read: none, proc, kernel (as root), app [default: auto]
    #[arg(
        long,
        alias = "probe",
        value_enum,
        value_name = "LIST",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Load"
    )]
    inspect: Vec<InspectWord>,
    /// The same as --inspect app
    #[arg(long, hide = true)]
    anatomy: bool,
}

impl InspectArgs {
    /// Whether the app is asked when it began and ended.
    pub(super) fn asks_app(&self) -> bool {
        self.anatomy || self.inspect.contains(&InspectWord::App)
    }

    /// What is read of server and kernel, of servers on these kinds of socket; `None` where that was left open.
    ///
    /// # Errors
    /// Where two things exclude each other, or the kernel's tracepoints cannot see one of the sockets.
    pub(super) fn probe(&self, sockets: &[Socket]) -> Result<Option<Probe>, Mistake> {
        let mut words = self.inspect.iter().filter(|word| **word != InspectWord::App);
        let Some(word) = words.next() else { return Ok(None) };
        if words.next().is_some() {
            return Err(wrong(
                "--inspect wants one of none, proc and kernel (kernel includes proc), and app beside it",
            ));
        }
        let unseen = sockets.iter().find(|socket| socket.is_unix());
        Ok(Some(match (word, unseen) {
            (InspectWord::Kernel, Some(socket)) => {
                return Err(wrong(format!("--inspect kernel sees TCP alone: leave it out with -s {socket}")));
            }
            (InspectWord::Kernel, None) => Probe::Bpf,
            (InspectWord::None, _) => Probe::None,
            (InspectWord::Proc, _) => Probe::Proc,
            (InspectWord::Auto | InspectWord::App, _) => Probe::Auto,
        }))
    }
}
