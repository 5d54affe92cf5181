//! `longtail load`, in parts: from flags to a run (`prepare`), what is written and checked while it goes on
//! (`recorder`, `checks`), who listens and so may run where (`listeners`), what an overload says of the server (`overload`), and the conduct of it (`conduct`).

mod checks;
mod conduct;
mod listeners;
mod overload;
mod prepare;
mod recorder;
mod with;

pub(crate) use checks::Check;
pub(crate) use conduct::{LoadContext, conduct};
pub(crate) use listeners::is_of_this_machine;
pub(crate) use prepare::{Prepared, prepare};
pub(crate) use recorder::Log;
pub(crate) use with::order_load;
