//! Finds a running server by its port, its process or its Unix socket.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::Path;
use std::str::FromStr;

use engine::{Endpoint, Resolver};
use model::{HostPort, Nanos};
use probe::host::is_of_this_machine;
use probe::owners;
use probe::processes::tree;
use probe::rights;
use probe::sampler::{Sampler, SamplingPlan};
use probe::sockets::{KernelSocket, ServerListener, unix_place};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::{WatchError, listening};

/// Which server the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A number: a port that somebody listens on, else a process.
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
        if let Some(name) = of_url(text) {
            return Ok(name);
        }
        let rest = text.strip_prefix("unix://").unwrap_or(text);
        let name = if rest.starts_with('/') || rest.len() > 1 && rest.starts_with('@') {
            Some(TargetName::Unix(rest.to_owned()))
        } else if let Some(port) = text.strip_prefix(':') {
            port.parse().ok().map(|port: NonZeroU16| TargetName::Port(port.get()))
        } else if let Some(pid) = text.strip_prefix("pid:") {
            pid.parse().ok().map(|pid: NonZeroU32| TargetName::Process(pid.get()))
        } else if let Ok(number) = text.parse::<u32>() {
            (number > 0).then_some(TargetName::Number(number))
        } else {
            let place = text.parse().ok().filter(|place: &HostPort| place.port > 0);
            place.map(|HostPort { host, port }| TargetName::Host(host, port))
        };
        name.ok_or_else(|| {
            format!(
                "'{text}' is no server: write a port (9292 or :9292), a process (4242 or \
                 pid:4242), a Unix socket (/tmp/puma.sock or @name), or another machine's \
                 HOST:PORT{}",
                listening::now().map_or_else(String::new, |now| format!("; {now}"))
            )
        })
    }
}

/// The server of a URL, as a browser has it, or as Puma writes where it listens
/// (`tcp://0.0.0.0:9292`); `None` of anything else.
fn of_url(text: &str) -> Option<TargetName> {
    let schemes = [("http://", 80), ("https://", 443), ("tcp://", 0), ("ssl://", 0)];
    let (rest, default) =
        schemes.into_iter().find_map(|(scheme, port)| Some((text.strip_prefix(scheme)?, port)))?;
    let place = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let HostPort { host, port } = place
        .parse()
        .or_else(|_| format!("{place}:{default}").parse())
        .ok()
        .filter(|place: &HostPort| place.port > 0)?;
    let is_any = ["0.0.0.0", "::", "[::]"].contains(&host.as_str());
    Some(if is_any { TargetName::Port(port) } else { TargetName::Host(host, port) })
}

impl TargetName {
    /// The process that may be meant.
    pub fn pid(&self) -> Option<u32> {
        match self {
            TargetName::Number(pid) | TargetName::Process(pid) => Some(*pid),
            TargetName::Port(_) | TargetName::Unix(_) | TargetName::Host(..) => None,
        }
    }
}

/// A server that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchTarget {
    /// Where it listens: one port, perhaps at several addresses, or one Unix socket.
    pub places: Vec<Endpoint>,
    /// Its listening sockets: whichever process holds one belongs to the server. `None` if the user
    /// named a process; then only that one and its children count.
    followed: Option<BTreeSet<u64>>,
    /// The processes at the top of its process tree; empty if this user may not see them.
    pub roots: Vec<u32>,
    /// What cannot be seen of it, a line each.
    pub not_visible: Vec<String>,
    /// Its address, if that is on another machine.
    pub elsewhere: Option<SocketAddr>,
}

impl WatchTarget {
    /// Whether what the server prints goes to `/dev/null`, as far as this user may see.
    pub(crate) fn output_is_lost(&self) -> bool {
        let is_lost = |pid: &u32| {
            let output = fs::read_link(format!("/proc/{pid}/fd/1"));
            output.is_ok_and(|place| place == Path::new("/dev/null"))
        };
        !self.roots.is_empty() && self.roots.iter().all(is_lost)
    }

    /// Finds the server that the user named. `port` chooses among the ports of a process. `control`
    /// is where its control server listens, which is not what is watched.
    ///
    /// # Errors
    /// If there is no such server, the name fits several, or this user may not see it.
    pub fn find(
        name: &TargetName,
        port: Option<u16>,
        control: Option<&Endpoint>,
        resolver: &Resolver,
    ) -> Result<WatchTarget, WatchError> {
        let listeners = owners::listening().map_err(|why| {
            refused(format!("/proc/net/tcp cannot be read ({why}): is /proc mounted?"))
        })?;
        match name {
            TargetName::Port(_) | TargetName::Unix(_) | TargetName::Host(..) if port.is_some() => {
                Err(refused("--port chooses among the ports of a process: leave it out here"))
            }
            TargetName::Port(port) => find_port(*port, &listeners),
            TargetName::Unix(path) => find_unix_socket(path, &listeners),
            TargetName::Host(host, port) => {
                let found = resolver.resolve(host, *port);
                let address = found.map_err(|error| refused(error.to_string()))?[0];
                if is_of_this_machine(&Endpoint::Tcp(address)) {
                    find_port(*port, &listeners)
                } else if control.is_some() {
                    Ok(WatchTarget::on_another_machine(address))
                } else {
                    Err(refused(format!(
                        "{address} is on another machine, where only Puma itself can tell of its \
                         threads: give --control-url tcp://{host}:PORT --control-token TOKEN"
                    )))
                }
            }
            TargetName::Process(pid) => find_process(*pid, port, control, &listeners),
            TargetName::Number(number) => find_number(*number, port, control, &listeners),
        }
    }

    fn on_another_machine(address: SocketAddr) -> WatchTarget {
        let unseen =
            "accept queue, connections, CPU and processes: the server is on another machine";
        WatchTarget {
            places: vec![Endpoint::Tcp(address)],
            not_visible: vec![unseen.to_owned()],
            elsewhere: Some(address),
            ..WatchTarget::default()
        }
    }

    /// The sampler that looks at it.
    pub(crate) fn sampler(&self, period: Nanos) -> Sampler {
        let plan = SamplingPlan { period, search_every: 1, has_details: true };
        Sampler::new(ServerListener::of(&self.places[0]), &self.roots, self.followed.clone(), plan)
    }

    /// Where it listens, as a user types it: `:9292`, or the path of a Unix socket.
    pub fn typed(&self) -> String {
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

/// The server on this port, or this process; refused if both exist.
fn find_number(
    number: u32,
    port: Option<u16>,
    control: Option<&Endpoint>,
    listeners: &[KernelSocket],
) -> Result<WatchTarget, WatchError> {
    let as_port = u16::try_from(number).ok();
    let open_port =
        as_port.filter(|port| listeners.iter().any(|one| one.place.port() == Some(*port)));
    let is_process = exists(number);
    match (open_port, port) {
        (None, _) if !is_process => Err(refused(format!(
            "{number} is neither a port that anybody listens on nor a process: start the server \
             first; {}",
            listening::in_words(listeners, false)
        ))),
        (Some(_), None) if is_process && listens(number, listeners) => Err(refused(format!(
            "{number} is both a port and a process that listens: write :{number} or pid:{number}"
        ))),
        (Some(open_port), None) => find_port(open_port, listeners),
        (None, _) | (Some(_), Some(_)) => find_process(number, port, control, listeners),
    }
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).is_dir() || is_another_users(pid)
}

/// Whether the process exists and this user may not signal it. `/proc` may hide such a process.
fn is_another_users(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
}

/// Whether the process listens anywhere, as far as this user may see.
fn listens(pid: u32, listeners: &[KernelSocket]) -> bool {
    let Ok(sockets) = sockets_of_tree(pid) else { return false };
    listeners.iter().any(|one| sockets.contains(&one.inode))
}

/// The sockets of a process and its descendants, by inode.
fn sockets_of_tree(pid: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = owners::sockets_of(pid)?;
    for child in tree(pid) {
        inodes.extend(owners::sockets_of(child).unwrap_or_default());
    }
    Ok(inodes)
}

fn find_port(port: u16, listeners: &[KernelSocket]) -> Result<WatchTarget, WatchError> {
    let matching: Vec<&KernelSocket> =
        listeners.iter().filter(|one| one.place.port() == Some(port)).collect();
    if matching.is_empty() {
        return Err(nobody_listens(&format!("port {port}"), listeners, false));
    }
    Ok(server_behind(&matching))
}

fn find_unix_socket(path: &str, listeners: &[KernelSocket]) -> Result<WatchTarget, WatchError> {
    let place = unix_place(path);
    let mut matching: Vec<&KernelSocket> =
        listeners.iter().filter(|one| one.place == place).collect();
    if matching.is_empty()
        && !path.starts_with('@')
        && let Ok(wanted) = fs::canonicalize(path)
    {
        // The kernel has the path as the server wrote it, which may lead to the same file another
        // way.
        matching = listeners.iter().filter(|one| is_file(&one.place, &wanted)).collect();
    }
    if matching.is_empty() {
        return Err(nobody_listens(path, listeners, true));
    }
    Ok(server_behind(&matching))
}

/// Whether a Unix socket is the file at this canonical path.
fn is_file(place: &Endpoint, wanted: &Path) -> bool {
    match place {
        Endpoint::Unix(path) => fs::canonicalize(path).is_ok_and(|path| path == wanted),
        Endpoint::Tcp(_) | Endpoint::Abstract(_) => false,
    }
}

/// That nobody listens on `place`, and who listens elsewhere.
fn nobody_listens(place: &str, listeners: &[KernelSocket], is_unix_socket: bool) -> WatchError {
    refused(format!(
        "nothing listens on {place}: start the server first, or give its process (pid:N); {}",
        listening::in_words(listeners, is_unix_socket)
    ))
}

/// The server behind these sockets, one or more.
fn server_behind(sockets: &[&KernelSocket]) -> WatchTarget {
    let inodes: BTreeSet<u64> = sockets.iter().map(|one| one.inode).collect();
    let holders = owners::holders(&inodes);
    let seen: BTreeSet<u64> = holders.pids.values().flatten().copied().collect();
    let mut not_visible = Vec::new();
    if seen.len() < inodes.len() {
        not_visible.push(why_processes_are_hidden(sockets, &seen, holders.hidden > 0));
    }
    let mut roots = holders.roots();
    if roots.is_empty()
        && let Some(pid) = puma_by_title(sockets)
    {
        roots.push(pid);
        not_visible = vec![format!(
            "{}: process {pid} is known by its title alone; run as {}",
            rights::HIDDEN_OF_OTHER_USERS,
            rights::TO_SEE_OTHER_USERS
        )];
    }
    WatchTarget {
        places: sockets.iter().map(|one| one.place.clone()).collect(),
        followed: Some(inodes),
        roots,
        not_visible,
        ..WatchTarget::default()
    }
}

/// Why nobody is seen to hold some of these sockets, and as whom to run to see them.
fn why_processes_are_hidden(
    sockets: &[&KernelSocket],
    seen: &BTreeSet<u64>,
    some_are_hidden: bool,
) -> String {
    let unseen = sockets.iter().filter(|one| !seen.contains(&one.inode));
    let users: BTreeSet<u32> = unseen.filter_map(|one| one.user).collect();
    let users: Vec<String> = users.iter().map(u32::to_string).collect();
    let run_as = match &users[..] {
        [] => format!("another user, as {}", rights::TO_SEE_OTHER_USERS),
        [root] if root == "0" => rights::TO_SEE_OTHER_USERS.to_owned(),
        users => format!("user {}, as {}", users.join(" and "), rights::TO_SEE_OTHER_USERS),
    };
    if owners::are_hidden() {
        format!(
            "the server's processes: /proc hides those of other users (hidepid); run as {run_as}"
        )
    } else if some_are_hidden {
        format!("the server's processes: they are not this user's to see; run as {run_as}")
    } else {
        "the server's processes: none that can be seen from here holds its socket".to_owned()
    }
}

/// The first process of the Puma that has one of these addresses in its title, which everybody may
/// read: `puma 8.0.2 (tcp://0.0.0.0:9292) [shop]`. `None` if several have it, in containers for
/// instance.
fn puma_by_title(sockets: &[&KernelSocket]) -> Option<u32> {
    let ends: Vec<String> = sockets
        .iter()
        .map(|one| match (&one.place, one.place.port()) {
            (_, Some(port)) => format!(":{port}"),
            (place, None) => place.address(),
        })
        .collect();
    let mut found = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let title = fs::read(entry.path().join("cmdline")).ok()?;
        title_has_address(&String::from_utf8_lossy(&title), &ends).then_some(pid)
    });
    let first = found.next();
    if found.next().is_none() { first } else { None }
}

/// Whether this is the title of a Puma's first process, and one of the addresses in it ends with
/// one of `ends`.
fn title_has_address(title: &str, ends: &[String]) -> bool {
    let addresses = title
        .strip_prefix("puma ")
        .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        .and_then(|rest| rest.split_once('(')?.1.split_once(')'));
    let Some((addresses, _)) = addresses else { return false };
    addresses.split(',').any(|address| {
        let address = address.trim().split('?').next().unwrap_or_default();
        ends.iter().any(|end| address.ends_with(end.as_str()))
    })
}

fn find_process(
    pid: u32,
    port: Option<u16>,
    control: Option<&Endpoint>,
    listeners: &[KernelSocket],
) -> Result<WatchTarget, WatchError> {
    if !exists(pid) {
        return Err(refused(format!("there is no process {pid}: a port (:9292) finds its server")));
    }
    let sockets = sockets_of_tree(pid).map_err(|error| why_unreadable(pid, &error))?;
    let is_watched =
        |one: &&KernelSocket| sockets.contains(&one.inode) && Some(&one.place) != control;
    let all: Vec<&KernelSocket> = listeners.iter().filter(is_watched).collect();
    let places: BTreeSet<String> = all.iter().map(|one| one.place.address()).collect();
    let places: Vec<String> = places.into_iter().collect();
    let chosen: Vec<&KernelSocket> =
        all.into_iter().filter(|one| port.is_none() || one.place.port() == port).collect();
    if chosen.is_empty() {
        return Err(why_not_listening(pid, port, &places));
    }
    if !are_one_place(&chosen) {
        let hint = match chosen.iter().find_map(|one| one.place.port()) {
            Some(port) => {
                format!("choose one with --port {port}, or by the path of a Unix socket")
            }
            None => format!("give one, such as {}", chosen[0].place.address()),
        };
        let places = places.join(", ");
        return Err(refused(format!("process {pid} listens on {places}: {hint}")));
    }
    Ok(WatchTarget {
        places: chosen.iter().map(|one| one.place.clone()).collect(),
        roots: vec![pid],
        ..WatchTarget::default()
    })
}

/// Why the sockets of a process that exists cannot be read.
fn why_unreadable(pid: u32, error: &io::Error) -> WatchError {
    if error.kind() == io::ErrorKind::PermissionDenied || is_another_users(pid) {
        refused(format!(
            "process {pid} is another user's, and so what it listens on cannot be seen: give its \
             port (:9292), or run as that user, as {}",
            rights::TO_SEE_OTHER_USERS
        ))
    } else {
        refused(format!("process {pid} has just ended"))
    }
}

/// Why a process has no listening socket that is meant; it listens on `places`.
fn why_not_listening(pid: u32, port: Option<u16>, places: &[String]) -> WatchError {
    refused(match (owners::is_in_our_network(pid), port) {
        (Some(false), _) => format!(
            "process {pid} lives in another network namespace: run nsenter -t {pid} -n longtail \
             watch pid:{pid}"
        ),
        (_, Some(port)) if !places.is_empty() => format!(
            "process {pid} does not listen on port {port}: it listens on {}",
            places.join(", ")
        ),
        _ => {
            format!("process {pid} and its children listen nowhere: give the process of a server")
        }
    })
}

/// Whether all of them listen on one port, or are one Unix socket.
fn are_one_place(sockets: &[&KernelSocket]) -> bool {
    sockets.windows(2).all(|pair| {
        let one = &pair[0].place;
        let other = &pair[1].place;
        match (one.port(), other.port()) {
            (None, None) => one == other,
            (port, other_port) => port == other_port,
        }
    })
}

fn refused(why: impl Into<String>) -> WatchError {
    WatchError(why.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A server on port 9292.
    pub(crate) fn target() -> WatchTarget {
        WatchTarget {
            places: vec![Endpoint::Tcp("127.0.0.1:9292".parse().unwrap())],
            roots: vec![10],
            ..WatchTarget::default()
        }
    }

    #[test]
    fn a_port_a_process_a_socket_and_a_host_are_told_apart() {
        let word = |text: &str| text.parse::<TargetName>();
        assert_eq!(word("9292"), Ok(TargetName::Number(9292)));
        assert_eq!(word(":9292"), Ok(TargetName::Port(9292)));
        assert_eq!(word("pid:70000"), Ok(TargetName::Process(70_000)));
        let host = |port| Ok(TargetName::Host("127.0.0.1".to_owned(), port));
        assert_eq!(word("http://127.0.0.1:9292/posts?page=2"), host(9292));
        assert_eq!(word("https://127.0.0.1"), host(443));
        assert_eq!(word("tcp://0.0.0.0:9292"), Ok(TargetName::Port(9292)));
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
            "http://",
            "ftp://127.0.0.1:80",
            "-1",
            "0",
            "h:0",
            "::1:1",
        ] {
            assert!(word(bad).is_err_and(|line| line.contains(":9292")), "{bad}");
        }
    }

    #[test]
    fn a_puma_is_known_by_the_address_in_its_title() {
        let ends = [":9292".to_owned(), "/run/puma.sock".to_owned()];
        for title in [
            "puma 8.0.2 (tcp://0.0.0.0:9292) [shop]",
            "puma 5.6.5 (ssl://127.0.0.1:8443?key=k&cert=c,tcp://[::]:9292) [shop]",
            "puma 6.6.1 (unix:///run/puma.sock?umask=0111)",
        ] {
            assert!(title_has_address(title, &ends), "{title}");
        }
        for title in [
            "puma 8.0.2 (tcp://0.0.0.0:19293) [shop]",
            "puma: cluster worker 0: 9292 [shop]",
            "ruby app.rb (tcp://0.0.0.0:9292)",
            "",
        ] {
            assert!(!title_has_address(title, &ends), "{title}");
        }
    }
}
