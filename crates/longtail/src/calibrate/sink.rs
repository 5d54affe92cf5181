//! The one load sink that all generators are pointed at, and its own account of what it got.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::net::SocketAddr;

use launch::{Addresses, free_address};
use launch::{GuardCommand, LaunchSpec, Server};
use model::{Clock, Nanos, Socket, SystemClock};
use probe::control;
use probe::processes::ServerProcesses;
use sink::SinkLedger;

use crate::GUARD;
use crate::mistake::Mistake;

/// Longest wait for the sink to have nothing open any more.
const PATIENCE: Nanos = Nanos::from_secs(30);
const STEP: Nanos = Nanos::from_millis(10);

/// A sink that runs as a process of its own, under guard.
pub(crate) struct SinkUnderLoad {
    server: Server,
    address: SocketAddr,
    clock: SystemClock,
    process: RefCell<ServerProcesses>,
    /// Where it is.
    pub(crate) url: String,
}

/// The sink at an instant, while it works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SinkReading {
    /// When.
    pub(crate) at: Nanos,
    /// Requests that it has received.
    pub(crate) requests: u64,
    /// CPU time that it has used since it was first read.
    pub(crate) cpu: Option<Nanos>,
}

impl SinkUnderLoad {
    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// Where it cannot be started.
    pub(crate) fn start(program: &OsStr, clock: SystemClock) -> Result<SinkUnderLoad, Mistake> {
        let address: SocketAddr = free_address(Socket::Tcp4, None, &Addresses::default())?;
        let words = [program.to_owned(), "sink".into(), format!("--listen={address}").into()];
        let dir = std::env::current_dir().unwrap_or_else(|_| ".".into());
        let (spec, guard) = (LaunchSpec::command(words, &dir), GuardCommand::this_program(GUARD));
        let server = sweep::start_sink(&spec, &guard, &clock, || control::sink_requests(address).is_ok())?;
        let mut process = ServerProcesses::of(&[server.pid()]);
        process.search(1);
        let process = RefCell::new(process);
        Ok(SinkUnderLoad { server, address, clock, process, url: format!("http://{address}/") })
    }

    /// What it has counted so far.
    fn ledger(&self) -> Option<SinkLedger> {
        control::sink_ledger(self.address).ok()
    }

    /// The sink now, while it is busy.
    pub(crate) fn read(&self) -> Option<SinkReading> {
        let before = self.clock.now();
        let requests = self.ledger()?.requests;
        let after = self.clock.now();
        Some(SinkReading {
            at: before + Nanos((after - before).0 / 2),
            requests,
            cpu: self.process.borrow_mut().sample(None, false).pop().and_then(|sample| Some(Nanos(sample.used?.cpu))),
        })
    }

    /// Its account when nobody is connected any more; `None` where somebody stays.
    pub(crate) fn at_rest(&self) -> Option<SinkLedger> {
        let begun = self.clock.now();
        loop {
            let ledger = self.ledger()?;
            if ledger.open_connections == 0 && ledger.unfinished() == 0 {
                return Some(ledger);
            }
            if self.clock.now() - begun > PATIENCE {
                return None;
            }
            self.clock.sleep(STEP);
        }
    }

    /// Ends it.
    pub(crate) fn stop(self) {
        self.server.stop(Nanos::from_secs(5), &self.clock);
    }
}
