//! The workers hold unequal numbers of connections, so that requests wait in one while another has
//! less to do.

use model::{Nanos, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, few_digits, load};

/// The workers hold unequal numbers of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnevenDealing {
    /// The load.
    pub multiple: f64,
    /// Connections that each worker was seen to hold, the most first.
    pub held: Vec<u32>,
    /// Threads of each worker.
    pub threads: u32,
    /// The 95th percentile there, if it is known.
    #[serde(rename = "p95_ns")]
    pub p95: Option<Nanos>,
    /// What one request takes alone.
    #[serde(rename = "alone_ns")]
    pub alone: Option<Nanos>,
}

/// If all workers are full and one holds this many times the connections of another, it is
/// reported: its requests take that much longer.
const UNEVEN: f64 = 1.2;
/// With a coefficient of variation below this, a request that takes longer than alone has waited.
const STEADY: f64 = 0.2;

/// The lowest load at which requests wait in one worker while a thread of another is free; else the
/// highest at which they wait notably longer in one than in another.
pub(super) fn of(study: &SweepStudy, points: &[SweepPoint<'_>]) -> Option<Finding> {
    let dealt: Vec<UnevenDealing> =
        points.iter().filter_map(|point| dealing(study, point)).collect();
    let is_uneven = |dealing: &&UnevenDealing| {
        let [most, least] = dealing.extremes();
        f64::from(most.max(dealing.threads)) >= UNEVEN * f64::from(least.max(dealing.threads))
    };
    let idle = dealt.iter().find(|dealing| dealing.has_idle_threads());
    idle.or_else(|| dealt.iter().rev().find(is_uneven)).cloned().map(Finding::from)
}

fn dealing(study: &SweepStudy, point: &SweepPoint<'_>) -> Option<UnevenDealing> {
    let held = point.run.theory.as_ref()?.by_worker.clone().filter(|held| held.len() > 1)?;
    // If only the slots of the server were stated, the number of processes gives the threads of
    // each.
    let threads = study.server.slots() / held.len() as u32;
    Some(UnevenDealing {
        multiple: point.multiple,
        held,
        threads,
        p95: point.run.response_time(0.95).time(),
        // If the app itself varies, its 95th percentile alone is not known, and longer than the mean.
        alone: study.service_time.filter(|known| known.variation < STEADY).map(|known| known.mean),
    })
}

impl UnevenDealing {
    /// The most and the fewest connections of a worker.
    fn extremes(&self) -> [u32; 2] {
        let most = self.held.iter().copied().max().unwrap_or(0);
        let least = self.held.iter().copied().min().unwrap_or(0);
        [most, least]
    }

    /// Whether requests wait in one worker while another has a free thread.
    fn has_idle_threads(&self) -> bool {
        let [most, least] = self.extremes();
        most > self.threads && least < self.threads
    }

    pub(super) fn sentence(&self) -> String {
        let at = load(self.multiple);
        let each: Vec<String> = self.held.iter().take(8).map(u32::to_string).collect();
        let more = if self.held.len() > each.len() { " + …" } else { "" };
        let held = format!("{}{more}", each.join(" + "));
        let [most, least] = self.extremes();
        if self.has_idle_threads() {
            let times = match (self.p95, self.alone) {
                (Some(p95), Some(alone)) if p95.0 > alone.0 + alone.0 / 10 => {
                    format!(" (p95 {}; {} alone)", brief(p95), brief(alone))
                }
                _ => String::new(),
            };
            return format!(
                "At {at} the workers hold {held} connections and have {} threads each: requests \
                 wait in the fullest while a thread of another is free{times}.",
                self.threads
            );
        }
        let longer = f64::from(most.max(self.threads)) / f64::from(least.max(self.threads).max(1));
        format!(
            "At {at} the workers hold {held} connections: a request in the fullest takes {} times \
             as long as in the emptiest.",
            few_digits(longer)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_beyond_a_workers_threads_wait_there() {
        let ms = Nanos::from_millis;
        let dealing = |held: &[u32]| UnevenDealing {
            multiple: 1.0,
            held: held.to_vec(),
            threads: 5,
            p95: Some(ms(200)),
            alone: Some(ms(101)),
        };
        assert_eq!(
            dealing(&[6, 4]).sentence(),
            "At 1x the workers hold 6 + 4 connections and have 5 threads each: requests wait in the \
             fullest while a thread of another is free (p95 200 ms; 101 ms alone)."
        );
        assert!(!dealing(&[5, 5]).has_idle_threads() && !dealing(&[8, 5]).has_idle_threads());
        assert_eq!(
            dealing(&[24, 16]).sentence(),
            "At 1x the workers hold 24 + 16 connections: a request in the fullest takes 1.5 times as \
             long as in the emptiest."
        );
    }
}
