//! The disciplines against what is known of them on paper: closed forms, and exact results of queueing theory. In exact
//! simulated time: no socket, no clock.
