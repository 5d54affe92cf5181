//! `longtail watch`: looks at a server that runs already.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use engine::{RaiseOnDrop, Resolver, spawn_scoped};
use model::{Clock as _, Nanos};

use crate::args::WatchArgs;
use crate::args::watch::place;
use crate::clock::SystemClock;
use crate::exit::Exit;
use crate::mistake::{Mistake, no_thread};
use crate::watch::{self, Board, End, Sampler, Screen, Seen, Target};
use crate::{signals, ui};

/// A key is answered so soon.
const GLANCE: Duration = Duration::from_millis(50);

/// Finds the server, looks at it until it ends, its time is up or the user has seen enough, and tells what was seen.
///
/// # Errors
/// Where a flag is wrong, or there is no such server.
pub(crate) fn run(args: &WatchArgs, resolver: &Resolver) -> Result<Exit, Mistake> {
    let length = args.length()?;
    let control = args.control(resolver)?;
    let target = Target::find(&args.target, args.port, control.as_ref().map(place).as_ref(), resolver)?;
    let is_drawn = !args.is_plain() && watch::is_a_terminal();
    let interrupt = signals::interruption()?;
    let clock = SystemClock::start();
    let sampler = if target.elsewhere.is_none() { Some(Sampler::of(&target)) } else { None };
    let source = sampler.as_ref().map_or("connect", Sampler::source);
    let over = AtomicBool::new(false);
    let (tell, told) = channel();
    let mut board = match target.elsewhere {
        Some(_) => Board::elsewhere(target.missing.clone()),
        None => Board::new(target.missing.clone()),
    };
    let end = std::thread::scope(|scope| {
        // Whatever happens here, the threads end too.
        let _ending = RaiseOnDrop(&over);
        if let Some(control) = &control {
            let (tell, over) = (tell.clone(), &over);
            let polling = move || watch::poll_on(control, &clock, args.every, over, &tell);
            spawn_scoped(scope, "statistics", polling).map_err(no_thread)?;
        }
        let looking = || match (sampler, target.elsewhere) {
            (Some(sampler), _) => sampler.look_on(&clock, args.every, &over, &tell),
            (None, Some(address)) => watch::connect_on(address, &clock, args.every, &over, &tell),
            (None, None) => {}
        };
        spawn_scoped(scope, "sampler", looking).map_err(no_thread)?;
        let mut viewer = Viewer { args, target: &target, source, screen: None, length, interrupt: &interrupt };
        if is_drawn {
            viewer.screen = Some(Screen::take()?);
        }
        viewer.follow(&told, clock, &mut board)
    })?;
    if !matches!(end, End::Server(_)) {
        board.close(clock.now());
    }
    ui::print(&if args.format.is_json() {
        watch::json(&target, &board, end, source)
    } else {
        watch::table(&target, &board, end, source)
    });
    let is_early = length.is_some() && end == End::User && !is_drawn;
    Ok(if is_early { Exit::Interrupted } else { Exit::Fine })
}

/// Whoever looks at the board while it fills.
struct Viewer<'a> {
    args: &'a WatchArgs,
    target: &'a Target,
    source: &'static str,
    screen: Option<Screen>,
    length: Option<Nanos>,
    interrupt: &'a AtomicBool,
}

impl Viewer<'_> {
    /// Takes in what is told until it is over.
    fn follow(&mut self, told: &Receiver<Seen>, clock: SystemClock, board: &mut Board) -> Result<End, Mistake> {
        if self.args.lines {
            ui::print(&watch::line_head());
        }
        loop {
            let mut news = told.recv_timeout(GLANCE);
            while let Ok(seen) = news {
                let is_look = matches!(seen, Seen::All(_) | Seen::Connected { .. });
                board.take(seen);
                if let Some(at) = board.ended() {
                    return Ok(End::Server(at));
                }
                if is_look && self.args.lines {
                    ui::print(&watch::line(board));
                }
                news = told.recv_timeout(Duration::ZERO);
            }
            if let Some(screen) = &mut self.screen {
                screen.draw(self.target, board, self.source)?;
                if screen.wants_to_end()? {
                    return Ok(End::User);
                }
            }
            if self.interrupt.load(Ordering::Relaxed) || matches!(news, Err(RecvTimeoutError::Disconnected)) {
                return Ok(End::User);
            }
            if self.length.is_some_and(|length| clock.now() >= length) {
                return Ok(End::Time);
            }
        }
    }
}
