//! What of the card's shared things a function has been given: ranges of numbers, and checks that they are sound
//! (V13-020, V13-035, contract D.1, D.4).

use std::fmt;

use super::{ggtt, lmtt};

/// What there is on the card to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stock {
    /// Bytes of local memory.
    pub local_bytes: u64,
    /// Contexts that the GuC can keep.
    pub contexts: u32,
    /// Physical doorbells (V13-081).
    pub doorbells: u32,
}

/// A function's part. Ranges of no size are nothing, wherever they begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// First global address (KLV GGTT_START).
    pub ggtt_start: u64,
    /// Bytes of global addresses (KLV GGTT_SIZE).
    pub ggtt_bytes: u64,
    /// Bytes of local memory, which the function sees from address 0 on (KLV LMEM_SIZE).
    pub lmem_bytes: u64,
    /// Global number of context 0 (KLV BEGIN_CONTEXT_ID).
    pub first_context: u32,
    /// Number of contexts (KLV NUM_CONTEXTS).
    pub contexts: u32,
    /// Global number of doorbell 0 (KLV BEGIN_DOORBELL_ID).
    pub first_doorbell: u32,
    /// Number of doorbells (KLV NUM_DOORBELLS).
    pub doorbells: u32,
}

/// A part that the card cannot give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaError {
    /// Global addresses that are not whole pages below 4 GiB.
    Ggtt,
    /// Local memory that is not whole LMTT pages, or more than the card or the LMTT has.
    Lmem,
    /// Contexts that the GuC does not have.
    Contexts,
    /// Doorbells that the card does not have.
    Doorbells,
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuotaError::Ggtt => "the global addresses must be whole pages of 4 KiB below 4 GiB",
            QuotaError::Lmem => "the local memory must be whole pages of 2 MiB, not more than the card has",
            QuotaError::Contexts => "there are not so many contexts",
            QuotaError::Doorbells => "there are not so many doorbells",
        })
    }
}

impl std::error::Error for QuotaError {}

/// Whether `count` things from `first` on are among the `all` first ones.
fn within(first: u32, count: u32, all: u32) -> bool {
    count == 0 || first.checked_add(count).is_some_and(|end| end <= all)
}

fn meet(a: (u64, u64), b: (u64, u64)) -> bool {
    a.1 != 0 && b.1 != 0 && a.0 < b.0.saturating_add(b.1) && b.0 < a.0.saturating_add(a.1)
}

/// The global number of a function's own number `local`, if that is below its `count`. No sum overflows for numbers
/// that [`Quota::check`] has passed; for others it is none.
fn global(first: u32, count: u32, local: u32) -> Option<u32> {
    (local < count).then(|| first.checked_add(local)).flatten()
}

impl Quota {
    /// Whether the card can give this part.
    pub fn check(&self, stock: &Stock) -> Result<(), QuotaError> {
        let lmem_limit = stock.local_bytes.min(lmtt::GUEST_BYTES);
        if self.ggtt_bytes != 0 && ggtt::pages(self.ggtt_start, self.ggtt_bytes).is_none() {
            Err(QuotaError::Ggtt)
        } else if !self.lmem_bytes.is_multiple_of(lmtt::PAGE) || self.lmem_bytes > lmem_limit {
            Err(QuotaError::Lmem)
        } else if !within(self.first_context, self.contexts, stock.contexts) {
            Err(QuotaError::Contexts)
        } else if !within(self.first_doorbell, self.doorbells, stock.doorbells) {
            Err(QuotaError::Doorbells)
        } else {
            Ok(())
        }
    }

    /// Whether two functions have been given the same thing. Local memory is judged by the LMTT's frames instead.
    pub fn overlaps(&self, other: &Quota) -> bool {
        let ranges = |quota: &Quota| {
            [
                (quota.ggtt_start, quota.ggtt_bytes),
                (quota.first_context.into(), quota.contexts.into()),
                (quota.first_doorbell.into(), quota.doorbells.into()),
            ]
        };
        ranges(self).into_iter().zip(ranges(other)).any(|(a, b)| meet(a, b))
    }

    /// Whether all `bytes` from global address `start` on are the function's. Nothing is nobody's.
    pub fn has_ggtt(&self, start: u64, bytes: u64) -> bool {
        let place = start.checked_sub(self.ggtt_start).and_then(|place| place.checked_add(bytes));
        bytes != 0 && place.is_some_and(|end| end <= self.ggtt_bytes)
    }

    /// The GuC's number of the function's context `local`.
    pub fn context(&self, local: u32) -> Option<u32> {
        global(self.first_context, self.contexts, local)
    }

    /// The function's own number of the GuC's context `context`.
    pub fn local_context(&self, context: u32) -> Option<u32> {
        context.checked_sub(self.first_context).filter(|local| *local < self.contexts)
    }

    /// Whether the function may arm the physical doorbell `doorbell` (V13-035, V13-096).
    pub fn has_doorbell(&self, doorbell: u32) -> bool {
        doorbell.checked_sub(self.first_doorbell).is_some_and(|local| local < self.doorbells)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STOCK: Stock = Stock { local_bytes: 16 << 30, contexts: 65535, doorbells: 256 };
    const VF1: Quota = Quota {
        ggtt_start: 0x8000_0000,
        ggtt_bytes: 0x1000_0000,
        lmem_bytes: 128 << 20,
        first_context: 1024,
        contexts: 1024,
        first_doorbell: 4,
        doorbells: 4,
    };

    /// V13-019, V13-035, V13-081, contract D.1, D.4: each limit, by one too many.
    #[test]
    fn limits() {
        assert_eq!(VF1.check(&STOCK), Ok(()));
        assert_eq!(Quota::default().check(&STOCK), Ok(()));
        let cases = [
            (Quota { ggtt_bytes: 0x8000_1000, ..VF1 }, QuotaError::Ggtt),
            (Quota { ggtt_start: 0x8000_0800, ..VF1 }, QuotaError::Ggtt),
            (Quota { ggtt_start: u64::MAX - 0xfff, ..VF1 }, QuotaError::Ggtt),
            (Quota { lmem_bytes: (16 << 30) + (2 << 20), ..VF1 }, QuotaError::Lmem),
            (Quota { lmem_bytes: 0x1000, ..VF1 }, QuotaError::Lmem),
            (Quota { first_context: 65535 - 1023, ..VF1 }, QuotaError::Contexts),
            (Quota { contexts: u32::MAX, ..VF1 }, QuotaError::Contexts),
            (Quota { first_doorbell: 253, ..VF1 }, QuotaError::Doorbells),
        ];
        for (quota, error) in cases {
            assert_eq!(quota.check(&STOCK), Err(error), "{quota:?}");
        }
        assert_eq!(
            Quota { lmem_bytes: 64 << 30, ..VF1 }.check(&Stock { local_bytes: 1 << 40, ..STOCK }),
            Err(QuotaError::Lmem)
        );
    }

    /// V13-035, V13-096: numbers at the edges of a part.
    #[test]
    fn edges() {
        assert_eq!([0, 1023, 1024].map(|id| VF1.context(id)), [Some(1024), Some(2047), None]);
        assert_eq!([1023, 1024, 2047, 2048].map(|id| VF1.local_context(id)), [None, Some(0), Some(1023), None]);
        assert_eq!([3, 4, 7, 8].map(|id| VF1.has_doorbell(id)), [false, true, true, false]);
        assert!(VF1.has_ggtt(0x8000_0000, 0x1000_0000) && VF1.has_ggtt(0x8fff_ffff, 1));
        for (start, bytes) in
            [(0x7fff_ffff, 2), (0x8fff_ffff, 2), (0x9000_0000, 1), (0x8000_0000, 0), (u64::MAX, u64::MAX)]
        {
            assert!(!VF1.has_ggtt(start, bytes));
        }
    }

    fn quota() -> impl Strategy<Value = Quota> {
        (0..12_u64, 0..12_u64, 0..12_u32, 0..12_u32, 0..12_u32, 0..12_u32).prop_map(|(a, b, c, d, e, f)| Quota {
            ggtt_start: a * 4096,
            ggtt_bytes: b * 4096,
            lmem_bytes: 0,
            first_context: c,
            contexts: d,
            first_doorbell: e,
            doorbells: f,
        })
    }

    proptest! {
        /// V13-020, V13-035: two parts overlap exactly if there is a thing in both.
        #[test]
        fn overlap_is_a_common_thing(a in quota(), b in quota()) {
            let pages = (0..24).any(|page| a.has_ggtt(page * 4096, 1) && b.has_ggtt(page * 4096, 1));
            let contexts = (0..24).any(|id| a.local_context(id).is_some() && b.local_context(id).is_some());
            let doorbells = (0..24).any(|id| a.has_doorbell(id) && b.has_doorbell(id));
            prop_assert_eq!(a.overlaps(&b), pages || contexts || doorbells);
            prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
        }

        /// Contract D.4: whatever the KLVs say no check panics, and a part that passes lies within the stock.
        #[test]
        fn a_checked_part_is_within_the_stock(
            ggtt in any::<(u64, u64)>(), lmem in any::<u64>(), contexts in any::<(u32, u32)>(), bells in any::<(u32, u32)>(),
            local in any::<u32>(), mask in any::<u8>(),
        ) {
            // Each field by chance a plausible one.
            let pick = |bit: u8, wild: u64, tame: u64| if mask >> bit & 1 == 0 { wild } else { tame };
            let quota = Quota {
                ggtt_start: pick(0, ggtt.0, ggtt.0 % (4 << 30) & !0xfff),
                ggtt_bytes: pick(1, ggtt.1, ggtt.1 % (4 << 30) & !0xfff),
                lmem_bytes: pick(2, lmem, lmem % (17 << 30) & !0x1f_ffff),
                first_context: pick(3, contexts.0.into(), u64::from(contexts.0) % 65536) as u32,
                contexts: pick(4, contexts.1.into(), u64::from(contexts.1) % 65536) as u32,
                first_doorbell: pick(5, bells.0.into(), u64::from(bells.0) % 256) as u32,
                doorbells: pick(6, bells.1.into(), u64::from(bells.1) % 256) as u32,
            };
            let context = quota.context(local);
            prop_assert!(context.is_none_or(|id| quota.local_context(id) == Some(local)));
            quota.overlaps(&VF1);
            if quota.check(&STOCK).is_ok() {
                prop_assert!(context.is_none_or(|id| id < STOCK.contexts));
                prop_assert!(!quota.has_doorbell(256) && !quota.has_ggtt(4 << 30, 1));
                prop_assert!(quota.lmem_bytes <= STOCK.local_bytes);
            }
        }
    }
}
