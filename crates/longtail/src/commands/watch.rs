//! `longtail watch`: looks at a server that runs already.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use engine::{RaiseOnDrop, Resolver, spawn_scoped};
use model::{Clock as _, Nanos};
use probe::sampler::{self, Observation};

use crate::args::WatchArgs;
use crate::args::watch::place;
use crate::clock::SystemClock;
use crate::exit::Exit;
use crate::mistake::{Mistake, no_thread};
use crate::watch::{self, WatchBoard, WatchEnd, WatchScreen, WatchTarget};
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
    let target = WatchTarget::find(&args.target, args.port, control.as_ref().map(place).as_ref(), resolver)?;
    let is_drawn = !args.is_plain() && watch::is_a_terminal();
    let interrupt = signals::interruption()?;
    let clock = SystemClock::start();
    let sampler = if target.elsewhere.is_none() { Some(target.sampler(args.every)) } else { None };
    let source = sampler.as_ref().map_or("connect", |sampler| sampler.source());
    let over = AtomicBool::new(false);
    let (tell, told) = channel();
    let mut board = WatchBoard::new(target.missing.clone(), target.elsewhere.is_some());
    let end = std::thread::scope(|scope| {
        // Whatever happens here, the threads end too.
        let _ending = RaiseOnDrop(&over);
        if let Some(control) = &control {
            let (tell, over) = (tell.clone(), &over);
            let polling = move || sampler::poll(control, &clock, args.every, over, |seen| tell.send(seen).is_ok());
            spawn_scoped(scope, "statistics", polling).map_err(no_thread)?;
        }
        let looking = || {
            // Nobody listens where the watch is over.
            let tell = |seen: Observation| !matches!(seen, Observation::Ended { .. }) & tell.send(seen).is_ok();
            match (sampler, target.elsewhere) {
                (Some(sampler), _) => sampler.run(&clock, &over, tell),
                (None, Some(address)) => watch::connect(address, &clock, args.every, &over, tell),
                (None, None) => {}
            }
        };
        spawn_scoped(scope, "sampler", looking).map_err(no_thread)?;
        let mut viewer = Viewer { args, target: &target, source, screen: None, length, interrupt: &interrupt };
        if is_drawn {
            viewer.screen = Some(WatchScreen::take()?);
        }
        viewer.follow(&told, clock, &mut board)
    })?;
    if !matches!(end, WatchEnd::Server(_)) {
        board.close(clock.now());
    }
    ui::print(&if args.output.is_json() {
        watch::json(&target, &board, end, source)
    } else {
        watch::table(&target, &board, end, source)
    });
    let is_early = length.is_some() && end == WatchEnd::User && !is_drawn;
    Ok(if is_early { Exit::Interrupted } else { Exit::Fine })
}

/// Whoever looks at the board while it fills.
struct Viewer<'a> {
    args: &'a WatchArgs,
    target: &'a WatchTarget,
    source: &'static str,
    screen: Option<WatchScreen>,
    length: Option<Nanos>,
    interrupt: &'a AtomicBool,
}

impl Viewer<'_> {
    /// Takes in what is told until it is over.
    fn follow(
        &mut self,
        told: &Receiver<Observation>,
        clock: SystemClock,
        board: &mut WatchBoard,
    ) -> Result<WatchEnd, Mistake> {
        if self.args.lines {
            ui::print(&watch::line_head());
        }
        loop {
            let mut news = told.recv_timeout(GLANCE);
            while let Ok(seen) = news {
                let is_look = matches!(seen, Observation::Server(_) | Observation::Connected { .. });
                board.take(seen);
                if let Some(at) = board.ended {
                    return Ok(WatchEnd::Server(at));
                }
                if is_look && self.args.lines {
                    ui::print(&watch::line(board));
                }
                news = told.recv_timeout(Duration::ZERO);
            }
            if let Some(screen) = &mut self.screen {
                screen.draw(self.target, board, self.source)?;
                if screen.wants_to_end()? {
                    return Ok(WatchEnd::User);
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
