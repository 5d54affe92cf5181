//! The formats that other programs read, and the lines that other programs send.

mod corpus;
mod formats;
