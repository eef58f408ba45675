// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The status socket of a served card. Each client receives one JSON document, after which the connection is shut down.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::unix_listener::{Listening, connected};

/// Name of the socket in the card's directory.
pub const NAME: &str = "status.sock";
/// Time limit for a client to read the document, and for this program to read one.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of connections kept open after the document was sent. They are kept open because a client that sends
/// data meanwhile would otherwise get EPIPE.
const MOST_OPEN: usize = 32;

/// Listens at `path`; `document` is called for each client.
pub fn start(path: &Path, document: impl Fn() -> String + Send + 'static) -> io::Result<Listening> {
    Listening::start(path, "status", move |listener, stop| tell(listener, stop, &document))
}

fn tell(listener: &UnixListener, stop: &AtomicBool, document: &dyn Fn() -> String) {
    let mut open = VecDeque::new();
    loop {
        let client = listener.accept();
        if stop.load(Ordering::Acquire) {
            return;
        }
        open.retain(connected);
        open.truncate(MOST_OPEN - 1);
        let told = client.and_then(|(mut client, _)| {
            client.set_write_timeout(Some(PATIENCE))?;
            client.write_all(document().as_bytes())?;
            client.shutdown(Shutdown::Write)?;
            client.set_nonblocking(true)?;
            open.push_front(client);
            Ok(())
        });
        if let Err(error) = told
            && error.kind() != ErrorKind::BrokenPipe
        {
            log::debug!("cannot send the status to a client: {error}");
            // Out of file descriptors: do not spin.
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Requests the document of the card that listens at `path`.
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
    fn every_client_gets_the_document_and_none_blocks_others() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join(NAME);
        let socket = start(&path, || "{}\n".into()).unwrap();
        let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert_eq!(ask(&path).unwrap(), "{}\n");
        for mut client in &silent {
            // Data sent by a client is ignored and causes no error.
            client.write_all(b"?").unwrap();
        }
        drop(silent);
        assert_eq!(start(&path, String::new).err().unwrap().kind(), ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        assert_eq!(ask(&path).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
