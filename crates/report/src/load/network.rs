//! What the network between generator and server took, by the kernel's own account (`TCP_INFO`).

use std::fmt::Write as _;

use model::{LoadStudy, NetworkPath};

use super::part::{Body, Part};
use crate::number::{self, count_of};

/// Round trip and retransmissions; nothing where the server is on this machine and nothing was sent again.
pub(crate) fn part(study: &LoadStudy) -> Option<Part> {
    let tally = &study.run.tally;
    let NetworkPath { round_trip, retransmitted, slow, slow_with_retransmission } = tally.network;
    let mut lines = Vec::new();
    if let Some(mean) = round_trip.mean() {
        let connections = count_of(round_trip.count, "connection");
        let mut line = format!("round trip {} over {connections}", number::time(mean));
        if round_trip.max > round_trip.min * 2 {
            let _ = write!(line, " ({} to {})", number::time(round_trip.min), number::time(round_trip.max));
        }
        if let Some(share) = tally.network.share_of_round_trip(&tally.service_time) {
            let _ = write!(line, ": {} % of the mean service time", number::percent(share));
        }
        lines.push(line);
        lines.push(if retransmitted == 0 {
            "no segment was sent again from here".to_owned()
        } else {
            format!("{} sent again from here", count_of(retransmitted, "segment"))
        });
    }
    if slow_with_retransmission.count > 0 {
        lines.push(format!(
            "{} of the {} that took {} or longer had a retransmission: at least so many were slow because of the network",
            number::count(slow_with_retransmission.count),
            count_of(slow, "request"),
            number::time(NetworkPath::SLOW),
        ));
    }
    (!lines.is_empty()).then(|| Part::new("network to the server, by TCP", vec![Body::Lines(lines)]))
}
