//! Asks the kernel who listens at the target of a load: for the placement of threads, and so that
//! no load goes to a dead port.
//!
//! A server on this machine must not see a connection that is not load. So nothing connects where
//! the kernel lists a listener; where it lists none, there is one connect.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use engine::{Endpoint, Unreachable, reach};
use model::ServerLocation;
use probe::host::is_of_this_machine;
use probe::owners;
use probe::sockets::KernelSocket;

use crate::context::SweepError;

/// How long one connect may take: two retransmissions of its first segment, after 1 and 3 s.
const PATIENCE: Duration = Duration::from_secs(4);
/// Programs that accept connections only to forward them, by their names in `/proc/PID/comm` (at
/// most 15 bytes).
const FORWARDERS: [&str; 13] = [
    "com.docker.back",
    "docker-proxy",
    "gvproxy",
    "kubectl",
    "pasta",
    "pasta.avx2",
    "rootlesskit",
    "rootlessport",
    "slirp4netns",
    "socat",
    "ssh",
    "sshd",
    "sshd-session",
];

/// What listens on this machine.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Vec<KernelSocket>);

impl Listeners {
    /// All listeners that the kernel lists now; none if it cannot be asked.
    pub(crate) fn now() -> Listeners {
        Listeners(owners::listening().unwrap_or_default())
    }

    /// The listeners behind an endpoint.
    fn behind(&self, endpoint: &Endpoint) -> impl Iterator<Item = &KernelSocket> {
        self.0.iter().filter(move |one| leads_to(endpoint, one))
    }

    /// The first endpoint that takes connections: a name may have more addresses than a server
    /// listens to. `given` is the flag or the argument that named them.
    ///
    /// # Errors
    /// If the kernel lists no listener at any of them, and none takes a connection.
    pub(crate) fn first<'e>(
        &self,
        endpoints: &'e [Endpoint],
        given: &str,
    ) -> Result<&'e Endpoint, SweepError> {
        let is_listed = |endpoint: &&Endpoint| {
            self.0.iter().any(|one| leads_to(endpoint, one) || may_lead_to(endpoint, &one.place))
        };
        if let Some(first) = endpoints.iter().find(is_listed) {
            return Ok(first);
        }
        let mut refusals = Vec::new();
        for endpoint in endpoints {
            match reach(endpoint, PATIENCE) {
                Ok(()) => return Ok(endpoint),
                Err(Unreachable::Refused) if is_of_this_machine(endpoint) => {
                    refusals.push(format!("nothing listens at {endpoint}"));
                }
                Err(why) => refusals.push(format!("{endpoint} {why}")),
            }
        }
        let refusals = refusals.join("; ");
        Err(SweepError::Unusable(format!("{refusals}: start the server first, or correct {given}")))
    }

    /// Where the server of `endpoint` runs, as far as this user may see; and the pids of its first
    /// processes, if it runs here.
    pub(crate) fn serving(&self, endpoint: &Endpoint) -> (ServerLocation, Vec<u32>) {
        if !is_of_this_machine(endpoint) {
            return (ServerLocation::Elsewhere, Vec::new());
        }
        let inodes: BTreeSet<u64> = self.behind(endpoint).map(|one| one.inode).collect();
        if inodes.is_empty() && matches!(endpoint, Endpoint::Tcp(_)) {
            return (ServerLocation::Forwarded { by: None }, Vec::new());
        }
        let holders = owners::holders(&inodes);
        let names = holders.pids.keys().filter_map(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            Some(name.trim_end().to_owned())
        });
        match names.into_iter().find(|name| FORWARDERS.contains(&name.as_str())) {
            Some(by) => (ServerLocation::Forwarded { by: Some(by) }, Vec::new()),
            None => (ServerLocation::Here, holders.roots()),
        }
    }
}

/// Whether a connection to `endpoint` ends at `listening`.
fn leads_to(endpoint: &Endpoint, listening: &KernelSocket) -> bool {
    match (endpoint, &listening.place) {
        (Endpoint::Tcp(to), Endpoint::Tcp(at)) => {
            let here = to.ip().to_canonical();
            let there = at.ip().to_canonical();
            // `::` takes IPv4 too, unless it is set otherwise; `0.0.0.0` never takes IPv6.
            let takes_it = if here.is_ipv4() { !listening.is_v6_only } else { there.is_ipv6() };
            let takes_all = there.is_unspecified() && takes_it && is_of_this_machine(endpoint);
            to.port() == at.port() && (here == there || takes_all)
        }
        (Endpoint::Unix(path), Endpoint::Unix(at)) => is_same_file(path, at),
        (endpoint, place) => endpoint == place,
    }
}

/// Whether a path leads to the socket that its server bound at `at`: the same path, or another one
/// to the same file.
fn is_same_file(path: &Path, at: &Path) -> bool {
    path == at
        || at.is_absolute()
            && path.canonicalize().is_ok_and(|path| at.canonicalize().is_ok_and(|at| at == path))
}

/// Whether `endpoint` may lead to the socket that was bound at `place`: for a relative path, the
/// kernel does not tell from which folder it starts.
fn may_lead_to(endpoint: &Endpoint, place: &Endpoint) -> bool {
    let (Endpoint::Unix(path), Endpoint::Unix(at)) = (endpoint, place) else { return false };
    at.is_relative()
        && path.canonicalize().is_ok_and(|path| path.ends_with(at.strip_prefix(".").unwrap_or(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use launch::affinity;
    use probe::sockets::unix_place;
    use std::net::TcpListener;

    fn tcp(address: &str) -> Endpoint {
        Endpoint::Tcp(address.parse().unwrap())
    }

    fn listener(place: Endpoint) -> KernelSocket {
        KernelSocket {
            place,
            is_listener: true,
            inode: 1,
            queue: None,
            limit: None,
            user: None,
            is_v6_only: false,
            last_word: None,
            peer_port: None,
            received: None,
            answered: None,
            cookie: 0,
        }
    }

    #[test]
    fn a_connection_goes_to_the_listener_of_its_address() {
        let tcp_at = |address: &str| listener(Endpoint::Tcp(address.parse().unwrap()));
        for (to, at, leads) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("[::1]:80", "[::]:80", true),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1:80", "[::]:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("[::1]:80", "0.0.0.0:80", false),
            ("[::1]:80", "127.0.0.1:80", false),
        ] {
            assert_eq!(leads_to(&tcp(to), &tcp_at(at)), leads, "{to} {at}");
        }
        let of_ipv6 = KernelSocket { is_v6_only: true, ..tcp_at("[::]:80") };
        assert!(leads_to(&tcp("[::1]:80"), &of_ipv6) && !leads_to(&tcp("127.0.0.1:80"), &of_ipv6));
        let unix = |path: &str| listener(unix_place(path));
        assert!(leads_to(&Endpoint::Unix("/run/a".into()), &unix("/run/a")));
        assert!(leads_to(&Endpoint::Abstract(b"a".to_vec()), &unix("@a")));
        assert!(
            !leads_to(&Endpoint::Abstract(b"a".to_vec()), &unix("a"))
                && !leads_to(&Endpoint::Unix("/a".into()), &unix("@/a"))
        );
    }

    #[test]
    fn a_socket_is_found_by_any_path_to_its_file() {
        let folder = std::env::temp_dir().join(format!("listeners-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("app.sock");
        std::fs::write(&file, "").unwrap();
        let other = folder.join("other.sock");
        std::os::unix::fs::symlink(&file, &other).unwrap();
        let leads = |to: &Path, at: &str| {
            leads_to(&Endpoint::Unix(to.to_owned()), &listener(unix_place(at)))
        };
        let may =
            |to: &Path, at: &str| may_lead_to(&Endpoint::Unix(to.to_owned()), &unix_place(at));
        let at = file.to_str().unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(
            leads(&other, at)
                && leads(&folder.join("./app.sock"), at)
                && leads(&file, other.to_str().unwrap())
        );
        assert!(!leads(&file, "app.sock") && !leads(&file, "/app.sock"));
        assert!(
            may(&file, "app.sock")
                && may(&other, "./app.sock")
                && may(&file, &format!("{name}/app.sock"))
        );
        assert!(
            !may(&file, "p.sock")
                && !may(&file, "other/app.sock")
                && !may(&file, at)
                && !may(&file, "@app.sock")
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// A name may have two addresses of which a server listens to one, in either order.
    #[test]
    fn the_first_endpoint_with_a_listener_is_taken() {
        let listener = TcpListener::bind("127.0.0.8:0").unwrap();
        let alive = Endpoint::Tcp(listener.local_addr().unwrap());
        let dead = {
            let gone = TcpListener::bind("127.0.0.2:0").unwrap();
            Endpoint::Tcp(gone.local_addr().unwrap())
        };
        for endpoints in [[alive.clone(), dead.clone()], [dead.clone(), alive.clone()]] {
            assert_eq!(Listeners::now().first(&endpoints, "the URL").unwrap(), &alive);
            // If the kernel lists no listener, a connect tells.
            assert_eq!(Listeners::default().first(&endpoints, "the URL").unwrap(), &alive);
        }
        drop(listener);
        let endpoints = [dead.clone(), alive.clone()];
        let said = Listeners::now().first(&endpoints, "the URL").unwrap_err().to_string();
        assert_eq!(
            said,
            format!(
                "nothing listens at {dead}; nothing listens at {alive}: start the server first, \
                 or correct the URL"
            )
        );
    }

    #[test]
    fn no_connection_is_made_to_a_listener_that_the_kernel_lists() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let endpoints = [Endpoint::Tcp(listener.local_addr().unwrap())];
        assert_eq!(Listeners::now().first(&endpoints, "the URL").unwrap(), &endpoints[0]);
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn the_process_that_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let found = affinity::placement(&Listeners::now().serving(&endpoint).1);
        assert!(found.is_some_and(|found| found.is_shared()), "it is ourselves");
        drop(listener);
        assert_eq!(affinity::placement(&Listeners::now().serving(&endpoint).1), None);
    }
}
