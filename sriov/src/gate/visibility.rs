//! Which part of GTTMMADR an access hits, and whether the function behind the BAR sees a register there (V13-003..007).

use super::PF;

/// Bytes of registers: between the last one and the doorbells there is nothing (V13-003, V13-007).
pub const REGISTERS: u64 = 4 << 20;
/// Bytes of doorbells behind the registers.
pub const DOORBELLS: u64 = 4 << 20;
/// Bytes of GGTT entries behind the doorbells (V13-004).
pub const GGTT: u64 = 8 << 20;
/// Bytes of one doorbell (V13-091).
pub const DOORBELL_PAGE: u64 = 4096;

/// A part of GTTMMADR, which all functions have alike, and the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Registers, by offset.
    Registers(u32),
    /// Doorbells, by offset from the first (V13-007, V13-091).
    Doorbells(u32),
    /// Entries of the GGTT, by offset from the first.
    Ggtt(u32),
}

impl Window {
    /// The window at an offset of GTTMMADR; `None` beyond the BAR.
    pub const fn of(offset: u64) -> Option<Window> {
        match offset {
            0..REGISTERS => Some(Window::Registers(offset as u32)),
            REGISTERS..0x80_0000 => Some(Window::Doorbells((offset - REGISTERS) as u32)),
            0x80_0000..0x100_0000 => Some(Window::Ggtt((offset - REGISTERS - DOORBELLS) as u32)),
            _ => None,
        }
    }

    /// The window that holds all `len` bytes at an offset; `None` also for an access that reaches from one into the
    /// next, which no driver makes.
    pub fn of_access(offset: u64, len: usize) -> Option<Window> {
        let last = offset.checked_add(u64::try_from(len).ok()?.checked_sub(1)?)?;
        let (first, last) = (Window::of(offset)?, Window::of(last)?);
        (std::mem::discriminant(&first) == std::mem::discriminant(&last)).then_some(first)
    }
}

/// The doorbell at an offset of the doorbell window. Each function's window has 1024 of its own: the same page of two
/// functions is two doorbells (V13-091, V13-092).
pub const fn doorbell(offset: u32) -> u16 {
    (offset as u64 / DOORBELL_PAGE) as u16
}

/// Who sees a register through its BAR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// The PF alone: for a VF there is nothing, it reads 0 and its writes are dropped (V13-005).
    #[default]
    Pf,
    /// Every function, each its own copy (V13-005; xe: XE_REG_OPTION_VF).
    Function,
    /// Every function reads it, the PF alone writes it.
    Shown,
}

impl Visibility {
    /// Whether `function` reads the register.
    pub const fn reads(self, function: u8) -> bool {
        function == PF || !matches!(self, Visibility::Pf)
    }

    /// Whether a write of `function` reaches the register.
    pub const fn writes(self, function: u8) -> bool {
        function == PF || matches!(self, Visibility::Function)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// V13-003, V13-004, V13-007: the windows' first and last bytes, and accesses across the edges.
    #[test]
    fn windows() {
        assert_eq!(
            [(0x3f_fffc, 4), (0x3f_fffc, 8), (0x7f_fffc, 8), (0xff_fffc, 8), (0, 0)]
                .map(|(offset, len)| { Window::of_access(offset, len) }),
            [Some(Window::Registers(0x3f_fffc)), None, None, None, None]
        );
        let edges = [0, 0x3f_ffff, 0x40_0000, 0x7f_ffff, 0x80_0000, 0xff_ffff].map(Window::of);
        use Window::*;
        let expected =
            [Registers(0), Registers(0x3f_ffff), Doorbells(0), Doorbells(0x3f_ffff), Ggtt(0), Ggtt(0x7f_ffff)];
        assert_eq!(edges, expected.map(Some));
        assert_eq!([0x100_0000, u64::MAX].map(Window::of), [None; 2]);
        assert_eq!(REGISTERS + DOORBELLS + GGTT, crate::function::GTTMMADR_BYTES);
    }

    /// V13-091, V13-092, contract C.2: a page a doorbell, 1024 of them; the barrier page of user space is the last.
    #[test]
    fn doorbells() {
        assert_eq!([0, 0xfff, 0x1000, 0x3f_ffff].map(doorbell), [0, 0, 1, 1023]);
        assert_eq!(Window::of(0x7f_f000), Some(Window::Doorbells(1023 << 12)));
    }

    /// V13-005: what a VF does to a register that is not for it has no effect; the PF does everything.
    #[test]
    fn classes() {
        use Visibility::*;
        for (class, reads, writes) in [(Pf, false, false), (Shown, true, false), (Function, true, true)] {
            assert_eq!((class.reads(1), class.writes(63)), (reads, writes));
            assert!(class.reads(PF) && class.writes(PF));
        }
        assert_eq!(Visibility::default(), Pf, "what nobody has thought about is the PF's");
    }

    /// Anywhere, and around the windows' edges.
    fn offset() -> impl Strategy<Value = u64> {
        let edge = prop::sample::select(vec![0x40_0000_u64, 0x80_0000, 0x100_0000]);
        let near = (edge, 0..70_u64).prop_map(|(edge, before)| edge + 2 - before);
        prop_oneof![any::<u64>(), 0..0x110_0000_u64, near]
    }

    proptest! {
        /// V13-007: an access is in one window or in none, wherever a guest aims it.
        #[test]
        fn no_access_straddles(offset in offset(), len in 0..64_usize) {
            let whole = Window::of_access(offset, len);
            let bytes: Vec<_> = (0..len as u64).map(|n| offset.checked_add(n).and_then(Window::of)).collect();
            let kind = |window: &Option<Window>| window.map(|window| std::mem::discriminant(&window));
            let one = bytes.first().is_some_and(|first| first.is_some() && bytes.iter().all(|b| kind(b) == kind(first)));
            prop_assert_eq!(whole.is_some(), one);
            prop_assert!(whole.is_none() || whole == bytes[0]);
        }
    }
}
