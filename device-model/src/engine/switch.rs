//! Context switches: restore, with the batches that run before the ring, lite restore, save, and what the registers show.

use super::Halt;
use super::lrc::{Image, dword};
use super::reg;
use super::stream::{Batch, Workaround};
use super::streamer::{Phase, Streamer};
use crate::interrupts::memirq::Report;
use crate::memory::{Fault, Space};

impl Streamer<'_> {
    pub(super) fn take_tail(&mut self) -> Result<(), Halt> {
        self.running.tail_moved = false;
        let tail = self.running.lrc.tail(&mut self.gam).map_err(Halt::Fault)?;
        self.running.position.ring.set_tail(tail);
        Ok(())
    }

    /// Reads the image: ring context, engine context, then what runs before the ring (V8-043, V8-161, V8-162).
    pub(super) fn restore(&mut self) -> Result<(), Halt> {
        let image = self.running.lrc.read(&mut self.gam).map_err(Halt::Fault)?;
        let running = &mut *self.running;
        running.tail_moved = false;
        running.position = running.lrc.position(&image);
        running.lrc.restore_registers(&image, &self.gt.registers, self.id);
        self.gt.context_clocks[self.id.index()].start(self.gt.timestamp(), image.dword(dword::CTX_TIMESTAMP));
        running.phase = Phase::Run;
        running.per_context = image.dword(dword::BB_PER_CTX_PTR);
        let set = |offset, value| self.gt.registers.set(self.base + offset, value);
        set(reg::CURRENT_LRCA, running.load.descriptor as u32);
        set(reg::CONTEXT_CONTROL, image.dword(dword::CONTEXT_CONTROL) & 0xffff);
        set(reg::PDP0, image.dword(dword::PDP0_LDW));
        set(reg::PDP0 + 4, image.dword(dword::PDP0_UDW));
        set(reg::RING_START, running.position.ring.start);
        set(reg::RING_CTL, image.dword(dword::RING_CTL));
        let indirect = image.dword(dword::INDIRECT_CTX);
        self.restore_interrupt_report(&image).map_err(Halt::Fault)?;
        self.restart_watchdog();
        let running = &mut *self.running;
        let left = (indirect & 0x3f) * 16;
        if left != 0 {
            let batch = Batch { ppgtt: false, address: u64::from(indirect & !0x3f) };
            running.position.workaround = Some((Workaround::Indirect { left }, batch));
        } else {
            self.enter_per_context();
        }
        // Commands of this context may read the registers that the last step of another has left.
        self.publish();
        Ok(())
    }

    /// Memory-based interrupts: the fixed places of the image, which only a driver without MMIO fills (contract C.3).
    fn restore_interrupt_report(&mut self, image: &Image) -> Result<(), Fault> {
        const LRM: u32 = 0x29 << 23;
        let filled = image.dword(dword::MEMIRQ_MASK - 2) & 0xff80_0000 == LRM;
        self.running.report = None;
        if filled {
            let enable = self.gam.read_u32(Space::Ggtt, u64::from(image.dword(dword::MEMIRQ_MASK)))?;
            let (status, source) = (image.dword(dword::MEMIRQ_STATUS), image.dword(dword::MEMIRQ_SOURCE));
            self.running.report = (status != 0 && source != 0).then_some(Report { status, source, enable });
        }
        let (status, source) = self.running.report.map_or((0, 0), |report| (report.status, report.source));
        self.gt.registers.set(self.base + reg::INT_STATUS_RPT_PTR, status);
        self.gt.registers.set(self.base + reg::INT_SRC_RPT_PTR, source);
        Ok(())
    }

    /// Tells events: in memory where the image asked for it, else in its function's interrupt tree (V13-262, V13-273).
    pub(super) fn signal(&mut self, bits: u16) -> Result<(), Fault> {
        let interrupts = self.gt.interrupts_of(self.running.load.function);
        match self.running.report {
            Some(report) => {
                if report.write(&mut self.gam, self.id, bits)? {
                    interrupts.send();
                }
            }
            None => interrupts.raise_engine(self.id, bits),
        }
        Ok(())
    }

    fn enter_per_context(&mut self) {
        let pointer = self.running.per_context;
        let batch = Batch { ppgtt: false, address: u64::from(pointer & !0xfff) };
        self.running.position.workaround = (pointer & 1 != 0).then_some((Workaround::PerContext, batch));
    }

    /// A workaround batch has ended: the next one, or the ring, follows.
    pub(super) fn end_workaround(&mut self) {
        match self.running.position.workaround.take() {
            Some((Workaround::Indirect { .. }, _)) => self.enter_per_context(),
            _ => self.running.loops.forget(),
        }
    }

    /// Saves the context; its clock stops.
    pub(super) fn save(&mut self) -> Result<(), Halt> {
        let timestamp = self.gt.context_clocks[self.id.index()].stop(self.gt.timestamp());
        let running = &mut *self.running;
        let engine = (&self.gt.registers, self.id);
        running.lrc.save(&mut self.gam, &running.position, timestamp, engine).map_err(Halt::Fault)
    }

    /// Shows in the registers where the context stands: at the end of each step, not at each command.
    pub(super) fn publish(&self) {
        let position = &self.running.position;
        let set = |offset, value| self.gt.registers.set(self.base + offset, value);
        set(reg::RING_HEAD, position.ring.head);
        set(reg::RING_TAIL, position.ring.tail);
        let address = position.address();
        set(reg::ACTHD, address as u32);
        set(reg::ACTHD_UDW, (address >> 32) as u32);
        let batch = position.batch().map_or(0, |batch| batch.address | 1);
        set(reg::BBADDR, batch as u32);
        set(reg::BBADDR_UDW, (batch >> 32) as u32);
    }
}
