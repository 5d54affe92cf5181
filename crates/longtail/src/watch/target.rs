//! Finds a running server by its port, process or Unix socket, and its Puma's control server by a
//! state file or as the user named it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use engine::{Endpoint, Resolver, Unreachable, reach};
use model::{Clock, ControlServer, Nanos};
use probe::processes::tree;
use probe::sampler::{Observation, Sampler, SamplingPlan};
use probe::sockets::{KernelSocket, ServerListener, unix_place};
use probe::{control, owners};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::args::HostPort;
use crate::exit::{Mistake, wrong};
use crate::load::is_of_this_machine;

/// Where state files are, seen from the folder in which Puma runs.
const FOLDERS: [&str; 6] =
    ["", "tmp", "tmp/pids", "tmp/sockets", "../shared/tmp/pids", "../../shared/tmp/pids"];
/// A larger file is no state file.
const LARGEST: u64 = 16 << 10;
/// A connect to another machine may take so long: two retransmissions of its first segment, after 1
/// and 3 s.
const LONGEST_CONNECT: Duration = Duration::from_secs(4);
/// How soon it is noticed that the watch is over.
const GLANCE: Duration = Duration::from_millis(20);
/// Another machine is not connected to more often.
const CONNECT_PERIOD: Nanos = Nanos::from_secs(1);

/// What the user wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetName {
    /// A number: a port that is listened on, else a process.
    Number(u32),
    /// `:PORT`
    Port(u16),
    /// `pid:PID`
    Process(u32),
    /// A path, or `@` and an abstract name.
    Unix(String),
    /// `HOST:PORT`
    Host(String, u16),
}

impl FromStr for TargetName {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetName, String> {
        let rest = text.strip_prefix("unix://").unwrap_or(text);
        let name = if rest.starts_with('/') || rest.len() > 1 && rest.starts_with('@') {
            Some(TargetName::Unix(rest.to_owned()))
        } else if let Some(port) = text.strip_prefix(':') {
            port.parse().ok().map(|port: NonZeroU16| TargetName::Port(port.get()))
        } else if let Some(pid) = text.strip_prefix("pid:") {
            pid.parse().ok().map(|pid: NonZeroU32| TargetName::Process(pid.get()))
        } else if let Ok(number) = text.parse::<u32>() {
            Some(TargetName::Number(number)).filter(|_| number > 0)
        } else {
            let place = text.parse().ok().filter(|place: &HostPort| place.port > 0);
            place.map(|HostPort { host, port }| TargetName::Host(host, port))
        };
        name.ok_or_else(|| {
            format!(
                "'{text}' is no server: write a port (9292 or :9292), a process (4242 or pid:4242), a Unix socket (/tmp/puma.sock or @name), or another machine's HOST:PORT"
            )
        })
    }
}

impl TargetName {
    /// The process that may be meant.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            TargetName::Number(pid) | TargetName::Process(pid) => Some(*pid),
            _ => None,
        }
    }
}

/// A server that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WatchTarget {
    /// Where it listens: one port, perhaps of several addresses, or one Unix socket.
    pub(crate) places: Vec<Endpoint>,
    /// Its listening sockets, whose holders are followed; `None` where the process was named, and
    /// nobody else is.
    followed: Option<BTreeSet<u64>>,
    /// Its first processes; none where this user may not see them.
    pub(crate) roots: Vec<u32>,
    /// What cannot be seen of it, a line each.
    pub(crate) not_visible: Vec<String>,
    /// Its address, where that is another machine's.
    pub(crate) elsewhere: Option<SocketAddr>,
}

impl WatchTarget {
    /// The server that `word` means, of its listeners the one of `port`. `control` is where its
    /// control server listens, which is not what is watched.
    ///
    /// # Errors
    /// Where there is none, several are meant, or this user may not see it.
    pub(crate) fn find(
        word: &TargetName,
        port: Option<u16>,
        control: Option<&Endpoint>,
        resolver: &Resolver,
    ) -> Result<WatchTarget, Mistake> {
        let unreadable = |why: io::Error| {
            wrong(format!("/proc/net/tcp cannot be read ({why}): is /proc mounted?"))
        };
        let all = owners::listening().map_err(unreadable)?;
        match word {
            TargetName::Port(_) | TargetName::Unix(_) | TargetName::Host(..) if port.is_some() => {
                Err(wrong("--port chooses among the ports of a process: leave it out here"))
            }
            TargetName::Port(port) => of_port(*port, &all),
            TargetName::Unix(path) => of_unix(path, &all),
            TargetName::Host(host, port) => {
                let address =
                    resolver.resolve(host, *port).map_err(|error| wrong(error.to_string()))?[0];
                if is_of_this_machine(&Endpoint::Tcp(address)) {
                    return of_port(*port, &all);
                }
                if control.is_none() {
                    return Err(wrong(format!(
                        "{address} is on another machine, where only Puma itself can tell of its threads: give --control-url tcp://{host}:PORT --control-token TOKEN"
                    )));
                }
                let unseen = "accept queue, connections, CPU and processes: the server is on another machine";
                Ok(WatchTarget {
                    places: vec![Endpoint::Tcp(address)],
                    not_visible: vec![unseen.to_owned()],
                    elsewhere: Some(address),
                    ..WatchTarget::default()
                })
            }
            TargetName::Process(pid) => of_process(*pid, port, control, &all),
            TargetName::Number(number) => {
                let is_open = |port: &u16| all.iter().any(|one| one.place.port() == Some(*port));
                let is_process = exists(*number);
                // As far as this user may see.
                let listens = || {
                    held(*number).is_ok_and(|held| all.iter().any(|one| held.contains(&one.inode)))
                };
                match u16::try_from(*number).ok().filter(is_open) {
                    None if !is_process => Err(wrong(format!(
                        "{number} is neither a port that anybody listens on nor a process: start the server first"
                    ))),
                    Some(_) if port.is_none() && is_process && listens() => Err(wrong(format!(
                        "{number} is both a port and a process that listens: write :{number} or pid:{number}"
                    ))),
                    Some(as_port) if port.is_none() => of_port(as_port, &all),
                    _ => of_process(*number, port, control, &all),
                }
            }
        }
    }

    /// What looks at it.
    pub(crate) fn sampler(&self, period: Nanos) -> Sampler {
        let plan = SamplingPlan { period, search_every: 1, has_details: true };
        Sampler::new(ServerListener::of(&self.places[0]), &self.roots, self.followed.clone(), plan)
    }

    /// Where it listens, as one types it: `:9292`, or the path of a Unix socket.
    pub(crate) fn typed(&self) -> String {
        match (self.places[0].port(), self.elsewhere) {
            (Some(port), None) => format!(":{port}"),
            (Some(_), Some(_)) | (None, _) => self.places[0].address(),
        }
    }

    /// Where it listens, in words.
    pub(crate) fn place(&self) -> String {
        let places: BTreeSet<String> = self.places.iter().map(Endpoint::address).collect();
        places.into_iter().collect::<Vec<_>>().join(", ")
    }
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).is_dir() || is_another_users(pid)
}

/// Whether there is such a process, which is not ours to signal: `/proc` may hide it.
fn is_another_users(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
}

/// The sockets of a process and its descendants.
fn held(pid: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = owners::sockets_of(pid)?;
    for child in tree(pid) {
        inodes.extend(owners::sockets_of(child).unwrap_or_default());
    }
    Ok(inodes)
}

fn of_port(port: u16, all: &[KernelSocket]) -> Result<WatchTarget, Mistake> {
    let ours: Vec<&KernelSocket> =
        all.iter().filter(|one| one.place.port() == Some(port)).collect();
    of_listeners(&format!("port {port}"), &ours)
}

fn of_unix(path: &str, all: &[KernelSocket]) -> Result<WatchTarget, Mistake> {
    let place = unix_place(path);
    let mut ours: Vec<&KernelSocket> = all.iter().filter(|one| one.place == place).collect();
    if ours.is_empty() && !path.starts_with('@') {
        // The kernel knows it as the server wrote it, which may have been by another way.
        let wanted = fs::canonicalize(path).ok();
        let is_same = |one: &&KernelSocket| match &one.place {
            Endpoint::Unix(path) => wanted.is_some() && fs::canonicalize(path).ok() == wanted,
            _ => false,
        };
        ours = all.iter().filter(is_same).collect();
    }
    of_listeners(path, &ours)
}

/// The server behind these sockets, which listen on `place`.
fn of_listeners(place: &str, ours: &[&KernelSocket]) -> Result<WatchTarget, Mistake> {
    if ours.is_empty() {
        return Err(wrong(format!(
            "nothing listens on {place}: start the server first, or give its process (pid:N)"
        )));
    }
    let inodes: BTreeSet<u64> = ours.iter().map(|one| one.inode).collect();
    let holders = owners::holders(&inodes);
    let seen: BTreeSet<u64> = holders.pids.values().flatten().copied().collect();
    let mut not_visible = Vec::new();
    if seen.len() < inodes.len() {
        let unseen = ours.iter().filter(|one| !seen.contains(&one.inode));
        let users: BTreeSet<u32> = unseen.filter_map(|one| one.user).collect();
        let users: Vec<String> = users.iter().map(u32::to_string).collect();
        let whose = match &users[..] {
            [] => "root or as another user".to_owned(),
            [root] if root == "0" => "root".to_owned(),
            users => format!("root or as user {}", users.join(" and ")),
        };
        not_visible.push(if owners::are_hidden() {
            format!(
                "the server's processes: /proc hides those of other users (hidepid); run as {whose}"
            )
        } else if holders.hidden > 0 {
            format!("the server's processes: they are not this user's to see; run as {whose}")
        } else {
            "the server's processes: none that can be seen from here holds its socket".to_owned()
        });
    }
    let mut roots = holders.roots();
    if roots.is_empty()
        && let Some(pid) = puma_by_title(ours)
    {
        roots.push(pid);
        not_visible = vec![format!(
            "what each thread waits for, and whose connections they are: process {pid} is known by \
             its title alone; run as root"
        )];
    }
    Ok(WatchTarget {
        places: ours.iter().map(|one| one.place.clone()).collect(),
        followed: Some(inodes),
        roots,
        not_visible,
        ..WatchTarget::default()
    })
}

/// The first process of the Puma that calls itself by one of these places, which everybody may read:
/// `puma 8.0.2 (tcp://0.0.0.0:9292) [shop]`. `None` where several do, in containers for instance.
fn puma_by_title(ours: &[&KernelSocket]) -> Option<u32> {
    let ends: Vec<String> = ours
        .iter()
        .map(|one| match (&one.place, one.place.port()) {
            (_, Some(port)) => format!(":{port}"),
            (place, None) => place.address(),
        })
        .collect();
    let mut found = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let title = fs::read(entry.path().join("cmdline")).ok()?;
        names_a_place(&String::from_utf8_lossy(&title), &ends).then_some(pid)
    });
    found.next().filter(|_| found.next().is_none())
}

/// Whether it is the title of a Puma's first process, and one of its binds ends so.
fn names_a_place(title: &str, ends: &[String]) -> bool {
    let binds = title
        .strip_prefix("puma ")
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        .and_then(|rest| rest.split_once('(')?.1.split_once(')'));
    let Some((binds, _)) = binds else { return false };
    binds.split(',').any(|bind| {
        let place = bind.trim().split('?').next().unwrap_or_default();
        ends.iter().any(|end| place.ends_with(end.as_str()))
    })
}

fn of_process(
    pid: u32,
    port: Option<u16>,
    control: Option<&Endpoint>,
    all: &[KernelSocket],
) -> Result<WatchTarget, Mistake> {
    if !exists(pid) {
        return Err(wrong(format!("there is no process {pid}: a port (:9292) finds its server")));
    }
    let held = held(pid).map_err(|error| match &error {
        _ if error.kind() == io::ErrorKind::PermissionDenied || is_another_users(pid) => wrong(format!(
            "process {pid} is another user's, and so what it listens on cannot be seen: run as that user or as root, or give its port (:9292)"
        )),
        _ => wrong(format!("process {pid} has just ended")),
    })?;
    let ours: Vec<&KernelSocket> =
        all.iter().filter(|one| held.contains(&one.inode) && Some(&one.place) != control).collect();
    let places: BTreeSet<String> = ours.iter().map(|one| one.place.address()).collect();
    let places: Vec<String> = places.into_iter().collect();
    let is_meant = |one: &&KernelSocket| port.is_none() || one.place.port() == port;
    let ours: Vec<&KernelSocket> = ours.into_iter().filter(is_meant).collect();
    let Some(first) = ours.first() else {
        return Err(wrong(match (owners::is_in_our_network(pid), port) {
            (Some(false), _) => format!(
                "process {pid} lives in another network namespace: run nsenter -t {pid} -n longtail watch pid:{pid}"
            ),
            (_, Some(port)) if !places.is_empty() => {
                format!(
                    "process {pid} does not listen on port {port}: it listens on {}",
                    places.join(", ")
                )
            }
            _ => format!(
                "process {pid} and its children listen nowhere: give the process of a server"
            ),
        }));
    };
    let key = |place: &Endpoint| place.port().map_or_else(|| Err(place.clone()), Ok);
    if ours.iter().any(|one| key(&one.place) != key(&first.place)) {
        let hint = ours.iter().find_map(|one| one.place.port()).map_or_else(
            || format!("give one, such as {}", first.place.address()),
            |port| format!("choose one with --port {port}, or by the path of a Unix socket"),
        );
        return Err(wrong(format!("process {pid} listens on {}: {hint}", places.join(", "))));
    }
    Ok(WatchTarget {
        places: ours.iter().map(|one| one.place.clone()).collect(),
        roots: vec![pid],
        ..WatchTarget::default()
    })
}

/// Connects to a server on another machine once a period until `over`, and closes at once: all of
/// its state that is seen from here.
pub(crate) fn connect(
    to: SocketAddr,
    clock: &impl Clock,
    every: Nanos,
    over: &AtomicBool,
    tell: impl Fn(Observation) -> bool,
) {
    let mut next = clock.now();
    while clock.sleep_until(next, over) {
        let began = clock.now();
        let Some(made) = reach_until(to, over) else { return };
        let at = clock.now();
        let took = made.map(|()| at - began).map_err(|unreachable| unreachable.to_string());
        if !tell(Observation::Connected { at, took }) {
            return;
        }
        next = (next + every.max(CONNECT_PERIOD)).max(at);
    }
}

/// As [`reach`]; `None` where it is `over` before the other machine has answered: then the thread
/// that waits for it is left behind.
fn reach_until(to: SocketAddr, over: &AtomicBool) -> Option<Result<(), Unreachable>> {
    let (sender, made) = channel();
    let connect = move || _ = sender.send(reach(&Endpoint::Tcp(to), LONGEST_CONNECT));
    std::thread::Builder::new().name("connect".to_owned()).spawn(connect).ok()?;
    loop {
        match made.recv_timeout(GLANCE) {
            Ok(made) => return Some(made),
            Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Relaxed) => {}
            Err(_) => return None,
        }
    }
}

/// A control server, and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatisticsSource {
    pub(crate) control: ControlServer,
    /// The state file's path, or the URL.
    pub(crate) shown: String,
}

impl StatisticsSource {
    /// That of the first state file below the folder of one of these processes that names the
    /// process itself and a control server on this machine.
    pub(crate) fn of_processes(pids: &[u32], resolver: &Resolver) -> Option<StatisticsSource> {
        pids.iter().find_map(|pid| {
            let folder = PathBuf::from(format!("/proc/{pid}/cwd"));
            let files = FOLDERS.iter().flat_map(|name| state_files(&folder.join(name)));
            files.into_iter().find_map(|path| of_state_file(&path, *pid, resolver))
        })
    }
}

fn state_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_state = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "state");
    let is_small = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= LARGEST)
    };
    entries.map(|entry| entry.path()).filter(is_state).filter(is_small).collect()
}

fn of_state_file(path: &Path, pid: u32, resolver: &Resolver) -> Option<StatisticsSource> {
    let text = fs::read_to_string(path).ok()?;
    let named = text.lines().find_map(|line| line.strip_prefix("pid:"))?;
    if named.trim().parse() != Ok(pid) {
        return None;
    }
    let find = |host: &str, port: u16| {
        resolver.resolve(host, port).map(|found| found[0]).map_err(|error| error.to_string())
    };
    let control = control::from_state_file(&text, &find).ok()?;
    let is_here = is_of_this_machine(&control.address);
    let shown = short_path(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    is_here.then_some(StatisticsSource { control, shown })
}

/// A path as short as it is clear from here.
pub(crate) fn short_path(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use launch::Scratch;

    /// A server on port 9292.
    pub(crate) fn target() -> WatchTarget {
        WatchTarget {
            places: vec![Endpoint::Tcp("127.0.0.1:9292".parse().unwrap())],
            roots: vec![10],
            ..WatchTarget::default()
        }
    }

    #[test]
    fn words_are_understood() {
        let word = |text: &str| text.parse::<TargetName>();
        assert_eq!(word("9292"), Ok(TargetName::Number(9292)));
        assert_eq!(word(":9292"), Ok(TargetName::Port(9292)));
        assert_eq!(word("pid:70000"), Ok(TargetName::Process(70_000)));
        assert_eq!(word("unix:///tmp/a b.sock"), Ok(TargetName::Unix("/tmp/a b.sock".to_owned())));
        assert_eq!(word("@name"), Ok(TargetName::Unix("@name".to_owned())));
        assert_eq!(
            word("app.internal:9292"),
            Ok(TargetName::Host("app.internal".to_owned(), 9292))
        );
        assert_eq!(word("[fd00::1]:80"), Ok(TargetName::Host("[fd00::1]".to_owned(), 80)));
        for bad in [
            "",
            "@",
            ":0",
            ":70000",
            "pid:x",
            "puma",
            "http://127.0.0.1:80",
            "-1",
            "0",
            "h:0",
            "::1:1",
        ] {
            assert!(word(bad).is_err_and(|line| line.contains(":9292")), "{bad}");
        }
    }

    #[test]
    fn a_puma_is_found_by_its_title() {
        let ends = [":9292".to_owned(), "/run/puma.sock".to_owned()];
        for title in [
            "puma 8.0.2 (tcp://0.0.0.0:9292) [shop]",
            "puma 5.6.5 (ssl://127.0.0.1:8443?key=k&cert=c,tcp://[::]:9292) [shop]",
            "puma 6.6.1 (unix:///run/puma.sock?umask=0111)",
        ] {
            assert!(names_a_place(title, &ends), "{title}");
        }
        for title in [
            "puma 8.0.2 (tcp://0.0.0.0:19293) [shop]",
            "puma: cluster worker 0: 9292 [shop]",
            "ruby app.rb (tcp://0.0.0.0:9292)",
            "",
        ] {
            assert!(!names_a_place(title, &ends), "{title}");
        }
    }

    #[test]
    fn a_state_file_is_of_the_process_that_it_names() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let path = scratch.path().join("puma.state");
        let found = |text: &str| {
            fs::write(&path, text).unwrap();
            let files = state_files(scratch.path());
            assert_eq!(files, std::slice::from_ref(&path));
            of_state_file(&files[0], 42, &Resolver::default())
        };
        let here = "---\npid: 42\ncontrol_url: tcp://127.0.0.1:9293\ncontrol_auth_token: t\n";
        assert_eq!(found(here).map(|source| source.control.token), Some("t".to_owned()));
        assert_eq!(found(&here.replace("42", "43")), None, "another server's");
        assert_eq!(found(&here.replace("127.0.0.1", "192.0.2.1")), None, "another machine's");
        assert_eq!(found("pid: 42\n"), None, "no control server");
        fs::write(&path, "x".repeat(20_000)).unwrap();
        assert_eq!(state_files(scratch.path()), Vec::<PathBuf>::new());
        assert_eq!(StatisticsSource::of_processes(&[u32::MAX], &Resolver::default()), None);
    }
}
