//! Where the server of a load runs, as far as this user may see: whoever listens where the load goes.

use std::collections::BTreeSet;

use engine::Endpoint;
use launch::affinity;
use model::Placement;
use probe::owners::{self, Place};
use probe::processes::tree;

/// Where the processes behind these endpoints may run, and what that leaves to the lanes. `None` where it is not known who they are, or
/// where there is but one processor, and so nothing to choose.
pub(crate) fn placement(endpoints: &[Endpoint]) -> Option<Placement> {
    affinity::ours().filter(|ours| ours.len() > 1)?;
    let listening = owners::listening().ok()?;
    let theirs = listening.into_iter().filter(|one| endpoints.iter().any(|endpoint| leads_to(endpoint, &one.place)));
    let inodes: BTreeSet<u64> = theirs.map(|one| one.inode).collect();
    affinity::beside(owners::holders(&inodes).roots().into_iter().flat_map(tree))
}

/// Whether a connection to `endpoint` ends at what listens at `place`.
fn leads_to(endpoint: &Endpoint, place: &Place) -> bool {
    match (endpoint, place) {
        (Endpoint::Tcp(to), Place::Tcp(at)) => {
            to.port() == at.port() && (to.ip().to_canonical() == at.ip().to_canonical() || at.ip().is_unspecified())
        }
        (Endpoint::Unix(path), Place::Unix(at)) => path.to_str() == Some(at),
        (Endpoint::Abstract(name), Place::Unix(at)) => {
            at.strip_prefix('@').is_some_and(|at| at.as_bytes() == name.as_slice())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_connection_ends_where_its_address_is_listened_to() {
        let tcp = |address: &str| address.parse().unwrap();
        let leads = |to: &str, at: &str| leads_to(&Endpoint::Tcp(tcp(to)), &Place::Tcp(tcp(at)));
        assert!(
            leads("127.0.0.1:80", "127.0.0.1:80")
                && leads("127.0.0.1:80", "0.0.0.0:80")
                && leads("[::1]:80", "[::]:80")
        );
        assert!(leads("127.0.0.1:80", "[::ffff:127.0.0.1]:80") && leads("127.0.0.1:80", "[::]:80"));
        assert!(!leads("127.0.0.1:80", "127.0.0.1:81") && !leads("127.0.0.1:80", "127.0.0.2:80"));
        let unix = |at: &str| Place::Unix(at.to_owned());
        assert!(leads_to(&Endpoint::Unix("/run/a".into()), &unix("/run/a")));
        assert!(leads_to(&Endpoint::Abstract(b"a".to_vec()), &unix("@a")));
        assert!(
            !leads_to(&Endpoint::Abstract(b"a".to_vec()), &unix("a"))
                && !leads_to(&Endpoint::Unix("/a".into()), &unix("@/a"))
        );
    }

    #[test]
    fn who_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let several = affinity::ours().is_some_and(|ours| ours.len() > 1);
        let found = placement(std::slice::from_ref(&endpoint));
        assert_eq!(found.is_some(), several);
        assert!(found.is_none_or(|found| found.is_shared()), "it is ourselves");
        drop(listener);
        assert_eq!(placement(&[endpoint]), None);
    }
}
