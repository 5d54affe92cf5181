//! Another generator made the runs: the figures are its own.

use model::{Believable, Study};
use serde::{Deserialize, Serialize};

use super::Finding;

/// Another generator made the runs: the figures are its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    /// Its name and version.
    pub by: String,
    /// What its figures, held against each other, leave of its claim; of several runs the
    /// worst.
    pub audit: Believable,
}

/// What another generator's figures are worth.
pub(super) fn of(study: &Study) -> Option<Finding> {
    let runs = study.runs();
    let claims = runs.iter().filter_map(|run| run.claim.as_deref());
    let worst = claims.max_by_key(|claim| claim.audit)?;
    Some(Claimed { by: worst.name(), audit: worst.audit }.into())
}

impl Claimed {
    pub(super) fn sentence(&self) -> String {
        let Claimed { by, audit } = self;

        let (these, what) = match audit {
            Believable::Possible => ("These", "; held against each other, they are possible"),
            Believable::Doubtful => ("These", ", and they are doubtful"),
            Believable::Impossible => ("IMPOSSIBLE: these", ", and no run can have had them"),
            Believable::Unchecked => ("These", "; nothing of them could be checked"),
        };
        format!("{these} are {by}'s own figures{what}.")
    }
}
