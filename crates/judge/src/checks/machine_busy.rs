//! The machine was too busy for the generator to be on time: the generator used hardly any CPU, but
//! had to wait for one.

use model::{CpuUsage, Diagnostic, LaneFacts, Nanos, Run};

use super::{Assessment, Grade, busiest_lane};
use crate::words::{brief, percent, tenths};

/// A generator thread that works for less than this share of the time has no need of a second one.
const LIGHT: f64 = 0.3;
/// Waits below this share of the time are too short to be noticed.
const WAITS: f64 = 0.005;

/// A run that is shorter says nothing of the machine: the kernel counts CPU time in steps of 10 ms,
/// and a single wait is a large part of the time.
const TELLS_SOMETHING: Nanos = Nanos::from_millis(200);

/// Applies where one of these checks failed because the generator was delayed.
pub(super) fn ask(run: &Run, checks: &[Diagnostic]) -> Option<Diagnostic> {
    if run.elapsed < TELLS_SOMETHING {
        return None;
    }
    let late: Vec<&Diagnostic> = checks
        .iter()
        .filter(|check| is_delay(check) && super::grade(check) == Grade::Failed)
        .collect();
    let sent = late.iter().find_map(|check| match check {
        Diagnostic::GeneratorLag { p99, of_response_time } => Some((*p99, *of_response_time)),
        _ => None,
    });
    let read = late.iter().find_map(|check| match check {
        Diagnostic::ReadLag { p99, of_response_time } if sent.is_none() => {
            Some((*p99, *of_response_time))
        }
        _ => None,
    });
    let generator = busiest_lane(run, LaneFacts::work)?;
    let waited = busiest_lane(run, |lane| lane.run_queue)?;
    let usage = CpuUsage::of(&run.generator);
    (!late.is_empty() && generator < LIGHT && waited >= WAITS).then_some(Diagnostic::MachineBusy {
        generator,
        waited,
        server: usage.map(|usage| usage.server),
        others: usage.and_then(|usage| usage.others),
        sent_within: sent.map(|(p99, _)| p99),
        read_within: read.map(|(p99, _)| p99),
        of_response_time: sent.or(read).map(|(_, share)| share),
    })
}

/// Whether a check is about a delay that a free CPU would have prevented.
pub(crate) fn is_delay(check: &Diagnostic) -> bool {
    matches!(
        check,
        Diagnostic::GeneratorLag { .. }
            | Diagnostic::LagSlope { .. }
            | Diagnostic::Bracket { .. }
            | Diagnostic::ReadLag { .. }
            | Diagnostic::LaneRunQueue { .. }
            | Diagnostic::Standstill { .. }
    )
}

/// How late the generator was, if that is known: a share of 1 % or 2 % that it waited does not sound
/// like much.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownDelay {
    pub(super) sent_within: Option<Nanos>,
    pub(super) read_within: Option<Nanos>,
    pub(super) of_response_time: Option<f64>,
}

impl KnownDelay {
    /// `99 % of requests were sent within 1.6 ms, which is 32 % of a p99 of 5 ms; `
    fn clause(self) -> String {
        let (what, late) = match self {
            KnownDelay { sent_within: Some(late), .. } => ("requests were sent", late),
            KnownDelay { read_within: Some(late), .. } => ("responses were read", late),
            KnownDelay { .. } => return String::new(),
        };
        let share = self.of_response_time.filter(|share| *share > 0.0);
        let share = share.map(|share| {
            let p99 = Nanos::from_secs_f64(late.as_secs_f64() / share);
            format!(", which is {} of a p99 of {}", percent(share), brief(p99))
        });
        format!("99 % of {what} within {}{}; ", brief(late), share.unwrap_or_default())
    }
}

/// Grade, sentence and hint. The delay itself fails the run; this says where it comes from.
pub(super) fn assess(
    generator: f64,
    waited: f64,
    server: Option<f64>,
    others: Option<f64>,
    delay: KnownDelay,
) -> Assessment {
    let mut users: Vec<String> = Vec::new();
    users.extend(server.map(|cpus| format!("server {}", tenths(cpus))));
    users.extend(others.map(|cpus| format!("other processes {}", tenths(cpus))));
    let users = if users.is_empty() {
        String::new()
    } else {
        format!(" (CPUs used meanwhile: {})", users.join(", "))
    };
    let sentence = format!(
        "this machine is too busy now for times like these: {}the generator used {} of a CPU and \
         waited for one {} of the time{users}",
        delay.clause(),
        percent(generator),
        percent(waited)
    );
    let hint = "more --generator-threads will not help: wait until the machine is idle, keep a CPU \
                free for the generator (taskset, or --server-cpus for a server that longtail \
                starts), or send the load from another machine";
    Assessment::new(Grade::Doubtful, sentence, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::GeneratorFacts;

    #[test]
    fn a_generator_that_hardly_works_and_waits_for_a_cpu_is_on_a_busy_machine() {
        let late = Diagnostic::ReadLag { p99: Nanos::from_millis(9), of_response_time: 0.4 };
        let ms = Nanos::from_millis;
        let asked_of = |length: Nanos, cpu: u64, waited: u64, check: &Diagnostic| {
            let lane = LaneFacts {
                cpu: ms(cpu),
                run_queue: ms(waited),
                elapsed: ms(1000),
                ..LaneFacts::default()
            };
            let generator = GeneratorFacts { lanes: vec![lane], ..GeneratorFacts::default() };
            let mut run = Run { generator, ..testkit::study::canonical().runs.remove(0) };
            run.elapsed = length;
            ask(&run, std::slice::from_ref(check)).is_some()
        };
        let asked = |cpu, waited, check| asked_of(ms(1000), cpu, waited, check);
        assert!(!asked_of(ms(3), 12, 180, &late), "3 ms say nothing of the machine");
        assert!(asked(12, 180, &late));
        assert!(!asked(800, 180, &late), "it works, and more threads may help");
        assert!(!asked(12, 0, &late), "it never waited for a CPU");
        let in_time = Diagnostic::ReadLag { p99: Nanos::from_millis(9), of_response_time: 0.01 };
        assert!(!asked(12, 180, &in_time));
    }

    #[test]
    fn how_late_the_generator_was_is_said_with_the_time_that_it_is_held_against() {
        let said = |delay| assess(0.007, 0.011, None, None, delay).sentence;
        let late = Some(Nanos::from_micros(1600));
        let sent =
            KnownDelay { sent_within: late, of_response_time: Some(0.32), ..KnownDelay::default() };
        let expected = "99 % of requests were sent within 1.60 ms, which is 32.0 % of a p99 of 5.00 ms; the generator used";
        assert!(said(sent).contains(expected), "{}", said(sent));
        let read =
            KnownDelay { read_within: late, of_response_time: Some(0.32), ..KnownDelay::default() };
        assert!(
            said(read).contains("99 % of responses were read within 1.60 ms"),
            "{}",
            said(read)
        );
        assert!(said(KnownDelay::default()).contains("times like these: the generator used"));
    }
}
