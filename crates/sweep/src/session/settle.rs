//! The account of a server's whole life: what we sent it beside what it counted.

use model::{Clock, Diagnostic, Run, ServerKind};
use probe::sink_ledger;

use super::Session;
use crate::ledger::Accounts;

impl<C: Clock + Clone + Send + Sync> Session<'_, C> {
    /// Puts our account of this server's whole life beside its own: into the judgement of each of its runs, and into a
    /// warning where they differ or cannot be compared.
    pub(crate) fn settle<'r>(&self, runs: impl Iterator<Item = &'r mut Run>) -> Option<Diagnostic> {
        match self.reconcile() {
            Ok(accounts) => {
                for run in runs {
                    run.judgement = run.judgement.take().map(|judgement| judgement.with(accounts.check()));
                }
                accounts.warning()
            }
            Err(Some(reason)) => Some(Diagnostic::LedgerUnknown { reason }),
            // The user did not want to wait for it.
            Err(None) => None,
        }
    }

    /// Our account of this server's whole life beside its own.
    ///
    /// # Errors
    /// Why the server's is not known; `None` where the user interrupted.
    fn reconcile(&self) -> Result<Accounts, Option<String>> {
        let unknown = |reason: &str| Err(Some(reason.to_owned()));
        if self.unanswered {
            return unknown("requests were left without an answer, and nobody knows which of them it had started");
        }
        if self.server.kind == ServerKind::Builtin
            && let Some(address) = self.subject.bind.address()
        {
            let server = sink_ledger::requests(address).map_err(|error| Some(error.to_string()))?;
            return Ok(self.ledger.beside(server));
        }
        if self.subject.control.is_none() {
            return unknown("this server has no statistics that longtail can read");
        }
        match self.fresh_stats() {
            Some(stats) => self.ledger.beside_puma(&stats).map_err(Some),
            None if self.tools.is_interrupted() => Err(None),
            None => unknown("its statistics did not become fresh"),
        }
    }
}
