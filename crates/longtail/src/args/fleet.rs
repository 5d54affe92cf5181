//! Flags of `longtail fleet`, whose own commands are Ansible's playbooks, or longtail's on a box.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  longtail fleet init                   write the playbooks to fleet/; then name your boxes in fleet/inventory.yml
  longtail fleet init --digitalocean    the same for boxes that fleet provision makes there (keys: fleet/.env)
  longtail fleet provision              install longtail, Ruby, Puma and kernel settings on the boxes
  longtail fleet doctor                 are the boxes fit to measure on?
  longtail fleet sweep -w2 -t5:5        sweep on the first box, the load from the others
  longtail fleet destroy                delete the boxes, so that they cost nothing

Each is an ansible-playbook, printed before it runs. sweep, load and compare then run on the first
box by ssh, with their own progress and exit code. Studies come to fleet/studies.";

/// Flags of `longtail fleet`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FleetArgs {
    /// The folder of the playbooks
    #[arg(long, value_name = "DIR", default_value = "fleet")]
    pub(crate) dir: PathBuf,
    #[command(subcommand)]
    pub(crate) verb: FleetVerb,
}

/// What is done with the boxes.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetVerb {
    /// Write playbooks, settings and an inventory that you then edit
    Init {
        /// Boxes that provision makes at DigitalOcean, instead of your own
        #[arg(long)]
        digitalocean: bool,
    },
    /// Create the boxes (at DigitalOcean only) and install all that they need
    Provision,
    /// Copy this longtail and your app to the boxes again
    Update,
    /// Ask each box whether it is fit to measure on
    Doctor,
    /// longtail sweep on the first box, the load from the generators
    Sweep(BoxWords),
    /// longtail load on the first box, the load from the generators
    Load(BoxWords),
    /// longtail compare on the first box, the load from the generators
    Compare(BoxWords),
    /// Copy all studies from the boxes to fleet/studies
    Fetch,
    /// Delete the boxes at DigitalOcean; from your own boxes, what provision installed
    Destroy,
}

/// A command line for the first box, as it is without `longtail fleet`.
#[derive(Debug, Args)]
pub(crate) struct BoxWords {
    #[arg(value_name = "FLAGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}
