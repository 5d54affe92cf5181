//! What is wrong with words on the command line, and what was meant by them.

pub(crate) mod argument_fault;
pub(crate) mod mistaken_values;
pub(crate) mod unknown_words;
