//! Several machines by Ansible: the playbooks of `deploy/fleet`, as `longtail fleet` writes and
//! runs them.
//!
//! A small server stands in for `DigitalOcean`'s API (`digitalocean.py`), in a network namespace
//! without a route out; namespaces of `bin/fleet-demo` stand in for boxes. Pods of Kubernetes are
//! in `scenarios/far.txt`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::network::Host;

use crate::lab::{LONGTAIL, Lab, Running, THIS_MACHINE, can, end, has};

const TOKEN: &str = "dop_v1_secret";
const PUBLIC_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP6xDnVYJ0Jw me@here";

/// An account at `DigitalOcean`, and a folder with the playbooks.
struct Cloud {
    lab: Lab,
    host: Host,
    _api: Running,
}

impl Cloud {
    fn new() -> Option<Cloud> {
        if !has("ansible-playbook") || !has("python3") {
            return None;
        }
        let host = crate::far::host(&[])?;
        let lab = Lab::new();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/digitalocean.py");
        let mut command = on(&lab, &host, "python3");
        command.arg(script).arg(lab.path("account.json")).arg(lab.write("faults", ""));
        let mut api = Running::start(&mut command);
        let mut port = String::new();
        api.until(|printed| {
            printed.trim().clone_into(&mut port);
            !port.is_empty()
        });
        end(on(&lab, &host, LONGTAIL).args(["fleet", "init", "--digitalocean"])).with_code(0);
        let mut settings = fs::read_to_string(lab.path("fleet/group_vars/all.yml")).unwrap();
        for (theirs, ours) in [
            ("https://api.digitalocean.com", &*format!("http://127.0.0.1:{port}")),
            ("digitalocean_timeout: 30", "digitalocean_timeout: 5"),
            ("digitalocean_tries: 5", "digitalocean_tries: 1"),
            ("digitalocean_pause: 5", "digitalocean_pause: 0"),
            ("boot_timeout: 300", "boot_timeout: 1"),
        ] {
            assert!(settings.contains(theirs), "{theirs}");
            settings = settings.replace(theirs, ours);
        }
        lab.write("fleet/group_vars/all.yml", &settings);
        Some(Cloud { lab, host, _api: api })
    }

    /// Runs `longtail fleet VERB` and returns its output with blanks instead of line breaks.
    fn fleet(&self, verb: &str, code: i32) -> String {
        let ended = end(on(&self.lab, &self.host, LONGTAIL).args(["fleet", verb]));
        let printed = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!printed.contains(TOKEN), "the token is printed: {printed}");
        ended.with_code(code).stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The account: names of boxes, number of keys, number of tags.
    fn account(&self) -> (Vec<String>, usize, usize) {
        let account: Value =
            serde_json::from_str(&fs::read_to_string(self.lab.path("account.json")).unwrap())
                .unwrap();
        let boxes = account["droplets"].as_array().unwrap();
        let names = boxes.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        (
            names,
            account["ssh_keys"].as_array().unwrap().len(),
            account["tags"].as_array().unwrap().len(),
        )
    }
}

/// A program on a host in the lab's folder, without the caller's own keys.
fn on(lab: &Lab, host: &Host, program: &str) -> Command {
    let mut command = crate::far::on(lab, host, program);
    command.env("HOME", lab.path("")).env("USER", "demo").env("LONGTAIL_ALLOW_NET", THIS_MACHINE);
    for key in ["DO_API_KEY", "DD_API_KEY", "SSH_PUBLIC_KEY"] {
        command.env_remove(key);
    }
    command
}

/// What a command of `longtail fleet` does while DigitalOcean answers with these faults.
struct CloudStep {
    verb: &'static str,
    /// A fault a line, as `digitalocean.py` reads them.
    faults: &'static str,
    code: i32,
    /// What it prints, among other things.
    prints: [&'static str; 2],
    /// The boxes of the account afterwards, and whether its key and its tag are there.
    boxes: &'static [&'static str],
    has_key: bool,
    /// Whether both boxes are in the inventory.
    is_listed: bool,
}

impl CloudStep {
    fn provision(faults: &'static str, prints: [&'static str; 2]) -> CloudStep {
        CloudStep {
            verb: "provision",
            faults,
            code: 2,
            prints,
            boxes: &["longtail-demo-server-1"],
            has_key: true,
            is_listed: false,
        }
    }

    fn destroy(faults: &'static str, prints: [&'static str; 2]) -> CloudStep {
        CloudStep {
            verb: "destroy",
            faults,
            code: 0,
            prints,
            boxes: &[],
            has_key: false,
            is_listed: false,
        }
    }

    fn run(&self, cloud: &Cloud) {
        let faults = self.faults;
        cloud.lab.write("faults", faults);
        let printed = cloud.fleet(self.verb, self.code);
        for part in self.prints {
            assert!(printed.contains(part), "{faults}: no '{part}': {printed}");
        }
        let boxes = self.boxes.iter().map(|name| (*name).to_owned()).collect();
        let others = usize::from(self.has_key);
        assert_eq!(cloud.account(), (boxes, others, others), "{faults}");
        let inventory = fs::read_to_string(cloud.lab.path("fleet/inventory.yml")).unwrap();
        let is_listed = ["server-1", "generator-1"]
            .iter()
            .all(|name| inventory.contains(&format!("{name}: {{ ansible_host: 192.0.2.")));
        assert_eq!(is_listed, self.is_listed, "{faults}: {inventory}");
    }
}

/// One account, from when it is empty until it is empty again.
#[test]
fn boxes_at_digitalocean_are_made_once_and_faults_are_named() {
    let Some(cloud) = Cloud::new() else { return };
    let printed = cloud.fleet("provision", 2);
    assert!(printed.contains("DO_API_KEY is not set"), "{printed}");
    cloud.lab.write("fleet/.env", &format!("DO_API_KEY={TOKEN}\nSSH_PUBLIC_KEY='{PUBLIC_KEY}'\n"));
    let one_left = "These boxes exist and cost money: longtail-demo-server-1. longtail fleet destroy deletes them.";
    let unknown = "DigitalOcean does not say which boxes exist: look for the tag longtail-demo";
    let wrong_key = "says 401, Unable to authenticate you (is DO_API_KEY right";
    let steps = [
        CloudStep {
            boxes: &[],
            has_key: false,
            ..CloudStep::provision("GET /v2/account/keys all 401", [wrong_key, "No box is left."])
        },
        CloudStep::provision(
            "POST /v2/droplets 2 500",
            ["DigitalOcean says 500, Server Error", one_left],
        ),
        CloudStep::provision("POST /v2/droplets 1 0", ["timed out", one_left]),
        CloudStep::provision(
            "GET /v2/droplets all 429",
            ["says 429, API Rate limit exceeded", unknown],
        ),
        // A refused request is repeated, and existing boxes are not made again. None of the boxes
        // can be reached here.
        CloudStep {
            boxes: &["longtail-demo-server-1", "longtail-demo-generator-1"],
            is_listed: true,
            ..CloudStep::provision(
                "GET /v2/droplets 1 429\nPOST /v2/droplets 1 429",
                [
                    "Wait until the box answers: ",
                    "The box exists and costs money: longtail fleet provision tries again",
                ],
            )
        },
        CloudStep::destroy("DELETE /v2/droplets 1 500", ["Delete the boxes", "Delete the key"]),
        CloudStep::destroy("", ["Delete the boxes", "Delete the tag"]),
    ];
    for step in steps {
        step.run(&cloud);
    }
    let printed = cloud.fleet("sweep", 2);
    assert!(printed.contains("No box is in the inventory"), "{printed}");
}

/// Two boxes of `bin/fleet-demo`, which are clean before and after. Progress and exit code are
/// those of longtail on the box; if `longtail fleet` is killed here, longtail ends on the box.
#[test]
fn two_boxes_are_provisioned_used_and_left_clean() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sshd = [Path::new("/usr/sbin/sshd"), &root.join("target/tools/sshd/usr/sbin/sshd")]
        .iter()
        .any(|path| path.is_file());
    if !has("ansible-playbook")
        || !has("ssh")
        || !has("puma")
        || !can(sshd, "sshd is not unpacked (bin/install-missing test)")
    {
        return;
    }
    let Some(_) = crate::far::host(&[]) else { return };
    let lab = Lab::new();
    let commands = "on() { ssh -i /mnt/key -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=known_hosts \"$@\"; }
        longtail fleet provision; longtail fleet doctor || true
        on box1 'hostname; ssh box2 longtail --version; ssh box2 hostname'
        sed -i 's/%S/%S%N/' fleet/run.yml # A name that is made twice differs.
        longtail fleet sweep -t4:4 -d0.01 -c 32 --for 300ms --warm-up 100ms --expect 'p50 < 1us' && false || echo missed: $?
        longtail fleet sweep --server builtin -t4:4 -d0.01 -c 4 --for 600s >progress 2>&1 & fleet=$!
        until grep -q 'run 1/1' progress; do sleep 0.1; done
        kill -KILL $fleet
        until ! on box1 pgrep -x longtail && ! on box2 pgrep -x longtail; do sleep 0.1; done
        longtail fleet fetch; echo studies: fleet/studies/*
        longtail fleet destroy
        for box in box1 box2; do on $box 'ls /usr/local/bin/longtail /etc/*/90-longtail.conf; grep longtail .ssh/*' || echo clean; done";
    // Strip the program before copying it by ssh: most of it is debug information.
    let small = lab.path("longtail");
    let strip = Command::new("strip").arg("-o").arg(&small).arg(LONGTAIL).status();
    let longtail = if strip.is_ok_and(|status| status.success()) { small } else { LONGTAIL.into() };
    let mut demo = lab.program(&root.join("bin/fleet-demo").to_string_lossy());
    let ended = end(demo.args(["--run", commands]).arg(longtail)).with_code(0);
    let printed = &ended.stdout;
    assert_eq!(printed.matches("This machine is ").count(), 2, "{printed}");
    let version = format!("box1\nlongtail {}\nbox2\n", env!("CARGO_PKG_VERSION"));
    assert!(printed.contains(&version), "{printed}{}", ended.stderr);
    // The exit code is 3 if a busy machine spoiled the run.
    let is_missed = printed.contains("\nmissed: 1\n") || printed.contains("\nmissed: 3\n");
    assert!(printed.contains("load from") && is_missed, "{ended:?}");
    assert!(ended.stderr.contains("longtail: run 1/1, 32 connections"), "{}", ended.stderr);
    let has_both = printed.contains("studies: fleet/studies/box1-")
        && printed.contains("fleet/studies/sweep-");
    assert!(has_both, "{printed}{}", ended.stderr);
    let after = printed.rsplit("PLAY RECAP").next().unwrap();
    assert!(
        after.ends_with("\nclean\nclean\n") && !after.contains("longtail"),
        "left behind: {after}"
    );
}

#[test]
fn the_job_is_valid_kubernetes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let unpacked = root.join("target/tools/kubernetes");
    let is_unpacked = unpacked.join("ready").is_file();
    if !is_unpacked && !has("kubernetes-validate") {
        return;
    }
    let program = if is_unpacked {
        unpacked.join("bin/kubernetes-validate")
    } else {
        "kubernetes-validate".into()
    };
    let lab = Lab::new();
    let job = fs::read_to_string(root.join("deploy/kubernetes/generators.yml")).unwrap();
    let is_valid = |job: &str| {
        let output =
            Command::new(&program).arg("--strict").arg(lab.write("job.yml", job)).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert!(is_valid(&job).0, "{}", is_valid(&job).1);
    assert!(!is_valid(&job.replace("completionMode", "completionsMode")).0);
}
