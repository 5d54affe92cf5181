//! What is printed around the figures: the machine and the tools before them, a legend after them;
//! and everything as JSON.

use model::Clock as _;
use report::number;
use serde_json::json;
use std::fmt::Write as _;

use crate::case::coverage_of_range;
use crate::lab::Lab;
use crate::sections::{Extent, Found, Section};
use crate::tools::{Tool, version_of};

/// Lines about the machine, the programs, and what is not counted here.
pub(crate) fn text(lab: &Lab<'_>, extent: &Extent) -> String {
    let here = probe::host::environment(env!("CARGO_PKG_VERSION"));
    let placed = match lab.cpus {
        Some((generator, server)) => {
            format!("generator on processor {generator}, server on {server}")
        }
        None => "one processor for generator and server: rates say nothing here".to_owned(),
    };
    let mut text = format!(
        "{}, {}, {}, kernel {}; {placed}\n",
        here.cpu,
        number::count_of(here.cores, "core"),
        here.os,
        here.kernel
    );
    let (there, absent) = programs(lab, extent);
    let _ = writeln!(text, "{}", there.join(", "));
    if !absent.is_empty() {
        let _ = writeln!(text, "absent (not on PATH): {}", absent.join(", "));
    }
    for line in lab.counters.missing() {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The installed programs with their versions, and the missing ones.
fn programs(lab: &Lab<'_>, extent: &Extent) -> (Vec<String>, Vec<String>) {
    let mut there = Vec::new();
    let mut absent = Vec::new();
    for tool in Tool::ALL.into_iter().filter(|tool| extent.tools.contains(tool)) {
        let version = match (tool, lab.program(tool)) {
            (_, None) => {
                absent.push(tool.name().to_owned());
                continue;
            }
            (Tool::LONGTAIL, Some(program)) => version_of(&program, "--version"),
            (_, Some(program)) => tool.version(&program),
        };
        there.push(
            [Some(tool.name().to_owned()), version]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    match lab.find("nginx") {
        Some(program) => {
            there.extend(version_of(&program, "-v").map(|version| format!("nginx {version}")));
        }
        None => absent.push("nginx".to_owned()),
    }
    (there, absent)
}

/// The legend of the tables.
pub(crate) fn legend(extent: &Extent, all: &[Found]) -> String {
    let has = |section| all.iter().any(|found| found.section == section);
    let mut text = format!(
        "\nMedians of {} in turns, {} each (tools beside longtail, floor and wrk: {}); x: the \
         median of the ratios within a round.\n",
        number::count_of(extent.rounds.all, "round"),
        extent.length,
        extent.rounds.others
    );
    let interval = match extent.rounds.all {
        1 => "One round has no interval.\n".to_owned(),
        n @ 2..=5 => format!(
            "[interval]: the range of the {n} ratios, which holds the true median with {:.0} %.\n",
            coverage_of_range(n as usize) * 100.0
        ),
        _ => "[interval]: holds the true median with at least 95 %, by ranks.\n".to_owned(),
    };
    text.push_str(&interval);
    if has(Section::Cost) || has(Section::Idle) {
        text += "\
Requests and rates are the server's count, rate and busy those of the middle of each run. CPU, instructions and cycles are
of the whole process, its start and its report too. Floor: the same bytes without HTTP. Unclaimed: received, and not in
the tool's own count. Where the server is near 100 % busy, the rate is the server's limit.
";
    }
    if has(Section::Timing) {
        text += "\
Send lag: sent - due, by longtail's own account; no other tool reports it. Reported less 1000 us: each tool's own percentile,
from the due time (longtail, oha with --latency-correction, wrk2) or from its own sending (hey).
";
    }
    text
}

/// All results as JSON.
pub(crate) fn json(lab: &Lab<'_>, extent: &Extent, all: &[Found], interrupted: bool) -> String {
    let (there, absent) = programs(lab, extent);
    let value = json!({
        "environment": probe::host::environment(env!("CARGO_PKG_VERSION")),
        "wall_ns": lab.clock.wall(),
        "programs": there,
        "absent": absent,
        "not_counted": lab.counters.missing(),
        "generator_and_server_cpu": lab.cpus,
        "rounds": extent.rounds.all,
        "length_ns": extent.length,
        "interrupted": interrupted,
        "sections": all,
    });
    format!("{value:#}\n")
}
