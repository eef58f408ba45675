// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The counters of OAG, computed up to an instant of OA time (OA-045, OA-050, OA-056).

use std::num::NonZeroU64;

use super::cec::{BLOCKS, Block, Truth};
use super::facts::ObservationFacts;
use super::flexible::FlexibleCounts;
use super::network::EngineSignals;
use super::values::Values;
use super::work::KernelWork;

/// A counters that advance regardless of OAG's enable.
const FREE_RUNNING: [usize; 4] = [4, 6, 19, 20];

/// Most ticks that are counted at once, so that no product overflows: five days.
const MOST_TICKS: u64 = 1 << 44;

/// What settings of registers decide about the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// OAG_OAGLBCTXCTRL: the counters advance, the timer, and its exponent.
    pub control: u32,
    /// The comparisons of the B counters.
    pub blocks: [Block; BLOCKS],
    /// The self-test's pattern is connected to the network.
    pub pattern: bool,
    /// The set that connects the activity of engines to the network, if it is one that is known.
    pub engines: Option<&'static EngineSignals>,
    /// The network is on: GT_NOA_ENABLE.
    pub network: bool,
}

/// A register that changes [`Settings`], with the value written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// OAG_OAGLBCTXCTRL.
    Control(u32),
    /// Dword `n` of the comparisons' registers.
    Block(u8, u32),
    /// Whether the self-test's pattern is connected.
    Pattern(bool),
    /// The set that connects the activity of engines.
    Engines(Option<&'static EngineSignals>),
    /// Whether the network is on.
    Network(bool),
}

/// OAGLBCTXCTRL bit 0: counter stop and resume.
pub const RESUME: u32 = 1 << 0;
/// OAGLBCTXCTRL bit 1: the timer is on.
const TIMER: u32 = 1 << 1;

impl Settings {
    fn apply(&mut self, setting: Setting) {
        match setting {
            Setting::Control(value) => self.control = value,
            Setting::Block(dword, value) => {
                if let Some(block) = self.blocks.get_mut(usize::from(dword / 2)) {
                    *if dword % 2 == 0 { &mut block.first } else { &mut block.second } = value;
                }
            }
            Setting::Pattern(connected) => self.pattern = connected,
            Setting::Engines(engines) => self.engines = engines,
            Setting::Network(on) => self.network = on,
        }
    }

    /// The exponent of the timer, if it is on.
    pub fn exponent(&self) -> Option<u32> {
        (self.control & TIMER != 0).then_some(self.control >> 2 & 0x3f)
    }
}

/// What the card does at an instant, as far as counters depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Engines that have a context, one bit each.
    pub busy: u32,
    /// The GT is not in RC6.
    pub awake: bool,
    /// Frequency in units of 16.67 MHz.
    pub ratio: u32,
}

/// Counters with the time up to which they are computed.
#[derive(Clone)]
pub struct Counters {
    /// OA time.
    pub at: u64,
    /// GPU_TICKS: render clocks while the GT is awake. Always counted.
    pub ticks: u64,
    /// Remainder of `ticks`.
    rest: u64,
    /// Bytes read from and written to device memory that are less than a unit of A36 and A37.
    memory_rest: [u64; 2],
    /// What the card does since `at`.
    pub activity: Activity,
    /// Settings since `at`.
    pub settings: Settings,
    truth: [Truth; BLOCKS],
    /// OACONTROL bit 0.
    pub enabled: bool,
    /// OAG's counters.
    pub values: Values,
    /// Busy clocks and B counters, counted regardless of OAG's enable: the part of OAR's and OAC's counters that is common
    /// to all contexts.
    pub common: Common,
    facts: &'static ObservationFacts,
}

/// Counts that do not depend on OAG's enable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// Clocks in which an engine had a context.
    pub busy: u64,
    /// B counters.
    pub b: [u64; BLOCKS],
    /// C counters.
    pub c: [u64; BLOCKS],
    /// Reads and writes of shared local memory.
    pub shared: [u64; 2],
}

impl Counters {
    /// Counters after reset.
    pub fn new(facts: &'static ObservationFacts) -> Self {
        Counters {
            at: 0,
            ticks: 0,
            rest: 0,
            memory_rest: [0; 2],
            activity: Activity::default(),
            settings: Settings::default(),
            truth: Settings::default().blocks.map(|block| block.truth(false)),
            enabled: false,
            values: Values::default(),
            common: Common::default(),
            facts,
        }
    }

    /// The counters after a reset: what is common to all contexts, and the card's activity, go on.
    #[must_use]
    pub fn after_reset(&self) -> Self {
        let Counters { at, activity, common, facts, .. } = *self;
        Counters { at, activity, common, ..Counters::new(facts) }
    }

    /// Whether OAG's counters advance.
    fn counting(&self) -> bool {
        self.enabled && self.settings.control & RESUME != 0
    }

    /// Computes the counters up to `time`. Does nothing if they are beyond it.
    pub fn settle(&mut self, time: u64) {
        let passed = time.saturating_sub(self.at);
        self.at = self.at.max(time);
        if self.activity.awake {
            self.advance(passed);
        }
    }

    /// Counts `ticks` of OA time in which the GT is awake. Additive: the result does not depend on how an interval is divided.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "MOST_TICKS and a ratio of 9 bits bound the product; the divisor is not 0"
    )]
    pub fn advance(&mut self, ticks: u64) {
        let (clocks, divisor) = self.facts.clocks;
        let mut left = ticks;
        while left != 0 {
            let part = left.min(MOST_TICKS);
            left -= part;
            let product = part * u64::from(self.activity.ratio & 0x1ff) * clocks + self.rest;
            self.rest = product % divisor;
            self.count(product / divisor);
        }
    }

    /// Counts render clocks.
    fn count(&mut self, clocks: u64) {
        let from = self.ticks;
        self.ticks = from.wrapping_add(clocks);
        let counting = self.counting();
        if self.activity.busy != 0 {
            self.common.busy = self.common.busy.wrapping_add(clocks);
            if counting {
                self.values.add(0, clocks);
            }
        }
        let [b, c] = self.signals();
        let Counters { common, values, .. } = self;
        let counters = common.b.iter_mut().chain(&mut common.c).zip(values.b.iter_mut().chain(&mut values.c));
        for (truth, (common, own)) in b.iter().chain(&c).zip(counters) {
            let count = truth.count(from, clocks);
            *common = common.wrapping_add(count);
            if counting {
                *own = own.wrapping_add(count);
            }
        }
    }

    /// The clocks in which the B counters count, and the C counters.
    fn signals(&self) -> [[Truth; BLOCKS]; 2] {
        let Some(engines) = self.settings.engines.filter(|_| self.settings.network) else {
            return [self.truth, [Truth::default(); BLOCKS]];
        };
        let busy = |engine: u32| self.activity.busy & engine != 0;
        let input = engines.input(self.activity.busy);
        let mut b = self.truth;
        for ((truth, engine), block) in b.iter_mut().zip(engines.b).zip(self.settings.blocks) {
            let found = if engine == 0 { block.finds(input) } else { Some(busy(engine)) };
            *truth = found.map_or(*truth, Truth::constant);
        }
        [b, engines.c.map(|engine| Truth::constant(busy(engine)))]
    }

    /// Counts the work of kernels on an engine. A4, A19 and A20 count regardless of OAG's enable (V13-244).
    pub fn count_kernels(&mut self, work: &KernelWork, flexible: &FlexibleCounts) {
        for (count, new) in self.common.shared.iter_mut().zip([work.slm_reads, work.slm_writes]) {
            *count = count.wrapping_add(new);
        }
        let mut all = Values::default();
        all.count_kernels(work, flexible, true);
        let counting = self.counting();
        for (counter, (value, new)) in self.values.a.iter_mut().zip(all.a).enumerate() {
            if counting || FREE_RUNNING.contains(&counter) {
                *value = value.wrapping_add(new);
            }
        }
    }

    /// Counts bytes of device memory that were read and written, in `unit` bytes: A36 and A37. What is left of a unit is counted
    /// with the next bytes.
    pub fn count_memory(&mut self, bytes: [u64; 2], unit: NonZeroU64) {
        if !self.counting() {
            return;
        }
        for ((counter, rest), bytes) in (36..).zip(&mut self.memory_rest).zip(bytes) {
            let bytes = bytes.saturating_add(*rest);
            self.values.add(counter, bytes / unit);
            *rest = bytes % unit;
        }
    }

    /// Changes a setting from now on.
    pub fn set(&mut self, setting: Setting) {
        self.settings.apply(setting);
        let connected = self.settings.pattern && self.settings.network;
        self.truth = self.settings.blocks.map(|block| block.truth(connected));
    }
}
