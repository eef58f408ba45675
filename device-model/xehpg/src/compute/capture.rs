// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Captures of walkers: a request, and the walker that is captured for it.
//!
//! A card has at most one request. Without one a walker that begins costs one test of a flag. The walker that is captured is executed
//! by its engine alone, in parts of a step that are shorter, and each page that it accesses is copied before its first access; when
//! all groups have ended, before the post-sync operation, the pages are copied again. What is left of the request, and the memory of a
//! capture, belong to the thread that waits for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arctic_base::blitter::tiling::{self, Tiling};
use arctic_eu::capture::{
    ADDRESS, Capture, CapturedEnd, CapturedImage, CapturedSurface, Content, EndPlace, EndReason, Origin, PAGE_BYTES,
    Page, PageName, Planes, SamplerName, SurfaceName, Tile,
};
use arctic_eu::exec::FaultKind;
use arctic_eu::exec::memory::Sampler;

use super::memory::{AccessRecord, CopiedPage, KernelMemory};
use super::report::{KernelPlace, RunStop, WalkerCounts};
use super::state::ComputeState;
use super::surface::{StoredImage, SurfaceState};
use super::texels::{self, Texels};
use super::walker::Walker;
use crate::gpu::{CaptureProgress, WalkerCapture, WalkerRequest};
use crate::host::Function;

/// The part of a step of a walker that is captured: each access looks its page up.
const SLOWER: u64 = 16;
/// Pages that are copied, compared or freed in a part of a step, about 0.1 ms.
const PAGES_AT_ONCE: usize = 64;

/// Walkers that have begun and are kept for the thread that waits; older ones are not reported.
const MOST_WALKERS: usize = 4096;

/// Why a capture was given up.
mod reason {
    pub const REMOTE: &str =
        "the kernel accesses memory of the guest that the VMM does not map into the card's process";
    pub const BOTH: &str = "the kernel accesses a page with and without compression";
    pub const LEFT: &str =
        "the context of the walker left its engine before all groups had ended, as another one had its turn";
    pub const ENDED: &str = "the context of the walker was reset or removed before all groups had ended";
}

/// What a request and its capture have in common.
struct Shared {
    request: WalkerRequest,
    /// The request has ended.
    cancelled: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// How far a request is.
#[derive(Default)]
struct State {
    begun: u64,
    kernel: u64,
    /// Number and kernel of walkers that have begun, and that [`WaitingCapture::wait`] has not returned.
    walkers: VecDeque<(u64, u64)>,
    phase: Phase,
    /// It has changed since the last call of [`WaitingCapture::wait`].
    changed: bool,
}

#[derive(Default)]
enum Phase {
    #[default]
    Waiting,
    Capturing,
    Done(Box<Capture>),
    Failed(String),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn set(&self, phase: Phase) {
        let mut state = self.state();
        (state.phase, state.changed) = (phase, true);
        drop(state);
        self.changed.notify_all();
    }
}

/// The request of a card, if it has one. Its lock is held for no other one but that of the request's state.
#[derive(Default)]
pub struct Captures {
    /// A request waits for its walker.
    armed: AtomicBool,
    current: Mutex<Option<Arc<Shared>>>,
}

impl Captures {
    fn current(&self) -> MutexGuard<'_, Option<Arc<Shared>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request, which ends when the result is dropped.
    ///
    /// # Errors
    /// If there is another one.
    pub fn request(self: &Arc<Self>, request: WalkerRequest) -> Result<WaitingCapture, String> {
        let mut current = self.current();
        if current.is_some() {
            return Err("another client captures a walker of this card".into());
        }
        let shared = Arc::new(Shared {
            request,
            cancelled: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        *current = Some(shared.clone());
        self.armed.store(true, Ordering::Release);
        Ok(WaitingCapture { captures: self.clone(), shared })
    }

    /// Returns whether a request waits for its walker.
    #[inline]
    pub fn armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    /// Counts a walker that begins. Returns the capture that it is to be executed with, if it is the one of the request.
    #[cold]
    pub fn begin(
        &self,
        function: Function,
        engine: &str,
        walker: &Walker,
        state: &ComputeState,
    ) -> Option<Box<CaptureJob>> {
        let current = self.current();
        let shared = current.as_ref()?;
        if !self.armed() || !shared.request.filter.selects(function.number(), Some(engine)) {
            return None;
        }
        let mut progress = shared.state();
        progress.begun = progress.begun.saturating_add(1);
        (progress.kernel, progress.changed) = (walker.kernel_address(), true);
        let is_it = progress.begun >= shared.request.number;
        if is_it {
            progress.phase = Phase::Capturing;
            self.armed.store(false, Ordering::Relaxed);
        }
        let number = progress.begun;
        if !is_it {
            if progress.walkers.len() >= MOST_WALKERS {
                progress.walkers.pop_front();
            }
            progress.walkers.push_back((number, walker.kernel_address()));
        }
        drop(progress);
        shared.changed.notify_all();
        let origin = Origin { function: function.number(), engine: engine.to_owned(), number };
        is_it.then(|| Box::new(CaptureJob::new(shared.clone(), origin, walker, state)))
    }
}

/// A request, for the thread that waits for its capture.
pub struct WaitingCapture {
    captures: Arc<Captures>,
    shared: Arc<Shared>,
}

impl Drop for WaitingCapture {
    fn drop(&mut self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        let mut current = self.captures.current();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &self.shared)) {
            *current = None;
            self.captures.armed.store(false, Ordering::Relaxed);
        }
    }
}

impl WalkerCapture for WaitingCapture {
    fn wait(&mut self, limit: Duration) -> CaptureProgress {
        let state = self.shared.state();
        let is_same = |state: &mut State| !state.changed && state.walkers.is_empty();
        let waited = self.shared.changed.wait_timeout_while(state, limit, is_same);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some((begun, kernel)) = state.walkers.pop_front() {
            return CaptureProgress::Waiting { begun, kernel };
        }
        state.changed = false;
        let (begun, kernel) = (state.begun, state.kernel);
        match std::mem::take(&mut state.phase) {
            Phase::Waiting => CaptureProgress::Waiting { begun, kernel },
            Phase::Capturing => {
                state.phase = Phase::Capturing;
                CaptureProgress::Capturing { kernel }
            }
            Phase::Done(capture) => {
                drop(state);
                CaptureProgress::Done(capture.to_bytes())
            }
            Phase::Failed(reason) => {
                state.phase = Phase::Failed(reason.clone());
                CaptureProgress::Failed(reason)
            }
        }
    }
}

/// The capture of a walker that is executed. A capture that is dropped has failed.
pub struct CaptureJob {
    shared: Arc<Shared>,
    capture: Capture,
    surfaces: BTreeMap<SurfaceName, CapturedSurface>,
    samplers: BTreeMap<SamplerName, Option<Sampler>>,
    /// The last page that was accessed.
    last: Option<PageName>,
    /// Why it is given up.
    failed: Option<String>,
    /// Why the walker has stopped, and the last page that was copied since.
    held: Option<(RunStop, Option<PageName>)>,
    /// The request has its result.
    is_reported: bool,
}

impl Drop for CaptureJob {
    fn drop(&mut self) {
        self.report(reason::ENDED);
    }
}

impl CaptureJob {
    fn new(shared: Arc<Shared>, origin: Origin, walker: &Walker, state: &ComputeState) -> CaptureJob {
        let capture = Capture {
            origin,
            commands: state.commands().to_vec(),
            walker: walker.words().to_vec(),
            launch: walker.captured(),
            surfaces: Vec::new(),
            samplers: Vec::new(),
            pages: BTreeMap::new(),
            end: CapturedEnd { groups: 0, instructions: 0, reason: EndReason::Complete },
        };
        CaptureJob {
            shared,
            capture,
            surfaces: BTreeMap::new(),
            samplers: BTreeMap::new(),
            last: None,
            failed: None,
            held: None,
            is_reported: false,
        }
    }

    /// Reports to the request that there is no capture, unless it has a result.
    fn report(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.is_reported, true) {
            self.shared.set(Phase::Failed(reason.to_owned()));
        }
    }

    /// The context of the walker leaves its engine.
    pub fn leave(&mut self) {
        self.report(reason::LEFT);
    }

    /// The cost of a part of a step, of one of a walker that is not captured.
    #[allow(clippy::arithmetic_side_effects, reason = "the divisor is not 0")]
    pub(super) fn part(budget: u64) -> u64 {
        (budget / SLOWER).max(1)
    }

    fn give_up(&mut self, reason: impl Into<String>) {
        self.failed.get_or_insert(reason.into());
    }

    /// Returns whether it was given up, and reports it to the request.
    pub(super) fn is_given_up(&mut self) -> bool {
        if self.shared.is_cancelled() {
            self.is_reported = true;
        } else if let Some(reason) = self.failed.take() {
            self.report(&reason);
        }
        self.is_reported
    }

    /// Frees some pages of one that was given up. Returns false if none is left.
    pub(super) fn free(&mut self) -> bool {
        (0..PAGES_AT_ONCE).all(|_| self.capture.pages.pop_first().is_some())
    }

    /// Why the walker has stopped, if it has.
    pub(super) fn held(&self) -> Option<&RunStop> {
        self.held.as_ref().map(|(stop, _)| stop)
    }

    /// Keeps why the walker has stopped, until the pages are copied. Without effect if it goes on after such a stop.
    pub(super) fn hold(&mut self, stop: &RunStop, counts: WalkerCounts, place: Option<&KernelPlace>) {
        let end = |place: Option<&KernelPlace>| {
            place
                .map_or(EndPlace { group: [0; 3], thread: 0, address: self.capture.launch.kernel_address() }, |place| {
                    EndPlace { group: place.group, thread: place.thread, address: place.address }
                })
        };
        let reason = match stop {
            RunStop::Done => EndReason::Complete,
            RunStop::Fault(_, place) => EndReason::Fault(end(place.as_deref())),
            RunStop::Deadlock => EndReason::Barrier(end(place)),
            RunStop::Budget | RunStop::Message | RunStop::Boundary => return,
        };
        self.capture.end = CapturedEnd { groups: counts.groups, instructions: counts.instructions, reason };
        self.held = Some((stop.clone(), None));
    }

    /// Copies some pages as the walker has left them. Returns false if none is left; then the request has its capture.
    pub(super) fn copy_pages(&mut self, memory: &mut KernelMemory<'_, '_>) -> bool {
        let Some((_, cursor)) = &mut self.held else { return false };
        let from = cursor.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        let mut pages = self.capture.pages.range_mut((from, std::ops::Bound::Unbounded));
        for _ in 0..PAGES_AT_ONCE {
            let Some((name, page)) = pages.next() else {
                self.finish();
                return false;
            };
            *cursor = Some(*name);
            if let Page::Memory { before, after } = page
                && let CopiedPage::Bytes(bytes) = memory.copy_page(*name)
                && before.bytes() != bytes.as_ref()
            {
                *after = Some(Content::of(bytes));
            }
        }
        true
    }

    fn finish(&mut self) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        let mut capture = Capture { pages: std::mem::take(&mut self.capture.pages), ..self.capture.clone() };
        capture.surfaces = std::mem::take(&mut self.surfaces).into_iter().collect();
        capture.samplers = std::mem::take(&mut self.samplers).into_iter().collect();
        self.shared.set(Phase::Done(Box::new(capture)));
    }
}

impl AccessRecord for CaptureJob {
    #[inline]
    fn has_page(&mut self, name: PageName) -> bool {
        if self.last == Some(name) {
            return true;
        }
        let known = self.capture.pages.contains_key(&name) || self.failed.is_some();
        if known {
            self.last = Some(name);
        }
        known
    }

    fn add_page(&mut self, name: PageName, page: CopiedPage) {
        let page = match page {
            CopiedPage::Bytes(bytes) => Page::Memory { before: Content::of(bytes), after: None },
            CopiedPage::Null => Page::Null,
            CopiedPage::Remote => return self.give_up(reason::REMOTE),
            // The access fails, or the same address is recorded without compression.
            CopiedPage::Unmapped | CopiedPage::Uncontrolled => return,
        };
        if self.capture.pages.contains_key(&PageName { compressed: !name.compressed, ..name }) {
            return self.give_up(reason::BOTH);
        }
        let most = self.shared.request.most_bytes;
        if self.capture.pages.len().saturating_add(1).saturating_mul(PAGE_BYTES) > most {
            return self.give_up(format!("the kernel accesses more than {} MiB of memory: raise --limit", most >> 20));
        }
        self.capture.pages.insert(name, page);
        self.last = Some(name);
    }

    fn has_surface(&self, name: SurfaceName) -> bool {
        self.surfaces.contains_key(&name)
    }

    fn add_surface(&mut self, name: SurfaceName, address: u64, state: &SurfaceState) {
        let image = match state.image {
            Ok(StoredImage { image, texels: Texels::Null }) => CapturedImage::Null(image),
            Ok(StoredImage { image, texels: Texels::Planes(planes) }) => CapturedImage::Texels(image, captured(planes)),
            Err(FaultKind::Image) => CapturedImage::Unsupported,
            Err(_) => CapturedImage::None,
        };
        self.surfaces.insert(name, CapturedSurface { address: address & ADDRESS, memory: state.memory, image });
    }

    fn has_sampler(&self, name: SamplerName) -> bool {
        self.samplers.contains_key(&name)
    }

    fn add_sampler(&mut self, name: SamplerName, sampler: Option<Sampler>) {
        self.samplers.insert(name, sampler);
    }
}

/// The planes of an image in a capture.
fn captured(planes: texels::Planes) -> Planes {
    let texels::Planes { surface, texel_bytes, rows, first, corner, mips } = planes;
    let tiling::Surface { base, pitch, tiling, compressed, .. } = surface;
    let tile = match tiling {
        Tiling::Linear => None,
        // Layouts of this family do not swizzle.
        Tiling::Tiled(layout) => Some(Tile { columns: layout.columns, rows: layout.rows, slices: layout.slices }),
    };
    Planes { base, pitch: pitch.cast_unsigned(), texel_bytes, rows, first, corner, mips, tile, compressed }
}
