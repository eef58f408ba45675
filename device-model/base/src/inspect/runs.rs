// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Lists of translations: pages that continue each other are one part.

use super::{CUT, Inspector};

/// Maximum number of runs of pages that are listed.
const MOST_RUNS: usize = 1024;

/// A run of pages that continue each other.
pub struct Run {
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: u64,
    /// Address to which the first one is translated.
    pub target: u64,
    /// Where the pages are, and how they may be accessed.
    pub kind: String,
}

/// Lists runs, of pages that are found by ascending addresses.
pub struct Runs<'t, 'r> {
    to: &'t mut Inspector<'r>,
    last: Option<Run>,
    /// The pages of the last run have the same target, as those without a use have the driver's scratch page.
    repeats: bool,
    shown: usize,
}

impl<'t, 'r> Runs<'t, 'r> {
    /// An empty list.
    pub fn new(to: &'t mut Inspector<'r>) -> Self {
        Runs { to, last: None, repeats: false, shown: 0 }
    }

    /// Adds pages. Returns whether more can be added.
    pub fn add(&mut self, run: Run) -> bool {
        if let Some(last) = &mut self.last
            && last.address.wrapping_add(last.bytes) == run.address
            && last.kind == run.kind
        {
            let continues = !self.repeats && last.target.wrapping_add(last.bytes) == run.target;
            let repeats = (self.repeats || last.bytes == run.bytes) && last.target == run.target;
            if continues || repeats {
                self.repeats = repeats;
                last.bytes = last.bytes.saturating_add(run.bytes);
                return true;
            }
        }
        let before = self.last.replace(run);
        let goes_on = before.is_none_or(|run| self.show(&run));
        self.repeats = false;
        goes_on
    }

    fn show(&mut self, Run { address, bytes, target, kind }: &Run) -> bool {
        self.shown = self.shown.saturating_add(1);
        if self.shown > MOST_RUNS {
            self.show_cut();
            return false;
        }
        let place = if self.repeats { "all at one page" } else { "at" };
        self.to.value(&format!("{address:#x}"), format!("{bytes:#x} bytes {place} {target:#x}, {kind}"));
        !self.to.is_full()
    }

    fn show_cut(&mut self) {
        self.to.value(CUT, "there may be more: name an address");
    }

    /// Shows the last run, and that there may be more, which are not looked for.
    pub fn cut(&mut self) {
        if self.last.take().is_none_or(|last| self.show(&last)) {
            self.show_cut();
        }
    }

    /// Shows the last run.
    pub fn end(mut self) {
        if let Some(last) = self.last.take().filter(|_| self.shown <= MOST_RUNS) {
            self.show(&last);
        }
    }
}
