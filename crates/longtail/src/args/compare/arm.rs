//! Reads an arm of a comparison: `[NAME=][REF] [OPTIONS] [-- COMMAND]`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args as _;
use model::comparison::ArmPlan;
use model::{PlannedEvent, Probe, Stop};

use super::{ArmArgs, CompareArgs};
use crate::args::event::with_time;
use crate::args::server::server_command;
use crate::commands::{Command, Invocation, definition, parse, refusal};
use crate::exit::{Mistake, refuse_if, wrong};

/// Where an arm's Puma comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PumaSource {
    /// A version: a gem that is installed, or will be.
    Version(String),
    /// A command, or a checkout's folder; `None` is the one that is found.
    Command(Option<String>),
}

/// An arm that was asked for.
#[derive(Debug)]
pub(crate) struct ArmRequest {
    /// As it was typed, for messages.
    text: String,
    name: Option<String>,
    /// The branch, tag or commit.
    pub(crate) reference: Option<String>,
    /// Its own options, each with its value.
    settings: Vec<String>,
    /// The common settings and its own.
    args: Box<CompareArgs>,
}

impl ArmRequest {
    /// Reads an arm of the command line `common`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(text: &str, common: &[String]) -> Result<ArmRequest, Mistake> {
        let in_arm = |why: String| wrong(format!("--arm '{text}': {why}"));
        let (mut name, rest) = match text.split_once('=') {
            // The `=` of an option further on, such as `main --env A=1`, names nothing.
            Some((name, rest))
                if !name.starts_with('-')
                    && (!name.contains(" -") || rest.starts_with('-'))
                    && !name.trim().is_empty() =>
            {
                (Some(name.trim()), rest)
            }
            _ => (None, text),
        };
        let mut words: Vec<String> = shlex::split(rest)
            .ok_or_else(|| in_arm("a quote has no end, or it ends with a backslash".to_owned()))?
            .into_iter()
            .map(expand_home)
            .collect();
        let reference = words.first().filter(|word| !word.starts_with('-')).cloned();
        if let Some(word) = &reference {
            words.remove(0);
            if is_version(word) {
                words.splice(0..0, ["--puma".to_owned(), word.clone()]);
                name = name.or(Some(text.trim()));
            }
        }
        let reference = reference.filter(|word| !is_version(word));
        check(&words).map_err(in_arm)?;
        let settings = settings(&words);
        let args = match parse(together(common, words).into_iter().map(OsString::from)) {
            Ok(Invocation::Command(Command::Compare(args), _)) => args,
            Ok(_) => return Err(in_arm("it cannot be understood".to_owned())),
            Err(mistake) => return Err(in_arm(mistake.to_string())),
        };
        Ok(ArmRequest {
            text: text.to_owned(),
            name: name.map(str::to_owned),
            reference,
            settings,
            args,
        })
    }

    /// What it is called: as it was named, else by its branch and its options.
    pub(crate) fn name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let words: Vec<&str> =
            self.reference.iter().chain(&self.settings).map(String::as_str).collect();
        if words.is_empty() { "default".to_owned() } else { with_tilde(words.join(" ")) }
    }

    /// The Puma among its own options, if it has no name.
    pub(crate) fn own_puma(&self) -> Option<&str> {
        if self.name.is_some() || self.reference.is_some() {
            return None;
        }
        self.settings.iter().find_map(|setting| puma_in(setting))
    }

    /// Calls it by its Puma's name, and its other options.
    pub(crate) fn call_by_puma(&mut self, puma: &str) {
        let others = self.settings.iter().filter(|setting| puma_in(setting).is_none());
        let words: Vec<&str> = std::iter::once(puma).chain(others.map(String::as_str)).collect();
        self.name = Some(with_tilde(words.join(" ")));
    }

    /// Whether this is the arm that `--base` names: by what it is called, or as it was typed.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let name = name.trim();
        name == self.name() || name == self.text.trim()
    }

    /// A mistake in it.
    pub(crate) fn wrong(&self, why: impl std::fmt::Display) -> Mistake {
        wrong(format!("--arm '{}': {why}", self.text))
    }

    /// Its Puma.
    pub(crate) fn puma(&self) -> PumaSource {
        match &self.args.own.server.puma.puma {
            Some(word) if is_version(word) => PumaSource::Version(word.clone()),
            command => PumaSource::Command(command.clone()),
        }
    }

    /// The folder of its app: the rackup file's, or this one.
    pub(crate) fn app_dir(&self) -> PathBuf {
        let rackup = self.args.own.server.puma.rackup.as_deref();
        let dir = rackup.and_then(Path::parent).filter(|dir| !dir.as_os_str().is_empty());
        dir.unwrap_or(Path::new(".")).to_owned()
    }

    /// Its environment; with `--ruby`, the folder of that Ruby is first on PATH.
    ///
    /// # Errors
    /// If a setting is not NAME=VALUE, or there is no ruby at that place.
    fn env(&self) -> Result<BTreeMap<String, String>, Mistake> {
        let mut env = BTreeMap::new();
        for setting in &self.args.own.env {
            match setting
                .split_once('=')
                .filter(|(name, _)| !name.is_empty() && !setting.contains('\0'))
            {
                Some((name, value)) => env.insert(name.to_owned(), value.to_owned()),
                None => {
                    return Err(wrong(format!(
                        "--env '{setting}' is no setting: write NAME=VALUE"
                    )));
                }
            };
        }
        let Some(ruby) = &self.args.own.ruby else { return Ok(env) };
        let folder = if ruby.is_dir() { Some(ruby.as_path()) } else { ruby.parent() };
        let found = folder.filter(|folder| folder.join("ruby").is_file()).map(Path::canonicalize);
        let Some(Ok(folder)) = found else {
            let ruby = ruby.display();
            return Err(wrong(format!(
                "there is no ruby at '{ruby}': give the ruby itself, or its folder"
            )));
        };
        let before =
            env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok()).unwrap_or_default();
        env.insert("PATH".to_owned(), format!("{}:{before}", folder.display()));
        Ok(env)
    }

    /// The arm as its flags say it. The branch or the Puma that it names is looked for later.
    ///
    /// # Errors
    /// Where flags contradict each other.
    pub(crate) fn plan(&self) -> Result<ArmPlan, Mistake> {
        self.read_plan().map_err(|mistake| self.wrong(mistake))
    }

    fn read_plan(&self) -> Result<ArmPlan, Mistake> {
        let server = &self.args.own.server;
        server.puma.check()?;
        let env = self.env()?;
        let started = server.server()?;
        refuse_if(
            !started.kind.reads_environment() && !env.is_empty(),
            "--server builtin has no app that reads --env or --ruby: leave them out, or measure Puma",
        )?;
        Ok(ArmPlan {
            name: self.name().into(),
            settings: self.settings.iter().cloned().map(|it| with_tilde(it).into()).collect(),
            server: started,
            stream: server.stream(Stop::After(self.args.length), Some(self.args.warm_up))?,
            env: env.into(),
            probe: server.probe()?.unwrap_or(Probe::None),
            dir: None,
            during: self.event()?,
        })
    }

    /// What is done to its server, with its time.
    fn event(&self) -> Result<Option<PlannedEvent>, Mistake> {
        let during = self.args.own.during.as_ref();
        during.map(|during| with_time(during, Some(self.args.length))).transpose()
    }
}

/// `6.6.1`, `8.0.0.pre1`: three numbers or more.
fn is_version(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    parts.len() >= 3 && parts[..3].iter().all(is_number) && parts.iter().all(is_plain)
}

/// Expands `~/`, which a shell leaves alone within quotes.
fn expand_home(word: String) -> String {
    match (word.strip_prefix("~/"), std::env::var("HOME")) {
        (Some(rest), Ok(home)) => format!("{home}/{rest}"),
        _ => word,
    }
}

/// The home folder as `~`: what an arm is called goes into reports for others.
fn with_tilde(name: String) -> String {
    match std::env::var("HOME") {
        Ok(home) if home.len() > 1 => name.replace(&format!("{home}/"), "~/"),
        _ => name,
    }
}

/// The value of `--puma` in a setting.
fn puma_in(setting: &str) -> Option<&str> {
    setting.strip_prefix("--puma")?.strip_prefix([' ', '='])
}

/// Refuses what is no option of a server.
fn check(words: &[String]) -> Result<(), String> {
    let command = ArmArgs::augment_args(
        clap::Command::new("compare").no_binary_name(true).disable_help_flag(true),
    );
    let command = super::overriding(command).args_override_self(true);
    let Err(error) = command.clone().try_get_matches_from(words) else { return Ok(()) };
    let whole = definition();
    let flag = match error.get(clap::error::ContextKind::InvalidArg) {
        Some(clap::error::ContextValue::String(flag)) => flag.clone(),
        _ => String::new(),
    };
    let name = flag.trim_start_matches('-');
    let is_common = whole
        .find_subcommand("compare")
        .is_some_and(|command| command.get_arguments().any(|arg| arg.get_long() == Some(name)));
    if error.kind() == clap::error::ErrorKind::UnknownArgument && is_common {
        return Err(format!("{flag} is the same for all arms: give it outside"));
    }
    Err(refusal(&error, &whole, &command, words))
}

/// The common words, then the arm's, and last the server's command (`-- COMMAND`), if there is one:
/// the arm's own, or else the common one.
fn together(common: &[String], mut own: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> =
        std::iter::once("longtail".to_owned()).chain(common.iter().cloned()).collect();
    let command = server_command(&mut words);
    let own_command = server_command(&mut own);
    words.extend(own);
    words.extend(if own_command.is_empty() { command } else { own_command });
    words
}

/// The options, each in one text with its value: `-t 5:5`. Of `--env A=1` only `A=1` is left, and a
/// command is one text from its `--` on.
fn settings(words: &[String]) -> Vec<String> {
    let mut settings: Vec<String> = Vec::new();
    let mut is_command = false;
    for word in words {
        match settings.last_mut() {
            Some(last) if is_command || !word.starts_with('-') => *last = format!("{last} {word}"),
            _ => settings.push(word.clone()),
        }
        is_command |= word == "--";
    }
    let plain = |setting: &String| setting.strip_prefix("--env").map(|rest| rest[1..].to_owned());
    settings.iter().map(|setting| plain(setting).unwrap_or_else(|| setting.clone())).collect()
}
