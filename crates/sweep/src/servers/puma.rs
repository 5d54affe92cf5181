//! Puma: started with a control server, which says when it is ready and what it has counted.

use std::path::{Path, PathBuf};

use launch::puma::{self, PumaConfig};
use launch::{LaunchSpec, ServerOutput};
use model::{ServerFacts, ServerPlan};
use probe::puma_stats::PumaStats;
use queueing::discipline::ServiceOrder;

use super::puma_order;
use super::server_under_test::{
    PlannedSize, Preparation, ServedLoad, ServerAddress, ServerUnderTest,
};
use crate::block::Block;
use crate::context::{Context, SweepError};

pub(super) struct PumaServer<'a> {
    pub(super) plan: &'a ServerPlan,
    /// `--puma`.
    pub(super) command: Option<&'a str>,
}

impl ServerUnderTest for PumaServer<'_> {
    fn prepare(&self, block: &Block, context: &Context<'_>) -> Result<Preparation, SweepError> {
        let around = puma::Surroundings::here()?.of(block.dir.as_deref(), &block.env);
        let puma = puma::prepare(self.plan, &context.addresses, &around)?;
        let authority = puma.bind.host();
        let url = puma.bind.to_string();
        let reached = ServerAddress {
            bind: puma.bind,
            authority,
            path: block.stream.target_path().exposed().clone(),
            control: Some(puma.control),
        };
        let name = ServerFacts::PUMA.to_owned();
        Ok(Preparation { spec: puma.spec, name, url, reached })
    }

    fn planned_size(&self) -> PlannedSize {
        PlannedSize {
            workers: self.plan.workers.unwrap_or(0),
            threads: self.plan.threads.map_or(5, |threads| threads.max),
        }
    }

    fn read_config(
        &self,
        spec: &LaunchSpec,
        context: &Context<'_>,
    ) -> Result<PumaConfig, SweepError> {
        let is_interrupted = || context.is_interrupted();
        let config = self.plan.config.as_deref();
        Ok(puma::ask_config(config, spec, &context.guard, &context.clock, is_interrupted)?)
    }

    fn boot_failure(&self, output: &ServerOutput) -> Option<SweepError> {
        if let Some(error) = puma::missing_dependency(self.plan, output) {
            return Some(error.into());
        }
        let last_lines = puma::failed_workers(output)?;
        let what = "Puma cannot start its workers: what they said is above, and with -w0 it says \
             more; no load was sent";
        Some(SweepError::NotServing { what: what.to_owned(), last_lines })
    }

    fn worker_names(&self, _: &ServerFacts, stats: Option<&PumaStats>, pid: u32) -> Vec<String> {
        match stats {
            None => Vec::new(),
            Some(stats) if stats.cluster => {
                let pids = stats.workers.iter().filter_map(|worker| worker.pid);
                pids.map(|pid| pid.to_string()).collect()
            }
            Some(_) => vec![pid.to_string()],
        }
    }

    /// Our own app on an installed Puma has nothing to do with the folder that we happen to be in.
    fn checkout(&self, dir: &Path) -> Option<PathBuf> {
        let is_puma = |folder: &Path| folder.join("puma.gemspec").is_file();
        if let Some(named) = self.command.map(Path::new)
            && is_puma(named)
        {
            return named.join(".git").exists().then(|| named.to_owned());
        }
        let is_measured = self.plan.rackup.is_some() || dir.ancestors().any(is_puma);
        is_measured.then(|| dir.to_owned())
    }

    fn service_order(&self, server: &ServerFacts, load: &ServedLoad) -> ServiceOrder {
        puma_order::service_order(server, load)
    }
}
