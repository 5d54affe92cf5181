//! `longtail fleet`: more than one machine, by Ansible's playbooks, which are in `deploy/fleet` and go where `fleet init` is told.
//!
//! Nothing is done here that a person could not do by hand: the command that is printed is the one that runs.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use launch::find_program;
use model::plan::quoted;
use serde_json::json;

use crate::args::{self, FleetArgs, FleetVerb};
use crate::exit::Exit;
use crate::mistake::{Mistake, wrong};
use crate::ui;

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
const NO_BOXES: &str = "# provision.yml writes the boxes here.\nall: { vars: { cloud: digitalocean } }\n";

const ANSIBLE: &str = "ansible-playbook";

/// Writes the playbooks, or becomes one of them.
///
/// # Errors
/// Where the folder is there already, or is not there yet, Ansible is not installed, or the words are none for longtail.
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
    let cannot = |path: &Path| {
        let path = path.to_owned();
        move |why| Mistake::Write { path, why, hint: "name a folder of your own by --dir" }
    };
    if dir.exists() {
        return Err(wrong(format!("'{}' is there already: edit it, or name another by --dir", dir.display())));
    }
    for (name, text) in FILES {
        let path = dir.join(name);
        let text = if is_cloud && *name == INVENTORY { NO_BOXES } else { text };
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).and_then(|()| fs::write(&path, text)).map_err(cannot(&path))?;
    }
    let dir = dir.display();
    ui::note(&if is_cloud {
        format!(
            "{dir}/ is written. Copy {dir}/.env.example to {dir}/.env and put your keys in; choose size, region and number of \
             generators in {dir}/group_vars/all.yml; then: longtail fleet provision"
        )
    } else {
        format!("{dir}/ is written. Name your boxes in {dir}/{INVENTORY}, then: longtail fleet provision")
    });
    Ok(Exit::Fine)
}

/// The variable that says which longtail the boxes get.
fn of_this_program() -> String {
    format!("longtail_binary={}", PathBuf::from(crate::this_program()).display())
}

/// `longtail COMMAND WORDS` on the first box. The words are read here first: a mistake needs no box.
fn measure(dir: &Path, command: &str, words: &[String]) -> Result<Exit, Mistake> {
    let ours = ["-o", "--output", "--from"];
    if let Some(word) = words.iter().find(|word| ours.iter().any(|flag| word.split('=').next() == Some(flag))) {
        return Err(wrong(format!(
            "fleet {command} sets {word} itself: leave it out (the study comes to fleet/studies)"
        )));
    }
    let line = ["longtail", command].into_iter().chain(words.iter().map(String::as_str)).map(OsString::from);
    if let args::Invocation::Help(text) = args::parse(line)? {
        ui::print(&text);
        return Ok(Exit::Fine);
    }
    play(dir, "run", &[json!({ "command": command, "words": words }).to_string()])
}

/// Becomes Ansible with that playbook, so that Ctrl-C reaches it, and nothing of it outlives us.
fn play(dir: &Path, playbook: &str, variables: &[String]) -> Result<Exit, Mistake> {
    let file = format!("{playbook}.yml");
    if !dir.join(&file).is_file() {
        let dir = dir.display();
        return Err(wrong(format!("'{dir}' has no {file}: type longtail fleet init, or name the folder by --dir")));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program =
        find_program(OsStr::new(ANSIBLE), &std::env::current_dir().unwrap_or_default(), &path).ok_or_else(|| {
            wrong(format!("{ANSIBLE} is not on PATH: sudo apt-get install ansible-core, or pipx install ansible-core"))
        })?;
    let words: Vec<&str> =
        std::iter::once(file.as_str()).chain(variables.iter().flat_map(|one| ["-e", one.as_str()])).collect();
    let shown: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    ui::note(&format!("cd {} && {ANSIBLE} {}", quoted(&dir.to_string_lossy()), shown.join(" ")));
    let why = Command::new(program).args(words).current_dir(dir).exec();
    Err(wrong(format!("{ANSIBLE} does not start: {why}")))
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
