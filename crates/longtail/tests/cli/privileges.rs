//! Tries what longtail can do with which of the kernel's capabilities: the table in
//! `docs/privileges.md` is what this test finds. Whatever fails for want of one must name it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::lab::{Ended, LONGTAIL, Lab, can, end, free_port};
use crate::scenarios::stage::is_there;

/// Somebody who runs longtail, and with which rights: capabilities, or a word that `run` knows.
struct Person {
    name: &'static str,
    rights: &'static str,
}

/// What is tried: the rows of the table.
const MEASURE: &str = "`sweep`, `load`, `compare`, `capacity`: measure";
const TRACE: &str = "`--inspect kernel`: when the kernel saw each request";
const WATCH: &str = "`watch` another user's server: connections, accept queue, CPUs";
const LOOK_INSIDE: &str = "also whose connections they are, and what each thread waits for";
const ROWS: [&str; 4] = [MEASURE, TRACE, WATCH, LOOK_INSIDE];

const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

const PEOPLE: [Person; 9] = [
    Person { name: "any user", rights: "" },
    Person { name: "CAP_BPF", rights: "bpf" },
    Person { name: "CAP_PERFMON", rights: "perfmon" },
    Person { name: "CAP_BPF and CAP_PERFMON", rights: "bpf,perfmon" },
    Person { name: "CAP_SYS_PTRACE", rights: "sys_ptrace" },
    Person { name: "CAP_DAC_READ_SEARCH", rights: "dac_read_search" },
    Person { name: "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", rights: "sys_ptrace,dac_read_search" },
    Person { name: "root of a user namespace", rights: "namespace" },
    Person { name: "root", rights: "root" },
];

impl Person {
    /// Runs longtail as this person would.
    fn run(&self, lab: &Lab, program: &Path, arguments: &str) -> Ended {
        let prefix = match self.rights {
            "root" => String::new(),
            "" => NOBODY.to_owned(),
            "namespace" => format!("{NOBODY} unshare --user --map-root-user"),
            held => {
                let held: Vec<String> = held.split(',').map(|one| format!("+{one}")).collect();
                let held = held.join(",");
                format!("{NOBODY} --inh-caps={held} --ambient-caps={held}")
            }
        };
        let line = format!("{prefix} {} {arguments}", program.display());
        let mut all = line.split_ascii_whitespace();
        let mut command: Command = lab.program(all.next().unwrap());
        let data = lab.path(&format!("data-{}", self.name.replace(' ', "-")));
        end(command.args(all).env("XDG_DATA_HOME", data))
    }

    /// What of [`ROWS`] works for this person.
    fn tries(&self, lab: &Lab, program: &Path, port: u16) -> Vec<&'static str> {
        let sweep = "sweep --server builtin -w1 -t2:2 -d 5ms -R 5 --multiples 1 --no-calibrate";
        let is_measured = |ended: &Ended| [0, 3].contains(&ended.code());
        let measured = self.run(lab, program, &format!("{sweep} --inspect proc"));
        let traced = self.run(lab, program, &format!("{sweep} --inspect kernel"));
        let watched = self.run(lab, program, &format!("watch :{port} --for 300ms --json"));
        let seen: Value = serde_json::from_str(&watched.stdout).unwrap_or_default();
        let not_visible = seen["not_visible"].as_array().cloned().unwrap_or_default();
        let may_trace = is_measured(&traced);
        let sees_all = not_visible.is_empty();
        if !may_trace {
            let refusal = traced.refused("--inspect kernel is not possible here: ");
            let missing = match self.rights {
                "bpf" => "CAP_PERFMON is not held (sudo setcap",
                "perfmon" => "CAP_BPF is not held (sudo setcap",
                "namespace" => "Operation not permitted",
                _ => "CAP_BPF and CAP_PERFMON are not held (sudo setcap",
            };
            assert!(refusal.contains(missing), "{}: {refusal}", self.name);
        }
        if !sees_all && self.rights != "namespace" {
            let said = not_visible.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
            assert!(
                said.contains("CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"),
                "{}: {said}",
                self.name
            );
        }
        let answers = [
            (MEASURE, is_measured(&measured)),
            (TRACE, may_trace),
            (WATCH, watched.code() == 0),
            (LOOK_INSIDE, sees_all),
        ];
        answers.into_iter().filter(|(_, works)| *works).map(|(what, _)| what).collect()
    }
}

/// A row of the table; `all` is what works for each of the people.
fn row(what: &str, all: &[Vec<&str>]) -> String {
    let cells: Vec<&str> =
        all.iter().map(|works| if works.contains(&what) { "yes" } else { "-" }).collect();
    format!("| {what} | {} |", cells.join(" | "))
}

#[test]
fn the_documents_say_which_right_each_thing_needs() {
    let has_all = is_there("root") && is_there("bpf") && is_there("setpriv");
    let has_namespaces = || {
        Command::new("unshare").args(["--user", "true"]).status().is_ok_and(|made| made.success())
    };
    if !has_all || !can(has_namespaces(), "no user namespace") {
        return;
    }
    let lab = Lab::new();
    // Other users must be able to enter the folder of the program.
    let folder = lab.path("for-all");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("longtail");
    fs::copy(LONGTAIL, &program).unwrap();
    for path in folder.ancestors().take_while(|path| path.starts_with(std::env::temp_dir())) {
        fs::set_permissions(path, Permissions::from_mode(0o1777)).unwrap();
    }
    let port = free_port();
    let mut server = lab.start(&format!("sink --listen 127.0.0.1:{port}"));
    server.until(|said| said.contains("127.0.0.1"));
    let all: Vec<Vec<&str>> = thread::scope(|scope| {
        let threads: Vec<_> = PEOPLE
            .iter()
            .map(|person| scope.spawn(|| person.tries(&lab, &program, port)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop(server);
    let names: Vec<&str> = PEOPLE.iter().map(|person| person.name).collect();
    let mut table = vec![
        format!("| | {} |", names.join(" | ")),
        format!("|---|{}", "---|".repeat(names.len())),
    ];
    table.extend(ROWS.map(|what| row(what, &all)));
    let table = table.join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/privileges.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- begin: tests/cli/privileges.rs -->\n").unwrap();
    let (_, after) = rest.split_once("\n<!-- end: tests/cli/privileges.rs -->").unwrap();
    let anew = format!(
        "{before}<!-- begin: tests/cli/privileges.rs -->\n{table}\n<!-- end: tests/cli/privileges.rs -->{after}"
    );
    testkit::golden::expect(&path, &anew);
}
