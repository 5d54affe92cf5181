//! Requests files as users write them.

mod corpus;
mod file;
mod order;
