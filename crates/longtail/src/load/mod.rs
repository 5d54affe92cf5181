//! `longtail load`, in parts: from flags to a run (`prepare`), what is written and checked while it goes on
//! (`recorder`, `checks`), and who listens and so may run where (`listeners`). It is conducted by `sweep::conduct_load`.

mod checks;
mod listeners;
mod prepare;
mod recorder;
mod with;

pub(crate) use checks::Check;
pub(crate) use listeners::is_of_this_machine;
pub(crate) use prepare::prepare;
pub(crate) use recorder::Recorder;
pub(crate) use with::order_load;
