//! The GuC's interface: firmware upload, mailbox, CT buffers, its actions, and the scheduler behind them.

use crate::engine::Engines;
use crate::gt::Gt;

/// VF_SW_FLAG(0): first dword of the mailbox (contract B.6).
const MAILBOX: u32 = 0x19_0240;

/// The micro-controller's state.
#[derive(Default)]
pub struct Guc {}

impl Guc {
    /// A GuC in reset.
    pub fn new() -> Self {
        Self::default()
    }

    /// DMA_CTRL was started: moves and checks the firmware, and starts it (contract B.4 step 20).
    pub fn start_dma(&mut self, gt: &Gt) {
        let _ = gt;
    }

    /// The GuC is reset (GDRST bit 3): firmware, CT buffers, contexts and configurations are gone.
    pub fn reset(&mut self, gt: &Gt) {
        let _ = gt;
    }

    /// Whether VF_SW_FLAG(0) holds a request of the host that is not answered yet (bit 31 is the reply's origin).
    pub fn mailbox_holds_request(gt: &Gt) -> bool {
        let header = gt.registers.value(MAILBOX);
        header != 0 && header >> 31 == 0
    }

    /// The host rang: answers a request in the mailbox, before the access completes.
    pub fn mailbox(&mut self, gt: &Gt, engines: &Engines) {
        let _ = (gt, engines);
    }

    /// One bounded piece of work: CT buffers, engine reports, time slices. Returns when it wants to be called again at
    /// the latest (clock time in ns), `None` if only a ring or a report can give it work.
    pub fn step(&mut self, gt: &Gt, engines: &Engines) -> Option<u64> {
        let _ = (gt, engines);
        None
    }
}
