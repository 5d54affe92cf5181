//! What listens on this machine, for a user who named a place where nobody does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use model::Endpoint;
use probe::owners;
use probe::sockets::KernelSocket;

/// The most places that are named.
const MOST: usize = 6;

/// Where servers listen and which they are, in words: `:9292 (puma 8.0.2, process 412), :6379`.
/// Lists Unix sockets if a path was named, else ports. Pumas come first.
pub(crate) fn in_words(listeners: &[KernelSocket], of_unix_sockets: bool) -> String {
    let listeners: Vec<&KernelSocket> =
        listeners.iter().filter(|one| one.place.port().is_none() == of_unix_sockets).collect();
    let inodes: BTreeSet<u64> = listeners.iter().map(|one| one.inode).collect();
    let holders = owners::holders(&inodes);
    // By port, so that :80 comes before :2024.
    let mut servers: BTreeMap<(Option<u16>, String), Option<Holder>> = BTreeMap::new();
    for listener in listeners {
        let first =
            holders.roots().into_iter().find(|pid| holders.pids[pid].contains(&listener.inode));
        let holder = first.map(Holder::of);
        let place = (listener.place.port(), typed(&listener.place));
        let known = servers.entry(place).or_default();
        *known = known.take().or(holder);
    }
    let listening = |((_, place), holder)| ListeningServer { place, holder };
    let mut servers: Vec<ListeningServer> = servers.into_iter().map(listening).collect();
    servers.sort_by_key(|server| !server.holder.as_ref().is_some_and(Holder::is_puma));
    listed(&servers, if of_unix_sockets { "no Unix socket" } else { "no port" })
}

/// The ports that are listened on now, in words; `None` if the kernel does not tell.
pub(crate) fn now() -> Option<String> {
    Some(in_words(&owners::listening().ok()?, false))
}

/// A place where something listens.
struct ListeningServer {
    /// As a user types it.
    place: String,
    /// `None` if we may not see who it is.
    holder: Option<Holder>,
}

fn listed(servers: &[ListeningServer], none: &str) -> String {
    if servers.is_empty() {
        return format!("{none} has a listener here");
    }
    let named = servers.iter().take(MOST).map(|ListeningServer { place, holder }| match holder {
        Some(Holder { pid, name }) => format!("{place} ({name}, process {pid})"),
        None => place.clone(),
    });
    let more = match servers.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("what listens: {}{more}", named.collect::<Vec<_>>().join(", "))
}

/// As a user types it.
fn typed(place: &Endpoint) -> String {
    place.port().map_or_else(|| place.address(), |port| format!(":{port}"))
}

/// The first process of a server.
struct Holder {
    pid: u32,
    name: String,
}

impl Holder {
    fn of(pid: u32) -> Holder {
        let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let title = String::from_utf8_lossy(&title);
        // `puma 8.0.2 (tcp://0.0.0.0:9292) [shop]`
        let puma = title.split_once(" (").filter(|(name, _)| name.starts_with("puma "));
        let name = puma.map(|(name, _)| name.to_owned());
        let program = || fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let name = name.or_else(|| Some(program()?.trim_end().to_owned()));
        Holder { pid, name: name.unwrap_or_else(|| "unknown".to_owned()) }
    }

    fn is_puma(&self) -> bool {
        self.name.starts_with("puma ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_as_a_user_types_them_and_many_are_counted() {
        let puma = Holder { pid: 412, name: "puma 8.0.2".to_owned() };
        let server = |port: u16, holder| ListeningServer { place: format!(":{port}"), holder };
        let servers = [server(9292, Some(puma)), server(6379, None)];
        assert_eq!(
            listed(&servers, "no port"),
            "what listens: :9292 (puma 8.0.2, process 412), :6379"
        );
        assert_eq!(listed(&[], "no port"), "no port has a listener here");
        let many: Vec<_> = (1..=9).map(|port| server(port, None)).collect();
        assert!(listed(&many, "").ends_with(":6, and 3 more"));
    }

    #[test]
    fn this_process_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ours = owners::listening().unwrap();
        let ours: Vec<KernelSocket> =
            ours.into_iter().filter(|one| one.place.port() == Some(port)).collect();
        let said = in_words(&ours, false);
        assert!(said.contains(&format!(":{port} (")), "{said}");
    }
}
