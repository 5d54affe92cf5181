//! What an audit finds in the text of other tools: laws of any text, the founding documents, each tool.

mod laws;
mod seeds;
mod tools;
