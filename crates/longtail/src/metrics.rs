//! Metrics while longtail works: statsd comes in; `DogStatsD` goes out after each run and once a
//! second, `GET /metrics` answers Prometheus, and OTLP over HTTP goes out after each run.
//!
//! Nothing here is on a lane, or waited for by a lane or by whoever conducts runs. Threads read
//! what lanes have stored. The figures of a finished run go to threads that send them, once the run
//! is judged and on disk. What cannot be delivered in time is counted and said at the end; it
//! changes no figure and no exit code. Formats are `export`'s.

mod otlp;
mod prometheus;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use engine::{Resolver, RunProgress};
use export::otlp::RunOrigin;
use export::{LiveRun, MetricFamily, live, text_formats};
use model::{Clock, LoadStudy, Nanos, SweepStudy, SystemClock};
use sweep::{LiveReadings, Phase, StatsdListener};

use self::otlp::OtlpSender;
use crate::args::{OutletArgs, receiver_address};
use crate::exit::{Mistake, wrong};
use crate::ui;

/// How soon Ctrl-C ends the wait for a last scrape, or for a receiver.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// Settings by which apps find their statsd: puma-plugin-statsd and the statsd gems read the first
/// two, Shopify's statsd-instrument the third.
const SETTINGS: [&str; 3] = ["STATSD_HOST", "STATSD_PORT", "STATSD_ADDR"];
/// Between two accounts of how things stand.
const PERIOD: Nanos = Nanos::from_secs(1);

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
    /// Listens if it was asked for, and says where that is.
    ///
    /// # Errors
    /// If the address is taken.
    pub(crate) fn open(
        address: Option<SocketAddr>,
        starts_a_server: bool,
    ) -> Result<StatsdInput, Mistake> {
        let Some(address) = address else {
            return Ok(StatsdInput { listener: None, settings: BTreeMap::new() });
        };
        let socket = StatsdListener::bind(address)
            .map_err(|error| taken("--statsd-listen", address, &error))?;
        let address = socket.address();
        let already = SETTINGS.into_iter().find(|name| std::env::var_os(name).is_some());
        let mut settings = BTreeMap::new();
        let note = match already {
            _ if !starts_a_server => String::new(),
            Some(name) => format!("; {name} is set already and stays as it is"),
            None => {
                let values =
                    [address.ip().to_string(), address.port().to_string(), address.to_string()];
                settings = SETTINGS
                    .into_iter()
                    .map(OsString::from)
                    .zip(values.map(OsString::from))
                    .collect();
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

/// How things stand, for whoever asks. Its lock is between threads that export; no lane knows of
/// it.
type LiveBoard = Mutex<LiveState>;

fn locked(board: &LiveBoard) -> MutexGuard<'_, LiveState> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

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

impl LiveState {
    /// A run is over, with these figures.
    fn done(&mut self, families: Vec<MetricFamily>) {
        self.ended += self.run.take().map_or(0, |run| run.progress.ended());
        self.runs_done += 1;
        let finished = std::mem::take(&mut self.finished);
        self.finished = MetricFamily::merged(finished.into_iter().chain(families));
    }

    /// How things stand now.
    fn now(&self) -> Vec<MetricFamily> {
        let Some(PresentRun { number, connections, progress, samples }) = &self.run else {
            return live(self.ended, self.runs_done, None);
        };
        let run = LiveRun { number: *number, connections: *connections, samples: samples.all() };
        live(self.ended + progress.ended(), self.runs_done, Some(&run))
    }

    /// How things stand now, and all finished runs.
    fn all(&self) -> Vec<MetricFamily> {
        self.now().into_iter().chain(self.finished.iter().cloned()).collect()
    }
}

/// What became of all that was sent to one receiver.
#[derive(Default)]
struct Deliveries {
    tried: u64,
    failed: u64,
    /// Why the first failed.
    why: Option<String>,
}

impl Deliveries {
    fn note<T>(&mut self, delivered: Result<T, impl Display>) -> Option<T> {
        self.tried += 1;
        delivered
            .map_err(|why| {
                self.failed += 1;
                self.why.get_or_insert_with(|| why.to_string());
            })
            .ok()
    }
}

/// Sends `DogStatsD` from a thread of its own.
struct StatsdSender {
    to: SocketAddr,
    figures: Sender<Vec<MetricFamily>>,
    thread: JoinHandle<Deliveries>,
}

impl StatsdSender {
    /// Begins to send how things stand.
    ///
    /// # Errors
    /// If the system has no socket, or no thread.
    fn start(
        to: SocketAddr,
        board: Arc<LiveBoard>,
        clock: SystemClock,
    ) -> io::Result<StatsdSender> {
        let own: SocketAddr = if to.is_ipv6() {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(own)?;
        // Connected, it learns if nobody listens.
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let (figures, received) = channel();
        let thread = std::thread::Builder::new().name("statsd-to".to_owned());
        let thread = thread.spawn(move || send_statsd(&socket, &received, &board, clock))?;
        Ok(StatsdSender { to, figures, thread })
    }

    /// Sends these figures.
    fn send(&self, families: &[MetricFamily]) {
        // It fails only if the thread has panicked, and then the end says so.
        let _ = self.figures.send(families.to_vec());
    }

    /// Sends no more; what could not be sent, in a sentence.
    fn end(self) -> Option<String> {
        drop(self.figures);
        let Deliveries { tried, failed, why } =
            self.thread.join().expect("the thread never panics");
        Some(format!(
            "--statsd-to: {failed} of {tried} packets to {} could not be sent ({}); does anything listen there?",
            self.to, why?
        ))
    }
}

fn send_statsd(
    socket: &UdpSocket,
    figures: &Receiver<Vec<MetricFamily>>,
    board: &LiveBoard,
    clock: SystemClock,
) -> Deliveries {
    let mut deliveries = Deliveries::default();
    let mut next = clock.now() + PERIOD;
    loop {
        let families = match figures.recv_timeout(next.saturating_sub(clock.now()).into()) {
            Ok(families) => families,
            Err(RecvTimeoutError::Timeout) => {
                // One that came late is not made up for.
                next = (next + PERIOD).max(clock.now());
                locked(board).now()
            }
            Err(RecvTimeoutError::Disconnected) => return deliveries,
        };
        for packet in text_formats::packets(&text_formats::lines(&families)) {
            deliveries.note(socket.send(packet.as_bytes()));
        }
    }
}
