//! Printing: results to stdout, progress and errors to stderr. (The screen of `watch`, logs to
//! stdout and pipes between processes are elsewhere.)
//!
//! On a terminal a thread of its own draws the progress; elsewhere each run gets a line on stderr.
//! Nothing waits for that thread, which reads one number per lane a few times a second. If stderr
//! is not read (Ctrl-S, or a pipe into a pager), lines are dropped, and the measurement goes on. Only
//! results on stdout wait for their reader, and they are on disk by then.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use engine::{LastResponses, RunProgress};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::{Nanos, Study};
use report::Width;
use report::answer::Emphasis;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use sweep::Phase;

use crate::exit::{Exit, Mistake};
use crate::secrets;

/// How often the progress line is redrawn.
const TICK: Duration = Duration::from_millis(250);
/// How long to wait for the reader of stderr; after that not again until it reads on.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// A pipe that is ready takes this many bytes without blocking (`PIPE_BUF`, pipe(7)).
pub(crate) const PIECE: usize = 4096;

/// Lines that were not written to stderr because nobody read it.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);
/// How often writing to stdout began or ended, so it is odd during a write.
static PRINTS: AtomicU64 = AtomicU64::new(0);

/// Makes characters visible, as JSON writes them, that control a terminal, reverse text or hide in
/// it. They may come from a server's stderr, a header, a git branch, a study or a statsd name, and
/// what we print is shown on terminals. In JSON the string stays the same.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_active(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters, direction marks and overrides, line and paragraph separators, and characters
/// without width, such as tags, annotations and byte order marks; but not joiners, which make emoji.
fn is_active(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Set once writing to stdout has failed: [`Exit::Fine`] if its reader is gone (`| head`), which is
/// no error, or [`Exit::Unwritten`], as on a full disk.
static STDOUT_LOST: OnceLock<Exit> = OnceLock::new();

/// Prints to stdout. After a failure nothing more is printed: see [`stdout_lost`].
pub(crate) fn print(text: &str) {
    write_out(&harmless(text));
}

fn write_out(text: &str) {
    if stdout_lost().is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    PRINTS.fetch_add(1, Ordering::SeqCst);
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    PRINTS.fetch_add(1, Ordering::SeqCst);
    if let Err(error) = written {
        let has_reader = error.kind() != io::ErrorKind::BrokenPipe;
        if has_reader {
            note(&format!("stdout cannot be written ({error}): give it a place with room"));
        }
        let _ = STDOUT_LOST.set(Exit::Unwritten.if_so(has_reader));
    }
}

/// The exit code once stdout cannot be written any more. Work that is only done to be printed may end
/// then.
pub(crate) fn stdout_lost() -> Option<Exit> {
    STDOUT_LOST.get().copied()
}

/// A number for the write to stdout that is in progress. The same number twice means that nobody has
/// read meanwhile.
pub(crate) fn print_in_progress() -> Option<u64> {
    Some(PRINTS.load(Ordering::SeqCst)).filter(|prints| prints % 2 == 1)
}

/// Waits up to `time` until `out` can be written without blocking; whether it can. It also can if its
/// reader is gone: then the write fails.
pub(crate) fn takes_more(out: impl AsFd, time: Nanos) -> bool {
    let seconds = i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let time = Timespec { tv_sec: seconds, tv_nsec: (time.0 % 1_000_000_000).cast_signed() };
    loop {
        match poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&time)) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            // If that is not known, write.
            Err(_) => return true,
        }
    }
}

/// Prints a value to stdout as JSON.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("its keys are strings");
    print(&(text + "\n"));
}

/// Applies `--color`; `auto` leaves it to `NO_COLOR`, `CLICOLOR_FORCE` and the terminal.
pub(crate) fn choose_color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Prints to stdout, in colour if wanted. Text with control characters is printed without colour.
pub(crate) fn print_painted(
    plain: &str,
    painted: impl FnOnce(&dyn Fn(Emphasis, &str) -> String) -> String,
) {
    let is_colored = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    if is_colored && matches!(harmless(plain), Cow::Borrowed(_)) {
        write_out(&painted(&in_color));
    } else {
        print(plain);
    }
}

/// Bad is red, doubtful yellow, the conclusion bold. Words say the same, for those without colours.
fn in_color(emphasis: Emphasis, text: &str) -> String {
    let style = match emphasis {
        Emphasis::Plain => Style::new(),
        Emphasis::Strong => Style::new().bold(),
        Emphasis::Doubtful => AnsiColor::Yellow.on_default(),
        Emphasis::Bad => AnsiColor::Red.on_default().bold(),
    };
    format!("{style}{text}{style:#}")
}

/// The width of the terminal; any width if stdout is none, or its width is not known.
pub(crate) fn terminal_width() -> Width {
    let out = io::stdout();
    let size = out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten();
    // A serial line reports 0 until somebody sets its size.
    size.filter(|size| size.ws_col > 0).map_or(Width::ANY, |size| Width::of(size.ws_col.into()))
}

/// Writes a line to stderr. It is no error if nobody reads it. While its reader has stopped, lines are
/// dropped, and their number is reported when it reads on.
pub(crate) fn say(line: &str) {
    let left_out = LEFT_OUT.load(Ordering::Relaxed);
    if left_out > 0 && takes_more(io::stderr(), Nanos::ZERO) {
        LEFT_OUT.store(0, Ordering::Relaxed);
        write_to_stderr(&format!(
            "longtail: {left_out} lines are missing here, because stderr was not read\n"
        ));
    }
    if !write_to_stderr(&format!("{}\n", harmless(line))) {
        LEFT_OUT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes to stderr as long as that does not block; whether all was written.
fn write_to_stderr(text: &str) -> bool {
    let mut out = io::stderr().lock();
    text.as_bytes().chunks(PIECE).all(|piece| {
        let has_stopped = LEFT_OUT.load(Ordering::Relaxed) > 0;
        let is_read = takes_more(io::stderr(), if has_stopped { Nanos::ZERO } else { PATIENCE });
        if is_read {
            let _ = out.write_all(piece);
        }
        is_read
    })
}

/// Tells the user something on stderr. Secrets are masked, which a server or another tool may repeat.
pub(crate) fn note(text: &str) {
    say(&format!("longtail: {}", secrets::without_ours(text)));
}

/// Reports a mistake on stderr: the server's last lines, if any, then one line of ours.
pub(crate) fn complain(mistake: &Mistake) {
    for line in mistake.last_lines() {
        say(&format!("  | {}", secrets::masked_line(line)));
    }
    note(&mistake.to_string());
}

/// Reports a part that failed; its exit code. Other parts are done all the same.
pub(crate) fn exit_of_part(done: Result<(), Mistake>) -> Exit {
    match done {
        Ok(()) => Exit::Fine,
        Err(mistake) => {
            complain(&mistake);
            mistake.exit()
        }
    }
}

/// Reports a bug in longtail on stderr, clearing a progress line that may be there.
pub(crate) fn fault(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[2K");
    }
    note(text);
}

/// What a long command shows while it runs: the rows that are done, and a line of progress below
/// them. All of it disappears at the end.
pub(crate) struct Ui {
    /// Draws it; `None` if the thread could not start.
    drawer: Option<Drawer>,
    /// Whether stderr is a terminal. Otherwise only single lines are printed.
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
    Rows(String),
    /// A line that stays.
    Line(String),
}

impl Ui {
    /// Draws on stderr if that is a terminal; otherwise it only prints single lines.
    pub(crate) fn new() -> Ui {
        let is_drawn = io::stderr().is_terminal();
        // Without a thread nothing is drawn.
        Ui { drawer: Drawer::start(is_drawn).ok(), is_drawn }
    }

    /// Shows what is going on.
    pub(crate) fn phase(&self, phase: &Phase) {
        let Phase::Running {
            number,
            of,
            what,
            connections,
            length,
            left,
            may_end_early,
            progress,
            ..
        } = phase
        else {
            return self.working(&phase_in_words(phase));
        };
        // With one run this would only repeat its length.
        let left = left.filter(|_| *of > 1).map(|left| {
            let about = if *may_end_early { "at most" } else { "about" };
            format!(", {about} {} left", report::number::minutes(left))
        });
        let comma = if what.is_empty() { "" } else { ", " };
        let left = left.unwrap_or_default();
        let message = format!("run {number}/{of}{left}: {what}{comma}{connections} connections");
        if !self.is_drawn {
            // So that a sweep in a script is not silent for minutes.
            note(&format!(
                "{message}{}",
                length.map(|length| format!(", {length}")).unwrap_or_default()
            ));
        }
        self.show(&message, length.map(RunLength::Time), progress.clone());
    }

    /// Shows the progress of a load, by its time or its number of requests.
    pub(crate) fn loading(
        &self,
        length: Option<Nanos>,
        number: Option<u64>,
        progress: &Arc<RunProgress>,
    ) {
        let length = length.map(RunLength::Time).or(number.map(RunLength::Requests));
        self.show("load", length, Some(Arc::clone(progress)));
    }

    /// Shows what is going on while no requests are counted.
    pub(crate) fn working(&self, what: &str) {
        self.show(what, None, None);
    }

    fn show(&self, what: &str, length: Option<RunLength>, progress: Option<Arc<RunProgress>>) {
        let what = harmless(what).into_owned();
        let line = ProgressLine { what, length, progress, ..ProgressLine::default() };
        self.send(Update::Begun(line));
    }

    /// Prints a line that stays: above the progress, or else on stderr.
    pub(crate) fn line(&self, text: &str) {
        if self.is_drawn {
            self.send(Update::Line(harmless(text).into_owned()));
        } else {
            note(text);
        }
    }

    /// Shows the runs that are done.
    pub(crate) fn rows(&self, study: &Study) {
        if self.is_drawn {
            self.send(Update::Rows(harmless(&report::answer::rows(study)).into_owned()));
        }
    }

    fn send(&self, update: Update) {
        if let Some(drawer) = &self.drawer {
            // It fails only if the thread has panicked, which ends longtail.
            let _ = drawer.updates.send(update);
        }
    }
}

impl Drop for Ui {
    /// Waits until the line is gone, unless the terminal is stopped.
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
            draw(&received, is_drawn);
            drop(alive);
        })?;
        Ok(Drawer { updates, ended })
    }
}

/// Draws updates until no more can come. If `is_drawn` is not set, it only prints what a run waits
/// for at its end.
fn draw(updates: &Receiver<Update>, is_drawn: bool) {
    let style =
        ProgressStyle::with_template("{prefix}{spinner} {msg}").expect("a constant template");
    // Drawn before the first update comes.
    let target = if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar =
        ProgressBar::with_draw_target(None, target).with_style(style).with_message("starting");
    let mut line = ProgressLine { what: "starting".to_owned(), ..ProgressLine::default() };
    loop {
        match updates.recv_timeout(TICK) {
            Ok(Update::Begun(next)) => {
                bar.reset_elapsed();
                line = next;
            }
            Ok(Update::Rows(rows)) => bar.set_prefix(rows),
            Ok(Update::Line(text)) => bar.println(text),
            Err(RecvTimeoutError::Timeout) if !is_drawn => {
                line.new_wait(bar.elapsed()).iter().for_each(|wait| note(wait));
            }
            Err(RecvTimeoutError::Timeout) => {
                bar.set_message(line.text(bar.elapsed()));
                bar.tick();
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    bar.finish_and_clear();
}

/// What is going on between runs.
fn phase_in_words(phase: &Phase) -> Cow<'static, str> {
    let what = match phase {
        Phase::Calibrating => "measuring the generator's own limit",
        Phase::Starting => "starting the server",
        Phase::WarmingUp => "warming the server up with each body",
        Phase::MeasuringServiceTime { at_most } => {
            let most = report::number::span(*at_most);
            return format!("measuring how long one request takes alone, at most {most}").into();
        }
        Phase::RepeatingFirstLoad { length } => {
            let length = report::number::span(*length);
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
#[derive(Clone, Copy, Debug)]
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
    length: Option<RunLength>,
    progress: Option<Arc<RunProgress>>,
    /// When the run began to wait for its last responses.
    waits_since: Option<Duration>,
    /// Whether that wait was printed, if no line is drawn.
    is_wait_printed: bool,
    /// When the figures were last computed.
    at: Duration,
    /// How many requests had ended then.
    ended: u64,
    /// `, 1203/s, p50 3.56 ms, p99 23.3 ms`.
    figures: String,
}

/// How often the figures are computed. Each time a generator thread has to copy its tally.
const REFRESH: Duration = Duration::from_secs(2);

impl ProgressLine {
    /// The line's text, `elapsed` after it was first shown.
    fn text(&mut self, elapsed: Duration) -> String {
        if let Some(wait) = self.wait(elapsed) {
            return format!("{}, {wait}", self.what);
        }
        let (elapsed, length) = match self.length {
            None => (elapsed, String::new()),
            Some(RunLength::Requests(number)) => (elapsed, format!(" of {number} requests")),
            Some(RunLength::Time(length)) => {
                (elapsed.min(Duration::from(length)), format!(" of {length}"))
            }
        };
        let done = match self.progress.clone() {
            None => String::new(),
            Some(run) if run.start() == Nanos::ZERO && run.connected() > 0 => {
                format!(", {} connections open", run.connected())
            }
            Some(run) => {
                self.update(&run, elapsed);
                format!(", {} requests{}", run.ended(), self.figures)
            }
        };
        format!("{}, {:#}{length}{done}", self.what, HumanDuration(elapsed))
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
        // A closed loop that time ends goes on until the last measured response is in.
        let sends_on = !run.is_open_loop() && matches!(self.length, Some(RunLength::Time(_)));
        Some(last_responses(last, sends_on, run.timeout(), waited))
    }

    /// What a run waits for, once, if that lasts for a while.
    fn new_wait(&mut self, elapsed: Duration) -> Option<String> {
        let wait = self.wait(elapsed)?;
        let last = self.progress.as_ref().and_then(|run| run.last_responses());
        let all_are_in = matches!(last, Some(LastResponses { out: 0, queued: 0 }));
        let is_worth_a_line =
            !all_are_in && self.waits_since.is_some_and(|since| elapsed > since + NOTABLE_WAIT);
        if self.is_wait_printed || !is_worth_a_line {
            return None;
        }
        self.is_wait_printed = true;
        Some(wait)
    }

    fn update(&mut self, progress: &RunProgress, now: Duration) {
        let passed = now.saturating_sub(self.at);
        if passed < REFRESH {
            return;
        }
        let ended = progress.ended();
        let rate = ended.saturating_sub(self.ended) as f64 / passed.as_secs_f64();
        self.figures = format!(", {}/s", report::number::rate_in_words(rate));
        let tally = progress.tally();
        for q in [0.5, 0.99] {
            if let Some(time) = tally.as_ref().and_then(|tally| tally.response_time_at(q).time()) {
                let _ = write!(
                    self.figures,
                    ", {} {}",
                    report::number::percentile(q),
                    report::number::time(time)
                );
            }
        }
        self.at = now;
        self.ended = ended;
    }
}

/// If no line is drawn, a wait for the last responses is printed after this time; most are shorter.
const NOTABLE_WAIT: Duration = Duration::from_millis(500);
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
    let left = Duration::from(timeout).saturating_sub(waited).as_secs_f64().ceil();
    let most = format!("at most {left} s more");
    match last {
        None => format!("{ended}; waiting for the last responses, {most}"),
        Some(LastResponses { out: 0, queued: 0 }) => format!("{ended}; all responses are in"),
        Some(LastResponses { out, queued: 0 }) => {
            let responses = report::number::count_of(out, "response");
            format!("{ended}; waiting for {responses}, {most}")
        }
        Some(LastResponses { out, queued }) => format!(
            "the last request was due; waiting for {}, and {} for a free connection",
            report::number::count_of(out, "response"),
            if queued == 1 {
                "1 request waits".to_owned()
            } else {
                format!("{queued} requests wait")
            }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut line = ProgressLine { what: "load".to_owned(), length, ..ProgressLine::default() };
        assert_eq!(line.text(Duration::from_millis(2900)), "load, 2s of 2s");
        assert_eq!(line.new_wait(Duration::from_millis(2900)), None);
        let over = "its time is over, but it has not ended yet";
        assert_eq!(line.text(Duration::from_secs(4)), format!("load, {over}"));
        assert_eq!(line.new_wait(Duration::from_secs(5)).as_deref(), Some(over));
        assert_eq!(line.new_wait(Duration::from_secs(6)), None, "it is printed once");
    }

    #[test]
    fn control_characters_become_visible() {
        for (text, shown) in [
            ("as it is: ✔ ±5 %\n\tindented\n", "as it is: ✔ ±5 %\n\tindented\n"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("over\rwritten", "over\\u000dwritten"),
            ("\u{9b}2J", "\\u009b2J"),
            ("\u{202e}moc.elpmaxe", "\\u202emoc.elpmaxe"),
            ("a\u{200f}b\u{61c}c\u{feff}", "a\\u200fb\\u061cc\\ufeff"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(harmless(text), shown);
        }
        let json = serde_json::to_string("a\u{9b}b\u{7f}").unwrap();
        assert_eq!(serde_json::from_str::<String>(&harmless(&json)).unwrap(), "a\u{9b}b\u{7f}");
    }
}
