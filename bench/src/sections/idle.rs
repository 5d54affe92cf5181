//! nginx is slower than a generator: whoever sleeps between answers pays for each wake-up, and may come late.

use crate::case::{Case, Done};
use crate::sections::{Extent, cost};
use crate::server::Kind;
use crate::tools::{End, Job, Tool};

pub(super) fn cases(extent: &Extent) -> Vec<Case> {
    let all: &[u32] = if extent.quick { &[4] } else { &[1, 4, 16, 64, 256] };
    let case = |connections: &u32, tls: bool| Case {
        name: format!("nginx, {connections} conn.{}", if tls { ", TLS" } else { "" }),
        server: Kind::Nginx,
        job: Job { connections: *connections, end: End::After(extent.length), keep_alive: true, tls, rate: None },
        contenders: extent.contenders(if extent.quick || tls {
            &[Tool::Longtail, Tool::Wrk]
        } else {
            &[Tool::Longtail, Tool::Floor, Tool::Wrk]
        }),
    };
    let plain = all.iter().map(|connections| case(connections, false));
    plain.chain(all.iter().map(|connections| case(connections, true))).collect()
}

pub(super) fn text(cases: &[Done]) -> String {
    cases.iter().filter(|done| done.failure.is_none()).map(cost::detail).collect()
}
