//! What a long command shows while it runs: on a terminal the rows that are done and a line of
//! progress below them, elsewhere a line on stderr for each run, and one every ten seconds.
//!
//! A thread of its own draws. Nothing waits for it, and it reads one number per lane a few times a
//! second.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use engine::{LastResponses, RunProgress};
use model::{Clock as _, Nanos, Study, SystemClock};
use report::answer::GrowingTable;
use report::{Width, number};
use sweep::{FiguresMeter, FiguresSoFar, Phase, TimeLeft};

use crate::live_block::{self, ROOM_FOR_KEYS};
use crate::terminal::{PATIENCE, TerminalSize, harmless, takes_more};
use crate::ui::{self, note};

/// How often the progress line is redrawn.
const TICK: Duration = Duration::from_millis(250);
/// How often a line says where it stands if nothing is drawn.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// What a long command shows while it runs: the rows that are done, and a line of progress below
/// them. All of it disappears at the end.
pub(crate) struct ProgressDisplay {
    /// Draws it; `None` if the thread could not start.
    drawer: Option<Drawer>,
    /// Whether stderr is a terminal that can be drawn on. Otherwise only single lines are printed.
    is_drawn: bool,
}

/// A thread that draws. Nobody waits for it, because a terminal may be stopped.
struct Drawer {
    updates: Sender<Update>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

/// Something to draw.
enum Update {
    /// What is going on from now on.
    Begun(ProgressLine),
    /// The runs that are done.
    Rows(GrowingTable),
    /// A line that stays.
    Line(String),
}

impl ProgressDisplay {
    /// Draws on stderr if that is a terminal; otherwise it only prints single lines.
    pub(crate) fn new() -> ProgressDisplay {
        let is_drawn = live_block::can_be_drawn();
        // Without a thread nothing is drawn.
        ProgressDisplay { drawer: Drawer::start(is_drawn).ok(), is_drawn }
    }

    /// Shows what is going on.
    pub(crate) fn phase(&self, phase: &Phase) {
        let Phase::Running { number, of, what, connections, length, left, progress, .. } = phase
        else {
            return self.working(&phase_in_words(phase));
        };
        let name = match (what.as_str(), *of) {
            ("", _) => format!("run {number}/{of}"),
            // One that is not counted says itself which it is.
            (what, 1) => what.to_owned(),
            (what, _) => format!("run {number}/{of}: {what}"),
        };
        // An open loop opens as many as it needs, up to that number.
        let is_open_loop = progress.as_ref().is_some_and(|run| run.is_open_loop());
        let connections = (!is_open_loop).then(|| number::count_of(*connections, "connection"));
        // With one run this would only repeat its length.
        let left = left.clone().filter(|_| *of > 1);
        if !self.is_drawn {
            // So that a sweep in a script is not silent for minutes.
            let length = length.map(number::span);
            let left =
                left.as_ref().map(|left| fitted(left_in_words(left, left.time).into(), usize::MAX));
            let parts = [Some(name.clone()), connections.clone(), length, left];
            note(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
        }
        self.begin(ProgressLine {
            what: name,
            connections: connections.unwrap_or_default(),
            length: length.map(RunLength::Time),
            left,
            progress: progress.clone(),
            ..ProgressLine::default()
        });
    }

    /// Shows the progress of a load, by its time or its number of requests.
    pub(crate) fn loading(
        &self,
        length: Option<Nanos>,
        number: Option<u64>,
        progress: &Arc<RunProgress>,
    ) {
        self.begin(ProgressLine {
            what: "load".to_owned(),
            is_whole_study: true,
            length: length.map(RunLength::Time).or(number.map(RunLength::Requests)),
            progress: Some(Arc::clone(progress)),
            ..ProgressLine::default()
        });
    }

    /// Shows what is going on while no requests are counted.
    pub(crate) fn working(&self, what: &str) {
        self.begin(ProgressLine { what: what.to_owned(), ..ProgressLine::default() });
    }

    fn begin(&self, line: ProgressLine) {
        let what = harmless(&line.what).into_owned();
        self.send(Update::Begun(ProgressLine { what, ..line }));
    }

    /// Prints a line that stays: above the progress, or else on stderr.
    pub(crate) fn line(&self, text: &str) {
        if self.is_drawn {
            self.send(Update::Line(text.to_owned()));
        } else {
            note(text);
        }
    }

    /// Shows the runs that are done.
    pub(crate) fn rows(&self, study: &Study) {
        if self.is_drawn {
            self.send(Update::Rows(GrowingTable::of(study)));
        }
    }

    fn send(&self, update: Update) {
        if let Some(drawer) = &self.drawer {
            // It fails only if the thread has panicked, which ends longtail.
            let _ = drawer.updates.send(update);
        }
    }
}

impl Drop for ProgressDisplay {
    /// Waits until the lines are gone, unless the terminal is stopped.
    fn drop(&mut self) {
        let Some(Drawer { updates, ended }) = self.drawer.take() else { return };
        drop(updates);
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout)
            && takes_more(io::stderr(), PATIENCE)
        {}
    }
}

impl Drawer {
    /// Starts the thread.
    ///
    /// # Errors
    /// If it cannot start.
    fn start(is_drawn: bool) -> io::Result<Drawer> {
        let (updates, received) = channel();
        let (alive, ended) = channel();
        std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            if is_drawn {
                draw(&received);
            } else {
                print(&received);
            }
            drop(alive);
        })?;
        Ok(Drawer { updates, ended })
    }
}

/// Draws updates until no more can come.
fn draw(updates: &Receiver<Update>) {
    let clock = SystemClock::start();
    let mut line = ProgressLine { what: "starting".to_owned(), ..ProgressLine::default() };
    let mut table: Option<GrowingTable> = None;
    for tick in 0.. {
        match updates.recv_timeout(TICK) {
            Ok(Update::Begun(next)) => line = ProgressLine { begun: clock.now(), ..next },
            Ok(Update::Rows(rows)) => table = Some(rows),
            Ok(Update::Line(text)) => ui::say(&text),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let size = TerminalSize::of_stderr();
        let width = Width::of(size.columns.into());
        let mut lines = match &table {
            Some(table) => table.lines(width, size.rows.saturating_sub(2).into()),
            None => Vec::new(),
        };
        let room = usize::from(size.columns).saturating_sub(ROOM_FOR_KEYS + 2);
        let text = fitted(line.pieces(Duration::from(clock.now() - line.begun)), room);
        lines.push(format!("{} {text}", SPINNER[tick % SPINNER.len()]));
        live_block::draw(&lines, size);
    }
    live_block::lift();
}

/// Shows that something moves.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// If no line is drawn, prints on stderr what a run waits for at its end, and every ten seconds how
/// far it is, until no more updates can come.
fn print(updates: &Receiver<Update>) {
    let clock = SystemClock::start();
    let mut line = ProgressLine { what: "starting".to_owned(), ..ProgressLine::default() };
    let mut next_report = REPORT_EVERY;
    loop {
        match updates.recv_timeout(TICK) {
            Ok(Update::Begun(next)) => {
                let knows_of_waits = line.knows_of_waits || line.is_wait_printed;
                line = ProgressLine { begun: clock.now(), knows_of_waits, ..next };
                next_report = REPORT_EVERY;
            }
            Ok(Update::Rows(_) | Update::Line(_)) => {}
            Err(RecvTimeoutError::Timeout) => {
                let elapsed = Duration::from(clock.now() - line.begun);
                line.new_wait(elapsed).iter().for_each(|wait| note(wait));
                // This asks for the figures ahead of the report: the generator threads take a while
                // to copy what the percentiles are made of.
                if elapsed + FiguresMeter::REFRESH * 2 >= next_report {
                    line.pieces(elapsed);
                }
                if elapsed >= next_report && !line.is_about_to_end(elapsed) {
                    note(&fitted(line.pieces(elapsed), usize::MAX));
                    next_report += REPORT_EVERY;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// A part of the line of progress. Where there is no room for all, those with the highest number
/// leave first.
#[derive(Clone)]
struct ProgressPiece {
    text: String,
    leaves: u8,
}

/// As many of the pieces as there is room for; the last resort is to cut the text behind a word.
fn fitted(mut pieces: Vec<ProgressPiece>, columns: usize) -> String {
    pieces.retain(|piece| !piece.text.is_empty());
    loop {
        let mut text = String::new();
        for piece in &pieces {
            let between = match piece.text.chars().next() {
                _ if text.is_empty() => "",
                Some('(') => " ",
                _ => ", ",
            };
            text += between;
            text += &piece.text;
        }
        if text.chars().count() <= columns {
            return text;
        }
        let next = pieces.iter().map(|piece| piece.leaves).max().unwrap_or(0);
        if next == 0 {
            return cut_behind_word(&text, columns);
        }
        pieces.retain(|piece| piece.leaves != next);
    }
}

/// As many whole words as there is room for; at least a part of the first.
fn cut_behind_word(text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let fits = |end: &usize| text[..*end].chars().count() <= room;
    let ends = text.match_indices(' ').map(|(end, _)| end);
    match ends.take_while(fits).last() {
        Some(end) => text[..end].trim_end_matches(',').to_owned() + "…",
        None => text.chars().take(room).chain(['…']).collect(),
    }
}

/// `about 1:10 left`, and why that is more than was said before, which leaves a narrow line as a
/// whole.
fn left_in_words(left: &TimeLeft, now: Nanos) -> [ProgressPiece; 2] {
    let about = if left.is_at_most { "at most" } else { "about" };
    let time = format!("{about} {} left", number::minutes(now));
    let why = left.why_longer.as_ref().map(|why| format!("({why})"));
    [
        ProgressPiece { text: time, leaves: 0 },
        ProgressPiece { text: why.unwrap_or_default(), leaves: 1 },
    ]
}

/// What is going on between runs.
fn phase_in_words(phase: &Phase) -> Cow<'static, str> {
    let what = match phase {
        Phase::Calibrating => "measuring the generator's own limit",
        Phase::Starting => "starting the server",
        Phase::WarmingUp => "warming the server up with each body",
        Phase::MeasuringServiceTime { at_most } => {
            let most = number::span(*at_most);
            return format!("measuring how long one request takes alone, at most {most}").into();
        }
        Phase::RepeatingFirstLoad { length } => {
            let length = number::span(*length);
            return format!("repeating the first load for {length}, because the runs differ")
                .into();
        }
        Phase::Probing => "probing the order of service, with keep-alive and without",
        Phase::CoolingDown => "waiting until the server is idle",
        Phase::Reconciling => "waiting for the server's own count",
        Phase::Stopping => "stopping the server",
        Phase::Running { .. } => "running",
    };
    what.into()
}

/// What ends a run.
#[derive(Clone, Copy)]
enum RunLength {
    /// Its time, warm-up included.
    Time(Nanos),
    /// A number of requests.
    Requests(u64),
}

/// The line of progress: what is going on and for how long, and a run's rate and response times so
/// far.
#[derive(Default)]
struct ProgressLine {
    what: String,
    /// Whether nothing comes after it: a load is a single run.
    is_whole_study: bool,
    /// `40 connections`; empty if nothing is loaded.
    connections: String,
    length: Option<RunLength>,
    /// How long the whole study will take, from the beginning of this line on.
    left: Option<TimeLeft>,
    progress: Option<Arc<RunProgress>>,
    /// When it was first shown.
    begun: Nanos,
    /// When the run began to wait for its last responses.
    waits_since: Option<Duration>,
    /// Whether that wait was printed, if no line is drawn.
    is_wait_printed: bool,
    /// Whether such a wait of an earlier run of the study was printed.
    knows_of_waits: bool,
    meter: FiguresMeter,
    /// `1203/s`, then `p50 3.56 ms` and `p99 23.3 ms`.
    figures: Vec<ProgressPiece>,
}

impl ProgressLine {
    /// The line's parts, `elapsed` after it was first shown.
    fn pieces(&mut self, elapsed: Duration) -> Vec<ProgressPiece> {
        let piece = |text: String, leaves| ProgressPiece { text, leaves };
        if let Some(wait) = self.wait(elapsed) {
            // Of one run among several, the wait says little without the run's name.
            let leaves = u8::from(self.is_whole_study);
            return vec![piece(self.what.clone(), leaves), piece(wait, 0)];
        }
        let so_far = |time: Duration| number::minutes(Nanos::from(time));
        let time = match self.length {
            None => so_far(elapsed),
            Some(RunLength::Requests(number)) => {
                format!("{} of {number} requests", so_far(elapsed))
            }
            Some(RunLength::Time(length)) => {
                let elapsed = elapsed.min(Duration::from(length));
                format!("{} of {}", so_far(elapsed), number::minutes(length))
            }
        };
        let mut pieces = vec![
            piece(self.what.clone(), 0),
            piece(self.connections.clone(), 6),
            piece(time, if self.left.is_some() { 4 } else { 0 }),
        ];
        match self.progress.clone() {
            None => {}
            Some(run) if run.start() == Nanos::ZERO && run.connected() > 0 => {
                pieces.push(piece(format!("{} connections open", run.connected()), 2));
            }
            Some(run) => {
                self.update(&run, elapsed);
                pieces.push(piece(number::count_of(run.ended(), "request"), 5));
                pieces.extend(self.figures.iter().cloned());
            }
        }
        if let Some(left) = &self.left {
            let now = Nanos(left.time.0.saturating_sub(Nanos::from(elapsed).0));
            pieces.extend(left_in_words(left, now));
        }
        pieces
    }

    /// Whether so little is left of it that a line about it would be stale when it is read.
    fn is_about_to_end(&self, elapsed: Duration) -> bool {
        match self.length {
            Some(RunLength::Time(length)) => elapsed + OVERDUE * 2 > Duration::from(length),
            Some(RunLength::Requests(_)) | None => false,
        }
    }

    /// What a run waits for at its end; `None` before.
    fn wait(&mut self, elapsed: Duration) -> Option<String> {
        let last = self.progress.as_ref().and_then(|run| run.last_responses());
        // Generators on other machines, and other tools, don't report it.
        let is_late = match self.length {
            Some(RunLength::Time(length)) => elapsed > Duration::from(length) + OVERDUE,
            _ => false,
        };
        if last.is_none() && !is_late {
            return None;
        }
        let waited = elapsed.saturating_sub(*self.waits_since.get_or_insert(elapsed));
        let Some(run) = &self.progress else {
            return Some("its time is over, but it has not ended yet".to_owned());
        };
        if !self.is_whole_study {
            return Some(last_responses_of_one(last, run.timeout(), waited));
        }
        // A closed loop that time ends goes on until the last measured response is in.
        let sends_on = !run.is_open_loop() && matches!(self.length, Some(RunLength::Time(_)));
        Some(last_responses(last, sends_on, run.timeout(), waited))
    }

    /// What a run waits for, once, if that lasts for a while.
    fn new_wait(&mut self, elapsed: Duration) -> Option<String> {
        let wait = self.wait(elapsed)?;
        let last = self.progress.as_ref().and_then(|run| run.last_responses());
        let all_are_in = matches!(last, Some(LastResponses { out: 0, queued: 0 }));
        let notable = if self.knows_of_waits { LONG_WAIT } else { NOTABLE_WAIT };
        let is_worth_a_line =
            !all_are_in && self.waits_since.is_some_and(|since| elapsed > since + notable);
        if self.is_wait_printed || !is_worth_a_line {
            return None;
        }
        self.is_wait_printed = true;
        Some(if self.is_whole_study { wait } else { format!("{}, {wait}", self.what) })
    }

    fn update(&mut self, progress: &RunProgress, now: Duration) {
        let Some(FiguresSoFar { rate_per_s, p50, p99 }) = self.meter.read(progress, now) else {
            return;
        };
        let due = progress.constant_rate();
        let rate = rate_so_far(rate_per_s, due);
        self.figures = vec![ProgressPiece { text: rate, leaves: 1 }];
        if is_far_behind(rate_per_s, due) {
            // The times grow then, and a percentile would only say how long the load has lasted.
            self.figures.push(ProgressPiece { text: "not keeping up".to_owned(), leaves: 2 });
            return;
        }
        for (name, time, leaves) in [("p50", p50, 3), ("p99", p99, 2)] {
            if let Some(time) = time {
                let text = format!("{name} {}", number::time(time));
                self.figures.push(ProgressPiece { text, leaves });
            }
        }
    }
}

/// Whether clearly fewer requests are answered than are due, if they are due at a rate.
fn is_far_behind(responses_per_s: f64, due_per_s: Option<f64>) -> bool {
    /// Two seconds of independent arrivals at a low rate may be fewer by chance.
    const FAR_BEHIND: f64 = 0.8;
    due_per_s.is_some_and(|due| responses_per_s < FAR_BEHIND * due)
}

/// The rate of responses, and beside it the rate of requests that it stays behind: `1566/s of 2500/s`.
fn rate_so_far(responses_per_s: f64, due_per_s: Option<f64>) -> String {
    let [rate, due] = [responses_per_s, due_per_s.unwrap_or_default()].map(number::rate_in_words);
    if is_far_behind(responses_per_s, due_per_s) {
        format!("{rate}/s of {due}/s")
    } else {
        format!("{rate}/s")
    }
}

/// If no line is drawn, a wait for the last responses is printed after this time; most are shorter.
const NOTABLE_WAIT: Duration = Duration::from_millis(500);
/// The same in the later runs of a study, whose user has read that a run waits.
const LONG_WAIT: Duration = Duration::from_secs(5);
/// A run that does not report its last responses waits for them this long after its time.
const OVERDUE: Duration = Duration::from_secs(1);

/// What a run waits for at its end, and how long that may still take. `last` is `None` if the number
/// of responses is not known.
fn last_responses(
    last: Option<LastResponses>,
    sends_on: bool,
    timeout: Nanos,
    waited: Duration,
) -> String {
    let ended = if sends_on { "the measured time is over" } else { "sending has ended" };
    let most = longest_wait(timeout, waited);
    match last {
        None => format!("{ended}; waiting for the last responses, {most}"),
        Some(LastResponses { out: 0, queued: 0 }) => format!("{ended}; all responses are in"),
        Some(LastResponses { out, queued: 0 }) => {
            let responses = number::count_of(out, "response");
            format!("{ended}; waiting for {responses}, {most}")
        }
        Some(LastResponses { out, queued }) => format!(
            "the last request was due; waiting for {}, and {} for a free connection",
            number::count_of(out, "response"),
            if queued == 1 {
                "1 request waits".to_owned()
            } else {
                format!("{queued} requests wait")
            }
        ),
    }
}

/// The same of one run among several: it does not say that anything is over, which reads as if the
/// study were.
fn last_responses_of_one(last: Option<LastResponses>, timeout: Nanos, waited: Duration) -> String {
    let most = longest_wait(timeout, waited);
    match last {
        None => format!("waiting for its last responses, {most}"),
        Some(LastResponses { out: 0, queued: 0 }) => "its last responses are in".to_owned(),
        // Those that still wait for a free connection get their responses later than `most`.
        Some(LastResponses { out, queued }) if queued > 0 => {
            format!("waiting for its last {}", number::count_of(out + queued, "response"))
        }
        Some(LastResponses { out, .. }) => {
            let responses = match out {
                1 => "response".to_owned(),
                several => number::count_of(several, "response"),
            };
            format!("waiting for its last {responses}, {most}")
        }
    }
}

/// `at most 5 s more`
fn longest_wait(timeout: Nanos, waited: Duration) -> String {
    let left = Duration::from(timeout).saturating_sub(waited).as_secs_f64().ceil();
    format!("at most {left} s more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_of_one_run_among_several_does_not_say_that_anything_is_over() {
        let said = |last| {
            let waited = Duration::from_millis(3200);
            last_responses_of_one(last, Nanos::from_secs(5), waited)
        };
        let last = |out, queued| Some(LastResponses { out, queued });
        assert_eq!(said(last(43, 0)), "waiting for its last 43 responses, at most 2 s more");
        assert_eq!(said(last(1, 0)), "waiting for its last response, at most 2 s more");
        assert_eq!(said(last(8, 70)), "waiting for its last 78 responses");
        assert_eq!(said(last(0, 0)), "its last responses are in");
        assert_eq!(said(None), "waiting for its last responses, at most 2 s more");
    }

    #[test]
    fn a_rate_far_behind_that_of_the_requests_is_said_beside_it() {
        assert_eq!(rate_so_far(1566.0, Some(2500.0)), "1566/s of 2500/s");
        assert_eq!(rate_so_far(2480.0, Some(2500.0)), "2480/s");
        assert_eq!(rate_so_far(1566.0, None), "1566/s", "a closed loop has no rate of its own");
    }

    #[test]
    fn a_wait_for_the_last_responses_says_how_many_and_how_long() {
        let five = Nanos::from_secs(5);
        let said = |out, queued, sends_on, waited_ms| {
            let last = LastResponses { out, queued };
            last_responses(Some(last), sends_on, five, Duration::from_millis(waited_ms))
        };
        assert_eq!(
            said(43, 0, false, 0),
            "sending has ended; waiting for 43 responses, at most 5 s more"
        );
        assert_eq!(
            said(1, 0, false, 3200),
            "sending has ended; waiting for 1 response, at most 2 s more"
        );
        assert_eq!(
            said(2, 0, true, 0),
            "the measured time is over; waiting for 2 responses, at most 5 s more"
        );
        assert_eq!(said(0, 0, false, 0), "sending has ended; all responses are in");
        assert_eq!(
            said(8, 70, false, 0),
            "the last request was due; waiting for 8 responses, and 70 requests wait for a free connection"
        );
    }

    #[test]
    fn the_elapsed_time_never_exceeds_that_of_the_run() {
        let length = Some(RunLength::Time(Nanos::from_secs(2)));
        let load = || ProgressLine {
            what: "load".to_owned(),
            is_whole_study: true,
            length,
            ..ProgressLine::default()
        };
        let mut line = load();
        let text = |line: &mut ProgressLine, elapsed| fitted(line.pieces(elapsed), 100);
        assert_eq!(text(&mut line, Duration::from_millis(2900)), "load, 0:02 of 0:02");
        assert_eq!(line.new_wait(Duration::from_millis(2900)), None);
        let over = "its time is over, but it has not ended yet";
        assert_eq!(text(&mut line, Duration::from_secs(4)), format!("load, {over}"));
        assert_eq!(line.new_wait(Duration::from_secs(5)).as_deref(), Some(over));
        assert_eq!(line.new_wait(Duration::from_secs(6)), None, "it is printed once");
        let mut next = ProgressLine { knows_of_waits: true, ..load() };
        assert_eq!(next.new_wait(Duration::from_secs(4)), None);
        assert_eq!(next.new_wait(Duration::from_secs(8)), None, "not yet long");
        assert_eq!(next.new_wait(Duration::from_secs(10)).as_deref(), Some(over));
    }

    #[test]
    fn pieces_leave_a_narrow_line_by_importance() {
        let piece = |text: &str, leaves| ProgressPiece { text: text.to_owned(), leaves };
        let pieces = || {
            vec![
                piece("run 2/5", 0),
                piece("40 connections", 6),
                piece("0:04 of 0:11", 4),
                piece("71.8/s", 1),
                piece("p50 50.7 ms", 3),
                piece("", 0),
                piece("about 0:38 left", 0),
            ]
        };
        for (columns, expected) in [
            (80, "run 2/5, 40 connections, 0:04 of 0:11, 71.8/s, p50 50.7 ms, about 0:38 left"),
            (60, "run 2/5, 0:04 of 0:11, 71.8/s, p50 50.7 ms, about 0:38 left"),
            (40, "run 2/5, 71.8/s, about 0:38 left"),
            (24, "run 2/5, about 0:38 left"),
            (18, "run 2/5, about…"),
            (12, "run 2/5…"),
            (3, "ru…"),
        ] {
            assert_eq!(fitted(pieces(), columns), expected);
        }
    }

    #[test]
    fn why_it_takes_longer_leaves_a_narrow_line_as_a_whole() {
        let left = TimeLeft {
            time: Nanos::from_secs(70),
            is_at_most: false,
            why_longer: Some("0:07 more than said: the last run took 34.0 s".to_owned()),
        };
        let pieces = || left_in_words(&left, left.time).into();
        assert_eq!(
            fitted(pieces(), 80),
            "about 1:10 left (0:07 more than said: the last run took 34.0 s)"
        );
        assert_eq!(fitted(pieces(), 40), "about 1:10 left");
    }
}
