// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A UNIX socket with a dedicated server thread, in the directory of a served card.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use arctic_gpu::vfio_user::socket::{self, SocketPath};

/// The listening socket; dropping it stops its thread and removes the socket.
pub struct Listening {
    path: SocketPath,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Listens at `path`, accessible to this user only, and runs `serve` on a thread with this name. `serve` must
    /// return once the flag is set; dropping the value makes one last connection to wake it. A stale socket left by a
    /// terminated program is replaced.
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

/// Returns whether the client, which is not expected to send anything more, is still connected. The socket must be
/// non-blocking.
pub fn connected(mut client: &UnixStream) -> bool {
    match client.read(&mut [0; 64]) {
        Ok(bytes) => bytes != 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
