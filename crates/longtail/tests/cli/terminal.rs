//! What a person sees on a terminal while a long command runs, and after Ctrl-C. The terminal is a
//! pseudo-terminal; a model works out what its screen shows.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use testkit::clock::eventually;

use crate::lab::{Ended, Lab, PATIENCE, Running};

/// A run of longtail on a terminal.
struct OnTerminal {
    running: Running,
    keyboard: File,
    written: Arc<Mutex<Vec<u8>>>,
    columns: usize,
}

impl OnTerminal {
    /// Starts it; `kind` is the value of `TERM`.
    fn start(lab: &Lab, words: &str, kind: &str, columns: usize) -> OnTerminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns as u16, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let terminal = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
        let mut command = lab.program(crate::lab::LONGTAIL);
        command.args(crate::lab::split(words)).env("TERM", kind).env_remove("NO_COLOR");
        command.stdout(Stdio::from(terminal.try_clone().unwrap())).stderr(Stdio::from(terminal));
        let running = Running::start_as_is(&mut command);
        // Closes our copies of the terminal: reading from it ends when longtail has closed its own.
        drop(command);
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut screen = File::from(master);
        let keyboard = screen.try_clone().unwrap();
        let all = Arc::clone(&written);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut bytes) {
                all.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        OnTerminal { running, keyboard, written, columns }
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Waits until this was written.
    fn until(&self, part: &str) {
        eventually(PATIENCE, || self.written(), || self.written().contains(part).then_some(()));
    }

    /// What a key does on a terminal: `^C` is shown, and the program is interrupted.
    fn press_ctrl_c(&mut self) {
        self.keyboard.write_all(b"\x03").unwrap();
        self.until("^C");
        self.running.send(Signal::INT);
    }

    /// Waits until the run has ended, and returns what the terminal shows then.
    fn end(self) -> (Ended, Screen) {
        let OnTerminal { running, written, columns, .. } = self;
        let ended = running.end();
        let shows = || {
            let text = String::from_utf8_lossy(&written.lock().unwrap()).into_owned();
            let screen = Screen::after(&text, columns);
            // Its last line comes after the answer.
            let is_whole = screen.lines.iter().any(|line| line.contains("saved as"));
            is_whole.then_some(screen)
        };
        let screen = eventually(PATIENCE, || "no answer".to_owned(), shows);
        (ended, screen)
    }
}

/// What a terminal shows, with all that has scrolled away.
struct Screen {
    lines: Vec<String>,
    /// Lines that were too wide, so that the terminal broke them.
    broken: Vec<String>,
}

impl Screen {
    fn after(written: &str, columns: usize) -> Screen {
        let mut lines: Vec<Vec<char>> = vec![Vec::new()];
        let mut broken = Vec::new();
        let mut row = 0;
        let mut column = 0;
        let mut rest = written.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\r' => column = 0,
                '\n' => {
                    row += 1;
                    lines.resize(lines.len().max(row + 1), Vec::new());
                }
                '\x1b' => {
                    rest.next_if_eq(&'[');
                    let mut number = String::new();
                    while let Some(c) = rest.next_if(|c| !c.is_ascii_alphabetic()) {
                        number.push(c);
                    }
                    match rest.next() {
                        Some('A') => row -= number.parse().unwrap_or(1),
                        Some('G') => column = number.parse::<usize>().unwrap() - 1,
                        Some('K') => lines[row].truncate(column),
                        // Colours.
                        _ => {}
                    }
                }
                c => {
                    if column == columns {
                        broken.push(lines[row].iter().collect());
                        row += 1;
                        column = 0;
                        lines.resize(lines.len().max(row + 1), Vec::new());
                    }
                    let length = lines[row].len().max(column + 1);
                    lines[row].resize(length, ' ');
                    lines[row][column] = c;
                    column += 1;
                }
            }
        }
        Screen { lines: lines.into_iter().map(String::from_iter).collect(), broken }
    }
}

const SWEEP: &str = "sweep --server builtin -t2:2 -d0.02 --for 1s --multiples 1,2,3,4";

/// A sweep on such a terminal that Ctrl-C ends in its third run: what its screen shows.
fn sweep_after_ctrl_c(kind: &str, columns: usize) -> Screen {
    let lab = Lab::new();
    let mut sweep = OnTerminal::start(&lab, SWEEP, kind, columns);
    sweep.until("run 3/4");
    sweep.press_ctrl_c();
    let (ended, screen) = sweep.end();
    assert_eq!(ended.code(), 130);
    screen
}

#[test]
fn after_ctrl_c_no_scrap_stays_and_no_line_was_too_wide() {
    let screen = sweep_after_ctrl_c("xterm", 60);
    let text = screen.lines.join("\n");
    for scrap in ["run 3/4", "⠋", "⠙", "⠹", "^C"] {
        assert!(!text.contains(scrap), "{scrap} of what was drawn is left:\n{text}");
    }
    // The answer's table is there once, and nothing is left of the one that grew during the run.
    assert_eq!(text.matches("req/s ").count(), 1, "{text}");
    let is_breakable = |line: &&String| line.trim_start().contains(' ');
    let torn: Vec<&String> = screen.broken.iter().filter(is_breakable).collect();
    assert!(torn.is_empty(), "{torn:?}\n{text}");
}

/// Where nothing is drawn, no room is left for the key.
#[test]
fn what_follows_ctrl_c_begins_on_a_line_of_its_own() {
    let screen = sweep_after_ctrl_c("dumb", 80);
    let keys: Vec<&String> = screen.lines.iter().filter(|line| line.contains("^C")).collect();
    assert_eq!(keys, ["^C"], "{}", screen.lines.join("\n"));
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    let lab = Lab::new();
    let sweep = OnTerminal::start(&lab, &SWEEP.replace("1,2,3,4", "1,2"), "dumb", 80);
    sweep.until("run 2/2, ");
    let (ended, screen) = sweep.end();
    assert_eq!(ended.code(), 0);
    let text = screen.lines.join("\n");
    assert!(text.contains("longtail: run 1/2, 2 connections, "), "{text}");
}
