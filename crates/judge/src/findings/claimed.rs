//! Another generator sent the load: the figures are its own.

use model::{Believable, Study};
use serde::{Deserialize, Serialize};

use super::Finding;

/// Another generator sent the load: the figures are its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claimed {
    /// Its name and version.
    pub by: String,
    /// Whether its figures can be believed, after checking them against each other; the worst of
    /// all runs.
    pub audit: Believable,
}

/// Says what another generator's figures are worth.
pub(super) fn of(study: &Study) -> Option<Finding> {
    let runs = study.runs();
    let claims = runs.iter().filter_map(|run| run.claim.as_deref());
    let worst = claims.max_by_key(|claim| claim.audit)?;
    Some(Claimed { by: worst.name(), audit: worst.audit }.into())
}

impl Claimed {
    pub(super) fn sentence(&self) -> String {
        let Claimed { by, audit } = self;

        let what = match audit {
            Believable::Possible => "checked against each other, they are possible",
            Believable::Doubtful => "checked against each other, they are doubtful",
            Believable::Impossible => {
                return format!("IMPOSSIBLE: {by}'s own figures contradict each other.");
            }
            Believable::Unchecked => "none of them could be checked",
        };
        format!("These are {by}'s own figures; {what}.")
    }
}
