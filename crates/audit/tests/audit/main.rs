//! What an audit finds in the output of other tools: what must hold for any text (`laws`), and what
//! is found in each output that we keep (`tools`).

mod laws;
mod tools;
