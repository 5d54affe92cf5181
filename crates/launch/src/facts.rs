//! What a server says about itself when it boots, and which commit of its code this is.
//!
//! Reading only: the lines are those of Puma 3 to 8; what a line does not say is `None`, never guessed.

use std::path::Path;
use std::process::{Command, Stdio};

/// What Puma's boot lines say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootFacts {
    /// `6.5.0`.
    pub version: Option<String>,
    /// `ruby 3.1.2-p20` on Puma 5 and before; on 6 the whole of `RUBY_DESCRIPTION`.
    pub runtime: Option<String>,
    /// Worker processes; `None` in single mode.
    pub workers: Option<u32>,
    /// Threads that a worker starts with.
    pub min_threads: Option<u32>,
    /// Threads that a worker may have.
    pub max_threads: Option<u32>,
}

impl BootFacts {
    /// Reads them out of the lines that Puma wrote.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> BootFacts {
        let mut facts = BootFacts::default();
        for line in lines {
            // Cluster mode puts `[pid] ` before each line.
            let line = line.trim_start();
            let line = line.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(line, |(_, rest)| rest);
            let Some(fact) = line.strip_prefix('*').map(str::trim) else { continue };
            if let Some((name, value)) = fact.split_once(':') {
                facts.take(name.trim(), value.trim());
            }
        }
        facts
    }

    fn take(&mut self, name: &str, value: &str) {
        match name {
            "Puma version" => self.take_version(value),
            "Ruby version" => set(&mut self.runtime, value.to_owned()),
            "Workers" | "Process workers" => set_number(&mut self.workers, value),
            "Max threads" => set_number(&mut self.max_threads, value),
            "Min threads" => {
                // Puma 4 and before: `Min threads: 5, max threads: 5`.
                let (min, max) = value.split_once(", max threads: ").unwrap_or((value, ""));
                set_number(&mut self.min_threads, min);
                set_number(&mut self.max_threads, max);
            }
            _ => {
                // Puma 4 and before: `Version 4.3.5 (ruby 2.6.5-p114), codename: …`.
                if let Some(version) = name.strip_prefix("Version ") {
                    self.take_version(version);
                }
            }
        }
    }

    /// `5.6.5 (ruby 3.1.2-p20) ("Birdie's Version")` or `6.5.0 ("Sky's Version")`.
    fn take_version(&mut self, text: &str) {
        set(&mut self.version, text.split(' ').next().unwrap_or(text).to_owned());
        let in_parentheses = text.split_once(" (").and_then(|(_, rest)| rest.split_once(')'));
        if let Some((runtime, _)) = in_parentheses.filter(|(inner, _)| !inner.starts_with('"')) {
            set(&mut self.runtime, runtime.to_owned());
        }
    }
}

/// The first word counts: Puma boots before the app writes anything, and a restart says the same again.
fn set<T>(fact: &mut Option<T>, value: T) {
    fact.get_or_insert(value);
}

fn set_number(fact: &mut Option<u32>, text: &str) {
    if let Ok(number) = text.parse() {
        set(fact, number);
    }
}

/// `branch commit` of the checkout that `dir` is in, such as `main f6e6058`; `detached` where no branch is checked out.
/// `None` where it is none, or where `git` is missing.
pub fn git(dir: &Path) -> Option<String> {
    let ask = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(dir).args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        let output = git.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let commit = ask(&["rev-parse", "--short", "HEAD"])?;
    let branch = ask(&["symbolic-ref", "--short", "--quiet", "HEAD"]).unwrap_or_else(|| "detached".to_owned());
    Some(format!("{branch} {commit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BootFacts {
        BootFacts::read(text.lines())
    }

    #[test]
    fn puma_5_in_single_mode() {
        let facts = read(
            "Puma starting in single mode...\n* Puma version: 5.3.2 (ruby 2.7.1-p83) (\"Sweetnighter\")\n\
             *  Min threads: 0\n*  Max threads: 4\n*  Environment: development\n*          PID: 413416\n\
             * Listening on http://0.0.0.0:9292\nUse Ctrl-C to stop",
        );
        let expected = BootFacts {
            version: Some("5.3.2".to_owned()),
            runtime: Some("ruby 2.7.1-p83".to_owned()),
            workers: None,
            min_threads: Some(0),
            max_threads: Some(4),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn puma_6_in_cluster_mode() {
        let facts = read(
            "[162886] Puma starting in cluster mode...\n[162886] * Puma version: 6.5.0 (\"Sky's Version\")\n\
             [162886] * Ruby version: ruby 3.4.0dev (2024-11-26T17:58:43Z master c1dcd1d496) +PRISM [x86_64-linux]\n\
             [162886] *  Min threads: 5\n[162886] *  Max threads: 5\n[162886] *  Environment: development\n\
             [162886] *   Master PID: 162886\n[162886] *      Workers: 4\n[162886] *     Restarts: (✔) hot (✔) phased\n\
             [162886] * Listening on http://127.0.0.1:40001\n[162886] - Worker 0 (PID: 162895) booted in 0.01s, phase: 0",
        );
        let expected = BootFacts {
            version: Some("6.5.0".to_owned()),
            runtime: Some("ruby 3.4.0dev (2024-11-26T17:58:43Z master c1dcd1d496) +PRISM [x86_64-linux]".to_owned()),
            workers: Some(4),
            min_threads: Some(5),
            max_threads: Some(5),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn puma_4_and_before() {
        let facts = read(
            "[9] Puma starting in cluster mode...\n[9] * Version 4.3.5 (ruby 2.6.5-p114), codename: Mysterious Traveller\n\
             [9] * Min threads: 2, max threads: 5\n[9] * Environment: development\n[9] * Process workers: 3",
        );
        let expected = BootFacts {
            version: Some("4.3.5".to_owned()),
            runtime: Some("ruby 2.6.5-p114".to_owned()),
            workers: Some(3),
            min_threads: Some(2),
            max_threads: Some(5),
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn another_servers_lines_say_nothing() {
        assert_eq!(read("listening\n* something\n[x\n* : :"), BootFacts::default());
    }

    #[test]
    fn what_is_no_checkout_has_no_commit() {
        assert_eq!(git(Path::new("/proc")), None);
    }
}
