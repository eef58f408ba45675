// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Doorbells as the GuC serves them: their assignment to contexts, and ownership checks (V13-035, V13-036, V13-095, V13-096).
//! All ids are local to the function; a VF's context and doorbell ids start at 0.
//!
//! ALLOCATE_DOORBELL (0x10) has five dwords: context id, doorbell id, MMIO offset of the page of the window (low,
//! high), and a GGTT address that is only used for doorbells in memory. DEALLOCATE_DOORBELL (0x20) has one dword, the
//! context id. Sources: i915: selftest_guc_doorbells.c of Intel's out-of-tree i915; "drm/xe: Allocate doorbells for UMD
//! exec queues", a patch that was proposed for xe. Current drivers send neither action.

pub mod host;

use crate::doorbell::{DOORBELLS, DoorbellRegister, Doorbells, Page, SEND_TO_CORE};
use crate::guc::functions::Functions;
use crate::guc::functions::context::GucContextId;
use crate::guc::messages::hxg::{Answer, Error, Reply};
use crate::guc::provisioning::Quota;
use crate::host::Function;

/// An assignment that a function requests by ALLOCATE_DOORBELL.
pub struct Assignment {
    /// The function's id of the context.
    pub context: u32,
    /// The function's id of the doorbell.
    pub id: u32,
    /// The page of its window.
    pub page: Page,
}

impl Assignment {
    /// Parses the payload of ALLOCATE_DOORBELL.
    pub fn requested(payload: &[u32]) -> Result<Self, Error> {
        let &[context, id, low, high, global] = payload else { return Err(Error::InvalidSize) };
        if global != 0 {
            // Doorbells in memory are not supported (V13-090).
            return Err(Error::NotSupported);
        }
        let offset = u64::from(low) | u64::from(high) << 32;
        let page = Page::at(offset).filter(|page| page.offset() == offset).ok_or(Error::InvalidParams)?;
        Ok(Assignment { context, id, page })
    }
}

/// The GuC's table of physical doorbells: the context that each schedules. The functions' ranges are part of their
/// configuration.
pub struct DoorbellTable(Box<[Option<GucContextId>; DOORBELLS]>);

impl Default for DoorbellTable {
    fn default() -> Self {
        DoorbellTable(Box::new([None; DOORBELLS]))
    }
}

/// Returns whether a range of physical doorbells contains `index`.
fn contains(range: Quota, index: u8) -> bool {
    u32::from(index).checked_sub(range.begin).is_some_and(|local| local < range.count)
}

impl DoorbellTable {
    /// Table for a newly started GuC: no doorbell is armed, and doorbell rings are routed to the GuC (V13-099).
    pub fn boot(doorbells: &Doorbells) -> Self {
        doorbells.reset();
        doorbells.write(DoorbellRegister::Control, 0, SEND_TO_CORE);
        Self::default()
    }

    /// Disarms the armed doorbells of a VF outside `range`, which is now its range of physical doorbells. Doorbells
    /// that are assigned to no VF belong to the PF.
    pub fn restrict(&mut self, doorbells: &Doorbells, function: Function, range: Quota) {
        if function.is_vf() {
            self.release(doorbells, |index, context| context.function == function && !contains(range, index));
        }
    }

    /// Arms doorbell `id` of a function for a page of its window. A ring schedules `context`. Fails if the doorbell is
    /// not assigned to the function (V13-035, V13-096).
    #[allow(clippy::indexing_slicing, reason = "there is an entry for each value of a u8")]
    pub fn allocate(
        &mut self,
        doorbells: &Doorbells,
        functions: &Functions,
        context: GucContextId,
        (id, page): (u32, Page),
    ) -> Reply {
        let index = physical(functions, context.function, id)?;
        let used = |(index, bound): (u8, &Option<GucContextId>)| {
            let is_page = doorbells.watched(index) == Some((context.function, page));
            bound.is_some_and(|bound| bound == context || is_page)
        };
        if (0..=u8::MAX).zip(self.0.iter()).any(used) {
            // A context has at most one doorbell, and a page at most one context. The KMD must choose free ones
            // (V13-095).
            return Err(Error::InvalidParams);
        }
        doorbells.arm(index, context.function, page).map_err(|_| Error::InvalidDoorbellId)?;
        self.0[usize::from(index)] = Some(context);
        Ok(Answer::default())
    }

    /// Disarms the doorbell of a context.
    pub fn deallocate(&mut self, doorbells: &Doorbells, context: GucContextId) -> Reply {
        let released = self.release_context(doorbells, context);
        if released { Ok(Answer::default()) } else { Err(Error::InvalidDoorbellId) }
    }

    /// Releases the doorbell of a context that is deregistered. Returns whether it had one.
    pub fn release_context(&mut self, doorbells: &Doorbells, context: GucContextId) -> bool {
        self.release(doorbells, |_, bound| bound == context)
    }

    /// Disarms all doorbells of a function that is reset (FLR, CLIENT_SOFT_RESET) (V13-119).
    pub fn release_function(&mut self, doorbells: &Doorbells, function: Function) {
        self.release(doorbells, |_, bound| bound.function == function);
    }

    fn release(&mut self, doorbells: &Doorbells, which: impl Fn(u8, GucContextId) -> bool) -> bool {
        let mut any = false;
        for (index, slot) in (0..=u8::MAX).zip(self.0.iter_mut()) {
            if slot.take_if(|bound| which(index, *bound)).is_some() {
                doorbells.disarm(index);
                any = true;
            }
        }
        any
    }

    /// Returns the context assigned to a physical doorbell.
    #[allow(clippy::indexing_slicing, reason = "there is an entry for each value of a u8")]
    pub fn bound(&self, index: u8) -> Option<GucContextId> {
        self.0[usize::from(index)]
    }
}

/// Returns the physical doorbell for `id` of `function`. Fails if it is not assigned to the function (V13-035,
/// V13-096).
fn physical(functions: &Functions, function: Function, id: u32) -> Result<u8, Error> {
    let index = match function.is_vf() {
        true => functions[function].config.doorbells.global(id),
        false => Some(id),
    };
    let index = index.and_then(|index| u8::try_from(index).ok()).ok_or(Error::InvalidDoorbellId)?;
    let given_away = || functions.iter().any(|(vf, of)| vf.is_vf() && contains(of.config.doorbells, index));
    if !function.is_vf() && given_away() { Err(Error::InvalidDoorbellId) } else { Ok(index) }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;
    use crate::doorbell::{PAGE_BYTES, Ring, WINDOW};

    const VF1: Function = Function::new(1).unwrap();
    const VF2: Function = Function::new(2).unwrap();

    fn page(number: u64) -> Page {
        Page::at(WINDOW + number * PAGE_BYTES).unwrap()
    }

    /// VF 1 has doorbells 32..64, VF 2 has 64..66.
    fn provisioned() -> (Doorbells, Functions, DoorbellTable) {
        let doorbells = Doorbells::new();
        let table = DoorbellTable::boot(&doorbells);
        let mut functions = Functions::default();
        functions[VF1].config.doorbells = Quota { begin: 32, count: 32 };
        functions[VF2].config.doorbells = Quota { begin: 64, count: 2 };
        (doorbells, functions, table)
    }

    fn of(function: Function, local: u16) -> GucContextId {
        GucContextId { function, local }
    }

    fn rung(table: &DoorbellTable, doorbells: &Doorbells) -> Vec<GucContextId> {
        doorbells.take_rung().iter().filter_map(|index| table.bound(index)).collect()
    }

    #[test]
    fn a_vf_cannot_arm_outside_its_provision() {
        proves!(
            [V13_035, V13_096],
            "a VF's doorbell ids start at 0. Ids beyond its range are rejected and arm nothing"
        );
        let (doorbells, functions, mut table) = provisioned();
        assert_eq!(table.allocate(&doorbells, &functions, of(VF2, 7), (1, page(5))), Ok(Answer::default()));
        assert_eq!(doorbells.watched(65), Some((VF2, page(5))));
        for id in [2, 63, 64, 256, 65_535, 65_536, !0] {
            assert_eq!(
                table.allocate(&doorbells, &functions, of(VF2, 8), (id, page(6))),
                Err(Error::InvalidDoorbellId),
                "{id}"
            );
        }
        assert_eq!(
            table.allocate(&doorbells, &functions, of(Function::new(3).unwrap(), 9), (0, page(0))),
            Err(Error::InvalidDoorbellId)
        );
        assert!((0..=255).filter(|index| *index != 65).all(|index| doorbells.watched(index).is_none()));
    }

    #[test]
    fn pf_owns_doorbells_assigned_to_no_vf() {
        proves!(V13_035, "the PF owns the doorbells that are assigned to no VF");
        let (doorbells, functions, mut table) = provisioned();
        let done = Ok(Answer::default());
        for (context, id, reply) in [(1, 0, done), (2, 255, done), (3, 32, Err(Error::InvalidDoorbellId))] {
            assert_eq!(
                table.allocate(&doorbells, &functions, of(Function::PF, context), (id, page(u64::from(id)))),
                reply
            );
        }
        assert_eq!(
            table.allocate(&doorbells, &functions, of(Function::PF, 4), (256, page(9))),
            Err(Error::InvalidDoorbellId)
        );
    }

    #[test]
    fn a_ring_names_context_and_function() {
        proves!(V13_036, "a ring identifies the context and the VF for which the doorbell was armed");
        let (doorbells, functions, mut table) = provisioned();
        table.allocate(&doorbells, &functions, of(VF1, 1001), (0, page(0))).unwrap();
        table.allocate(&doorbells, &functions, of(VF2, 2001), (0, page(0))).unwrap();
        doorbells.ring(VF2, page(0));
        assert_eq!(rung(&table, &doorbells), [of(VF2, 2001)]);
        doorbells.ring(VF1, page(0));
        doorbells.ring(VF2, page(0));
        assert_eq!(rung(&table, &doorbells), [of(VF1, 1001), of(VF2, 2001)]);
    }

    #[test]
    fn a_doorbell_in_use_is_not_assigned_again() {
        proves!(
            V13_095,
            "page, doorbell and context are assigned one to one. A second assignment is rejected until the first is \
            released"
        );
        let (doorbells, functions, mut table) = provisioned();
        table.allocate(&doorbells, &functions, of(VF1, 10), (0, page(0))).unwrap();
        assert_eq!(table.allocate(&doorbells, &functions, of(VF1, 11), (1, page(0))), Err(Error::InvalidParams));
        assert_eq!(table.allocate(&doorbells, &functions, of(VF1, 11), (0, page(1))), Err(Error::InvalidDoorbellId));
        assert_eq!(table.allocate(&doorbells, &functions, of(VF1, 10), (1, page(1))), Err(Error::InvalidParams));
        table.deallocate(&doorbells, of(VF1, 10)).unwrap();
        assert_eq!(table.deallocate(&doorbells, of(VF1, 10)), Err(Error::InvalidDoorbellId));
        assert_eq!(doorbells.ring(VF1, page(0)), Ring::Missed);
        assert_eq!(table.allocate(&doorbells, &functions, of(VF1, 11), (0, page(0))), Ok(Answer::default()));
    }

    #[test]
    fn reset_and_provisioning_disarm() {
        proves!(V13_119, "FLR disarms the VF's doorbells; a smaller range disarms those that the VF loses");
        let (doorbells, functions, mut table) = provisioned();
        for (function, context, id) in [(VF1, 1, 0), (VF1, 2, 31), (VF2, 3, 0)] {
            table.allocate(&doorbells, &functions, of(function, context), (id, page(u64::from(id)))).unwrap();
        }
        table.restrict(&doorbells, VF1, Quota { begin: 32, count: 16 });
        assert_eq!((doorbells.watched(32), doorbells.watched(63)), (Some((VF1, page(0))), None));
        doorbells.ring(VF1, page(0));
        doorbells.ring(VF2, page(0));
        table.release_function(&doorbells, VF1);
        assert_eq!(doorbells.watched(32), None);
        assert_eq!(rung(&table, &doorbells), [of(VF2, 3)]);
    }
}
