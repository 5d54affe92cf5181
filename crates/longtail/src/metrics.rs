//! Metrics while longtail works: statsd comes in; `DogStatsD` goes out after each run and once a
//! second, `GET /metrics` answers Prometheus, and OTLP over HTTP goes out after each run.
//!
//! Nothing here is on a lane, or waited for by a lane or by whoever conducts runs. Threads read
//! what lanes have stored. The figures of a finished run go to threads that send them, once the run
//! is judged and on disk. What cannot be delivered in time is counted and said at the end; it
//! changes no figure and no exit code. Formats are `export`'s.

mod deliveries;
mod live_board;
mod otlp;
mod prometheus;
mod statsd_input;
mod statsd_output;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Resolver;
use export::MetricFamily;
use export::otlp::RunOrigin;
use model::{Clock, LoadStudy, Nanos, SweepStudy, SystemClock};
use sweep::Phase;

use self::live_board::{LiveBoard, PresentRun, locked};
use self::otlp::OtlpSender;
pub(crate) use self::statsd_input::StatsdInput;
use self::statsd_output::StatsdSender;
use crate::args::{OutletArgs, receiver_address};
use crate::exit::{Mistake, wrong};
use crate::ui;

/// How soon Ctrl-C ends the wait for a last scrape, or for a receiver.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);

/// All that goes out.
pub(crate) struct Outlets {
    clock: SystemClock,
    board: Arc<LiveBoard>,
    statsd: Option<StatsdSender>,
    otlp: Option<OtlpSender>,
    linger: Nanos,
    /// When the present run began and ended.
    present: RunSpan,
    /// The same of all finished runs of a sweep.
    spans: Vec<RunSpan>,
}

/// When a run began and ended, by the wall clock.
#[derive(Clone, Copy, Default)]
struct RunSpan {
    begun: Nanos,
    ended: Nanos,
}

impl Outlets {
    /// Opens what was asked for, and says where.
    ///
    /// # Errors
    /// If an address is taken, or a receiver has none that may be connected to.
    pub(crate) fn open(
        args: &OutletArgs,
        resolver: &Resolver,
        clock: SystemClock,
    ) -> Result<Outlets, Mistake> {
        let statsd_to = args
            .statsd_to
            .as_ref()
            .map(|to| receiver_address(to, "--statsd-to", resolver))
            .transpose()?;
        let otlp_to = args.otlp.as_ref().map(|to| receiver_address(&to.place, "--otlp", resolver));
        let otlp_to = otlp_to.transpose()?;
        let board = Arc::new(LiveBoard::default());
        if let Some(address) = args.metrics {
            let address = prometheus::serve(address, Arc::clone(&board), clock)
                .map_err(|error| taken("--metrics", address, &error))?;
            ui::note(&format!("metrics for Prometheus at http://{address}/metrics"));
        }
        let statsd = statsd_to.map(|to| StatsdSender::start(to, Arc::clone(&board), clock));
        let statsd = statsd
            .transpose()
            .map_err(|error| wrong(format!("--statsd-to: no socket ({error})")))?;
        let otlp =
            args.otlp.clone().zip(otlp_to).map(|(to, address)| OtlpSender::start(to, address));
        let otlp = otlp.transpose().map_err(|error| engine::no_thread(&error))?;
        Ok(Outlets {
            clock,
            board,
            statsd,
            otlp,
            linger: args.metrics_linger,
            present: RunSpan::default(),
            spans: Vec::new(),
        })
    }

    /// What a sweep is doing now.
    pub(crate) fn phase(&mut self, phase: &Phase) {
        match phase {
            Phase::Running { number, connections, progress: Some(progress), live, .. } => {
                self.present.begun = self.clock.wall();
                let progress = Arc::clone(progress);
                let samples = Arc::clone(live);
                let run = PresentRun {
                    number: *number as u64,
                    connections: *connections,
                    progress,
                    samples,
                };
                locked(&self.board).run = Some(run);
            }
            Phase::CoolingDown => self.present.ended = self.clock.wall(),
            _ => {}
        }
    }

    /// A sweep's run is over, and not yet judged to the end.
    pub(crate) fn run_over(&mut self) {
        self.spans.push(self.present);
    }

    /// A sweep's run, by its place in the study, is judged to the end.
    pub(crate) fn sweep_done(&mut self, study: &SweepStudy, place: usize) {
        let families = export::of_sweep(study, &study.runs[place], place + 1);
        let span = self.spans.get(place).copied().unwrap_or_default();
        self.done(&study.started_at, span, families);
    }

    /// A load is over, and not published yet.
    pub(crate) fn load_over(&mut self) {
        self.present.ended = self.clock.wall();
    }

    /// The results of a load are on disk and printed.
    pub(crate) fn load_done(&mut self, study: &LoadStudy) {
        self.done(&study.started_at, self.present, export::of_load(study));
    }

    fn done(&mut self, study: &str, span: RunSpan, families: Vec<MetricFamily>) {
        if let Some(statsd) = &self.statsd {
            statsd.send(&families);
        }
        if let Some(otlp) = &self.otlp {
            let RunSpan { begun, ended } = span;
            let origin = RunOrigin { study, begun, ended: ended.max(begun) };
            otlp.send(&families, &origin);
        }
        locked(&self.board).done(families);
    }

    /// Lets the last figures be scraped and delivered, then says what could not be. To be called
    /// when all results are on disk and printed: a receiver may take its time.
    pub(crate) fn close(self, interrupt: &AtomicBool) {
        if self.linger > Nanos::ZERO && !interrupt.load(Ordering::Relaxed) {
            ui::note(&format!("metrics stay for {}; Ctrl-C ends it", self.linger));
            let until = self.clock.now() + self.linger;
            while self.clock.now() < until && !interrupt.load(Ordering::Relaxed) {
                self.clock.sleep(POLL_INTERVAL);
            }
        }
        let statsd = self.statsd.and_then(StatsdSender::end);
        let otlp = self.otlp.and_then(|otlp| otlp.end(&self.clock, interrupt));
        let troubles = [statsd, otlp];
        troubles.iter().flatten().for_each(|trouble| ui::note(trouble));
    }
}

fn taken(flag: &str, address: SocketAddr, error: &std::io::Error) -> Mistake {
    wrong(format!(
        "{flag} {address}: it cannot be listened to ({error}); take another port, or 0 for any"
    ))
}
