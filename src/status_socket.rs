//! The socket on which a served card tells its status: one JSON document to whoever connects, then the end.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::vfio_user::bind;

/// Name of the socket in the card's folder.
pub const NAME: &str = "status.sock";
/// Longest that a client may take to read the document, and this program to wait for one.
const PATIENCE: Duration = Duration::from_secs(5);

/// The listening socket; dropping it ends its thread and removes it.
pub struct StatusSocket {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StatusSocket {
    /// Listens at `path`; `document` is asked anew for each client. A socket that a dead program left is replaced.
    pub fn start(path: &Path, document: impl Fn() -> String + Send + 'static) -> io::Result<Self> {
        let listener = bind(path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = stop.clone();
            thread::Builder::new().name("status".into()).spawn(move || tell(&listener, &stop, &document))?
        };
        Ok(StatusSocket { path: path.to_owned(), stop, thread: Some(thread) })
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // A last client wakes the thread.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn tell(listener: &UnixListener, stop: &AtomicBool, document: &dyn Fn() -> String) {
    loop {
        let client = listener.accept();
        if stop.load(Ordering::Acquire) {
            return;
        }
        let told = client.and_then(|(mut client, _)| {
            client.set_write_timeout(Some(PATIENCE))?;
            client.write_all(document().as_bytes())
        });
        if let Err(error) = told
            && error.kind() != ErrorKind::BrokenPipe
        {
            log::debug!("the status could not be told: {error}");
            // Out of descriptors: no reason to spin.
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Asks the card that listens at `path` for its document.
pub fn ask(path: &Path) -> io::Result<String> {
    let mut socket = UnixStream::connect(path)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut document = String::new();
    socket.read_to_string(&mut document)?;
    Ok(document)
}

#[cfg(test)]
mod tests {
    use vmm_sys_util::tempdir::TempDir;

    use super::*;

    #[test]
    fn each_client_is_told_and_nobody_holds_up_the_others() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join(NAME);
        let socket = StatusSocket::start(&path, || "{}\n".into()).unwrap();
        let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert_eq!(ask(&path).unwrap(), "{}\n");
        drop(silent);
        assert_eq!(StatusSocket::start(&path, String::new).err().unwrap().kind(), ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        assert_eq!(ask(&path).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
