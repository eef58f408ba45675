// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The connections that receive events. Their number is limited; at the maximum, one whose client does not read gives way
//! to the next.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;
use arctic_gpu::vfio_user::socket;

use crate::connections::{Client, Stream};

/// Maximum number of connections that receive events. The others remain for requests.
pub(super) const MOST_SUBSCRIBERS: usize = 8;
/// Time for which a subscriber may leave events unread before another client may have its place.
const UNREAD: Duration = Duration::from_secs(1);
/// Time after which it is known whether a subscriber has disconnected.
const ENDED: Duration = Duration::from_millis(300);
/// Maximum time for which a client waits for a place.
const PLACE_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which that is checked.
const RECHECK: Duration = Duration::from_millis(5);

/// The subscribers of a server.
#[derive(Default)]
pub(super) struct Subscribers(Mutex<Vec<Arc<Entry>>>);

struct Entry {
    client: Arc<Client<UnixStream>>,
    reading: Mutex<Reading>,
}

/// How far the client has read.
struct Reading {
    /// Memory of the events that the client had not read at the last observation, in bytes.
    unread: usize,
    /// Since when it has read nothing although there was something to read.
    idle_since: Option<Instant>,
}

impl Entry {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().ignore_poison()
    }

    /// Observes whether the client has read since the last observation. Returns since when it has not.
    fn observe(&self) -> Option<Instant> {
        let unread = socket::unread(self.client.stream()).unwrap_or(0);
        let mut reading = self.reading();
        reading.idle_since = match (unread, reading.idle_since) {
            (0, _) => None,
            (now, Some(_)) if now < reading.unread => Some(Instant::now()),
            (_, since) => since.or_else(|| Some(Instant::now())),
        };
        reading.unread = unread;
        reading.idle_since
    }
}

impl Subscribers {
    fn entries(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.0.lock().ignore_poison()
    }

    /// Counts `client` as a subscriber. `None` if there are [`MOST_SUBSCRIBERS`] that read what they are sent. The
    /// connection of one that does not is closed; this waits until it is clear whether there is one.
    pub(super) fn add(&self, client: &Arc<Client<UnixStream>>, stop: &AtomicBool) -> Option<Subscriber<'_>> {
        let entry =
            Arc::new(Entry { client: client.clone(), reading: Mutex::new(Reading { unread: 0, idle_since: None }) });
        let started = Instant::now();
        while started.elapsed() < PLACE_TIMEOUT && !stop.load(Ordering::Acquire) {
            {
                let mut entries = self.entries();
                if entries.len() < MOST_SUBSCRIBERS {
                    entries.push(entry.clone());
                    return Some(Subscriber { all: self, entry });
                }
                let silent = entries.iter().filter_map(|entry| Some((entry.observe()?, entry)));
                let silent = silent.min_by_key(|(since, _)| *since);
                if silent.is_none() && started.elapsed() >= ENDED {
                    return None;
                }
                if let Some((_, silent)) = silent.filter(|(since, _)| since.elapsed() >= UNREAD) {
                    log::warn!("a client that does not read the card's events was disconnected: another one connects");
                    // Its thread ends and removes the entry.
                    silent.client.stream().close();
                }
            }
            thread::sleep(RECHECK);
        }
        None
    }
}

/// A counted subscriber, until it is dropped.
pub(super) struct Subscriber<'s> {
    all: &'s Subscribers,
    entry: Arc<Entry>,
}

impl Subscriber<'_> {
    /// The connection.
    pub(super) fn client(&self) -> &Client<UnixStream> {
        &self.entry.client
    }

    /// Observes whether the client reads.
    pub(super) fn observe(&self) {
        self.entry.observe();
    }

    /// Notes that more was sent since the last observation.
    pub(super) fn observe_after_send(&self) {
        let unread = socket::unread(self.client().stream()).unwrap_or(0);
        let mut reading = self.entry.reading();
        reading.unread = unread;
        if unread != 0 {
            reading.idle_since.get_or_insert_with(Instant::now);
        }
    }
}

impl Drop for Subscriber<'_> {
    fn drop(&mut self) {
        self.all.entries().retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}
