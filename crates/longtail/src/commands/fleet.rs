//! `longtail fleet`: more than one machine, by Ansible's playbooks, which are in `deploy/fleet`;
//! `fleet init` writes them to its folder.
//!
//! Nothing is done here that a person could not do by hand: the commands that are printed are the
//! ones that run. To measure, Ansible only prepares (`run.yml`): it keeps back what a task prints
//! until the task is over, and has exit codes of its own. So longtail on the first box is started
//! by ssh, with this terminal if there is one.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;

use launch::{dies_with_us, find_program};
use model::plan::quoted;
use model::{Clock as _, Nanos, SystemClock};
use serde::Deserialize;
use serde_json::json;

use super::{Invocation, parse};
use crate::args::FleetArgs;
use crate::args::fleet::FleetVerb;
use crate::exit::{Exit, Mistake, refuse_if, unwritable, wrong};
use crate::{files, secrets, signals, study_files, ui};

/// The files of `deploy/fleet`, by their path there.
macro_rules! files {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../../../deploy/fleet/", $path)))),*]
    };
}

const FILES: &[(&str, &str)] = files! {
    ".env.example" ".gitignore" "ansible.cfg" "inventory.yml" "group_vars/all.yml"
    "provision.yml" "update.yml" "doctor.yml" "run.yml" "fetch.yml" "destroy.yml"
    "digitalocean/create.yml" "digitalocean/destroy.yml" "digitalocean/failed.yml" "digitalocean/inventory.yml"
    "roles/longtail/tasks/main.yml" "roles/longtail/tasks/binary.yml"
    "roles/server/tasks/main.yml" "roles/server/tasks/app.yml"
    "roles/generator/tasks/main.yml" "roles/datadog/tasks/main.yml"
};

/// The inventory, and the text in it until provision has made boxes.
const INVENTORY: &str = "inventory.yml";
const NO_BOXES: &str =
    "# provision.yml writes the boxes here.\nall: { vars: { cloud: digitalocean } }\n";

/// What is copied to `.env`, for keys.
const KEYS: &str = ".env.example";

const ANSIBLE: &str = "ansible-playbook";

/// How often to check for an interruption, and for the end of the run.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);

/// Writes the playbooks, or becomes one of them.
///
/// # Errors
/// If the folder is there already, or is not there yet, Ansible is not installed, or longtail does
/// not understand the words.
pub(crate) fn run(args: &FleetArgs) -> Result<Exit, Mistake> {
    match &args.verb {
        FleetVerb::Init { digitalocean } => init(&args.dir, *digitalocean),
        FleetVerb::Provision => play(&args.dir, "provision", &[of_this_program()]),
        FleetVerb::Update => play(&args.dir, "update", &[of_this_program()]),
        FleetVerb::Doctor => play(&args.dir, "doctor", &[]),
        FleetVerb::Fetch => play(&args.dir, "fetch", &[]),
        FleetVerb::Destroy => play(&args.dir, "destroy", &[]),
        FleetVerb::Sweep(words) => measure(&args.dir, "sweep", &words.words),
        FleetVerb::Load(words) => measure(&args.dir, "load", &words.words),
        FleetVerb::Compare(words) => measure(&args.dir, "compare", &words.words),
    }
}

fn init(dir: &Path, is_cloud: bool) -> Result<Exit, Mistake> {
    refuse_if(
        dir.exists(),
        format_args!("'{}' is there already: edit it, or name another by --dir", dir.display()),
    )?;
    for (name, text) in FILES {
        let path = dir.join(name);
        let text = if is_cloud && *name == INVENTORY { NO_BOXES } else { text };
        let folder = path.parent().unwrap_or(dir);
        // People copy it and put their keys into the copy, which has the mode of the first.
        let written = fs::create_dir_all(folder).and_then(|()| match *name {
            KEYS => files::write_private(&path, text),
            _ => files::write(&path, text),
        });
        written.map_err(|why| unwritable(&path, &why, "name a folder of your own by --dir"))?;
    }
    let dir = dir.display();
    ui::note(&if is_cloud {
        format!(
            "{dir}/ is written. Copy {dir}/.env.example to {dir}/.env and put your keys in; choose size, region and number of \
             generators in {dir}/group_vars/all.yml; then: longtail fleet provision"
        )
    } else {
        format!(
            "{dir}/ is written. Name your boxes in {dir}/{INVENTORY}, then: longtail fleet provision"
        )
    });
    Ok(Exit::Fine)
}

/// The variable that says which longtail the boxes get.
fn of_this_program() -> String {
    format!("longtail_binary={}", PathBuf::from(crate::this_program()).display())
}

/// `longtail COMMAND WORDS` on the first box. The words are read here first: a mistake needs no
/// box.
fn measure(dir: &Path, command: &str, words: &[String]) -> Result<Exit, Mistake> {
    let ours = ["-o", "--output", "--from"];
    if let Some(word) =
        words.iter().find(|word| ours.iter().any(|flag| word.split('=').next() == Some(flag)))
    {
        return Err(wrong(format!(
            "fleet {command} sets {word} itself: leave it out (the study comes to fleet/studies)"
        )));
    }
    let line = ["longtail", command]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .map(OsString::from);
    if let Invocation::Help(text) = parse(line)? {
        ui::print(&text);
        return Ok(Exit::Fine);
    }
    // In a file that nobody else reads: whoever lists processes sees their words.
    let variables = json!({ "command": command, "words": words }).to_string();
    let path = dir.join("words.json");
    files::write_private(&path, &variables)
        .map_err(|why| unwritable(&path, &why, "let this user write there"))?;
    let mut prepare = playbook(dir, "run", &["@words.json".to_owned()])?;
    dies_with_us(&mut prepare);
    let prepared = prepare.output().map_err(|why| does_not_start(ANSIBLE, &why))?;
    if !prepared.status.success() {
        ui::print(&String::from_utf8_lossy(&prepared.stdout));
        return Err(wrong(
            "Ansible did not reach the first box, or could not prepare it (see above): no load was sent",
        ));
    }
    let path = dir.join("run.json");
    let unreadable = |why: String| Mistake::Read { path: path.clone(), why };
    let run: BoxRun = serde_json::from_slice(&study_files::read_bytes(&path)?)
        .map_err(|why| unreadable(why.to_string()))?;
    run.measure(dir)
}

/// A run on the first box, as `run.yml` has prepared it.
#[derive(Deserialize)]
struct BoxRun {
    /// The box.
    name: String,
    /// The command that leads there, as a shell takes it, such as `ssh -p 22 root@192.0.2.1`.
    ssh: String,
    /// The command line of longtail there.
    line: String,
    /// The file that longtail writes there.
    study: String,
}

impl BoxRun {
    /// Runs longtail on the box and copies its study to here; returns its exit code.
    fn measure(&self, dir: &Path) -> Result<Exit, Mistake> {
        let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        // A terminal that goes away ends longtail there, and so does an input that ends.
        let (flag, set) = if has_terminal {
            (" -t", String::new())
        } else {
            ("", format!("{}=1 ", signals::ENDS_WITH_INPUT))
        };
        let line = quoted(&format!("cd app && {set}{}", self.line));
        let ssh = format!("{}{flag} {line}", self.ssh);
        ui::note(&secrets::masked_line(&ssh));
        let mut command = shell(&ssh);
        if !has_terminal {
            // Ctrl-C is for us: longtail there is asked to stop, and reports.
            command.stdin(Stdio::piped()).process_group(0);
        }
        let status = until_interrupted(&mut command)?;
        let exit = Exit::ALL
            .map(|(exit, _)| exit)
            .into_iter()
            .find(|exit| status.code() == Some(exit.code()));
        if exit == Some(Exit::Mistake) {
            return Ok(Exit::Mistake);
        }
        let study = dir.join("studies").join(&self.study);
        let is_here = self.bring(&study);
        if is_here {
            ui::note(&format!(
                "the study is here: longtail report {}",
                quoted(&study.to_string_lossy())
            ));
        } else if exit.is_some() {
            ui::note(&format!("the study stayed on {}: longtail fleet fetch brings it", self.name));
        }
        let Some(exit) = exit else {
            ui::note(&format!(
                "the connection to {} broke off: longtail fleet fetch brings what was finished",
                self.name
            ));
            return Ok(Exit::Invalid);
        };
        Ok(exit.and(Exit::Unwritten.if_so(!is_here)))
    }

    /// Copies the study from the box; whether there is one.
    fn bring(&self, to: &Path) -> bool {
        let part = to.with_extension("part");
        let folder = to.parent().unwrap_or(to);
        let Ok(file) = fs::create_dir_all(folder).and_then(|()| files::create(&part)) else {
            return false;
        };
        let mut command =
            shell(&format!("{} {}", self.ssh, quoted(&format!("cat app/{}", quoted(&self.study)))));
        let copied = command.stdin(Stdio::null()).stdout(file).status();
        let is_whole = copied.is_ok_and(|status| status.success()) && fs::rename(&part, to).is_ok();
        let _ = fs::remove_file(&part);
        is_whole
    }
}

/// A command line as a shell reads it, which ends with us.
fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec {line}"));
    dies_with_us(&mut command);
    command
}

/// Runs it to its end. Ctrl-C closes its stdin, if that is a pipe, else kills it.
fn until_interrupted(command: &mut Command) -> Result<ExitStatus, Mistake> {
    let interrupt = signals::interruption()?;
    let clock = SystemClock::start();
    signals::begin();
    let mut process = command.spawn().map_err(|why| does_not_start("ssh", &why))?;
    let mut input = process.stdin.take();
    let is_piped = input.is_some();
    loop {
        match process.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => {}
            Err(why) => return Err(does_not_start("ssh", &why)),
        }
        if interrupt.load(Ordering::Relaxed) {
            drop(input.take());
            if !is_piped {
                let _ = process.kill();
            }
        }
        clock.sleep(POLL_INTERVAL);
    }
}

/// Becomes Ansible with that playbook, so that Ctrl-C reaches it, and nothing of it outlives us.
fn play(dir: &Path, name: &str, variables: &[String]) -> Result<Exit, Mistake> {
    let why = playbook(dir, name, variables)?.exec();
    Err(does_not_start(ANSIBLE, &why))
}

/// Ansible with that playbook. Prints what is about to run.
fn playbook(dir: &Path, name: &str, variables: &[String]) -> Result<Command, Mistake> {
    let file = format!("{name}.yml");
    if !dir.join(&file).is_file() {
        let dir = dir.display();
        return Err(wrong(format!(
            "'{dir}' has no {file}: type longtail fleet init, or name the folder by --dir"
        )));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program =
        find_program(OsStr::new(ANSIBLE), &std::env::current_dir().unwrap_or_default(), &path).ok_or_else(|| {
            wrong(format!("{ANSIBLE} is not on PATH: sudo apt-get install ansible-core, or pipx install ansible-core"))
        })?;
    let words: Vec<&str> = std::iter::once(file.as_str())
        .chain(variables.iter().flat_map(|one| ["-e", one.as_str()]))
        .collect();
    let shown: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    ui::note(&format!("cd {} && {ANSIBLE} {}", quoted(&dir.to_string_lossy()), shown.join(" ")));
    let mut command = Command::new(program);
    command.args(words).current_dir(dir);
    Ok(command)
}

fn does_not_start(program: &str, why: &io::Error) -> Mistake {
    wrong(format!("{program} does not start: {why}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn files_in(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_in(&path, root, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_written() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/fleet");
        let mut found = BTreeSet::new();
        files_in(&root, &root, &mut found);
        assert_eq!(found, FILES.iter().map(|(path, _)| (*path).to_owned()).collect());
    }
}
