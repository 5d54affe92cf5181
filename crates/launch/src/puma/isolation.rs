//! Keeps a Puma that longtail starts apart from one that runs from the same config file, and asks
//! Puma what it makes of its configuration.
//!
//! Every Puma gets one additional config file, ours ([`SCRIPT`]), which it reads last. It removes
//! the pidfile, the state file, the control server, the redirected output, the listeners and the
//! plugins that earlier files set, so that nothing of a running server is overwritten, unlinked or
//! taken over. It also holds the control server's token, because everybody on the machine can read
//! a command line.
//!
//! If Puma has a config file of its own, it is first started once with the same command. That run
//! prints what Puma made of config file, environment and flags, and what cannot be kept apart, and
//! ends before it binds anything. So everything that the config file does happens once more, and a
//! flag overrides the file or not exactly as in the server itself.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use model::{Clock, Nanos, PumaSettings};

use crate::start_server::run_to_end;
use crate::{GuardCommand, LaunchError, LaunchSpec, ServerOutput, unwritable};

/// Puma's last config file, in Ruby.
const SCRIPT: &str = include_str!("isolation.rb");

/// Its name in the private directory.
const FILE: &str = "longtail.rb";

/// The longest wait for that run. A config file may load an app.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// How each line of the script begins. The kind and a blank follow.
const MARK: &str = "longtail-";

/// The most hooks, plugins and the like that one sentence names.
const NAMED: usize = 6;

/// What [`SCRIPT`] is given.
pub(super) struct IsolationSettings<'a> {
    /// Whether Puma is given no other config file, so that it would look for its usual ones.
    pub(super) reads_usual_files: bool,
    /// As in `-b`.
    pub(super) bind: &'a str,
    /// As in `--control-url`.
    pub(super) control_url: &'a str,
    /// The token that requests to the control server need.
    pub(super) control_token: &'a str,
}

impl IsolationSettings<'_> {
    /// Writes the config file into a server's private directory, and returns its path.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, dir: &Path) -> Result<PathBuf, LaunchError> {
        let IsolationSettings { reads_usual_files, bind, control_url, control_token } = self;
        // Addresses, hexadecimal digits and the path of our directory contain no quotes.
        let told = format!(
            "longtail = {{ reads_usual_files: {reads_usual_files}, bind: '{bind}', control_url: \
             '{control_url}', control_token: '{control_token}' }}\n"
        );
        let path = dir.join(FILE);
        fs::write(&path, told + SCRIPT).map_err(unwritable(dir))?;
        Ok(path)
    }
}

/// What Puma says about its configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PumaConfig {
    /// What decides in which order requests are served; `None` if it did not say so in time.
    pub settings: Option<PumaSettings>,
    /// One sentence for each kind of thing that cannot be kept apart from a server with the same
    /// file, or that is left out for that reason.
    pub remarks: Vec<String>,
}

/// Whether Puma reads another config file than ours: one on its command line, which may come from
/// `--puma`, or `config/puma.rb` and `config/puma/ENVIRONMENT.rb`, which it finds by itself.
fn has_config(config: Option<&Path>, spec: &LaunchSpec) -> bool {
    let names_one = |word: &&OsString| {
        let word = word.to_string_lossy();
        word.starts_with("-C") || word.starts_with("--config")
    };
    if config == Some(Path::new("-")) {
        return false;
    }
    spec.argv.iter().filter(names_one).count() > 1
        || spec.dir.join("config/puma.rb").exists()
        || spec.dir.join("config/puma").is_dir()
}

/// Asks the Puma of `spec` what it makes of its config file, environment and flags. Without a
/// config file, the defaults of its version hold.
///
/// # Errors
/// If it cannot be started at all.
pub fn ask_config(
    config: Option<&Path>,
    spec: &LaunchSpec,
    guard: &GuardCommand,
    clock: &dyn Clock,
    is_interrupted: impl Fn() -> bool,
) -> Result<PumaConfig, LaunchError> {
    if !has_config(config, spec) {
        return Ok(PumaConfig { settings: Some(PumaSettings::default()), remarks: Vec::new() });
    }
    let Some(scratch) = &spec.scratch else { return Ok(PumaConfig::default()) };
    let ours = scratch.path().join(FILE);
    let asking = scratch.path().join("longtail-asks.rb");
    let script = fs::read_to_string(&ours).map_err(unwritable(scratch.path()))?;
    fs::write(&asking, format!("longtail_asks = true\n{script}"))
        .map_err(unwritable(scratch.path()))?;
    let ask = |word: &OsString| if *word == ours { asking.clone().into() } else { word.clone() };
    let argv = spec.argv.iter().map(ask).collect();
    let asking = LaunchSpec { argv, scratch: None, ..spec.clone() };
    let gives_up = |waited| waited >= PATIENCE || is_interrupted();
    let (_, output) = run_to_end(&asking, guard, clock, Nanos::ZERO, gives_up)?;
    let settings = said(&output, "settings").next().map(read);
    let other_transport = other_transport(&output, spec);
    let remarks = other_transport.into_iter().chain(remarks(&output)).collect();
    Ok(PumaConfig { settings, remarks })
}

/// The text of each line of this kind.
fn said<'a>(output: &'a ServerOutput, kind: &'a str) -> impl Iterator<Item = &'a str> {
    output.lines().filter_map(move |line| {
        let (said, rest) = line.strip_prefix(MARK)?.split_once(' ')?;
        (said == kind).then_some(rest)
    })
}

/// If the config file has Puma listen only over TLS or a Unix socket, but Puma is measured over
/// something else: a sentence that says so, with the flag for it.
fn other_transport(output: &ServerOutput, spec: &LaunchSpec) -> Option<String> {
    let scheme = |bind: &str| bind.split("://").next().unwrap_or_default().to_owned();
    let ours = spec.argv.iter().skip_while(|word| *word != "-b").nth(1)?;
    let ours = scheme(&ours.to_string_lossy());
    let theirs: Vec<String> = said(output, "bind").map(scheme).collect();
    let [first, ..] = theirs.as_slice() else { return None };
    if theirs.contains(&ours) {
        return None;
    }
    let (name, flag) = match first.as_str() {
        "tcp" => ("plain TCP", "tcp4"),
        "ssl" => ("TLS", "ssl4"),
        "unix" => ("a Unix socket", "unix"),
        _ => return None,
    };
    let here = match ours.as_str() {
        "tcp" => "plain TCP",
        "ssl" => "TLS",
        _ => "a Unix socket",
    };
    Some(format!(
        "Puma's config listens over {name}, and is measured over {here} here: for {name}, add -s \
         {flag}"
    ))
}

fn remarks(output: &ServerOutput) -> Vec<String> {
    // `before_fork config/puma.rb:12`, with the place last.
    let with_place = |line: &str| {
        line.rsplit_once(' ')
            .map_or_else(|| line.to_owned(), |(what, place)| format!("{what} ({place})"))
    };
    let mut remarks = Vec::new();
    let plugins = listed(said(output, "plugin").map(str::to_owned));
    remarks.extend(plugins.map(|plugins| {
        format!(
            "Puma's config has plugins that are left out here, and so in the figures: {plugins}"
        )
    }));
    let hooks = listed(said(output, "hook").map(with_place));
    remarks.extend(hooks.map(|hooks| {
        format!("Puma's config has hooks that run here too, whatever they act on: {hooks}")
    }));
    let acts = listed(said(output, "act").map(with_place));
    remarks.extend(acts.map(|acts| {
        format!(
            "Puma's config acts on files or processes when it is read, as it may at each \
             start here: {acts}"
        )
    }));
    let addresses = listed(said(output, "listens").map(str::to_owned));
    remarks.extend(
        addresses.map(|addresses| format!("Puma's config itself listens, here too: {addresses}")),
    );
    if said(output, "threads").next().is_some() {
        remarks.push("Puma's config starts threads, here too".to_owned());
    }
    if said(output, "children").next().is_some() {
        remarks.push("Puma's config starts processes, here too".to_owned());
    }
    remarks
}

/// Each once, and only the first ones by name; `None` if there are none.
fn listed(named: impl Iterator<Item = String>) -> Option<String> {
    let mut each: Vec<String> = Vec::new();
    for name in named {
        if !each.contains(&name) {
            each.push(name);
        }
    }
    let more = each.len().saturating_sub(NAMED);
    each.truncate(NAMED);
    if more > 0 {
        each.push(format!("{more} more"));
    }
    (!each.is_empty()).then(|| each.join(", "))
}

/// `max_fast_inline=10 queue_requests=true …` with Ruby's `inspect` of each value.
fn read(words: &str) -> PumaSettings {
    let value =
        |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
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
        // A turn has at least one request, even with 0.
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
    use crate::server_output::Transcript;

    fn output(text: &str) -> ServerOutput {
        let transcript = Transcript::default();
        transcript.read(text.as_bytes());
        transcript.so_far()
    }

    #[test]
    fn values_are_read_as_ruby_inspects_them() {
        testkit::golden::expect_rows(
            concat!(env!("CARGO_MANIFEST_DIR"), "/src/puma/settings.txt"),
            read,
        );
    }

    #[test]
    fn each_kind_of_remark_is_one_sentence() {
        assert_eq!(remarks(&output("Puma starting\nlongtail-settings a=1\n")), [""; 0]);
        let hooks: Vec<String> =
            (1..=8).map(|n| format!("longtail-hook before_fork a.rb:{n}")).collect();
        let hooks = hooks.join("\n");
        let said = "\n\nlongtail-plugin metrics\n\nlongtail-plugin metrics\nlongtail-threads \n";
        assert_eq!(
            remarks(&output(&format!("{hooks}{said}"))),
            [
                "Puma's config has plugins that are left out here, and so in the figures: metrics",
                "Puma's config has hooks that run here too, whatever they act on: before_fork \
                 (a.rb:1), before_fork (a.rb:2), before_fork (a.rb:3), before_fork (a.rb:4), \
                 before_fork (a.rb:5), before_fork (a.rb:6), 2 more",
                "Puma's config starts threads, here too",
            ]
        );
    }

    #[test]
    fn a_config_that_listens_differently_is_named_with_the_flag_for_it() {
        for (binds, ours, flag) in [
            (&["ssl"][..], "tcp://127.0.0.1:1", Some("-s ssl4")),
            (&["unix"], "tcp://127.0.0.1:1", Some("-s unix")),
            (&["tcp"], "unix:///tmp/x", Some("-s tcp4")),
            (&["unix", "tcp"], "tcp://127.0.0.1:1", None),
            (&["ssl"], "ssl://127.0.0.1:1?key=k", None),
            (&[], "tcp://127.0.0.1:1", None),
        ] {
            let lines: Vec<String> =
                binds.iter().map(|bind| format!("longtail-bind {bind}")).collect();
            let spec = LaunchSpec::command(["puma", "-b", ours], Path::new("/"));
            let said = other_transport(&output(&lines.join("\n")), &spec);
            let said_flag = said.as_ref().and_then(|said| said.split("add ").nth(1));
            assert_eq!(said_flag, flag, "{binds:?} {ours}");
        }
    }

    #[test]
    fn a_missing_folder_has_no_config_file_and_no_commit() {
        let nowhere = Path::new("/proc");
        let puma = |words: &str| LaunchSpec::command(words.split(' '), nowhere);
        let ours = puma("puma -b x -C longtail.rb app.ru");
        let both = puma("puma -C puma.rb -b x -C longtail.rb app.ru");
        assert!(has_config(Some(Path::new("puma.rb")), &both) && has_config(None, &both));
        assert!(!has_config(Some(Path::new("-")), &ours) && !has_config(None, &ours));
        assert_eq!(crate::git_head(nowhere), None);
    }
}
