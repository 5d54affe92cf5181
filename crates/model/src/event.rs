//! What is done to a server in the middle of a run (`--during phased-restart@20s`).

use std::fmt;
use std::str::FromStr;

use crate::Nanos;
use crate::secret::Private;
use crate::units::text_in_json;

/// An event, and when it is to happen. It prints as it is typed: `phased-restart@20s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedEvent {
    /// What is done.
    pub kind: EventKind,
    /// When, from the start of the measured window; `None` leaves it to longtail.
    pub at: Option<Nanos>,
}

/// What is done to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Puma is asked to replace its workers one after the other (SIGUSR1).
    PhasedRestart,
    /// Puma is asked to start anew in the same process (SIGUSR2).
    Restart,
    /// Puma is asked to fork its workers anew from the first one (SIGURG).
    Refork,
    /// One worker is killed, as the kernel does when memory is used up (SIGKILL).
    WorkerKill,
    /// One worker is asked to end (SIGTERM).
    WorkerTerm,
    /// The server is stopped, and started again by the same command.
    StopStart,
    /// Puma is asked for one more worker (SIGTTIN).
    ScaleUp,
    /// Puma is asked for one worker less (SIGTTOU).
    ScaleDown,
    /// The server's first process gets the signal of this name, without SIG.
    Signal(String),
    /// A shell runs this command. What it does to the server is up to the command.
    Command(Private<String>),
}

/// The events that have a name.
const NAMED: [(&str, EventKind); 8] = [
    ("phased-restart", EventKind::PhasedRestart),
    ("restart", EventKind::Restart),
    ("refork", EventKind::Refork),
    ("worker-kill", EventKind::WorkerKill),
    ("worker-term", EventKind::WorkerTerm),
    ("stop-start", EventKind::StopStart),
    ("scale-up", EventKind::ScaleUp),
    ("scale-down", EventKind::ScaleDown),
];

/// The signals that can be named, without SIG.
const SIGNALS: [&str; 16] = [
    "HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "ALRM", "TERM", "CONT", "STOP", "TTIN",
    "TTOU", "URG", "WINCH", "PWR",
];

impl EventKind {
    /// Whether only a Puma understands it.
    pub fn is_pumas(&self) -> bool {
        match self {
            EventKind::PhasedRestart
            | EventKind::Restart
            | EventKind::Refork
            | EventKind::WorkerKill
            | EventKind::WorkerTerm
            | EventKind::ScaleUp
            | EventKind::ScaleDown => true,
            EventKind::StopStart | EventKind::Signal(_) | EventKind::Command(_) => false,
        }
    }

    /// The signal that asks for it, without SIG; `None` if no single signal does.
    pub fn signal(&self) -> Option<&str> {
        match self {
            EventKind::PhasedRestart => Some("USR1"),
            EventKind::Restart => Some("USR2"),
            EventKind::Refork => Some("URG"),
            EventKind::WorkerKill => Some("KILL"),
            EventKind::WorkerTerm | EventKind::StopStart => Some("TERM"),
            EventKind::ScaleUp => Some("TTIN"),
            EventKind::ScaleDown => Some("TTOU"),
            EventKind::Signal(name) => Some(name),
            EventKind::Command(_) => None,
        }
    }

    /// Whether the signal goes to a worker, and not to the server's first process.
    pub fn is_for_worker(&self) -> bool {
        matches!(self, EventKind::WorkerKill | EventKind::WorkerTerm)
    }

    /// The command of Puma's control server that asks for it.
    pub fn control_command(&self) -> Option<&'static str> {
        match self {
            EventKind::PhasedRestart => Some("phased-restart"),
            EventKind::Restart => Some("restart"),
            EventKind::Refork => Some("refork"),
            EventKind::WorkerKill
            | EventKind::WorkerTerm
            | EventKind::StopStart
            | EventKind::ScaleUp
            | EventKind::ScaleDown
            | EventKind::Signal(_)
            | EventKind::Command(_) => None,
        }
    }
}

impl FromStr for EventKind {
    type Err = String;

    fn from_str(text: &str) -> Result<EventKind, String> {
        let text = text.trim();
        let named = NAMED.into_iter().find(|(name, _)| *name == text);
        if let Some((_, kind)) = named {
            return Ok(kind);
        }
        if text == "scale" {
            return Ok(EventKind::ScaleUp);
        }
        let signal = text.strip_prefix("SIG").unwrap_or(text);
        if SIGNALS.contains(&signal) {
            return Ok(EventKind::Signal(signal.to_owned()));
        }
        if let Some((first, _)) = text.split_once(',')
            && NAMED.iter().any(|(name, _)| *name == first.split('@').next().unwrap_or("").trim())
        {
            return Err(format!(
                "'{text}' are several events: longtail load takes one; longtail sweep takes a list, and has a run for each"
            ));
        }
        // A single word without a path is more likely a mistyped name than a command.
        if text.contains(|c: char| c.is_whitespace() || c == '/') {
            return Ok(EventKind::Command(text.to_owned().into()));
        }
        let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
        Err(format!(
            "'{text}' is no event: write {}, a signal such as HUP, or a command, which has a space or a / in it: 'bin/deploy@20s', 'sh -c \"deploy\"@20s'",
            names.join(", ")
        ))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::Signal(name) => out.write_str(name),
            EventKind::Command(command) => command.fmt(out),
            named => {
                let name = NAMED.iter().find(|(_, kind)| kind == named).map(|(name, _)| *name);
                out.write_str(name.expect("every other event has a name"))
            }
        }
    }
}

impl FromStr for PlannedEvent {
    type Err = String;

    /// The last @ separates event and time if a time follows it: a command may have an @ of its
    /// own.
    fn from_str(text: &str) -> Result<PlannedEvent, String> {
        let timed = text.rsplit_once('@').and_then(|(kind, at)| Some((kind, at.parse().ok()?)));
        let (kind, at) = match timed {
            Some((kind, at)) => (kind, Some(at)),
            None => (text, None),
        };
        if let (None, Some((kind, time))) = (at, text.rsplit_once('@'))
            && matches!(kind.parse(), Ok(kind) if !matches!(kind, EventKind::Command(_)))
        {
            return Err(format!("'{time}' is no time: write {kind}@20s"));
        }
        Ok(PlannedEvent { kind: kind.parse()?, at })
    }
}

impl fmt::Display for PlannedEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(out, "{}@{at}", self.kind),
            None => self.kind.fmt(out),
        }
    }
}

text_in_json!(PlannedEvent);

/// How a Puma was started, as far as that can be seen: it decides what Puma does on a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PumaSetup {
    /// Its version, such as `6.6.1`.
    pub version: Option<String>,
    /// Its workers; 0 in single mode.
    pub workers: u32,
    /// Whether it replaces its workers one after the other on SIGUSR1.
    pub phased: Option<PumaAbility>,
    /// Whether it forks its workers anew on SIGURG.
    pub refork: Option<PumaAbility>,
}

impl PumaSetup {
    /// The first number of its version.
    pub fn major(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }
}

/// Whether a Puma can do something, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PumaAbility {
    /// Whether it can.
    pub is_there: bool,
    /// Whether it said so itself when it started. Else its config file suggests it.
    pub is_told: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_name_a_signal_or_a_command_with_a_time_behind_the_last_at() {
        for (text, signal, at, shown) in [
            ("phased-restart@20s", Some("USR1"), Some(20), "phased-restart@20s"),
            ("restart", Some("USR2"), None, "restart"),
            ("scale@1m", Some("TTIN"), Some(60), "scale-up@60s"),
            ("SIGHUP@3s", Some("HUP"), Some(3), "HUP@3s"),
            ("sh -c \"bin/deploy\"@20s", None, Some(20), "sh -c \"bin/deploy\"@20s"),
            ("bin/deploy me@box2@5s", None, Some(5), "bin/deploy me@box2@5s"),
            ("bin/deploy me@box2", None, None, "bin/deploy me@box2"),
        ] {
            let event: PlannedEvent = text.parse().unwrap();
            assert_eq!(event.kind.signal(), signal, "{text}");
            assert_eq!(event.at, at.map(Nanos::from_secs), "{text}");
            assert_eq!(event.to_string(), shown);
        }
        for (wrong, part) in [
            ("phased_restart", "phased-restart"),
            ("restart@soon", "'soon' is no time"),
            ("restart, refork@2s", "are several events"),
            ("restart@3s,phased-restart@8s", "longtail load takes one"),
            ("false@3s", "a command, which has a space or a / in it"),
            ("", "is no event"),
        ] {
            let said = wrong.parse::<PlannedEvent>().unwrap_err();
            assert!(said.contains(part), "{wrong}: {said}");
        }
    }
}
