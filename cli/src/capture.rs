// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Captures: all events of a card in a file, one JSON object per line, after a line with a heading. `arctic decode` reads
//! them.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arctic_device_model::trace::{Filter, Recorder, Subscription};
use serde::{Deserialize, Serialize};

/// Version of the format.
pub const VERSION: u32 = 1;

/// First line of a capture, and the answer to a request for events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// [`VERSION`].
    pub arctic_capture: u32,
    /// Name of the card.
    pub card: String,
    /// The generation of an integrated GPU, whose engines have other commands than those of the Flex series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
}

impl Heading {
    /// The heading of a capture of the card with this name, of this generation if it is an integrated GPU.
    pub fn new(card: &str, generation: Option<&str>) -> Self {
        Heading { arctic_capture: VERSION, card: card.into(), generation: generation.map(Into::into) }
    }
}

/// Returns the events since the last call, one per line. Waits for up to `limit` if there is none.
pub fn event_lines(subscription: &Subscription, limit: Duration) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for event in subscription.take(limit) {
        serde_json::to_writer(&mut text, &event)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// A capture of all events of a card. Dropping it completes the file.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
}

impl Capture {
    /// Starts writing all events to `path`.
    pub fn start(path: &Path, heading: &Heading, recorder: &Arc<Recorder>) -> io::Result<Self> {
        let mut file = io::BufWriter::new(std::fs::File::create(path)?);
        writeln!(file, "{}", serde_json::to_string(heading)?)?;
        let subscription = recorder.subscribe(Filter::default());
        let stop = Arc::new(AtomicBool::new(false));
        let ending = stop.clone();
        let write = move || {
            loop {
                let last = ending.load(Ordering::Acquire);
                file.write_all(&event_lines(&subscription, Duration::from_millis(100))?)?;
                if last {
                    return file.flush();
                }
            }
        };
        let thread = thread::Builder::new().name("capture".into()).spawn(write)?;
        Ok(Capture { stop, thread: Some(thread), path: path.to_owned() })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            log::warn!("the capture {} is incomplete: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use arctic_device_model::host::{Function, ManualClock};
    use arctic_device_model::trace::EventKind;
    use vmm_sys_util::tempdir::TempDir;

    use super::*;

    #[test]
    fn a_capture_has_the_heading_and_every_event() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join("capture");
        let recorder = Recorder::new(Arc::new(ManualClock::default()));
        let capture = Capture::start(&path, &Heading::new("test", None), &recorder).unwrap();
        for vector in 0..1000 {
            recorder.record(Function::PF, || EventKind::Msi { vector });
        }
        drop(capture);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1001);
    }
}
