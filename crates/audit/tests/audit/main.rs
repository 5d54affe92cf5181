//! What an audit finds in the text of other tools: laws of any text, each output.

mod laws;
mod tools;
