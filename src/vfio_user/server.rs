// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The vfio-user servers: each function has a listening socket and a thread that serves one client at a time until the
//! server is stopped.

use std::io;
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arctic_device_model::sync::IgnorePoison;
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::poll::{EpollContext, EpollEvents};

use super::channel::{Channel, Sender, Wake};
use super::connection::Closed;
use super::memory::GuestMemory;
use super::session::Session;
use super::socket::{self, SocketPath};
use super::start_error::StartError;
use super::{Device, Vectors};

/// A function of the card, with the guest memory and interrupt vectors of its client.
#[derive(Clone)]
pub struct Function {
    /// The function.
    pub device: Arc<dyn Device>,
    /// Guest memory, as mapped by the client.
    pub memory: Arc<GuestMemory>,
    /// Interrupts, as armed by the client.
    pub vectors: Arc<Vectors>,
}

/// Settings of a function's server.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum time for which the thread polls for the next message before it sleeps; zero disables polling.
    pub spin: Duration,
    /// GID of a group that may connect to the socket, in addition to its owner; `None` for the owner only.
    pub group: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { spin: Duration::from_micros(50), group: None }
    }
}

/// The socket and the thread of a function. Dropping this value stops the thread and removes the socket.
pub struct Server {
    path: SocketPath,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

struct Stop {
    flag: AtomicBool,
    event: EventFd,
    /// The connection of the current client. It is shut down when the server is stopped, because the thread may be
    /// blocked in a send to a client that does not read its socket.
    client: Mutex<Option<Sender>>,
}

impl Stop {
    fn client(&self) -> MutexGuard<'_, Option<Sender>> {
        self.client.lock().ignore_poison()
    }

    /// Signals the thread to stop, without waiting for it.
    fn request(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // An error means that the counter is at its maximum, which wakes the thread as well.
        let _ = self.event.write(1);
        if let Some(client) = &*self.client() {
            client.hang_up();
        }
    }
}

impl Server {
    /// Binds a socket to `path` and serves `function` on it. The socket has mode 0600, or mode 0660 and the group in
    /// `settings`. A stale socket is replaced.
    ///
    /// Errors: `AddrInUse` if another server listens on the path, `AlreadyExists` if the path exists and is not a
    /// socket. The inner error is a [`StartError`] if the path is not the reason.
    pub fn start(path: &Path, function: Function, settings: Settings) -> io::Result<Server> {
        let (listener, bound) = socket::bind(path, settings.group)?;
        listener.set_nonblocking(true)?;
        let event = EventFd::new(EFD_NONBLOCK).map_err(StartError::of("create an eventfd"))?;
        let stop = Arc::new(Stop { flag: AtomicBool::new(false), event, client: Mutex::default() });
        let epoll = EpollContext::new().map_err(StartError::of("create an epoll instance"))?;
        epoll.add(&stop.event, Wake::Stop).map_err(StartError::of("wait for events"))?;
        epoll.add(&listener, Wake::Listener).map_err(StartError::of("wait for clients"))?;
        let name = path.file_stem().map_or("function".into(), |name| name.to_string_lossy().into_owned());
        let thread = {
            let stop = stop.clone();
            let serve = move || serve(&listener, &epoll, &stop, &function, settings);
            thread::Builder::new().name(name).spawn(serve).map_err(StartError::of("start a thread"))?
        };
        Ok(Server { path: bound, stop, thread: Some(thread) })
    }

    /// Signals the thread to stop and disconnects its client, without waiting for the thread. To stop several servers
    /// in parallel, call this for all of them before dropping the first.
    pub fn stop(&self) {
        self.stop.request();
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        self.path.as_path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &UnixListener, epoll: &EpollContext<Wake>, stop: &Stop, function: &Function, settings: Settings) {
    let name = function.device.pci().name();
    let refuse = || {
        // A function has one client. A second one is disconnected immediately; otherwise it would wait in the backlog.
        if listener.accept().is_ok() {
            log::warn!("{name}: rejected a second client");
        }
    };
    let events = EpollEvents::new();
    while !stop.flag.load(Ordering::Relaxed) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Err(error) = epoll.wait(&events) {
                    log::error!("{name}: cannot wait for clients: {error}");
                    return;
                }
                continue;
            }
            Err(error) => {
                // No free file descriptors, or the client has disconnected already. The delay avoids a busy loop.
                log::warn!("{name}: cannot accept a client: {error}");
                thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        let channel = match Channel::new(stream, epoll, &refuse, settings.spin) {
            Ok(channel) => channel,
            Err(error) => {
                log::warn!("{name}: cannot serve a client: {error}");
                continue;
            }
        };
        if let Err(reason) = function.device.admit() {
            log::warn!("{name}: rejected a client: {reason}");
            continue;
        }
        log::info!("{name}: client connected");
        *stop.client() = Some(channel.sender());
        let session = || Session::new(channel, &*function.device, &function.memory, &function.vectors).run(&stop.flag);
        // A panic is a bug in this program. It ends only this session, with the same cleanup as after a disconnection;
        // other functions are not affected.
        let ended = catch_unwind(AssertUnwindSafe(session));
        *stop.client() = None;
        let Ok(closed) = ended else {
            log::error!("{name}: connection closed: internal error: panic while handling a request");
            continue;
        };
        match closed {
            Closed::ByClient => log::info!("{name}: client disconnected"),
            Closed::Stopped => log::info!("{name}: server stopped"),
            Closed::GaveWay => log::warn!("{name}: disconnected a silent client: another one connects"),
            Closed::Broken(error) => log::warn!("{name}: connection closed: {error}"),
        }
    }
}
