//! Where the server of a load runs, as far as this user may see: whoever listens where the load goes.

use std::collections::BTreeSet;

use engine::Endpoint;
use launch::affinity;
use model::Placement;
use probe::owners;
use probe::processes::tree;

use crate::load::listeners::Listeners;

/// The first processes of whoever listens at this endpoint.
pub(crate) fn serving(endpoint: &Endpoint, listeners: &Listeners) -> Vec<u32> {
    let inodes: BTreeSet<u64> = listeners.behind(endpoint).map(|one| one.inode).collect();
    owners::holders(&inodes).roots()
}

/// Where these processes and those below them may run, and what that leaves to the lanes. `None` where there is none.
pub(crate) fn placement(roots: &[u32]) -> Option<Placement> {
    affinity::beside(roots.iter().map(|first| (*first, tree(*first))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let found = placement(&serving(&endpoint, &Listeners::now()));
        assert!(found.is_some_and(|found| found.is_shared()), "it is ourselves");
        drop(listener);
        assert_eq!(placement(&serving(&endpoint, &Listeners::now())), None);
    }
}
