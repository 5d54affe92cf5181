//! What instruments cost: `findings` is arithmetic on the runs, `text` prints it. The runs are made in `sweep::overhead`.

mod findings;
mod text;

pub(crate) use self::findings::OverheadFindings;
pub(crate) use self::text::{json, table};
