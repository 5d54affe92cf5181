//! The kinds of server, a file each. A new kind is a file here, a line in [`under_test`], and its
//! answers in `model/src/server_kind.rs`.

mod builtin;
mod command;
mod puma;
mod puma_order;
mod server_under_test;

use model::{ServerKind, ServerPlan};

pub(crate) use self::server_under_test::{Preparation, ServedLoad, ServerAddress, ServerUnderTest};

use self::builtin::BuiltinServer;
use self::command::CommandServer;
use self::puma::PumaServer;

/// The server of this plan.
pub(crate) fn under_test(plan: &ServerPlan) -> Box<dyn ServerUnderTest + '_> {
    match &plan.kind {
        ServerKind::Puma { command } => Box::new(PumaServer {
            plan,
            command: command.as_ref().map(|text| text.exposed().as_str()),
        }),
        ServerKind::Builtin => Box::new(BuiltinServer { plan }),
        ServerKind::Command { argv, slots, url } => Box::new(CommandServer {
            plan,
            argv: argv.exposed(),
            slots: *slots,
            url: url.exposed(),
        }),
    }
}
