//! What must be equal, whatever the machine does: the plan, the engine's ledger and the sink's.

use engine::DriveResult;
use serde::Serialize;
use sink::SinkLedger;

/// One count from two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Balance {
    /// What is counted.
    pub(crate) what: &'static str,
    /// As it should be.
    pub(crate) expected: u64,
    /// As it was found.
    pub(crate) found: u64,
}

impl Balance {
    /// Whether the two agree.
    pub(crate) fn holds(self) -> bool {
        self.expected == self.found
    }
}

/// All that is counted of a run that was not interrupted: `planned` requests are due, and the sink answers all.
pub(crate) fn balances(planned: u64, done: &DriveResult, ledger: &SinkLedger) -> Vec<Balance> {
    let tally = &done.tally;
    let of = |what, expected, found| Balance { what, expected, found };
    vec![
        of("requests planned, and ended in one way or another", planned, tally.counts.total()),
        of("requests planned, and answered well", planned, tally.counts.good()),
        of("answers, and response times recorded", tally.counts.good(), tally.response_time.count()),
        of("answers, and those of each connection", tally.counts.good(), tally.per_connection.iter().sum()),
        of("requests sent, and received by the sink", tally.all_requests(), ledger.requests),
        of("answers received, and sent by the sink", tally.all_answers(), ledger.answers),
        of("requests of the sink, and its arrivals by second", ledger.requests, ledger.arrivals.counts.iter().sum()),
        of("bytes sent, and received by the sink", tally.sent_bytes, ledger.received_bytes),
        of("bytes received, and sent by the sink", tally.received_bytes, ledger.sent_bytes),
        of("connections opened, and accepted by the sink", tally.connections_opened, ledger.connections),
    ]
}
