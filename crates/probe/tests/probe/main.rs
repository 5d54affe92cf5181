//! The kernel's part: what it reports, and that the object that is kept is what its source makes.

mod bpf;
mod bpf_object;
