//! What the engine runs ([`LoadSpec`]), and each lane's share of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use model::{LoadSettings, Nanos, Request, RequestMix, Timestamps, Window};

use crate::transport::Transport;

/// One run, with nothing left to decide.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct LoadSpec {
    /// Where to connect.
    pub transport: Transport,
    /// What to send.
    pub requests: Arc<RequestMix>,
    /// How it is sent.
    pub load: LoadSettings,
    /// Which part of the run this generator drives.
    pub part: GeneratorPart,
    /// Length of the measured window, without the warm-up; `None` if only a count ends the run.
    pub measured: Option<Nanos>,
    /// Measured requests that each connection makes; the run ends when all have made theirs.
    pub requests_per_connection: Option<u64>,
    /// Closed loop: whether a lane may poll for responses that come soon, where a core is free for
    /// it.
    pub busy_polls: bool,
    /// Closed loop: how long unmeasured requests are waited for after the last measured one has
    /// ended; `None`: until each has ended. Requests that are not over by then are counted as in
    /// flight.
    pub drain: Option<Nanos>,
    /// The response header, lower case, in which a worker names itself; empty for none.
    pub worker_header: String,
    /// Whether the times that the app reports are read. Then each head is parsed.
    pub reads_app_times: bool,
    /// Length of the body that every good response must have; `None` if any will do.
    pub body_bytes: Option<u64>,
    /// Whether the journal gets the raw bytes of each response, up to 2 MiB (`--check`).
    pub keep_responses: bool,
    /// Whether the journal says how the kernel and the app identify each request
    /// ([`crate::RequestTrace`]).
    pub traces_requests: bool,
}

/// Which of a run's generators one is. Their lanes are numbered through the whole run, so that all
/// of them together are one generator with as many lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorPart {
    /// Its number, from 0.
    pub index: u32,
    /// Generators of the run.
    pub of: u32,
}

impl GeneratorPart {
    /// All of a run.
    pub const WHOLE: GeneratorPart = GeneratorPart { index: 0, of: 1 };
}

/// The part of a run that one lane drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneShare {
    /// The lane's number, from 0.
    pub lane: u32,
    /// Lanes in the run.
    pub lanes: u32,
    /// Its first connection's number in the run.
    pub first_connection: u32,
    /// Its connections.
    pub connections: u32,
}

impl LoadSpec {
    /// An endless closed loop of one request; all that is not a parameter here is off.
    pub fn closed(transport: Transport, request: Request, connections: u32) -> LoadSpec {
        LoadSpec {
            transport,
            requests: RequestMix::of_one(request).into(),
            load: LoadSettings::closed(connections),
            part: GeneratorPart::WHOLE,
            measured: None,
            requests_per_connection: None,
            busy_polls: false,
            drain: None,
            worker_header: String::new(),
            reads_app_times: false,
            body_bytes: None,
            keep_responses: false,
            traces_requests: false,
        }
    }

    /// The same with other settings.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut LoadSettings)) -> LoadSpec {
        change(&mut self.load);
        self
    }

    /// The measured window of a run that starts at `start`.
    pub fn window(&self, start: Nanos) -> Window {
        let from = start + self.load.warm_up;
        Window { from, until: self.measured.map_or(Nanos::MAX, |length| from + length) }
    }

    /// Whether the order of responses can show that a server serves connections in turns. It can in
    /// a closed loop without pauses that keeps its connections: there a request waits only for the
    /// server.
    pub(crate) fn may_see_turns(&self) -> bool {
        self.is_plain_loop() && self.load.keep_alive
    }

    /// A closed loop without pauses.
    fn is_plain_loop(&self) -> bool {
        !self.load.pace.is_open() && self.load.think == Nanos::ZERO
    }

    /// Whether the kernel says when responses come.
    pub(crate) fn is_stamped(&self) -> bool {
        self.load.timestamps == Timestamps::Kernel
    }

    /// Whether requests can take the lane's fast path: in a closed loop without pauses that keeps
    /// its connections without limit, where no single request is stamped, kept, traced or parsed.
    pub(crate) fn allows_fast_path(&self) -> bool {
        let keeps_connections = self.load.keep_alive
            && self.load.reconnect_after.is_none()
            && self.requests_per_connection.is_none();
        self.is_plain_loop()
            && keeps_connections
            && self.load.queue_header.is_none()
            && !self.keep_responses
            && !self.traces_requests
            && !self.reads_app_times
    }

    /// The lanes of this generator. Connections are dealt out to the lanes of the whole run: 10 on
    /// 4 lanes are 3 + 3 + 2 + 2.
    pub fn shares(&self) -> Vec<LaneShare> {
        let GeneratorPart { index, of } = self.part;
        let lanes =
            self.load.lanes.max(1).saturating_mul(of).clamp(1, self.load.connections.max(1));
        let each = self.load.connections / lanes;
        let extra = self.load.connections % lanes;
        let mut first_connection = 0;
        (0..lanes)
            .map(|lane| {
                let connections = each + u32::from(lane < extra);
                let share = LaneShare { lane, lanes, first_connection, connections };
                first_connection += connections;
                share
            })
            .filter(|share| share.lane % of == index)
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::reach::render;

    pub(crate) fn shape(connections: u32, lanes: u32) -> LoadSpec {
        let transport = Transport::tcp(([127, 0, 0, 1], 1).into());
        LoadSpec::closed(transport, render("GET", "127.0.0.1:1", "/", &[], true), connections)
            .with(|load| load.lanes = lanes)
    }

    #[test]
    fn connections_are_dealt_evenly_over_the_lanes_of_all_generators() {
        let dealt: Vec<_> =
            shape(10, 4).shares().iter().map(|s| (s.first_connection, s.connections)).collect();
        assert_eq!(dealt, [(0, 3), (3, 3), (6, 2), (8, 2)]);
        assert_eq!(shape(2, 8).shares().len(), 2, "a lane without connections is not started");
        for (connections, lanes, of) in [(10, 2, 2), (10, 1, 4), (3, 2, 4), (1, 4, 3), (1000, 3, 7)]
        {
            let whole = shape(connections, lanes * of).shares();
            let part = |index| {
                LoadSpec { part: GeneratorPart { index, of }, ..shape(connections, lanes) }.shares()
            };
            let mut all: Vec<LaneShare> = (0..of).flat_map(part).collect();
            all.sort_by_key(|share| share.lane);
            assert_eq!(all, whole, "{connections} {lanes} {of}");
            assert_eq!(all.iter().map(|share| share.connections).sum::<u32>(), connections);
        }
    }
}
