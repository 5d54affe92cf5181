//! The event in the middle of a load (`--during`): which Puma it is done to, and what that Puma will
//! not do, which is said before the load.

use engine::Resolver;
use judge::event::{EventForecast, forecast};
use model::{EventKind, ServerLocation};
use probe::puma_setup;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use sweep::{EventOrder, PreparedLoad};
use watch::StatisticsSource;

use crate::args::LoadArgs;
use crate::args::event::control_source;
use crate::exit::{Mistake, refuse_if, wrong};
use crate::ui;

/// The event of this load; `None` if it has none.
///
/// # Errors
/// If it cannot be done to this server.
pub(crate) fn event_order(
    args: &LoadArgs,
    prepared: &PreparedLoad,
    resolver: &Resolver,
) -> Result<Option<EventOrder>, Mistake> {
    let Some(planned) = prepared.plan.during.clone() else { return Ok(None) };
    let event = &args.event;
    let kind = &planned.kind;
    refuse_if(
        *kind == EventKind::StopStart,
        "--during stop-start: longtail load does not know by which command the server was started; give the command, such as --during 'systemctl restart puma@20s', or use longtail sweep",
    )?;
    let roots = event.pid.map_or_else(|| prepared.serving.clone(), |pid| vec![pid]);
    let named = control_source(
        event.state.as_deref(),
        event.control_url.as_deref(),
        event.control_token.as_deref(),
        resolver,
    )?;
    let source = named.or_else(|| StatisticsSource::of_processes(&roots, resolver));
    let control = source.map(|source| source.control);
    let can_be_told = control.is_some() && kind.control_command().is_some();
    if kind.signal().is_some() {
        check_signal(kind, &roots, can_be_told)?;
    }
    let setup = roots.first().and_then(|root| puma_setup::of_process(*root));
    if roots.is_empty() {
        let is_command = matches!(kind, EventKind::Command(_));
        if !can_be_told && !is_command {
            return Err(wrong(why_out_of_reach(kind, &prepared.server)));
        }
    } else {
        match forecast(kind, setup.as_ref()) {
            EventForecast::AsAsked => {}
            EventForecast::Otherwise(note) => ui::note(&note),
            EventForecast::Refused(why) => return Err(wrong(why)),
        }
    }
    Ok(Some(EventOrder {
        at: planned.at.unwrap_or_default(),
        planned,
        roots,
        place: prepared.spec.transport.endpoints[0].clone(),
        control,
    }))
}

/// Refuses a signal to processes that do not exist, or that are another user's and cannot be told
/// otherwise.
fn check_signal(kind: &EventKind, roots: &[u32], can_be_told: bool) -> Result<(), Mistake> {
    for root in roots {
        let pid = i32::try_from(*root).ok().and_then(Pid::from_raw);
        match pid.map_or(Err(Errno::SRCH), test_kill_process) {
            Err(Errno::PERM) if !can_be_told => {
                let control = match kind.control_command() {
                    Some(_) => ", or give --control-url tcp://HOST:PORT --control-token TOKEN",
                    None => "",
                };
                return Err(wrong(format!(
                    "--during {kind}: process {root} is another user's, who alone may signal it: run longtail as that user{control}"
                )));
            }
            Err(Errno::SRCH) => {
                return Err(wrong(format!("--pid {root}: there is no such process")));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Why the server cannot be reached, and what to type.
fn why_out_of_reach(kind: &EventKind, server: &ServerLocation) -> String {
    let why = match server {
        ServerLocation::Elsewhere => "the server is on another machine",
        ServerLocation::Here | ServerLocation::Forwarded { .. } => {
            "the server's processes cannot be seen from here"
        }
    };
    let by_control = match kind.control_command() {
        Some(_) => "--control-url tcp://HOST:PORT --control-token TOKEN, or ",
        None => "",
    };
    format!(
        "--during {kind}: {why}; give {by_control}a command such as 'ssh box2 kill -HUP 4242@20s'"
    )
}
