//! Puma: where it is found (`installation`), its command line (`command_line`), the apps that longtail
//! brings (`apps`), the config file that keeps it from touching what a running Puma uses (`isolation`),
//! and why it did not boot (`boot_failures`). `start_server.rs` starts it.

mod apps;
mod boot_failures;
mod command_line;
mod installation;
mod isolation;
mod surroundings;

pub use self::boot_failures::{failed_workers, missing_dependency};
pub use self::command_line::{Puma, check_files, prepare};
pub use self::installation::{BootLines, discover, printed_version};
pub use self::isolation::{PumaConfig, ask_config};
pub use self::surroundings::Surroundings;
