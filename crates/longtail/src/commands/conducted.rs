//! Shared by the commands that start servers: what a study starts with ([`StudyStart`]), and its
//! observer ([`TerminalObserver`]).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::Resolver;
use launch::puma;
use launch::{Addresses, LaunchError};
use model::plan::quoted;
use model::{
    App, ComparisonStudy, MaskedText, Nanos, Probe, ServerKind, ServerPlan, Socket, Study,
    SweepStudy, SystemClock,
};
use sweep::{Context, FarGenerators, Observer, Phase, SweepError, TimeLeft};

use crate::exit::{Exit, Mistake, wrong};
use crate::metrics::Outlets;
use crate::progress::ProgressDisplay;
use crate::results::Results;
use crate::study_files::{CeilingFile, wall_time};
use crate::{guard, signals, this_program, ui};

/// What a study starts with: its clock, the user's interruption, generators on other machines.
pub(crate) struct StudyStart {
    pub(crate) clock: SystemClock,
    pub(crate) started_at: String,
    pub(crate) interrupt: Arc<AtomicBool>,
    pub(crate) far: Option<FarGenerators>,
    ceilings: CeilingFile,
}

impl StudyStart {
    /// Begins a study now, which Ctrl-C ends.
    ///
    /// # Errors
    /// If signals cannot be handled.
    pub(crate) fn now() -> Result<StudyStart, Mistake> {
        Ok(StudyStart::ended_by(signals::interruption()?))
    }

    /// Begins a study now, which `interrupt` ends.
    pub(crate) fn ended_by(interrupt: Arc<AtomicBool>) -> StudyStart {
        let started_at = wall_time();
        let ceilings = CeilingFile::of_day(&started_at);
        StudyStart { clock: SystemClock::start(), started_at, interrupt, far: None, ceilings }
    }

    /// Starts the generators on other machines, if any.
    ///
    /// # Errors
    /// If one of them does not start, or is another version of longtail.
    pub(crate) fn start_far(&mut self, from: &[String]) -> Result<(), Mistake> {
        if !from.is_empty() {
            let far = FarGenerators::start(from, env!("CARGO_PKG_VERSION"), self.clock);
            self.far = Some(far.map_err(SweepError::from)?);
        }
        Ok(())
    }

    /// What all studies need; commands replace what they have flags for.
    pub(crate) fn context(&self, command_line: MaskedText, resolver: Resolver) -> Context<'_> {
        Context {
            clock: self.clock,
            guard: guard(),
            program: this_program(),
            dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            addresses: Addresses::default(),
            boot_timeout: Nanos::ZERO,
            version: env!("CARGO_PKG_VERSION"),
            started_at: self.started_at.clone(),
            command_line,
            interrupt: &self.interrupt,
            ceilings: &self.ceilings,
            other: None,
            far: self.far.as_ref(),
            statsd: None,
            server_env: BTreeMap::new(),
            resolver,
        }
    }
}

/// Refuses `--inspect kernel` if tracepoints are not available here.
pub(crate) fn check_probe_available(asked: Probe) -> Result<(), Mistake> {
    if asked != Probe::Bpf {
        return Ok(());
    }
    probe::bpf::possible().map_err(|missing| {
        wrong(format!(
            "--inspect kernel is not possible here: {missing}; --inspect proc works without it"
        ))
    })
}

/// Has the server listen on the address that remote generators see us at, if all see the same one
/// and the user chose none.
pub(crate) fn bind_for_remote_generators(server: &mut ServerPlan, far: Option<&FarGenerators>) {
    let addresses: Option<Vec<IpAddr>> =
        far.and_then(|far| far.hosts().into_iter().map(|host| host.conductor).collect());
    let Some([first, others @ ..]) = addresses.as_deref() else { return };
    let is_v4 = matches!(server.socket, Socket::Tcp4 | Socket::Ssl4);
    let is_ours = !first.is_loopback() && TcpListener::bind((*first, 0)).is_ok();
    if server.address.is_none()
        && is_ours
        && first.is_ipv4() == is_v4
        && others.iter().all(|other| other == first)
    {
        server.address = Some(*first);
    }
}

/// Replaces Puma by the built-in server if none is found and no flag needs a real one; whether it
/// did.
pub(crate) fn fall_back_to_builtin(server: &mut ServerPlan) -> Result<bool, Mistake> {
    if !server.kind.has_to_be_found() {
        return Ok(false);
    }
    let wants_puma = server.rackup.is_some()
        || server.config.is_some()
        || server.yjit
        || server.app != App::Sleep
        || !server.socket.is_plain_tcp();
    match puma::discover(&puma::Surroundings::here()?) {
        Err(LaunchError::NoPuma) if !wants_puma => {
            ui::note(
                "no Puma found, so the built-in server stands in (--server builtin); `gem install puma` measures the real one",
            );
            server.kind = ServerKind::Builtin;
            Ok(true)
        }
        Err(error) => Err(error.into()),
        Ok(_) => Ok(false),
    }
}

/// What every observer of a study shows on the terminal: where it stands, and each remark once.
pub(crate) struct StudyDisplay {
    display: ProgressDisplay,
    /// Remarks that were shown already.
    remarks: BTreeSet<String>,
    /// Whether a load has begun. Errors before that mean that no load was sent.
    has_sent: bool,
}

impl StudyDisplay {
    pub(crate) fn new() -> StudyDisplay {
        StudyDisplay { display: ProgressDisplay::new(), remarks: BTreeSet::new(), has_sent: false }
    }

    pub(crate) fn phase(&mut self, phase: &Phase) {
        self.has_sent |= matches!(phase, Phase::Running { .. });
        self.display.phase(phase);
    }

    /// Shows what is going on, in the caller's words.
    pub(crate) fn working(&self, what: &str) {
        self.display.working(what);
    }

    pub(crate) fn remark(&mut self, text: &str) {
        if self.remarks.insert(text.to_owned()) {
            self.display.line(text);
        }
    }

    /// What a search for a capacity knows after a trial. If several sizes are searched, it
    /// is the search of the current one.
    pub(crate) fn search(&mut self, study: &Study) {
        if let Study::Capacity(search) = study
            && let Some(known) = report::capacity::progress(search)
        {
            self.display.line(&known);
        }
    }

    /// What a study ended with.
    ///
    /// # Errors
    /// Why it failed.
    pub(crate) fn ended<T>(self, end: Result<T, SweepError>) -> Result<T, Mistake> {
        match end {
            Ok(end) => Ok(end),
            Err(error) if self.has_sent => Err(Mistake::BrokeOff(error)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Shows each run as it is done, saves the study, and exports the judged runs.
pub(crate) struct TerminalObserver<'a> {
    shown: StudyDisplay,
    results: &'a Results<'a>,
    outlets: Option<&'a mut Outlets>,
    /// How many runs are judged and exported; in a comparison, blocks.
    judged: usize,
    /// Whether the study is on disk.
    is_kept: bool,
    /// `--strict`: whether a comparison that cannot tell counts as missed.
    pub(crate) is_strict: bool,
    /// The blocks of a comparison, announced once every arm has started, and again when the first
    /// block is done: only then it is known how long the runs take beyond their length.
    pub(crate) blocks_ahead: Option<BlocksAhead>,
}

/// The blocks that a comparison will have.
pub(crate) struct BlocksAhead {
    /// The blocks after which it may end.
    pub(crate) looks: Vec<u32>,
    pub(crate) least: u32,
    pub(crate) most: u32,
    /// Runs of a block.
    pub(crate) runs: usize,
    /// Whether they were announced before the first.
    pub(crate) are_announced: bool,
}

impl BlocksAhead {
    /// What they are, and how long they take; `left` is the time that all of them take by the lengths
    /// of their runs and the first starts of the servers. How long a server needs for the last
    /// responses of a run, and to stop after it, is not known yet, so the longest time has a fifth
    /// more: where clients wait in turns, it may be longer still.
    fn at_first(&self, left: Option<&TimeLeft>) -> String {
        let BlocksAhead { least, most, runs, .. } = self;
        let blocks = if least == most { most.to_string() } else { format!("{least} to {most}") };
        let plural = if *most == 1 { "" } else { "s" };
        let time = left.map(|left| {
            let minutes = report::number::minutes;
            let shortest = minutes(left.time * u64::from(*least) / u64::from(*most));
            let time = if least == most {
                format!("at least {shortest} in all")
            } else {
                format!("{shortest} to {}", minutes(left.time + left.time / 5))
            };
            let again = if *most == 1 { "" } else { " (the first block will tell)" };
            format!(", {time}{again}")
        });
        let time = time.unwrap_or_default();
        format!("{blocks} block{plural} of {runs} runs, each with a fresh server{time}")
    }

    /// How many blocks follow the first one, and how long they will take, judged by it; `None` if
    /// that is not known or none follows.
    fn after_the_first(&self, left: Option<&TimeLeft>) -> Option<String> {
        let least = self.least.saturating_sub(1);
        let most = self.most.saturating_sub(1);
        let left = left.filter(|_| most > 0)?.time;
        let minutes = report::number::minutes;
        // Servers differ from block to block, and a run that fails its checks is repeated.
        let longest = left + left / 10;
        let plural = if most == 1 { "" } else { "s" };
        Some(if least == most {
            format!(
                "{most} more block{plural}, {} to {}",
                minutes(left - left / 10),
                minutes(longest)
            )
        } else {
            let shortest = left * u64::from(least) / u64::from(most);
            let shortest = minutes(shortest - shortest / 10);
            let ends = match &self.looks[..] {
                [] => String::new(),
                [look] => format!("; it ends after block {look}"),
                [looks @ .., last] => {
                    let looks: Vec<String> = looks.iter().map(u32::to_string).collect();
                    format!(
                        "; it ends after block {} or {last}, once all is clear",
                        looks.join(", ")
                    )
                }
            };
            format!("{least} to {most} more blocks, {shortest} to {}{ends}", minutes(longest))
        })
    }
}

impl<'a> TerminalObserver<'a> {
    pub(crate) fn new(
        results: &'a Results<'a>,
        outlets: Option<&'a mut Outlets>,
    ) -> TerminalObserver<'a> {
        TerminalObserver {
            shown: StudyDisplay::new(),
            results,
            outlets,
            judged: 0,
            is_kept: false,
            is_strict: false,
            blocks_ahead: None,
        }
    }

    fn keep(&mut self, study: &Study) {
        // A file that cannot be written is reported at the end; the study goes on.
        self.is_kept |= self.results.keep(study).is_ok();
    }

    /// Saves and prints the study. If it failed, says how to see the runs that were finished.
    ///
    /// # Errors
    /// Those of the study.
    pub(crate) fn publish<S: Into<Study>>(
        self,
        study: Result<S, SweepError>,
    ) -> Result<Exit, Mistake> {
        let study = self.shown.ended(study.map(S::into)).inspect_err(|mistake| {
            if let Some(path) = self.results.path().filter(|_| self.is_kept) {
                let path = quoted(&path.to_string_lossy());
                ui::note(&format!("the finished runs are kept: longtail report {path}"));
            }
            // A mistake before any load says enough.
            if matches!(mistake, Mistake::BrokeOff(_)) {
                self.results.tell_unwritten();
            }
        })?;
        let judged = Exit::strictly(&study, self.is_strict);
        if study.has_measured_nothing() && judged == Exit::Interrupted {
            self.results.nothing_to_report("interrupted before anything was measured");
            return Ok(judged);
        }
        let exit = judged.and(self.results.publish(&study));
        // A missed threshold has a line of its own.
        if exit == Exit::Missed
            && matches!(study, Study::Compare(_))
            && study.thresholds().is_empty()
        {
            let is_worse = Exit::of(&study) == Exit::Missed;
            let why = if is_worse { "something is worse" } else { "it cannot be told (--strict)" };
            ui::note(&format!("exit code {}: {why}", exit.code()));
        } else if exit == Exit::Fine
            && let Study::Compare(compared) = &study
            && let Some(goes_by) = report::comparison::by_what_exit_goes(compared)
        {
            ui::note(&goes_by);
        }
        Ok(exit)
    }

    /// Exports the runs of a sweep that were judged since the last call, except those of another
    /// generator, which longtail has not measured.
    fn export(&mut self, study: &SweepStudy) {
        let ours =
            (self.judged..study.runs.len()).filter(|number| study.runs[*number].claim.is_none());
        for number in ours {
            self.outlets.iter_mut().for_each(|outlets| outlets.sweep_done(study, number));
        }
        self.judged = study.runs.len();
    }

    /// Says how many blocks there are and how long they take: before the first, and after it.
    fn announce_blocks(&mut self, left: Option<&TimeLeft>) {
        let Some(blocks) = &mut self.blocks_ahead else { return };
        if !blocks.are_announced {
            blocks.are_announced = true;
            self.shown.display.line(&blocks.at_first(left));
            self.blocks_ahead.take_if(|blocks| blocks.most == 1);
        } else if self.judged > 0 {
            let line = blocks.after_the_first(left);
            self.blocks_ahead = None;
            if let Some(line) = line {
                self.shown.display.line(&line);
            }
        }
    }

    /// Shows what is known after a complete block of a comparison.
    fn show_block(&mut self, study: &ComparisonStudy, block: usize) {
        let runs = study.runs.iter().filter(|run| run.block as usize == block);
        let arms: BTreeSet<usize> = runs.map(|run| run.arm).collect();
        if arms.len() == study.plan.arms_of_a_block() && block > self.judged {
            self.judged = block;
            self.shown.display.rows(&study.clone().into());
            self.shown.display.line(&report::comparison::progress(study, block));
        }
    }
}

impl Observer for TerminalObserver<'_> {
    fn phase(&mut self, phase: &Phase) {
        if let Phase::Running { may_end_early: true, left, .. } = phase {
            self.announce_blocks(left.as_ref());
        }
        let mut phase = phase.clone();
        if let Phase::Running { left, .. } = &mut phase
            && self.blocks_ahead.is_some()
        {
            // In the first block it would be too short.
            *left = None;
        }
        self.shown.phase(&phase);
        self.outlets.iter_mut().for_each(|outlets| outlets.phase(&phase));
    }

    fn remark(&mut self, text: &str) {
        self.shown.remark(text);
    }

    fn run_done(&mut self, study: &Study, provisional: &Study) {
        self.outlets.iter_mut().for_each(|outlets| outlets.run_over());
        self.keep(study);
        self.shown.display.rows(provisional);
        self.shown.search(provisional);
    }

    fn judged(&mut self, study: &Study) {
        if study.has_measured_nothing() {
            return;
        }
        self.keep(study);
        // Saved first, because an export may fail.
        if let Study::Sweep(sweep) = study {
            self.export(sweep);
        }
        if let Study::Compare(comparison) = study {
            self.show_block(comparison, comparison.runs.last().map_or(0, |run| run.block as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(seconds: u64) -> TimeLeft {
        TimeLeft { time: Nanos::from_secs(seconds), is_at_most: true, why_longer: None }
    }

    #[test]
    fn before_the_first_block_the_least_time_is_known() {
        let blocks = |least, most| BlocksAhead {
            looks: Vec::new(),
            least,
            most,
            runs: 4,
            are_announced: false,
        };
        assert_eq!(
            blocks(8, 20).at_first(Some(&left(400))),
            "8 to 20 blocks of 4 runs, each with a fresh server, 2:40 to 8:00 (the first block will tell)"
        );
        assert_eq!(
            blocks(1, 1).at_first(Some(&left(20))),
            "1 block of 4 runs, each with a fresh server, at least 0:20 in all"
        );
        assert_eq!(
            blocks(20, 20).at_first(None),
            "20 blocks of 4 runs, each with a fresh server",
            "a count of requests ends the runs"
        );
    }

    #[test]
    fn after_the_first_block_the_time_of_the_others_is_known() {
        let after = |least, most, seconds| {
            let looks = if least == most { vec![most] } else { vec![least, 12, most] };
            let blocks = BlocksAhead { looks, least, most, runs: 4, are_announced: true };
            blocks.after_the_first(Some(&left(seconds)))
        };
        assert_eq!(
            after(8, 20, 1900).as_deref(),
            Some(
                "7 to 19 more blocks, 10:30 to 34:50; it ends after block 8, 12 or 20, once all is clear"
            )
        );
        assert_eq!(after(8, 8, 600).as_deref(), Some("7 more blocks, 9:00 to 11:00"));
        assert_eq!(after(1, 1, 0), None);
    }
}
