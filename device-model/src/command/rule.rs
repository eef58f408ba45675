//! Who gives a command, and what it gets (V13-044..076): the columns of the command tables.

/// Who the commands of a ring or batch come from. What lies in the global space is privileged, what lies in a process's
/// is not (V13-044); a virtual function's kernel driver has a ring of its own and is no more than that (V13-047, V13-080).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Requester {
    /// A batch without privilege, of the physical function.
    User,
    /// A batch without privilege, of a virtual function.
    VirtualUser,
    /// The ring, or a privileged batch, of a virtual function.
    VirtualKernel,
    /// The ring, or a privileged batch, of the physical function.
    Kernel,
}

impl Requester {
    /// All of them, in the order of their numbers.
    pub const ALL: [Requester; 4] =
        [Requester::User, Requester::VirtualUser, Requester::VirtualKernel, Requester::Kernel];

    /// The requester of commands with or without privilege, of a virtual function or the physical one.
    #[inline]
    pub const fn new(privileged: bool, is_vf: bool) -> Requester {
        match (privileged, is_vf) {
            (false, false) => Requester::User,
            (false, true) => Requester::VirtualUser,
            (true, true) => Requester::VirtualKernel,
            (true, false) => Requester::Kernel,
        }
    }

    /// Whether it is a driver in the kernel, of whatever function.
    pub const fn privileged(self) -> bool {
        matches!(self, Requester::VirtualKernel | Requester::Kernel)
    }

    /// Whether it belongs to a virtual function.
    pub const fn is_vf(self) -> bool {
        matches!(self, Requester::VirtualUser | Requester::VirtualKernel)
    }
}

/// What of a command somebody gets: all of it, nothing (it is a MI_NOOP to him, V13-046), or what its operands decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Bits of the header that forbid the command ...
    header: u32,
    /// ... where they are clear, not set.
    inverted: u32,
    /// Bits of the second dword that forbid it.
    operand: u32,
}

/// A bit that is clear in every header of the memory interface; to a rule every header has it set.
pub const ALWAYS: u32 = 1 << 31;

impl Rule {
    /// All of it.
    pub const ALLOWED: Rule = Rule { header: 0, inverted: 0, operand: 0 };
    /// Nothing.
    pub const DROPPED: Rule = Rule { header: ALWAYS, inverted: 0, operand: 0 };

    /// Nothing if the header has any of these bits.
    pub const fn unless(bits: u32) -> Rule {
        Rule { header: bits, inverted: 0, operand: 0 }
    }

    /// Nothing unless the header has this bit.
    pub const fn only_with(bit: u32) -> Rule {
        Rule { header: bit, inverted: bit, operand: 0 }
    }

    /// Nothing if the second dword has any of these bits.
    pub const fn unless_operand(bits: u32) -> Rule {
        Rule { header: 0, inverted: 0, operand: bits }
    }

    /// Whether the header alone forbids the command.
    pub const fn forbids(self, header: u32) -> bool {
        ((header | ALWAYS) ^ self.inverted) & self.header != 0
    }

    /// Bits of the header, [`ALWAYS`] among them, without any of which the rule forbids nothing.
    pub const fn watched(self) -> u32 {
        if self.inverted != 0 { ALWAYS } else { self.header }
    }

    /// Whether the command's second dword forbids it.
    pub fn forbids_operand(self, words: &[u32]) -> bool {
        self.operand != 0 && words.get(1).is_some_and(|word| word & self.operand != 0)
    }

    /// Bits of the header that it looks at, [`ALWAYS`] among them.
    #[cfg(test)]
    pub(super) const fn header_bits(self) -> u32 {
        self.header
    }

    /// Bits of the second dword that it looks at.
    #[cfg(test)]
    pub(super) const fn operand_bits(self) -> u32 {
        self.operand
    }

    /// Whether the rule looks at the second dword.
    pub const fn looks_at_operand(self) -> bool {
        self.operand != 0
    }
}
