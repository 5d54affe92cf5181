//! The bench at toy size, and the ceiling of instructions.

mod ceiling;
mod toy;
