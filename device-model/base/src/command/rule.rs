// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Rules that permit or forbid a command depending on its requester (V13-044..076), as in the columns of the command
//! tables.

/// Origin of the commands of a ring or batch. Commands fetched from the GGTT are privileged, commands fetched from a
/// PPGTT are not (V13-044). The kernel driver of a virtual function has a ring, but not all privileges of the physical
/// function's driver (V13-047, V13-080).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Requester {
    /// An unprivileged batch of the physical function.
    PfUser,
    /// An unprivileged batch of a virtual function.
    VfUser,
    /// The ring or a privileged batch of a virtual function.
    VfKernel,
    /// The ring or a privileged batch of the physical function.
    PfKernel,
}

impl Requester {
    /// All requesters, in the order of their discriminants.
    pub const ALL: [Requester; 4] = [Requester::PfUser, Requester::VfUser, Requester::VfKernel, Requester::PfKernel];

    /// The requester of privileged or unprivileged commands of a virtual function or the physical function.
    #[inline]
    pub const fn new(privileged: bool, is_vf: bool) -> Requester {
        match (privileged, is_vf) {
            (false, false) => Requester::PfUser,
            (false, true) => Requester::VfUser,
            (true, true) => Requester::VfKernel,
            (true, false) => Requester::PfKernel,
        }
    }

    /// Returns whether the commands come from the kernel driver of the physical function or of a virtual function.
    #[inline]
    pub const fn privileged(self) -> bool {
        matches!(self, Requester::VfKernel | Requester::PfKernel)
    }

    /// Returns whether the commands come from a virtual function.
    #[inline]
    pub const fn is_vf(self) -> bool {
        matches!(self, Requester::VfUser | Requester::VfKernel)
    }
}

/// Permission of a requester to execute a command: always, never (it is executed as MI_NOOP for that requester,
/// V13-046), or depending on its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Header bits that forbid the command if set, or if clear when also in `inverted`.
    header: u32,
    /// Bits of `header` with inverted sense.
    inverted: u32,
    /// Bits of the second dword that forbid the command.
    operand: u32,
}

/// A bit that is clear in every MI header. Rules are evaluated with this bit set in the header, so a rule that contains
/// it forbids every header ([`Rule::DROPPED`]).
pub const ALWAYS: u32 = 1 << 31;

impl Rule {
    /// Always allowed.
    pub const ALLOWED: Rule = Rule { header: 0, inverted: 0, operand: 0 };
    /// Never allowed.
    pub const DROPPED: Rule = Rule { header: ALWAYS, inverted: 0, operand: 0 };

    /// Forbidden if the header has any of these bits.
    pub const fn unless(bits: u32) -> Rule {
        Rule { header: bits, inverted: 0, operand: 0 }
    }

    /// Forbidden unless the header has this bit.
    pub const fn only_with(bit: u32) -> Rule {
        Rule { header: bit, inverted: bit, operand: 0 }
    }

    /// Forbidden if the second dword has any of these bits.
    pub const fn unless_operand(bits: u32) -> Rule {
        Rule { header: 0, inverted: 0, operand: bits }
    }

    /// Returns whether the header alone forbids the command.
    #[inline]
    pub const fn forbids(self, header: u32) -> bool {
        ((header | ALWAYS) ^ self.inverted) & self.header != 0
    }

    /// Mask for a quick check: if `(header | ALWAYS) & mask` is zero, [`Rule::forbids`] returns false. For rules with
    /// inverted bits the mask is [`ALWAYS`], i.e. the header must always be checked.
    #[inline]
    pub const fn header_mask(self) -> u32 {
        if self.inverted != 0 { ALWAYS } else { self.header }
    }

    /// Returns whether the command's second dword forbids it.
    #[inline]
    pub const fn forbids_operand(self, second: u32) -> bool {
        second & self.operand != 0
    }

    /// Header bits on which the rule depends; contains [`ALWAYS`] for [`Rule::DROPPED`].
    #[inline]
    pub const fn header_bits(self) -> u32 {
        self.header
    }

    /// Bits of the second dword on which the rule depends.
    #[inline]
    pub const fn operand_bits(self) -> u32 {
        self.operand
    }

    /// Returns whether the rule depends on the second dword.
    #[inline]
    pub const fn depends_on_operand(self) -> bool {
        self.operand != 0
    }
}

/// The rules of a command by requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    by_requester: [Rule; 4],
    header_mask: u32,
}

impl Rules {
    /// The rules of a command that has one rule for an unprivileged batch of any function, and one for the ring or a
    /// privileged batch of a virtual function. The ring and privileged batches of the physical function are not
    /// restricted.
    pub const fn new(user: Rule, vf: Rule) -> Rules {
        Rules { by_requester: [user, user, vf, Rule::ALLOWED], header_mask: user.header_mask() | vf.header_mask() }
    }

    /// The rule for `requester`.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "there is a rule for each requester")]
    pub const fn of(self, requester: Requester) -> Rule {
        self.by_requester[requester as usize]
    }

    /// Mask for a quick check: if `(header | ALWAYS) & mask` is zero, no rule forbids the command by its header.
    #[inline(always)]
    pub const fn header_mask(self) -> u32 {
        self.header_mask
    }
}
