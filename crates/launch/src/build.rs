//! Builds servers: copies and builds a commit of a checkout, or installs a version of Puma. Both go
//! into longtail's own folder and are kept there; nothing is written into the user's repository.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::plan::quoted;
use model::{Clock, Nanos};

use crate::start_server::run_to_end;
use crate::{
    GuardCommand, LaunchError, LaunchSpec, Scratch, ServerExit, ServerOutput, unwritable_data,
};

/// How long a command that the user interrupts may take to end.
const GRACE: Nanos = Nanos::from_secs(2);

/// A commit of a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The branch, tag or commit as it was named.
    pub reference: String,
    /// The whole hash.
    pub commit: String,
    /// The checkout's folder.
    pub root: PathBuf,
    /// Whether the checkout has changes that are not committed.
    pub is_dirty: bool,
}

impl Revision {
    /// Finds the commit that `reference` names in the checkout around `dir`.
    ///
    /// # Errors
    /// If there is no checkout, or it has no such reference.
    pub fn find(reference: &str, dir: &Path) -> Result<Revision, LaunchError> {
        let root = ask_git(dir, &["rev-parse", "--show-toplevel"]).ok_or_else(|| {
            let place = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
            LaunchError::Unusable(format!(
                "'{reference}' is no option, so it must be a branch, tag or commit, but '{}' is in \
                 no git checkout: name one with --puma DIR, or write options such as -t3:3",
                place.display()
            ))
        })?;
        let named = format!("{reference}^{{commit}}");
        let commit =
            ask_git(dir, &["rev-parse", "--verify", "--quiet", "--end-of-options", &named])
                .ok_or_else(|| {
                    LaunchError::Unusable(format!(
                        "'{reference}' is no branch, tag or commit of '{root}': git branch --all \
                     lists its branches"
                    ))
                })?;
        let is_dirty = ask_git(dir, &["status", "--porcelain", "--untracked-files=no"]).is_some();
        Ok(Revision { reference: reference.to_owned(), commit, root: root.into(), is_dirty })
    }

    /// The abbreviated hash.
    pub fn short(&self) -> &str {
        self.commit.get(..8).unwrap_or(&self.commit)
    }

    /// Copies the commit's files; for Puma, builds its extension, too.
    ///
    /// # Errors
    /// If it cannot be copied or built.
    pub fn copy(&self, build: &Build<'_>) -> Result<PathBuf, LaunchError> {
        let folder = build.folder("checkouts")?;
        let own = folder.join(format!("{}-{}", self.commit, build.ruby()?));
        if own.is_dir() {
            return Ok(own);
        }
        let unwritable = unwritable_data(&folder);
        // Removed if the build fails; on the same file system as `own`, for the rename below.
        let scratch = Scratch::new(&folder).map_err(&unwritable)?;
        let tree = scratch.path().join("tree");
        let archive = scratch.path().join("tree.tar");
        fs::create_dir(&tree).map_err(&unwritable)?;
        let root = self.root.as_os_str();
        let output = with_path("--output=", &archive);
        build.run(
            &[
                "git".as_ref(),
                "-C".as_ref(),
                root,
                "archive".as_ref(),
                output.as_ref(),
                self.commit.as_ref(),
            ],
            &tree,
        )?;
        build.run(&["tar".as_ref(), "-xf".as_ref(), archive.as_os_str()], &tree)?;
        let extension = tree.join("ext/puma_http11/extconf.rb");
        if tree.join("puma.gemspec").is_file() && extension.is_file() {
            let objects = scratch.path().join("objects");
            fs::create_dir(&objects).map_err(&unwritable)?;
            build.run(&["ruby".as_ref(), extension.as_os_str()], &objects)?;
            build.run(&["make".as_ref()], &objects)?;
            fs::copy(objects.join("puma_http11.so"), tree.join("lib/puma/puma_http11.so"))
                .map_err(&unwritable)?;
        }
        // Another longtail may have made it meanwhile.
        fs::rename(&tree, &own)
            .or_else(|error| if own.is_dir() { Ok(()) } else { Err(error) })
            .map_err(unwritable)?;
        Ok(own)
    }
}

/// A Puma that is installed as a gem: how to start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledGem {
    /// Its command.
    pub command: String,
    /// What it needs in its environment, beside the arm's own variables.
    pub env: BTreeMap<String, String>,
}

/// A Puma of that version: an installed one, or one that is now installed into longtail's own
/// folder, which `note` is told.
///
/// # Errors
/// If there is none, and it cannot be installed.
pub fn puma_gem(
    version: &str,
    build: &Build<'_>,
    note: &mut dyn FnMut(String),
) -> Result<InstalledGem, LaunchError> {
    let find = format!("gem 'puma', '{version}'; load Gem.bin_path('puma', 'puma', '{version}')");
    let gem = |env| InstalledGem { command: format!("ruby -e {} --", quoted(&find)), env };
    let probe = format!("gem 'puma', '{version}'");
    let has = |build: &Build<'_>| {
        build.run(&["ruby".as_ref(), "-e".as_ref(), probe.as_ref()], Path::new("/")).is_ok()
    };
    if has(build) {
        return Ok(gem(BTreeMap::new()));
    }
    let folder = build.folder("gems")?.join(build.ruby()?);
    // After the last colon RubyGems adds its usual folders.
    let env = BTreeMap::from([("GEM_PATH".to_owned(), format!("{}:", folder.display()))]);
    let mut with_ours = build.clone();
    with_ours.env.extend(env.clone());
    if !has(&with_ours) {
        note(format!(
            "puma {version} is not installed: gem install puma -v {version} into {}",
            folder.display()
        ));
        let into = with_path("--install-dir=", &folder);
        let words =
            ["gem", "install", "puma", "--no-document", "--no-user-install", "--version", version]
                .map(OsStr::new);
        let installed = build.run(&[&words[..], &[into.as_ref()]].concat(), Path::new("/"));
        installed.map_err(|error| {
            let why = match error {
                LaunchError::BuildFailed { line, .. } => line,
                other => other.to_string(),
            };
            LaunchError::Unusable(format!(
                "puma {version} is not installed, and gem install puma -v {version} fails ({why}): install it, or give a checkout's folder"
            ))
        })?;
    }
    Ok(gem(env))
}

fn with_path(flag: &str, path: &Path) -> OsString {
    let mut word = OsString::from(flag);
    word.push(path);
    word
}

/// What the commands that build a server need.
#[derive(Clone)]
pub struct Build<'a> {
    /// Runs them, so that none outlives longtail.
    pub guard: &'a GuardCommand,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Whether the user wants to end.
    pub is_interrupted: &'a dyn Fn() -> bool,
    /// longtail's own folder.
    pub data: &'a Path,
    /// Settings in their environment.
    pub env: BTreeMap<String, String>,
}

impl Build<'_> {
    fn folder(&self, name: &str) -> Result<PathBuf, LaunchError> {
        let folder = self.data.join(name);
        fs::create_dir_all(&folder).map_err(unwritable_data(&folder))?;
        Ok(folder)
    }

    /// The Ruby that would be used, as far as the built files depend on it.
    fn ruby(&self) -> Result<String, LaunchError> {
        let ask = "print RUBY_ENGINE, '-', RbConfig::CONFIG['ruby_version'], '-', RUBY_PLATFORM";
        match self.run(&["ruby".as_ref(), "-e".as_ref(), ask.as_ref()], Path::new("/")) {
            Ok(output) => Ok(output.lines().next_back().unwrap_or("ruby").to_owned()),
            // A server without Ruby needs none.
            Err(LaunchError::ProgramNotFound { .. } | LaunchError::NotExecuted { .. }) => {
                Ok("no-ruby".to_owned())
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// If it fails, with its last line; or if the user interrupts.
    fn run(&self, words: &[&OsStr], dir: &Path) -> Result<ServerOutput, LaunchError> {
        let env = self.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let spec = LaunchSpec { env, ..LaunchSpec::command(words.iter().copied(), dir) };
        let (exit, output) =
            run_to_end(&spec, self.guard, self.clock, GRACE, |_| (self.is_interrupted)())?;
        let Some(exit) = exit else { return Err(LaunchError::Interrupted) };
        if exit == ServerExit::Code(0) {
            return Ok(output);
        }
        let line = output
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default()
            .trim()
            .to_owned();
        Err(LaunchError::BuildFailed { command: spec.command_line(), how: exit.to_string(), line })
    }
}

/// Branch and commit of the checkout that `dir` is in, such as `main f6e6058`, or `detached
/// f6e6058` if no branch is checked out. `None` if it is not in a checkout, or `git` is missing.
pub fn git_head(dir: &Path) -> Option<String> {
    let commit = ask_git(dir, &["rev-parse", "--short", "HEAD"])?;
    let branch = ask_git(dir, &["symbolic-ref", "--short", "--quiet", "HEAD"]);
    Some(format!("{} {commit}", branch.unwrap_or_else(|| "detached".to_owned())))
}

/// The output of a git command in the checkout that `dir` is in; `None` if it fails or prints
/// nothing.
fn ask_git(dir: &Path, words: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(words).stdin(Stdio::null()).stderr(Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
        .filter(|said| !said.is_empty())
}
