//! Figures in the protocols of operators while longtail works: what comes in (statsd), and what goes out (`DogStatsD`, Prometheus, OTLP).
//!
//! Nothing here is on a lane or waited for by one: threads read what lanes have stored, and finished runs are exported between runs, once
//! they are judged. What cannot be delivered is counted and said at the end; it changes no figure and no exit code. Formats are `export`'s.

mod scrape;
mod senders;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{Resolver, RunProgress};
use export::otlp::RunOrigin;
use export::{LiveRun, MetricFamily, live};
use model::{Clock, LoadStudy, Nanos, SweepStudy, SystemClock};
use sweep::{LiveReadings, Phase, StatsdListener};

use crate::args::OutletArgs;
use crate::mistake::{Mistake, wrong};
use crate::outlets::senders::{OtlpSender, StatsdSender};
use crate::ui;

/// How soon Ctrl-C ends the wait for a last scrape.
const GLANCE: Nanos = Nanos::from_millis(50);

/// Settings by which apps find their statsd: puma-plugin-statsd and the statsd gems read the first two, Shopify's statsd-instrument the
/// third.
const SETTINGS: [&str; 3] = ["STATSD_HOST", "STATSD_PORT", "STATSD_ADDR"];

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

/// What comes in by statsd.
pub(crate) struct StatsdInput {
    /// Listens while runs go on.
    pub(crate) listener: Option<Mutex<StatsdListener>>,
    /// By which settings a server learns where to send.
    pub(crate) settings: BTreeMap<OsString, OsString>,
}

impl StatsdInput {
    /// Listens where it was asked for, and says where that is.
    ///
    /// # Errors
    /// Where the address is taken.
    pub(crate) fn open(address: Option<SocketAddr>, starts_a_server: bool) -> Result<StatsdInput, Mistake> {
        let Some(address) = address else { return Ok(StatsdInput { listener: None, settings: BTreeMap::new() }) };
        let socket = StatsdListener::bind(address).map_err(|error| taken("--statsd-listen", address, &error))?;
        let address = socket.address();
        let already = SETTINGS.into_iter().find(|name| std::env::var_os(name).is_some());
        let mut settings = BTreeMap::new();
        let note = match already {
            _ if !starts_a_server => String::new(),
            Some(name) => format!("; {name} is set already and stays as it is"),
            None => {
                let values = [address.ip().to_string(), address.port().to_string(), address.to_string()];
                settings = SETTINGS.into_iter().map(OsString::from).zip(values.map(OsString::from)).collect();
                format!("; the server finds it by {}", SETTINGS.join(", "))
            }
        };
        ui::note(&format!("listening to statsd at {address}{note}"));
        Ok(StatsdInput { listener: Some(Mutex::new(socket)), settings })
    }
}

impl Outlets {
    /// Opens what was asked for, and says where.
    ///
    /// # Errors
    /// Where an address is taken, or a receiver has none that may be connected to.
    pub(crate) fn open(args: &OutletArgs, resolver: &Resolver, clock: SystemClock) -> Result<Outlets, Mistake> {
        let statsd_to = args.statsd_to.as_ref().map(|to| to.address("--statsd-to", resolver)).transpose()?;
        let otlp =
            args.otlp.clone().map(|to| Ok::<_, Mistake>((to.place.address("--otlp", resolver)?, to))).transpose()?;
        let board = Arc::new(LiveBoard::default());
        if let Some(address) = args.metrics {
            let address = scrape::serve(address, Arc::clone(&board), clock)
                .map_err(|error| taken("--metrics", address, &error))?;
            ui::note(&format!("metrics for Prometheus at http://{address}/metrics"));
        }
        let statsd = statsd_to.map(|to| StatsdSender::start(to, Arc::clone(&board), clock));
        let statsd = statsd.transpose().map_err(|error| wrong(format!("--statsd-to: no socket ({error})")))?;
        let otlp = otlp.map(|(address, to)| OtlpSender::new(address, to));
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
                let (progress, samples) = (Arc::clone(progress), Arc::clone(live));
                let run = PresentRun { number: *number as u64, connections: *connections, progress, samples };
                self.board.state().run = Some(run);
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

    /// The load is over.
    pub(crate) fn load_done(&mut self, study: &LoadStudy) {
        let span = RunSpan { ended: self.clock.wall(), ..self.present };
        self.done(&study.started_at, span, export::of_load(study));
    }

    fn done(&mut self, study: &str, span: RunSpan, families: Vec<MetricFamily>) {
        if let Some(statsd) = &self.statsd {
            statsd.send(&families);
        }
        if let Some(otlp) = &mut self.otlp {
            let RunSpan { begun, ended } = span;
            let origin = RunOrigin { study, begun, ended: ended.max(begun) };
            otlp.send(&families, &origin);
        }
        self.board.done(families);
    }

    /// Lets the last figures be scraped, then says what could not be delivered.
    pub(crate) fn close(self, interrupt: &AtomicBool) {
        if self.linger > Nanos::ZERO && !interrupt.load(Ordering::Relaxed) {
            ui::note(&format!("metrics stay for {}; Ctrl-C ends it", self.linger));
            let until = self.clock.now() + self.linger;
            while self.clock.now() < until && !interrupt.load(Ordering::Relaxed) {
                self.clock.sleep(GLANCE);
            }
        }
        let troubles = [self.statsd.and_then(StatsdSender::end), self.otlp.and_then(OtlpSender::end)];
        troubles.iter().flatten().for_each(|trouble| ui::note(trouble));
    }
}

fn taken(flag: &str, address: SocketAddr, error: &std::io::Error) -> Mistake {
    wrong(format!("{flag} {address}: it cannot be listened to ({error}); take another port, or 0 for any"))
}

/// How things stand, for whoever asks. Its lock is between threads that export; no lane knows of it.
#[derive(Default)]
struct LiveBoard(Mutex<LiveState>);

#[derive(Default)]
struct LiveState {
    /// Requests that had ended when the last finished run was over.
    ended: u64,
    runs_done: u64,
    run: Option<PresentRun>,
    finished: Vec<MetricFamily>,
}

struct PresentRun {
    number: u64,
    connections: u32,
    progress: Arc<RunProgress>,
    samples: Arc<LiveReadings>,
}

impl LiveBoard {
    /// A run is over, with these figures.
    fn done(&self, families: Vec<MetricFamily>) {
        let mut state = self.state();
        if let Some(run) = state.run.take() {
            state.ended += run.progress.ended();
        }
        state.runs_done += 1;
        let finished = std::mem::take(&mut state.finished);
        state.finished = MetricFamily::merged(finished.into_iter().chain(families));
    }

    /// How things stand now.
    fn now(&self) -> Vec<MetricFamily> {
        let state = self.state();
        let Some(PresentRun { number, connections, progress, samples }) = &state.run else {
            return live(state.ended, state.runs_done, None);
        };
        let run = LiveRun { number: *number, connections: *connections, samples: samples.seen() };
        live(state.ended + progress.ended(), state.runs_done, Some(&run))
    }

    /// How things stand now, and all finished runs.
    fn all(&self) -> Vec<MetricFamily> {
        let mut all = self.now();
        all.extend(self.state().finished.iter().cloned());
        all
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
