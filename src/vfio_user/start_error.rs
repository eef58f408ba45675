// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors of the start of a server that do not concern the path of its socket.

use std::io;

/// A step of the start of a server failed, other than binding its socket: a thread or a descriptor cannot be created. It is
/// the inner error of an [`io::Error`] of the same kind.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct StartError {
    what: &'static str,
    source: io::Error,
}

impl StartError {
    /// Turns the error of a call that was to `what` ("start a thread") into one of this type.
    pub fn of<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> io::Error {
        move |error| {
            let source: io::Error = error.into();
            io::Error::new(source.kind(), StartError { what, source })
        }
    }

    /// The error of the call.
    pub fn cause(&self) -> &io::Error {
        &self.source
    }
}
