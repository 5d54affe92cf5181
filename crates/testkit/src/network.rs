//! Other machines for a test: network namespaces, and wires between them that delay and lose
//! packets.
//!
//! A [`Host`] is a network namespace with files of its own, which ends with the process that made
//! it, however that ends. A [`Wire`] is two TUN interfaces and threads of this process that carry
//! packets from one to the other (the kernels that tests run on need no netem). Packets go nowhere
//! else: a namespace has no other way out. Needs root, and `unshare`, `nsenter` and `ip`.

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

/// A machine of its own as far as the network goes.
pub struct Host {
    holder: Child,
    /// As long as it is open the namespace lives.
    _alive: ChildStdin,
}

impl Host {
    /// A host whose loopback is up, and which sees these texts in the place of these files.
    ///
    /// # Errors
    /// Why there can be none here; the test is to be skipped.
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
        let mut said = String::new();
        let stdout = holder.stdout.take().ok_or("no pipe")?;
        let _ = BufReader::new(stdout).read_line(&mut said);
        if said != "ready\n" {
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
        // Another mount namespace would leave it at the root.
        command.arg(format!("--wd={}", folder.display())).args(["--", program]);
        command
    }

    /// Runs `ip` with these words on this host.
    ///
    /// # Panics
    /// Where it fails.
    pub fn ip(&self, words: &str) {
        let output = self
            .command("ip", Path::new("/"))
            .args(words.split(' '))
            .output()
            .expect("there is nsenter");
        assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Does `this` on a thread whose sockets are this host's.
    ///
    /// # Panics
    /// Where the host cannot be entered.
    pub fn enter<T: Send>(&self, this: impl FnOnce() -> T + Send) -> T {
        let network =
            File::open(format!("/proc/{}/ns/net", self.holder.id())).expect("the holder lives");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                setns(network, CloneFlags::CLONE_NEWNET)
                    .expect("root may enter a network namespace");
                this()
            });
            thread.join().expect("what is done on a host does not panic")
        })
    }

    /// A TUN interface of this host that is up and has these addresses: its packets, as whoever is
    /// behind it sees them.
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

/// What each wire's interface is called on its host.
const NAME: &str = "wire0";
/// No packet is longer: an interface takes 1500 bytes.
const LONGEST: usize = 2048;
/// How soon a wire notices that it is to end.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Our end of an interface.
struct Tun(File);

/// `struct ifreq` of the kernel (`include/uapi/linux/if.h`), as far as TUNSETIFF reads it.
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
        // SAFETY: the request is as long as the kernel's own structure, and outlives the call.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
        if done == 0 { Ok(Tun(file)) } else { Err(io::Error::last_os_error()) }
    }

    /// The next packet; `None` where none comes soon.
    fn packet(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut wanted = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut wanted, Some(&GLANCE)) {
            Ok(1..) => (&self.0).read(buffer).ok(),
            _ => None,
        }
    }
}

/// What a wire does to the packets of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way {
    /// Each packet arrives so much later.
    pub delay: Duration,
    /// Every so many-th packet is lost; 0: none.
    pub loses_every: u64,
}

/// A wire between two hosts. Dropping it takes it away.
pub struct Wire {
    is_cut: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Wire {
    /// Joins `a` and `b`, with these addresses (`10.77.0.1/24`); `there` is the way from `a` to
    /// `b`.
    pub fn between(a: (&Host, &[&str]), b: (&Host, &[&str]), there: Way, back: Way) -> Wire {
        let (left, right) = (Arc::new(a.0.interface(a.1)), Arc::new(b.0.interface(b.1)));
        let (is_cut, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let lost = Arc::new(AtomicU64::new(0));
        let mut threads = Vec::new();
        for (from, to, way) in [(&left, &right, there), (&right, &left, back)] {
            let (sender, arrivals) = channel();
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            let (cut, ends, count) = (Arc::clone(&is_cut), Arc::clone(&over), Arc::clone(&lost));
            threads.push(std::thread::spawn(move || {
                take_in(&from, way, (&cut, &count, &ends), &sender);
            }));
            threads.push(std::thread::spawn(move || hand_on(&to, &arrivals)));
        }
        Wire { is_cut, lost, over, threads }
    }

    /// Loses all packets from now on, or none any more.
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

fn take_in(
    from: &Tun,
    way: Way,
    (cut, lost, over): (&AtomicBool, &AtomicU64, &AtomicBool),
    to: &Sender<Arrival>,
) {
    let mut buffer = [0; LONGEST];
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let Some(bytes) = from.packet(&mut buffer) else { continue };
        number += 1;
        let is_lost =
            way.loses_every > 0 && number % way.loses_every == 0 || cut.load(Ordering::Relaxed);
        if is_lost {
            lost.fetch_add(1, Ordering::Relaxed);
        } else if to.send((Instant::now() + way.delay, buffer[..bytes].to_vec())).is_err() {
            return;
        }
    }
}

fn hand_on(to: &Tun, arrivals: &Receiver<Arrival>) {
    while let Ok((at, packet)) = arrivals.recv() {
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        // An interface that is down takes nothing: the packet is lost.
        let _ = (&to.0).write_all(&packet);
    }
}

/// A way out of a host that leads nowhere: whatever would leave is written down instead.
pub struct Capture {
    packets: Arc<Mutex<Vec<Packet>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Where a packet was to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// To whom.
    pub to: IpAddr,
    /// 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// At which port.
    pub port: u16,
}

impl Capture {
    /// Leads all that leaves `host` here.
    ///
    /// # Panics
    /// Where the host cannot be changed.
    pub fn of(host: &Host) -> Capture {
        let tun = host.interface(&["10.77.0.1/24", "fd77::1/64"]);
        host.ip(&format!("route add default dev {NAME}"));
        host.ip(&format!("-6 route add default dev {NAME}"));
        let (packets, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (packets, over) = (Arc::clone(&packets), Arc::clone(&over));
            move || {
                let mut buffer = [0; LONGEST];
                while !over.load(Ordering::Relaxed) {
                    let read =
                        tun.packet(&mut buffer).and_then(|bytes| Packet::of(&buffer[..bytes]));
                    packets.lock().expect("nobody panics with it").extend(read);
                }
            }
        });
        Capture { packets, over, thread: Some(thread) }
    }

    /// All TCP and UDP so far. (The kernel itself sends others where an interface comes up.)
    ///
    /// # Panics
    /// Never.
    pub fn packets(&self) -> Vec<Packet> {
        self.packets.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Packet {
    /// Of IP and without options; `None` of anything but TCP and UDP.
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
