//! Flags of what is done to a server in the middle of a run (`--during`), and the control server of
//! a Puma that runs already.

use std::path::{Path, PathBuf};

use clap::Args;
use engine::Resolver;
use model::{ControlServer, Nanos, Objective, PlannedEvent, Threshold};
use probe::control;
use watch::{StatisticsSource, short_path};

use crate::args::ADVANCED;
use crate::exit::{Mistake, wrong};
use crate::study_files;

/// Flags of an event.
#[derive(Debug, Args)]
pub(crate) struct EventArgs {
    /// Do something to the server meanwhile, and say what it costs: restart@20s
    ///
    /// phased-restart, restart, refork, worker-kill, worker-term, scale-up, scale-down (of a Puma),
    /// a signal such as HUP, or a command such as 'sh -c "bin/deploy"@20s', where the last @ with a
    /// time counts. Without a time, after a third of the run.
    #[arg(long, value_name = "EVENT@TIME", help_heading = ADVANCED)]
    pub(crate) during: Option<PlannedEvent>,
    /// Puma's first process [default: whoever listens at the URL]
    #[arg(long, value_name = "PID", requires = "during", help_heading = ADVANCED)]
    pub(crate) pid: Option<u32>,
    /// Puma's state file [default: looked for where Puma runs]
    #[arg(long, value_name = "FILE", requires = "during", conflicts_with = "control_url", help_heading = ADVANCED)]
    pub(crate) state: Option<PathBuf>,
    #[arg(long, value_name = "URL", requires = "during", help_heading = ADVANCED, help = "Puma's control server: tcp://HOST:9293 or unix:///PATH")]
    pub(crate) control_url: Option<String>,
    /// Token of the control server
    #[arg(long, value_name = "TOKEN", requires = "control_url", help_heading = ADVANCED)]
    pub(crate) control_token: Option<String>,
}

impl EventArgs {
    /// The event with its time, in a measured window of this length.
    ///
    /// # Errors
    /// If the time is not in the window, or none can be chosen.
    pub(crate) fn planned(&self, window: Option<Nanos>) -> Result<Option<PlannedEvent>, Mistake> {
        self.during.as_ref().map(|during| with_time(during, window)).transpose()
    }
}

/// The event with its time, in a measured window of this length: after a third of it, unless it has
/// one.
///
/// # Errors
/// If the time is not in the window, or none can be chosen.
pub(crate) fn with_time(
    event: &PlannedEvent,
    window: Option<Nanos>,
) -> Result<PlannedEvent, Mistake> {
    let PlannedEvent { kind, at } = event;
    let at = match (at, window) {
        (Some(at), _) => *at,
        (None, Some(window)) => window / 3,
        (None, None) => {
            return Err(wrong(format!(
                "--during {kind} wants a time where a number of requests ends the run: write {kind}@2s"
            )));
        }
    };
    if let Some(window) = window.filter(|window| at >= *window) {
        return Err(wrong(format!(
            "--during {kind}@{at} comes after the run, which measures for {window}: give --for {}",
            at * 3
        )));
    }
    Ok(PlannedEvent { kind: kind.clone(), at: Some(at) })
}

/// Refuses conditions that no run can be held against: about a part of a run without an event, or
/// about a part while the run goes on (`stop_if`).
pub(crate) fn check_parts(
    has_event: bool,
    thresholds: &[Threshold],
    stop_if: &[Objective],
) -> Result<(), Mistake> {
    if let Some(objective) = stop_if.iter().find(|objective| objective.part.is_some()) {
        return Err(wrong(format!(
            "--stop-if '{objective}': parts of a run are told when it is over; give --expect"
        )));
    }
    let of_part = thresholds.iter().find(|threshold| threshold.condition.part.is_some());
    match of_part {
        Some(Threshold { condition, .. }) if !has_event => Err(wrong(format!(
            "'{condition}' is about an event, and the run has none: give --during, such as --during phased-restart"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Flags of the control server of a Puma that runs already.
#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// Puma's state file [default: looked for where Puma runs]
    #[arg(long, value_name = "FILE", conflicts_with = "control_url", help_heading = ADVANCED)]
    state: Option<PathBuf>,
    #[arg(long, value_name = "URL", help_heading = ADVANCED, help = "Puma's control server: tcp://HOST:9293 or unix:///PATH")]
    control_url: Option<String>,
    /// Token of the control server
    #[arg(long, value_name = "TOKEN", requires = "control_url", help_heading = ADVANCED)]
    control_token: Option<String>,
}

impl ControlArgs {
    /// The control server, where one was named.
    ///
    /// # Errors
    /// As [`control_source`].
    pub(crate) fn source(&self, resolver: &Resolver) -> Result<Option<StatisticsSource>, Mistake> {
        control_source(
            self.state.as_deref(),
            self.control_url.as_deref(),
            self.control_token.as_deref(),
            resolver,
        )
    }

    /// Whether any of these flags is given.
    pub(crate) fn is_given(&self) -> bool {
        self.state.is_some() || self.control_url.is_some() || self.control_token.is_some()
    }
}

/// The control server that a state file, or else a URL, names; `None` if neither is given.
///
/// # Errors
/// If it cannot be asked from here, or the state file names none.
pub(crate) fn control_source(
    state: Option<&Path>,
    url: Option<&str>,
    token: Option<&str>,
    resolver: &Resolver,
) -> Result<Option<StatisticsSource>, Mistake> {
    let find = |host: &str, port: u16| {
        resolver.resolve(host, port).map(|found| found[0]).map_err(|error| error.to_string())
    };
    if let Some(path) = state {
        let read = |why: String| Mistake::Read { path: path.to_owned(), why };
        let text = String::from_utf8_lossy(&study_files::read_bytes(path)?).into_owned();
        let control = control::from_state_file(&text, &find).map_err(read)?;
        return Ok(Some(StatisticsSource { control, shown: short_path(path) }));
    }
    let Some(url) = url else { return Ok(None) };
    let address =
        control::parse_address(url, &find).map_err(|why| wrong(format!("--control-url: {why}")))?;
    let control = ControlServer { address, token: token.unwrap_or_default().to_owned() };
    Ok(Some(StatisticsSource { control, shown: url.to_owned() }))
}
