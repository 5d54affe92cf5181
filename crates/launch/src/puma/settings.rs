//! What a Puma says of itself before it serves: its version, and what its own configuration comes to: its config file, its environment and its flags, as that Puma itself puts them together.
//!
//! Puma is started once more, as it will be, with a script before it ([`SCRIPT`]) that prints what its launcher has made of all that
//! and ends it before anything is bound. So whatever a config file does is done, and a flag wins where Puma lets it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use model::{Clock, Nanos, PumaSettings};

use crate::error::unwritable;
use crate::server::run_to_end;
use crate::{GuardCommand, LaunchError, LaunchSpec};

/// Longest wait for it. A config file may load an app.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// How the line with the settings begins.
const MARK: &str = "longtail-settings ";

/// Puts a method before Puma's `run`, as soon as there is one.
const SCRIPT: &str = include_str!("settings.rb");

/// Whether there is a config file that Puma would read: `config/puma.rb` and `config/puma/ENVIRONMENT.rb` it finds by itself.
pub fn has_config(config: Option<&Path>, dir: &Path) -> bool {
    match config {
        Some(config) => config != Path::new("-"),
        None => dir.join("config/puma.rb").exists() || dir.join("config/puma").is_dir(),
    }
}

/// What the Puma of `spec` makes of its config file, its environment and its flags; `None` where it did not say so in time, or the
/// user interrupted.
///
/// # Errors
/// Where it cannot be started at all.
pub fn settings(
    spec: &LaunchSpec,
    guard: &GuardCommand,
    clock: &dyn Clock,
    is_interrupted: impl Fn() -> bool,
) -> Result<Option<PumaSettings>, LaunchError> {
    let Some(scratch) = &spec.scratch else { return Ok(None) };
    let script = scratch.path().join("settings.rb");
    fs::write(&script, SCRIPT).map_err(unwritable(scratch.path()))?;
    // What is in RUBYOPT already, of the user or of -Y, goes on.
    let mut asking = LaunchSpec { scratch: None, ..spec.clone() };
    let before = asking.env.remove(OsStr::new("RUBYOPT"));
    let mut options = before.or_else(|| std::env::var_os("RUBYOPT")).unwrap_or_default();
    options.push(" -r");
    options.push(&script);
    asking.env.insert("RUBYOPT".into(), options);
    let gives_up = |waited| waited >= PATIENCE || is_interrupted();
    let (_, output) = run_to_end(&asking, guard, clock, Nanos::ZERO, gives_up)?;
    Ok(output.lines().find_map(|line| line.strip_prefix(MARK)).map(read))
}

/// What this Puma prints as its version; `None` where it did not end within `longest`.
///
/// # Errors
/// Where it cannot be started.
pub fn printed_version(
    puma: &[OsString],
    dir: &Path,
    guard: &GuardCommand,
    clock: &dyn Clock,
    longest: Nanos,
) -> Result<Option<String>, LaunchError> {
    let asking = LaunchSpec::command(puma.iter().cloned().chain(["--version".into()]), dir);
    let (exit, output) = run_to_end(&asking, guard, clock, Nanos::ZERO, |waited| waited >= longest)?;
    Ok(exit.map(|_| output.lines().collect::<Vec<_>>().join("\n")))
}

/// `max_fast_inline=10 queue_requests=true …` with Ruby's `inspect` of each value.
fn read(words: &str) -> PumaSettings {
    let value = |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let flag = |name: &str| match value(name)? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    let number = |name: &str| match value(name)? {
        "Infinity" => Some(f64::INFINITY),
        text => text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0),
    };
    PumaSettings {
        // Requests are counted from 1: with 0 a turn has one too.
        max_fast_inline: number("max_fast_inline").map(|turn| (turn as u32).max(1)),
        queue_requests: flag("queue_requests"),
        enable_keep_alives: flag("enable_keep_alives"),
        wait_for_less_busy_worker: number("wait_for_less_busy_worker")
            .filter(|n| n.is_finite())
            .map(Nanos::from_secs_f64),
        waits_until_not_full: flag("waits_until_not_full"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ruby_inspects_is_read() {
        let settings = read(
            "max_fast_inline=3.0 queue_requests=false enable_keep_alives=nil wait_for_less_busy_worker=0.01 \
             waits_until_not_full=true",
        );
        let expected = PumaSettings {
            max_fast_inline: Some(3),
            queue_requests: Some(false),
            enable_keep_alives: None,
            wait_for_less_busy_worker: Some(Nanos::from_millis(10)),
            waits_until_not_full: Some(true),
        };
        assert_eq!(settings, expected);
        let settings = read("max_fast_inline=Infinity wait_for_less_busy_worker=nil");
        assert_eq!(settings.max_fast_inline, Some(u32::MAX));
        assert_eq!(settings.wait_for_less_busy_worker, None);
        assert_eq!(read("max_fast_inline=:odd"), PumaSettings::default());
        assert!(SCRIPT.contains(MARK));
    }

    #[test]
    fn a_config_file_is_where_puma_looks_for_one() {
        let nowhere = Path::new("/proc");
        assert!(has_config(Some(Path::new("puma.rb")), nowhere));
        assert!(!has_config(Some(Path::new("-")), nowhere) && !has_config(None, nowhere));
    }
}
