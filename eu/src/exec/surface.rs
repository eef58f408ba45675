// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Surfaces: what the addresses of messages are relative to.

/// What the addresses of a message are relative to. EU-040.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// Virtual addresses.
    Flat,
    /// Offsets from the general state base.
    Stateless,
    /// Entry of the binding table.
    Binding(u8),
    /// Byte offset of a surface state from the bindless surface base.
    Bindless(u32),
    /// Byte offset of a surface state from the surface state base, and the hardware thread for a scratch surface. EU-041.
    State(u32, u32),
}
