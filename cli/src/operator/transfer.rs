// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state on a connection: pieces, each behind a line with its length. An empty piece is the end of what a client sends; the
//! answer to the request is the end of what the server sends.

use std::borrow::Borrow;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Lines, TIME_LIMIT};
use crate::connections::send;

/// Bytes that are collected into one piece.
pub(super) const PIECE: usize = 256 << 10;
/// Largest piece that is accepted.
const MOST_PIECE: usize = 1 << 20;

/// The line before a piece, or the answer behind the last one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part<T> {
    /// So many bytes follow.
    Piece(usize),
    /// The request was carried out.
    Ok(T),
    /// Why it was not.
    Error(String),
}

/// Sends a piece. Fails if the other side has not taken it within `limit`.
pub(super) fn send_piece(socket: &UnixStream, bytes: &[u8], limit: Duration) -> io::Result<()> {
    let mut piece = serde_json::to_vec(&Part::<()>::Piece(bytes.len()))?;
    piece.push(b'\n');
    piece.extend_from_slice(bytes);
    send(socket, limit, &piece)
}

/// Receives the bytes of a piece of this length.
pub(super) fn receive_piece<S: Borrow<UnixStream>>(lines: &mut Lines<S>, bytes: usize) -> io::Result<Vec<u8>> {
    if bytes > MOST_PIECE {
        let what = format!("a piece of {bytes} bytes, more than {MOST_PIECE}");
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    lines.bytes(bytes, TIME_LIMIT)
}

/// Receives a piece from a client; an empty one is the last.
pub(super) fn receive_from_client<S: Borrow<UnixStream>>(lines: &mut Lines<S>) -> io::Result<Vec<u8>> {
    let line = lines.next(TIME_LIMIT)?.ok_or(ErrorKind::UnexpectedEof)?;
    match serde_json::from_slice(&line) {
        Ok(Part::Piece::<()>(bytes)) => receive_piece(lines, bytes),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "the line before a piece has no length")),
    }
}

/// Sends what is written to it, in pieces, by a function.
pub(super) struct SendPieces<F>(pub F);

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for SendPieces<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(piece) = bytes.chunks(MOST_PIECE).next() else { return Ok(0) };
        (self.0)(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what a function receives in pieces, of which an empty one is the last.
pub(super) struct ReceivePieces<F> {
    receive: F,
    piece: io::Cursor<Vec<u8>>,
    ended: bool,
}

impl<F: FnMut() -> io::Result<Vec<u8>>> ReceivePieces<F> {
    /// Reads pieces that `receive` receives.
    pub(super) fn new(receive: F) -> Self {
        ReceivePieces { receive, piece: io::Cursor::default(), ended: false }
    }
}

impl<F: FnMut() -> io::Result<Vec<u8>>> Read for ReceivePieces<F> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.piece.read(bytes)? {
                0 if !bytes.is_empty() && !self.ended => {
                    self.piece = io::Cursor::new((self.receive)()?);
                    self.ended = self.piece.get_ref().is_empty();
                }
                read => return Ok(read),
            }
        }
    }
}
