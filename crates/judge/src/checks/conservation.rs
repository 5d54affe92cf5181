//! The server's count of requests, over its whole life, must equal the responses that we received.

use super::{Assessment, Grade, if_any};

fn sentence(worker: Option<u32>, client: u64, server: u64) -> String {
    match worker {
        Some(pid) => {
            format!("worker {pid} counted {server} requests; {client} responses name it")
        }
        None => format!("the server counted {server} requests; {client} responses came back"),
    }
}

/// Grade, sentence and hint.
pub(super) fn assess(worker: Option<u32>, client: u64, server: u64) -> Assessment {
    let grade = if_any(client.abs_diff(server), Grade::Failed);
    let sentence = sentence(worker, client, server);
    let hint = "is anything else sending to this server, or are requests given up unanswered? \
             If neither, please report it: one of the two counts is wrong";
    Assessment::new(grade, sentence, hint)
}
