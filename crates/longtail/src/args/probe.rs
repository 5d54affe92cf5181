//! `--probe`: what is read of server and kernel while a run goes on, and which sockets each way can see.

use clap::ValueEnum;
use model::{Probe, Socket};

use crate::mistake::{Mistake, wrong};

/// What is read of server and kernel while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(super) enum ProbeWord {
    /// Nothing
    None,
    /// What everybody may read: accept queue, connections, CPU time, the server's statistics
    Proc,
    /// That, and the kernel's tracepoints: how long each request waited where (wants root or two capabilities)
    Bpf,
    /// bpf where it can be had and up to 5000 requests/s, else proc
    Auto,
}

impl ProbeWord {
    /// That, of servers on these kinds of socket.
    ///
    /// # Errors
    /// Where it cannot see one of them.
    pub(super) fn over(self, sockets: &[Socket]) -> Result<Probe, Mistake> {
        let unseen = sockets.iter().find(|socket| socket.is_unix());
        Ok(match (self, unseen) {
            (ProbeWord::Bpf, Some(socket)) => {
                return Err(wrong(format!("--probe bpf sees TCP alone: leave it out with -s {socket}")));
            }
            (ProbeWord::None, _) => Probe::None,
            (ProbeWord::Proc, _) => Probe::Proc,
            (ProbeWord::Bpf, None) => Probe::Bpf,
            (ProbeWord::Auto, _) => Probe::Auto,
        })
    }
}
