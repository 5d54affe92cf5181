//! Printing: results to stdout, progress and complaints to stderr. The live screen, logs to stdout
//! and the pipes between processes are elsewhere.
//!
//! Progress is drawn by a thread of its own on a terminal; elsewhere a run is a line of stderr, and
//! so is a wait for its last answers. It reads one number per lane a few times a second and is never
//! waited for. Whoever reads stderr may stop (Ctrl-S, or a pipe into a pager): then what is said
//! there is left out, and the measurement goes on. Only results on stdout wait for their reader,
//! once they are on disk.

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

/// Redraws of the progress line.
const TICK: Duration = Duration::from_millis(250);
/// Who reads stderr is waited for so long, and then not again until they read on.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// A pipe that takes anything takes so many bytes without blocking (`PIPE_BUF`, pipe(7)).
pub(crate) const PIECE: usize = 4096;

/// Lines left out of stderr since its reader stopped.
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);
/// Odd while stdout is being written to; how often that began or ended.
static PRINTS: AtomicU64 = AtomicU64::new(0);

/// What controls a terminal, turns text around or hides in it becomes visible, as JSON writes it:
/// text from outside (a server's stderr, the value of a header, a git branch, a study's strings, a
/// name in statsd) is in what we print, and in the files that people look at with `cat`. Inside JSON
/// it stays the same string.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters; marks and overrides of the direction of text; line and paragraph separators;
/// what has no width, such as tags, annotations and byte order marks. (Joiners make emoji.)
fn acts(c: char) -> bool {
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

/// How stdout was lost, once it was: [`Exit::Fine`] where its reader has gone (`| head`), which is
/// no error, [`Exit::Unwritten`] on a full disk.
static STDOUT_LOST: OnceLock<Exit> = OnceLock::new();

/// Prints to stdout. After the first time that this was not possible nothing more is printed: see
/// [`stdout_lost`].
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

/// What it comes to that stdout could not be written; `None` as long as it could. What goes on only
/// to be printed may end then.
pub(crate) fn stdout_lost() -> Option<Exit> {
    STDOUT_LOST.get().copied()
}

/// What is being printed now, by a number of its own: who finds the same number twice knows that
/// nobody has read meanwhile.
pub(crate) fn print_in_progress() -> Option<u64> {
    Some(PRINTS.load(Ordering::SeqCst)).filter(|prints| prints % 2 == 1)
}

/// Waits until something can be written there without blocking, `time` at the most; whether it can.
/// Where its reader is gone it can: that is an error of the write.
pub(crate) fn takes_more(out: impl AsFd, time: Nanos) -> bool {
    let seconds = i64::try_from(time.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let time = Timespec { tv_sec: seconds, tv_nsec: (time.0 % 1_000_000_000).cast_signed() };
    loop {
        match poll(&mut [PollFd::new(&out, PollFlags::OUT)], Some(&time)) {
            Ok(ready) => return ready > 0,
            Err(Errno::INTR) => {}
            // What cannot be asked is written to as it is.
            Err(_) => return true,
        }
    }
}

/// Prints something to stdout as JSON.
pub(crate) fn print_json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).expect("its keys are strings");
    print(&(text + "\n"));
}

/// What `--color` says; without it `NO_COLOR`, `CLICOLOR_FORCE` and the terminal decide.
pub(crate) fn choose_color(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => {}
        clap::ColorChoice::Always => anstream::ColorChoice::Always.write_global(),
        clap::ColorChoice::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Prints to stdout, in colour where that is wanted. Text that would control a terminal is printed
/// without.
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

/// Bad is red, doubtful yellow, the answer bold; each is said in words too.
fn in_color(emphasis: Emphasis, text: &str) -> String {
    let style = match emphasis {
        Emphasis::Plain => Style::new(),
        Emphasis::Strong => Style::new().bold(),
        Emphasis::Doubtful => AnsiColor::Yellow.on_default(),
        Emphasis::Bad => AnsiColor::Red.on_default().bold(),
    };
    format!("{style}{text}{style:#}")
}

/// That of the terminal which stdout is now; any where it is none, or does not tell.
pub(crate) fn terminal_width() -> Width {
    let out = io::stdout();
    let size = out.is_terminal().then(|| tcgetwinsize(&out).ok()).flatten();
    // A serial line has none, until somebody tells it.
    size.filter(|size| size.ws_col > 0).map_or(Width::ANY, |size| Width::of(size.ws_col.into()))
}

/// Says a line on stderr. Where nobody listens, that is no error; where its reader has stopped, the
/// line is left out, and how many were is said when they read on.
pub(crate) fn say(line: &str) {
    let left_out = LEFT_OUT.load(Ordering::Relaxed);
    if left_out > 0 && takes_more(io::stderr(), Nanos::ZERO) {
        LEFT_OUT.store(0, Ordering::Relaxed);
        write_to_stderr(&format!(
            "longtail: {left_out} lines are missing here: nobody read them\n"
        ));
    }
    if !write_to_stderr(&format!("{}\n", harmless(line))) {
        LEFT_OUT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes to stderr, as long as it takes more; whether all was written.
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

/// Says on stderr what a user should know beside the results. What a server or another tool says
/// may repeat a secret that it was given.
pub(crate) fn note(text: &str) {
    say(&format!("longtail: {}", secrets::without_ours(text)));
}

/// Says on stderr what went wrong: a server's own last lines where there are any, then our one
/// line.
pub(crate) fn complain(mistake: &Mistake) {
    for line in mistake.last_lines() {
        say(&format!("  | {}", secrets::masked_line(line)));
    }
    note(&mistake.to_string());
}

/// What became of a part of an invocation that keeps no other part from being done: what went wrong
/// is said.
pub(crate) fn exit_of_part(done: Result<(), Mistake>) -> Exit {
    done.map_or_else(
        |mistake| {
            complain(&mistake);
            mistake.exit()
        },
        |()| Exit::Fine,
    )
}

/// Says that longtail itself has failed, on a line of its own: a progress line may stand there.
pub(crate) fn fault(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[2K");
    }
    note(text);
}

/// What a long command shows while it goes on: the rows that are done, and a line of progress below
/// them. All of it goes at the end.
pub(crate) struct Ui {
    /// Who draws it; `None` where there is no thread.
    drawer: Option<Drawer>,
    /// Whether stderr is a terminal; elsewhere only what must be said is said.
    is_drawn: bool,
}

/// A thread that draws. Whatever it is told, nobody waits for it: a terminal may be stopped.
struct Drawer {
    news: Sender<News>,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

/// What there is to draw.
enum News {
    /// This is going on from now on.
    Begun(ProgressLine),
    /// The runs that are done.
    Rows(String),
    /// A line that stays.
    Line(String),
}

impl Ui {
    /// A line on stderr where that is a terminal; else only what must be said.
    pub(crate) fn new() -> Ui {
        let is_drawn = io::stderr().is_terminal();
        // Where no thread can be had, nothing is drawn.
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
            return self.working(&waits_for(phase));
        };
        // The first estimate of a study of one run would only say its length again.
        let left = left.filter(|_| *of > 1).map(|left| {
            let about = if *may_end_early { "at most" } else { "about" };
            format!(", {about} {} left", report::number::minutes(left))
        });
        let comma = if what.is_empty() { "" } else { ", " };
        let left = left.unwrap_or_default();
        let message = format!("run {number}/{of}{left}: {what}{comma}{connections} connections");
        if !self.is_drawn {
            // Minutes of a script's sweep are not silent.
            note(&format!(
                "{message}{}",
                length.map(|length| format!(", {length}")).unwrap_or_default()
            ));
        }
        self.show(&message, length.map(RunLength::Time), progress.clone());
    }

    /// Shows how far a load is, by its time or its number of requests.
    pub(crate) fn loading(
        &self,
        length: Option<Nanos>,
        number: Option<u64>,
        progress: &Arc<RunProgress>,
    ) {
        let length = length.map(RunLength::Time).or(number.map(RunLength::Requests));
        self.show("load", length, Some(Arc::clone(progress)));
    }

    /// Shows what is going on where no requests are counted.
    pub(crate) fn working(&self, what: &str) {
        self.show(what, None, None);
    }

    fn show(&self, what: &str, length: Option<RunLength>, progress: Option<Arc<RunProgress>>) {
        let what = harmless(what).into_owned();
        self.tell(News::Begun(ProgressLine { what, length, progress, ..ProgressLine::default() }));
    }

    /// Says a line that stays: above the progress, or on stderr where there is none.
    pub(crate) fn line(&self, text: &str) {
        if self.is_drawn {
            self.tell(News::Line(harmless(text).into_owned()));
        } else {
            note(text);
        }
    }

    /// Shows the runs that are done.
    pub(crate) fn rows(&self, study: &Study) {
        if self.is_drawn {
            self.tell(News::Rows(harmless(&report::answer::rows(study)).into_owned()));
        }
    }

    fn tell(&self, news: News) {
        if let Some(drawer) = &self.drawer {
            // It fails only where the thread has panicked, and that ends longtail.
            let _ = drawer.news.send(news);
        }
    }
}

impl Drop for Ui {
    /// Waits until the line is gone, unless the terminal is stopped.
    fn drop(&mut self) {
        let Some(Drawer { news, ended }) = self.drawer.take() else { return };
        drop(news);
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout)
            && takes_more(io::stderr(), PATIENCE)
        {}
    }
}

impl Drawer {
    /// Begins to draw.
    ///
    /// # Errors
    /// Where the system has no thread.
    fn start(is_drawn: bool) -> io::Result<Drawer> {
        let (news, received) = channel();
        let (alive, ended) = channel();
        std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            draw(&received, is_drawn);
            drop(alive);
        })?;
        Ok(Drawer { news, ended })
    }
}

/// Draws what there is, until no more can come; where nothing is drawn, it only says what a run
/// waits for at its end.
fn draw(news: &Receiver<News>, is_drawn: bool) {
    let style =
        ProgressStyle::with_template("{prefix}{spinner} {msg}").expect("a constant template");
    // Its first frame is drawn before anything is reported.
    let target = if is_drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar =
        ProgressBar::with_draw_target(None, target).with_style(style).with_message("starting");
    let mut line = ProgressLine { what: "starting".to_owned(), ..ProgressLine::default() };
    loop {
        match news.recv_timeout(TICK) {
            Ok(News::Begun(next)) => {
                bar.reset_elapsed();
                line = next;
            }
            Ok(News::Rows(rows)) => bar.set_prefix(rows),
            Ok(News::Line(text)) => bar.println(text),
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

/// What is going on where no run is.
fn waits_for(phase: &Phase) -> Cow<'static, str> {
    let what = match phase {
        Phase::Calibrating => "measuring the generator's own limit",
        Phase::Starting => "starting the server",
        Phase::WarmingUp => "warming the server up with each body",
        Phase::MeasuringServiceTime { at_most } => {
            let most = report::number::span(*at_most);
            return format!("measuring what one request takes alone, {most} at most").into();
        }
        Phase::RepeatingFirstLoad { length } => {
            let length = report::number::span(*length);
            return format!("the first load once more, {length}, for the runs differ").into();
        }
        Phase::Probing => "probing who waits for whom, with keep-alive and without",
        Phase::CoolingDown => "waiting until the server is idle",
        Phase::Reconciling => "waiting for the server's own count",
        _ => "stopping the server",
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

/// What is going on, for how long already, and of a run its rate now and the response times so far.
#[derive(Default)]
struct ProgressLine {
    what: String,
    length: Option<RunLength>,
    progress: Option<Arc<RunProgress>>,
    /// Since when the run has only waited for its last answers.
    waits_since: Option<Duration>,
    /// Whether that was said where no line is drawn.
    is_wait_told: bool,
    /// When the rate was last worked out, and how many requests had ended then.
    at: Duration,
    ended: u64,
    /// `, 1203/s, p50 3.56 ms, p99 23.3 ms`.
    figures: String,
}

/// The figures are worked out anew so often: each time costs a generator thread a copy of its
/// tally.
const REFRESH: Duration = Duration::from_secs(2);

impl ProgressLine {
    /// The line, so long after it was first shown.
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

    /// What a run waits for that has nothing more to send; `None` before.
    fn wait(&mut self, elapsed: Duration) -> Option<String> {
        let said = self.progress.as_ref().and_then(|run| run.last_responses());
        // Generators elsewhere, and other programs, do not say.
        let is_late = match self.length {
            Some(RunLength::Time(length)) => elapsed > Duration::from(length) + OVERDUE,
            _ => false,
        };
        if said.is_none() && !is_late {
            return None;
        }
        let waited = elapsed.saturating_sub(*self.waits_since.get_or_insert(elapsed));
        let Some(run) = &self.progress else {
            return Some("its time is over; it has not ended yet".to_owned());
        };
        // A closed loop that time ends keeps its load up until the last measured answer is in.
        let sends_on = !run.is_open_loop() && matches!(self.length, Some(RunLength::Time(_)));
        Some(last_responses(said, sends_on, run.timeout(), waited))
    }

    /// The same, once, where it has gone on for a while and something is still out.
    fn new_wait(&mut self, elapsed: Duration) -> Option<String> {
        let wait = self.wait(elapsed)?;
        let last = self.progress.as_ref().and_then(|run| run.last_responses());
        let all_are_in = matches!(last, Some(LastResponses { out: 0, queued: 0 }));
        let is_worth_a_line =
            !all_are_in && self.waits_since.is_some_and(|since| elapsed > since + TOLD);
        if self.is_wait_told || !is_worth_a_line {
            return None;
        }
        self.is_wait_told = true;
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
        (self.at, self.ended) = (now, ended);
    }
}

/// Where no line is drawn, a wait for the last answers is told once it has lasted so long: shorter
/// ones end most runs.
const TOLD: Duration = Duration::from_millis(500);
/// A run whose time is over by this much waits for answers, where it does not say so itself.
const OVERDUE: Duration = Duration::from_secs(1);

/// What a run waits for that has nothing more to send, and for how long yet; `None`: it does not
/// say how much that is.
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
        None => format!("{ended}; the last answers are out, {most}"),
        Some(LastResponses { out: 0, queued: 0 }) => format!("{ended}; all answers are in"),
        Some(LastResponses { out, queued: 0 }) => {
            let are = if out == 1 { "is" } else { "are" };
            format!("{ended}; {} {are} out, {most}", report::number::count_of(out, "answer"))
        }
        Some(LastResponses { out, queued }) => format!(
            "the last request was due; {} out, and {} for a free connection",
            report::number::count_of(out, "answer"),
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
    fn a_wait_for_the_last_answers_says_how_many_and_how_long() {
        let five = Nanos::from_secs(5);
        let said = |out, queued, sends_on, waited_ms| {
            let last = LastResponses { out, queued };
            last_responses(Some(last), sends_on, five, Duration::from_millis(waited_ms))
        };
        assert_eq!(
            said(43, 0, false, 0),
            "sending has ended; 43 answers are out, at most 5 s more"
        );
        assert_eq!(said(1, 0, false, 3200), "sending has ended; 1 answer is out, at most 2 s more");
        assert_eq!(
            said(2, 0, true, 0),
            "the measured time is over; 2 answers are out, at most 5 s more"
        );
        assert_eq!(said(0, 0, false, 0), "sending has ended; all answers are in");
        assert_eq!(
            said(8, 70, false, 0),
            "the last request was due; 8 answers out, and 70 requests wait for a free connection"
        );
    }

    #[test]
    fn no_line_says_more_time_than_the_run_has() {
        let length = Some(RunLength::Time(Nanos::from_secs(2)));
        let mut line = ProgressLine { what: "load".to_owned(), length, ..ProgressLine::default() };
        assert_eq!(line.text(Duration::from_millis(2900)), "load, 2s of 2s");
        assert_eq!(line.new_wait(Duration::from_millis(2900)), None);
        let over = "its time is over; it has not ended yet";
        assert_eq!(line.text(Duration::from_secs(4)), format!("load, {over}"));
        assert_eq!(line.new_wait(Duration::from_secs(5)).as_deref(), Some(over));
        assert_eq!(line.new_wait(Duration::from_secs(6)), None, "it is said once");
    }

    #[test]
    fn text_from_outside_does_nothing_to_a_terminal() {
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
