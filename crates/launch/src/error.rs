//! Why a server was not started: the mistakes a user can fix, each as one line that says how.
//!
//! Not here: a server that started and later died is no error but a [`ServerExit`](crate::ServerExit).

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a server was not started. Every message is one line, with a hint.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Neither a bundle with Puma, nor a checkout of it, nor `puma` on PATH. The caller may use another server.
    #[error("no puma found: run `gem install puma`, or give --puma COMMAND, or use --server builtin")]
    NoPuma,
    /// The text given as a command cannot be split into words.
    #[error("--puma '{command}' is no command: {reason}")]
    BadCommand {
        /// As given.
        command: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The program to start is not on PATH, or not at its path, or may not be executed.
    #[error("'{program}' was not found: {hint}")]
    ProgramNotFound {
        /// As it would have been started.
        program: String,
        /// What to install or which flag to give.
        hint: String,
    },
    /// The directory to start it in does not exist.
    #[error("the directory '{}' does not exist: start longtail in one that does", .0.display())]
    NoDirectory(PathBuf),
    /// The rackup file does not exist.
    #[error("rackup '{}' does not exist: correct -r, or leave it out to use the app that longtail brings", .0.display())]
    RackupMissing(PathBuf),
    /// Puma's config file does not exist.
    #[error("config '{}' does not exist: correct -C, or leave it out", .0.display())]
    ConfigMissing(PathBuf),
    /// A host that is not this machine's loopback.
    #[error("{setting}='{host}' is not loopback: a server under test is bound to {allowed} only; unset {setting}")]
    NotLoopback {
        /// As given.
        host: String,
        /// The setting it came from.
        setting: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
    /// A host of this machine that cannot be bound: no IPv6, for one.
    #[error("{host} cannot be bound on this machine ({reason}): {hint}")]
    CannotBind {
        /// The address.
        host: String,
        /// What the kernel said.
        reason: String,
        /// What to do.
        hint: String,
    },
    /// The port that was asked for is taken.
    #[error(
        "port {port} ({setting}) is in use on {host}: stop what listens there, or set {setting} to another, or unset it"
    )]
    PortInUse {
        /// The port.
        port: u16,
        /// The address it is taken on.
        host: String,
        /// The setting it came from.
        setting: &'static str,
    },
    /// One port for the server and its control server.
    #[error("PUMA_TEST_PORT and PUMA_TEST_CTRL are both {0}: unset one")]
    SamePort(u16),
    /// The private directory for the control socket could not be made.
    #[error("no directory can be made in '{}' ({source}): set TMPDIR to one that you can write", .within.display())]
    Scratch {
        /// Where it was to be.
        within: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A Puma without OpenSSL.
    #[error(
        "this Puma was built without SSL, which -s {socket} needs: install OpenSSL's headers (libssl-dev) and then the puma gem anew, or use -s tcp4"
    )]
    NoSsl {
        /// The kind of socket that was asked for.
        socket: String,
    },
    /// A checkout of Puma whose extension in C was not built.
    #[error("this Puma's extension is not built (puma_http11): {hint}")]
    NoExtension {
        /// What to type.
        hint: String,
    },
    /// The app that longtail brings wants Rails.
    #[error(
        "--app rails needs Rails 6.1 or later ({missing}): apt-get install ruby-railties, or gem install rails, or add it to your bundle"
    )]
    NoRails {
        /// What Ruby could not load.
        missing: String,
    },
    /// A branch, tag or commit of nothing.
    #[error(
        "'{reference}' is no option, so a branch, tag or commit, and '{}' is in no git checkout: name one with --puma DIR, or write options such as -t3:3", .dir.display()
    )]
    NoCheckout {
        /// As given.
        reference: String,
        /// Where we looked.
        dir: PathBuf,
    },
    /// A branch, tag or commit that there is not.
    #[error("'{reference}' is no branch, tag or commit of '{}': git branch --all lists its branches", .root.display())]
    NoRevision {
        /// As given.
        reference: String,
        /// The checkout.
        root: PathBuf,
    },
    /// A version of Puma that is not installed, and cannot be.
    #[error(
        "puma {version} is not installed, and gem install puma -v {version} fails ({why}): install it, or give a checkout's folder"
    )]
    NoGem {
        /// Which.
        version: String,
        /// What gem said.
        why: String,
    },
    /// A command that builds a server failed.
    #[error("{command} failed ({how}): {line}")]
    BuildFailed {
        /// As a shell takes it.
        command: String,
        /// Its exit code or signal.
        how: String,
        /// Its last line.
        line: String,
    },
    /// The user wants to end.
    #[error("interrupted before the first run")]
    Interrupted,
    /// The guard process did not start, died, or did not answer.
    #[error("the process that guards the server failed: {0}; is this longtail's own executable intact?")]
    Guard(String),
    /// The kernel refused to execute the program.
    #[error("'{program}' could not be executed: {reason}; can you start it by hand?")]
    NotExecuted {
        /// The program.
        program: String,
        /// What the kernel said.
        reason: String,
    },
}

impl LaunchError {
    /// What the program that failed said itself, where one did.
    pub(crate) fn reason(&self) -> String {
        match self {
            LaunchError::BuildFailed { line, .. } => line.clone(),
            other => other.to_string(),
        }
    }
}
