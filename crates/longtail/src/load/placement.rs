//! Where the server of a load runs, as far as this user may see: whoever listens where the load goes.

use std::collections::BTreeSet;

use engine::Endpoint;
use launch::affinity;
use model::Placement;
use probe::owners;
use probe::processes::tree;

use crate::load::listeners::Listeners;

/// Where the processes behind this endpoint may run, and what that leaves to the lanes. `None` where it is not known who they are.
pub(crate) fn placement(endpoint: &Endpoint, listeners: &Listeners) -> Option<Placement> {
    let inodes: BTreeSet<u64> = listeners.behind(endpoint).map(|one| one.inode).collect();
    affinity::beside(owners::holders(&inodes).roots().into_iter().map(|first| (first, tree(first))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        let found = placement(&endpoint, &Listeners::now());
        assert!(found.is_some_and(|found| found.is_shared()), "it is ourselves");
        drop(listener);
        assert_eq!(placement(&endpoint, &Listeners::now()), None);
    }
}
