//! The server inside longtail: a process of its own, which counts its requests in a ledger.

use std::ffi::OsString;

use launch::{LaunchSpec, ServerBind};
use model::{Discipline, Nanos, ServerFacts, ServerPlan};
use probe::control;
use probe::puma_stats::PumaStats;
use queueing::discipline::ServiceOrder;

use super::server_under_test::{
    PlannedSize, Preparation, ServedLoad, ServerAddress, ServerUnderTest,
};
use crate::block::Block;
use crate::context::{Context, SweepError};

pub(super) struct BuiltinServer<'a> {
    pub(super) plan: &'a ServerPlan,
}

impl ServerUnderTest for BuiltinServer<'_> {
    fn prepare(&self, block: &Block, context: &Context<'_>) -> Result<Preparation, SweepError> {
        let plan = self.plan;
        let stream = &block.stream;
        let address = launch::free_address(plan.socket, plan.address, &context.addresses)?;
        let size = self.planned_size();
        let flags = [
            format!("--listen={address}"),
            "--queue=shared".to_owned(),
            "--body=3".to_owned(),
            format!("--workers={}", size.workers.max(1)),
            format!("--threads={}", size.threads),
            format!("--delay={}", stream.delay.unwrap_or(Nanos::ZERO)),
            format!("--worker-header={}", stream.worker_header),
        ];
        let mut argv = vec![context.program.clone(), OsString::from("sink")];
        argv.extend(flags.map(OsString::from));
        let dir = block.dir.as_ref().unwrap_or(&context.dir);
        Ok(Preparation {
            spec: LaunchSpec { cpus: plan.cpus.clone(), ..LaunchSpec::command(argv, dir) },
            name: "built-in server".to_owned(),
            url: format!("http://{address}"),
            reached: ServerAddress {
                bind: ServerBind::tcp(address),
                authority: address.to_string(),
                path: stream.target_path().exposed().clone(),
                control: None,
            },
        })
    }

    fn planned_size(&self) -> PlannedSize {
        PlannedSize {
            workers: self.plan.workers.unwrap_or(0),
            threads: self.plan.threads.map_or(5, |threads| threads.max),
        }
    }

    fn worker_names(&self, facts: &ServerFacts, _: Option<&PumaStats>, _: u32) -> Vec<String> {
        (0..facts.workers).map(|worker| worker.to_string()).collect()
    }

    fn ledger(&self, reached: &ServerAddress) -> Option<Result<u64, String>> {
        reached.bind.place.tcp().map(control::sink_requests)
    }

    fn service_order(&self, _: &ServerFacts, load: &ServedLoad) -> ServiceOrder {
        ServiceOrder { discipline: Some(Discipline::Shared), ..load.unknown_order() }
    }
}
