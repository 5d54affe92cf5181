//! What a server says about itself when it boots, and which commit of its code this is.
//!
//! Reading only: the lines are those of Puma 3 to 8; what a line does not say is `None`, never guessed.

use std::path::Path;
use std::process::{Command, Stdio};

/// What Puma's boot lines say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootLines {
    /// `6.5.0`.
    pub version: Option<String>,
    /// `ruby 3.1.2-p20` on Puma 5 and before; on 6 the whole of `RUBY_DESCRIPTION`.
    pub runtime: Option<String>,
}

impl BootLines {
    /// Reads them out of the lines that Puma wrote. The first word counts: Puma boots before the app writes anything, and a restart says
    /// the same again.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> BootLines {
        let mut boot = BootLines::default();
        for line in lines {
            // Cluster mode puts `[pid] ` before each line.
            let line = line.trim_start();
            let line = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |(_, rest)| rest);
            let Some(fact) = line.strip_prefix('*').map(str::trim) else { continue };
            // `Puma version: 6.5.0 ("Sky's Version")`; Puma 4 and before: `Version 4.3.5 (ruby 2.6.5-p114), codename: …`.
            if let Some(text) = fact.strip_prefix("Puma version: ").or_else(|| fact.strip_prefix("Version ")) {
                boot.version.get_or_insert(text.split(' ').next().unwrap_or(text).to_owned());
                let in_parentheses = text.split_once(" (").and_then(|(_, rest)| rest.split_once(')'));
                if let Some((runtime, _)) = in_parentheses.filter(|(inner, _)| !inner.starts_with('"')) {
                    boot.runtime.get_or_insert(runtime.to_owned());
                }
            } else if let Some(runtime) = fact.strip_prefix("Ruby version: ") {
                boot.runtime.get_or_insert(runtime.to_owned());
            }
        }
        boot
    }
}

/// `branch commit` of the checkout that `dir` is in, such as `main f6e6058`; `detached` where no branch is checked out.
/// `None` where it is none, or where `git` is missing.
pub fn git(dir: &Path) -> Option<String> {
    let commit = ask_git(dir, &["rev-parse", "--short", "HEAD"])?;
    let branch = ask_git(dir, &["symbolic-ref", "--short", "--quiet", "HEAD"]);
    Some(format!("{} {commit}", branch.unwrap_or_else(|| "detached".to_owned())))
}

/// What git says of the checkout that `dir` is in; `None` where that is nothing, it fails, or there is no git.
pub(crate) fn ask_git(dir: &Path, words: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir).args(words).stdin(Stdio::null()).stderr(Stdio::null());
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()).filter(|said| !said.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_puma_says_its_version_and_its_ruby() {
        let ruby = "ruby 3.4.0dev (2024-11-26T17:58:43Z master c1dcd1d496) +PRISM [x86_64-linux]";
        let cases = [
            (
                "Puma starting in single mode...\n* Puma version: 5.3.2 (ruby 2.7.1-p83) (\"Sweetnighter\")\n\
                 *  Min threads: 0\n*  Max threads: 4\n* Listening on http://0.0.0.0:9292\nUse Ctrl-C to stop",
                Some(("5.3.2", "ruby 2.7.1-p83")),
            ),
            (
                &format!(
                    "[9] Puma starting in cluster mode...\n[9] * Puma version: 6.5.0 (\"Sky's Version\")\n\
                     [9] * Ruby version: {ruby}\n[9] *      Workers: 4\n[9] *     Restarts: (✔) hot (✔) phased"
                ),
                Some(("6.5.0", ruby)),
            ),
            (
                "[9] * Version 4.3.5 (ruby 2.6.5-p114), codename: Mysterious Traveller\n[9] * Process workers: 3\n\
                 [9] * Version 1.0 (ruby 1), codename: a restart",
                Some(("4.3.5", "ruby 2.6.5-p114")),
            ),
            ("listening\n* something\n[x\n* : :", None),
        ];
        for (text, expected) in cases {
            let boot = BootLines::read(text.lines());
            assert_eq!(boot.version.zip(boot.runtime), expected.map(|(a, b)| (a.to_owned(), b.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_is_no_checkout_has_no_commit() {
        assert_eq!(git(Path::new("/proc")), None);
    }
}
