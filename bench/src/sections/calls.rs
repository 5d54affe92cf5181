//! System calls a request, of all threads of a program, from its start to its end.

use report::number;
use std::fmt::Write as _;

use crate::case::{Case, Done};
use crate::measure::Sample;
use crate::sections::Extent;
use crate::sections::cost::SMALL;
use crate::server::Kind;
use crate::table::{Table, shown};
use crate::tools::{End, Job, Tool};

const CONNECTIONS: u32 = 64;

pub(super) fn cases(extent: &Extent) -> Vec<Case> {
    let quick = [Tool::Longtail, Tool::Floor, Tool::Wrk];
    vec![Case {
        name: format!("system calls, {CONNECTIONS} conn."),
        server: Kind::Sink { bytes: SMALL, delay: None },
        job: Job::closed(CONNECTIONS, End::After(extent.length)),
        contenders: extent.contenders(if extent.quick { &quick } else { &Tool::ALL }),
    }]
}

pub(super) fn text(cases: &[Done]) -> String {
    let mut text = String::new();
    for done in cases {
        let mut table = Table::new(&["|calls a request"]);
        for entry in done.entries.iter().filter(|entry| !entry.samples.is_empty()) {
            let calls = shown(entry.middle(Sample::calls), |middle| number::fixed(middle.median, 2));
            table.row([entry.contender.name.clone(), calls]);
        }
        let _ = write!(text, "\n{}\n{}", done.case.name, table.text());
    }
    text
}
