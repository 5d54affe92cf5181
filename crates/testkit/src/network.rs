//! Other machines for a test: network namespaces, and links between them that delay and lose
//! packets.
//!
//! A [`Host`] is a network namespace with its own versions of some files. It ends with the process
//! that made it, however that ends. A [`Wire`] is a pair of TUN interfaces and threads of this
//! process that carry packets between them (so the kernel needs no netem). Packets can't go
//! anywhere else. Needs root, and `unshare`, `nsenter` and `ip`.

#![expect(
    unsafe_code,
    reason = "no safe wrapper has TUNSETIFF; one ioctl on a structure of our own"
)]
#![expect(clippy::disallowed_methods, reason = "packets travel in real time")]

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sched::{CloneFlags, setns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A separate machine as far as the network is concerned.
pub struct Host {
    holder: Child,
    /// The namespace lives as long as this is open.
    _alive: ChildStdin,
}

impl Host {
    /// A host with loopback, on which these files have these contents.
    ///
    /// # Errors
    /// Why it can't be made here; the test should be skipped.
    pub fn new(files: &[(&str, &str)]) -> Result<Host, String> {
        let mut script = String::from("set -e\nmount -t tmpfs tmpfs /mnt\n");
        for (n, (path, text)) in files.iter().enumerate() {
            let _ = write!(
                script,
                "cat > /mnt/{n} <<'END'\n{text}\nEND\nmount --bind /mnt/{n} {path}\n"
            );
        }
        script += "ip link set lo up\necho ready\nexec cat";
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--propagation", "private", "sh", "-c", &script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = command.spawn().map_err(|error| format!("no unshare ({error})"))?;
        let alive = holder.stdin.take().ok_or("no pipe")?;
        let mut line = String::new();
        let stdout = holder.stdout.take().ok_or("no pipe")?;
        let _ = BufReader::new(stdout).read_line(&mut line);
        if line != "ready\n" {
            let mut why = String::new();
            let _ = holder.stderr.take().map(|mut stderr| stderr.read_to_string(&mut why));
            let _ = holder.wait();
            return Err(format!("no network namespace ({})", why.trim()));
        }
        Ok(Host { holder, _alive: alive })
    }

    /// A program on this host, in this folder.
    pub fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.holder.id().to_string(), "--net", "--mount"]);
        // Entering another mount namespace would leave it at the root.
        command.arg(format!("--wd={}", folder.display())).args(["--", program]);
        command
    }

    /// Runs `ip` with these arguments on this host.
    ///
    /// # Panics
    /// If it fails.
    pub fn ip(&self, words: &str) {
        let output = self
            .command("ip", Path::new("/"))
            .args(words.split(' '))
            .output()
            .expect("nsenter is installed");
        assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs `this` on a thread in this host's network namespace.
    ///
    /// # Panics
    /// If the host cannot be entered.
    pub fn enter<T: Send>(&self, this: impl FnOnce() -> T + Send) -> T {
        let network =
            File::open(format!("/proc/{}/ns/net", self.holder.id())).expect("the holder lives");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(network, CloneFlags::CLONE_NEWNET)
                    .expect("root may enter a network namespace");
                this()
            });
            thread.join().expect("`this` does not panic")
        })
    }

    /// Brings up a TUN interface with these addresses on this host. Returns our end of it.
    fn interface(&self, addresses: &[&str]) -> Tun {
        let tun = self.enter(|| Tun::new().expect("root may make a TUN interface"));
        for address in addresses {
            let nodad = if address.contains(':') { " nodad" } else { "" };
            self.ip(&format!("address add {address} dev {NAME}{nodad}"));
        }
        self.ip(&format!("link set {NAME} up"));
        tun
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The name of a wire's interface on its host.
const NAME: &str = "wire0";
/// The longest packet; the MTU is 1500 bytes.
const LONGEST: usize = 2048;
/// How soon a wire notices that it should end.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Our end of an interface.
struct Tun(File);

/// `struct ifreq` of the kernel (`include/uapi/linux/if.h`), as TUNSETIFF reads it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: libc::c_short,
    rest: [u8; 22],
}

impl Tun {
    fn new() -> io::Result<Tun> {
        let file = File::options().read(true).write(true).open("/dev/net/tun")?;
        let mut request = InterfaceRequest {
            name: [0; 16],
            flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
            rest: [0; 22],
        };
        request.name[..NAME.len()].copy_from_slice(NAME.as_bytes());
        // SAFETY: the request is as long as the kernel's structure and outlives the call.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        if done == 0 { Ok(Tun(file)) } else { Err(io::Error::last_os_error()) }
    }

    /// The next packet; `None` if none arrives soon.
    fn packet(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut wanted = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut wanted, Some(&POLL_INTERVAL)) {
            Ok(1..) => (&self.0).read(buffer).ok(),
            _ => None,
        }
    }
}

/// What a wire does to the packets of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Each packet is delayed by this.
    pub delay: Duration,
    /// Every `loses_every`-th packet is lost; 0 means none.
    pub loses_every: u64,
}

/// A link between two hosts. Dropping it removes it.
pub struct Wire {
    is_cut: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Wire {
    /// Links `a` and `b`, with these addresses (`10.77.0.1/24`). `there`: the direction from `a` to
    /// `b`.
    pub fn between(a: (&Host, &[&str]), b: (&Host, &[&str]), there: Way, back: Way) -> Wire {
        let left = Arc::new(a.0.interface(a.1));
        let right = Arc::new(b.0.interface(b.1));
        let is_cut = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let lost = Arc::new(AtomicU64::new(0));
        let mut threads = Vec::new();
        for (from, to, way) in [(&left, &right, there), (&right, &left, back)] {
            let (sender, arrivals) = channel();
            let from = Arc::clone(from);
            let to = Arc::clone(to);
            let is_cut = Arc::clone(&is_cut);
            let lost = Arc::clone(&lost);
            let over = Arc::clone(&over);
            threads.push(std::thread::spawn(move || {
                take_in(&from, way, &is_cut, &lost, &over, &sender);
            }));
            threads.push(std::thread::spawn(move || hand_on(&to, &arrivals)));
        }
        Wire { is_cut, lost, over, threads }
    }

    /// Cuts the link, or restores it.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Packets lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A packet and when it arrives.
type Arrival = (Instant, Vec<u8>);

/// Reads the packets of one direction until the wire is `over`. Those that are not lost go to `to`,
/// each with the time when it arrives at the other end.
fn take_in(
    from: &Tun,
    way: Way,
    is_cut: &AtomicBool,
    lost: &AtomicU64,
    over: &AtomicBool,
    to: &Sender<Arrival>,
) {
    let mut buffer = [0; LONGEST];
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let Some(bytes) = from.packet(&mut buffer) else { continue };
        number += 1;
        let is_lost =
            way.loses_every > 0 && number % way.loses_every == 0 || is_cut.load(Ordering::Relaxed);
        if is_lost {
            lost.fetch_add(1, Ordering::Relaxed);
        } else if to.send((Instant::now() + way.delay, buffer[..bytes].to_vec())).is_err() {
            return;
        }
    }
}

/// Delivers each packet when its time has come.
fn hand_on(to: &Tun, arrivals: &Receiver<Arrival>) {
    while let Ok((at, packet)) = arrivals.recv() {
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        // If the interface is down, the packet is lost.
        let _ = (&to.0).write_all(&packet);
    }
}

/// A dead end for all that would leave a host: packets are recorded instead of sent.
pub struct Capture {
    packets: Arc<Mutex<Vec<Packet>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The address.
    pub to: IpAddr,
    /// 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// The port.
    pub port: u16,
}

impl Capture {
    /// Captures everything that leaves `host`.
    ///
    /// # Panics
    /// If the host cannot be changed.
    pub fn of(host: &Host) -> Capture {
        let tun = host.interface(&["10.77.0.1/24", "fd77::1/64"]);
        host.ip(&format!("route add default dev {NAME}"));
        host.ip(&format!("-6 route add default dev {NAME}"));
        let packets = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let packets = Arc::clone(&packets);
            let over = Arc::clone(&over);
            move || {
                let mut buffer = [0; LONGEST];
                while !over.load(Ordering::Relaxed) {
                    let read =
                        tun.packet(&mut buffer).and_then(|bytes| Packet::of(&buffer[..bytes]));
                    packets.lock().expect("no thread panics while holding it").extend(read);
                }
            }
        });
        Capture { packets, over, thread: Some(thread) }
    }

    /// All TCP and UDP packets so far. (The kernel itself sends others when an interface comes up.)
    ///
    /// # Panics
    /// Never.
    pub fn packets(&self) -> Vec<Packet> {
        self.packets.lock().expect("no thread panics while holding it").clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Packet {
    /// Parses an IP packet without options; `None` unless it is TCP or UDP.
    fn of(bytes: &[u8]) -> Option<Packet> {
        let (to, protocol, head): (IpAddr, u8, usize) = match bytes.first()? >> 4 {
            4 => (<[u8; 4]>::try_from(bytes.get(16..20)?).ok()?.into(), *bytes.get(9)?, 20),
            6 => (<[u8; 16]>::try_from(bytes.get(24..40)?).ok()?.into(), *bytes.get(6)?, 40),
            _ => return None,
        };
        let port = u16::from_be_bytes(bytes.get(head + 2..head + 4)?.try_into().ok()?);
        matches!(protocol, 6 | 17).then_some(Packet { to, protocol, port })
    }
}
