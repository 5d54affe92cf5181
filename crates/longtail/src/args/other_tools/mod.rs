//! What is known of the command lines of other load tools: their flags and ours, their whole command
//! lines in our words, and what they call our flags.

pub(crate) mod command_lines;
pub(crate) mod flags;
mod js_literals;
mod k6_script;
mod lua_literals;
mod script_file;
pub(crate) mod synonyms;
mod wrk_lists;
mod wrk_script;
mod wrk_weights;
