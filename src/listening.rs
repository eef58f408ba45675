//! A unix socket with a thread of its own behind it, in a served card's folder.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::vfio_user::socket::{self, SocketPath};

/// The listening socket; dropping it ends its thread and removes it.
pub struct Listening {
    path: SocketPath,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Listens at `path`, for this user alone, and lets a thread of this name `serve` the clients until the flag is set; a
    /// last client wakes it for that. A socket that a dead program left is replaced.
    pub fn start(
        path: &Path,
        name: &str,
        serve: impl FnOnce(&UnixListener, &Arc<AtomicBool>) + Send + 'static,
    ) -> io::Result<Self> {
        let (listener, bound) = socket::bind(path, None)?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = stop.clone();
            thread::Builder::new().name(name.into()).spawn(move || serve(&listener, &stop))?
        };
        Ok(Listening { path: bound, stop, thread: Some(thread) })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let woken = UnixStream::connect(self.path.as_path()).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

/// Whether the client, which has nothing more to say, is still there; the socket does not block.
pub fn connected(mut client: &UnixStream) -> bool {
    match client.read(&mut [0; 64]) {
        Ok(bytes) => bytes != 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
