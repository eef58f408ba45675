// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The client's side of the operator socket.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use arctic_device_model::trace::Filter;
use serde::de::DeserializeOwned;

use super::transfer::{PIECE, Part, receive_piece, send_piece};
use super::{Accepted, Answer, CaptureStep, Done, LONGEST_ANSWER, Lines, Request, TIME_LIMIT, send_line};
use crate::capture::Heading;

/// Time for the answer to a request that stops the work of a function: longer than the time that this may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request could not be sent, or the card sent no valid answer.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The card refused the request.
    #[error("{0}")]
    Refused(String),
}

/// A connection to the operator socket of a card.
pub struct Connection(Lines<UnixStream>);

impl Connection {
    /// Connects to the card that listens at `path`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Connection(Lines::new(UnixStream::connect(path)?, LONGEST_ANSWER)))
    }

    /// Sends a request and returns the answer.
    pub fn request<A: DeserializeOwned>(&mut self, request: &Request) -> Result<A, Failure> {
        // A card that refuses the connection may have closed it already; its answer has the reason.
        let sent = send_line(&self.0.socket, request);
        let limit = if matches!(request, Request::Pause { .. }) { ANSWER_LIMIT } else { TIME_LIMIT };
        let line = match (self.0.next(limit), sent) {
            (Ok(Some(line)), _) => line,
            (Ok(None), Ok(())) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        match serde_json::from_slice(&line).map_err(io::Error::from)? {
            Answer::Ok(answer) => Ok(answer),
            Answer::Error(reason) => Err(Failure::Refused(reason)),
        }
    }

    /// Subscribes to the events that `filter` selects.
    pub fn trace(mut self, filter: Filter) -> Result<Events, Failure> {
        let heading = self.request(&Request::Trace { filter })?;
        self.0.skips_spaces = true;
        Ok(Events { lines: self.0, heading })
    }

    /// Requests the capture of a walker, by a [`Request::Capture`].
    pub fn capture(mut self, request: &Request) -> Result<WaitingCapture, Failure> {
        let _: Accepted = self.request(request)?;
        self.0.skips_spaces = true;
        Ok(WaitingCapture(self.0))
    }
}

/// A transfer of saved state failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The card did not carry out the request, or the connection failed.
    #[error(transparent)]
    Request(#[from] Failure),
    /// The file failed.
    #[error(transparent)]
    File(io::Error),
}

impl Connection {
    /// Saves a function: writes its state to `out` by pieces.
    pub fn save(mut self, function: u8, out: &mut dyn Write) -> Result<Done, TransferError> {
        let connection = |error: io::Error| TransferError::Request(error.into());
        send_line(&self.0.socket, &Request::Save { function }).map_err(connection)?;
        loop {
            // The function may have work that stops late.
            let line = self.0.next(ANSWER_LIMIT).and_then(|line| line.ok_or(ErrorKind::UnexpectedEof.into()));
            match serde_json::from_slice(&line.map_err(connection)?).map_err(|error| connection(error.into()))? {
                Part::Piece(bytes) => {
                    let piece = receive_piece(&mut self.0, bytes).map_err(connection)?;
                    out.write_all(&piece).map_err(TransferError::File)?;
                }
                Part::Ok(done) => return Ok(done),
                Part::Error(reason) => return Err(Failure::Refused(reason).into()),
            }
        }
    }

    /// Restores a function from the bytes of `from`.
    pub fn restore(mut self, function: u8, from: &mut dyn Read) -> Result<Done, TransferError> {
        let connection = |error: io::Error| TransferError::Request(error.into());
        send_line(&self.0.socket, &Request::Restore { function }).map_err(connection)?;
        let mut piece = vec![0; PIECE];
        loop {
            let read = from.read(&mut piece).map_err(TransferError::File)?;
            let (bytes, _) = piece.split_at_checked(read).ok_or_else(|| {
                TransferError::File(io::Error::other("a read returned more bytes than it was asked for"))
            })?;
            let sent = send_piece(&self.0.socket, bytes, ANSWER_LIMIT);
            // A card that refuses the state may have closed the connection already; its answer has the reason.
            if read == 0 || sent.is_err() {
                let line = match (self.0.next(ANSWER_LIMIT), sent) {
                    (Ok(Some(line)), _) => line,
                    (Ok(None), Ok(())) => return Err(connection(ErrorKind::UnexpectedEof.into())),
                    (_, Err(error)) | (Err(error), _) => return Err(connection(error)),
                };
                return match serde_json::from_slice(&line).map_err(|error| connection(error.into()))? {
                    Answer::Ok(done) => Ok(done),
                    Answer::Error(reason) => Err(Failure::Refused(reason).into()),
                };
            }
        }
    }
}

/// A capture of a walker that is requested.
pub struct WaitingCapture(Lines<UnixStream>);

impl WaitingCapture {
    /// Returns the next step of the capture, or `Ok(None)` if there was none for 100 ms; an end-of-file error if the card is no longer
    /// served.
    pub fn next(&mut self) -> io::Result<Option<CaptureStep>> {
        match self.0.next(Duration::from_millis(100)) {
            Ok(Some(line)) => Ok(Some(serde_json::from_slice(&line)?)),
            Ok(None) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the file that follows [`CaptureStep::Done`].
    pub fn file(&mut self, bytes: u64) -> io::Result<Vec<u8>> {
        let count = usize::try_from(bytes).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        self.0.bytes(count, TIME_LIMIT)
    }
}

/// A subscription to the events of a card.
pub struct Events {
    lines: Lines<UnixStream>,
    /// The heading that the card sent.
    pub heading: Heading,
}

impl Events {
    /// Returns the next event as a line of JSON, `Ok(None)` if there was none for 100 ms, or an end-of-file error if the
    /// card is no longer served.
    pub fn next(&mut self) -> io::Result<Option<String>> {
        match self.lines.next(Duration::from_millis(100)) {
            Ok(Some(line)) => Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            Ok(None) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(error),
        }
    }
}
