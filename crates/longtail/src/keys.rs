//! Keys pressed on a terminal in raw mode, read without waiting.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// How long to wait for the rest of an escape sequence, which a slow line may deliver in pieces. An
/// Escape without a rest is the Escape key.
const REST: Duration = Duration::from_millis(25);
/// Bytes taken at once; what is pasted beyond them is read the next time.
const MOST: usize = 4096;
const ESCAPE: u8 = 0x1b;
const CONTROL_C: u8 = 0x03;

/// A key. Only those that a screen reacts to are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character of ASCII, without Control; with or without Alt.
    Character(char),
    ControlC,
    Escape,
    Up,
    Down,
    PageUp,
    PageDown,
    /// Any other.
    Other,
}

/// The keys pressed since the last call.
///
/// # Errors
/// If the terminal is gone.
pub(crate) fn pressed(terminal: &io::Stdin) -> io::Result<Vec<Key>> {
    let mut bytes = Vec::new();
    let mut wait = Duration::ZERO;
    while bytes.len() < MOST && is_readable(terminal, wait)? {
        let mut piece = [0; 256];
        let length = rustix::io::read(terminal, &mut piece)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&piece[..length]);
        wait = if keys(&bytes).1.is_empty() { Duration::ZERO } else { REST };
    }
    let (mut keys, rest) = keys(&bytes);
    if !rest.is_empty() {
        keys.push(if rest == [ESCAPE] { Key::Escape } else { Key::Other });
    }
    Ok(keys)
}

/// Whether there is something to read within this time.
fn is_readable(terminal: &io::Stdin, time: Duration) -> io::Result<bool> {
    let time = time.try_into().expect("it is short");
    match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        // Interrupted by a signal, which the caller looks for.
        Err(Errno::INTR) => Ok(false),
        Err(why) => Err(why.into()),
    }
}

/// The keys in these bytes, and the start of an escape sequence at their end.
fn keys(mut bytes: &[u8]) -> (Vec<Key>, &[u8]) {
    let mut keys = Vec::new();
    while let Some((key, length)) = first_key(bytes) {
        keys.push(key);
        bytes = &bytes[length..];
    }
    (keys, bytes)
}

/// The first key and how many bytes it has; `None` if there is none, or not all of it.
fn first_key(bytes: &[u8]) -> Option<(Key, usize)> {
    let key = match *bytes.first()? {
        ESCAPE => return escaped(&bytes[1..]).map(|(key, length)| (key, length + 1)),
        CONTROL_C => Key::ControlC,
        byte @ b' '..=b'~' => Key::Character(byte.into()),
        _ => Key::Other,
    };
    Some((key, 1))
}

/// What follows an Escape: a sequence of ECMA-48 (CSI), one of a keypad in application mode (SS3), or
/// a key pressed with Alt.
fn escaped(bytes: &[u8]) -> Option<(Key, usize)> {
    match *bytes.first()? {
        // The Escape key, and then another sequence.
        ESCAPE => Some((Key::Escape, 0)),
        b'O' => Some((named(&[], *bytes.get(1)?), 2)),
        // The function keys of Linux's console.
        b'[' if bytes.get(1) == Some(&b'[') => bytes.get(2).map(|_| (Key::Other, 3)),
        b'[' => {
            let last = bytes.iter().skip(1).position(|byte| (0x40..=0x7e).contains(byte))? + 1;
            Some((named(&bytes[1..last], bytes[last]), last + 1))
        }
        _ => first_key(bytes),
    }
}

/// The key whose sequence has these parameters and this last byte. A second parameter tells which of
/// Shift, Alt and Control were held.
fn named(parameters: &[u8], last: u8) -> Key {
    let first = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
    match (first, last) {
        (_, b'A') => Key::Up,
        (_, b'B') => Key::Down,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        _ => Key::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        for (bytes, expected) in [
            (&b"q"[..], &[Key::Character('q')][..]),
            (b"dj ", &[Key::Character('d'), Key::Character('j'), Key::Character(' ')]),
            (b"\x03", &[Key::ControlC]),
            (b"\x1b[A\x1b[B", &[Key::Up, Key::Down]),
            (b"\x1bOA\x1bOB", &[Key::Up, Key::Down]),
            (b"\x1b[1;5A", &[Key::Up]),
            (b"\x1b[5~\x1b[6~q", &[Key::PageUp, Key::PageDown, Key::Character('q')]),
            // Delete, F1 on the console, and F4 there, which ends in a letter.
            (b"\x1b[3~\x1b[[A\x1b[[D", &[Key::Other, Key::Other, Key::Other]),
            (b"\x1bd", &[Key::Character('d')]),
            (b"\x1b\x1b[A", &[Key::Escape, Key::Up]),
            ("ü\r".as_bytes(), &[Key::Other, Key::Other, Key::Other]),
        ] {
            assert_eq!(keys(bytes), (expected.to_vec(), &[][..]), "{bytes:?}");
        }
    }

    #[test]
    fn the_start_of_a_sequence_waits_for_its_rest() {
        for rest in [&b"\x1b"[..], b"\x1b[", b"\x1b[1;5", b"\x1bO", b"\x1b[["] {
            let bytes = [b"j", rest].concat();
            assert_eq!(keys(&bytes), (vec![Key::Character('j')], rest), "{rest:?}");
        }
    }
}
