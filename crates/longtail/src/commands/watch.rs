//! `longtail watch`: looks at a server that runs already.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use engine::{RaiseOnDrop, Resolver, spawn_scoped};
use model::{Clock as _, Nanos, SystemClock};
use probe::sampler::{self, Observation};

use crate::args::WatchArgs;
use crate::exit::Exit;
use crate::mistake::{Mistake, no_thread};
use crate::watch::{self, AnswerLine, StatisticsSource, WatchBoard, WatchEnd, WatchEvidence, WatchScreen, WatchTarget};
use crate::{signals, ui};

/// A key is answered so soon.
const GLANCE: Duration = Duration::from_millis(50);

/// Finds the server, looks at it until it ends, its time is up or the user has seen enough, and tells what was seen.
///
/// # Errors
/// Where a flag is wrong, or there is no such server.
pub(crate) fn run(args: &WatchArgs, resolver: &Resolver) -> Result<Exit, Mistake> {
    let is_drawn = !args.is_plain() && watch::is_a_terminal();
    let length = args.length(is_drawn)?;
    let of_processes = |pids: &[u32]| StatisticsSource::of_processes(pids, resolver);
    // Of a process the control server must be known first: it is no port that is watched.
    let named = args.statistics(resolver)?.or_else(|| of_processes(args.target.pid().as_slice()));
    let control = named.as_ref().map(|source| &source.control.address);
    let target = WatchTarget::find(&args.target, args.port, control, resolver)?;
    let statistics = named.or_else(|| of_processes(&target.roots));
    let (interrupt, clock) = (signals::interruption()?, SystemClock::start());
    let (target, over) = (&target, &AtomicBool::new(false));
    let (sender, receiver) = channel();
    let mut board = WatchBoard::new(target.not_visible.clone(), target.elsewhere.is_some(), statistics.is_some());
    let end = std::thread::scope(|scope| {
        // Whatever happens here, the threads end too.
        let _ending = RaiseOnDrop(over);
        // Nobody listens where the watch is over.
        let tell = move |seen: Observation| sender.send(seen).is_ok();
        if let Some(StatisticsSource { control, .. }) = &statistics {
            let tell = tell.clone();
            let polling = move || sampler::poll(control, &clock, args.every, over, tell);
            spawn_scoped(scope, "statistics", polling).map_err(no_thread)?;
        }
        let looking = move || match target.elsewhere {
            Some(address) => watch::connect(address, &clock, args.every, over, tell),
            None => target.sampler(args.every).run(&clock, over, tell),
        };
        spawn_scoped(scope, "sampler", looking).map_err(no_thread)?;
        let screen = if is_drawn { Some(WatchScreen::take(args.full)?) } else { None };
        let statistics = statistics.as_ref();
        Viewer { args, target, statistics, screen, length, interrupt: &interrupt }.follow(&receiver, clock, &mut board)
    })?;
    if end != WatchEnd::Server {
        board.close(clock.now());
    }
    let seen = WatchEvidence::of(&board);
    let all = args.full.then_some(&board);
    if args.output.is_json() {
        let answer = watch::watch_json(target, &seen, Some(end), all);
        ui::print(&if args.lines { format!("{answer}\n") } else { format!("{answer:#}\n") });
    } else {
        let lines = watch::answer(target, statistics.as_ref(), &seen, Some(end));
        let answer: String = lines.into_iter().map(|line| line.text + "\n").collect();
        let all = all.map(|board| format!("\n{}", watch::all_figures(board)));
        ui::print(&(answer + &all.unwrap_or_default()));
    }
    let is_early = args.has_length() && end == WatchEnd::User && !is_drawn;
    Ok(if is_early { Exit::Interrupted } else { Exit::Fine })
}

/// Whoever looks at the board while it fills.
struct Viewer<'a> {
    args: &'a WatchArgs,
    target: &'a WatchTarget,
    statistics: Option<&'a StatisticsSource>,
    screen: Option<WatchScreen>,
    length: Option<Nanos>,
    interrupt: &'a AtomicBool,
}

impl Viewer<'_> {
    /// Takes in what is observed until it is over.
    fn follow(
        &mut self,
        receiver: &Receiver<Observation>,
        clock: SystemClock,
        board: &mut WatchBoard,
    ) -> Result<WatchEnd, Mistake> {
        if self.args.lines && !self.args.output.is_json() {
            ui::print(&watch::line_head());
        }
        loop {
            let mut news = receiver.recv_timeout(GLANCE);
            while let Ok(seen) = news {
                let is_sample = matches!(seen, Observation::Server(_) | Observation::Connected { .. });
                let is_shown = is_sample || matches!(seen, Observation::Statistics { .. });
                self.screen.iter_mut().for_each(|screen| screen.is_stale |= is_shown);
                board.take(seen);
                if board.ended.is_some() {
                    return Ok(WatchEnd::Server);
                }
                if is_sample && self.args.lines {
                    ui::print(&if self.args.output.is_json() {
                        format!("{}\n", watch::watch_json(self.target, &WatchEvidence::of(board), None, None))
                    } else {
                        watch::line(board)
                    });
                }
                news = receiver.recv_timeout(Duration::ZERO);
            }
            if let Some(screen) = &mut self.screen {
                if screen.wants_to_end()? {
                    return Ok(WatchEnd::User);
                }
                if screen.is_stale {
                    let mut lines = watch::answer(self.target, self.statistics, &WatchEvidence::of(board), None);
                    if screen.is_full {
                        lines.push(AnswerLine::plain(""));
                        lines.extend(watch::all_figures(board).lines().map(AnswerLine::plain));
                    }
                    screen.draw(&lines)?;
                }
            }
            if self.interrupt.load(Ordering::Relaxed) || matches!(news, Err(RecvTimeoutError::Disconnected)) {
                return Ok(WatchEnd::User);
            }
            if self.length.is_some_and(|length| clock.now() >= length) {
                return Ok(WatchEnd::Time);
            }
        }
    }
}
