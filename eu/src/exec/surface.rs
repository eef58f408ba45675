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

/// The memory of a surface, as messages with untyped elements access it. Addresses have 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceMemory {
    /// None: reads give 0, writes are dropped.
    Null,
    /// Bytes from `base` on.
    Buffer {
        /// Virtual address of the first byte.
        base: u64,
        /// Number of bytes; of a decoded state 1 to 2^50.
        bytes: u64,
    },
    /// `pitch` bytes for each hardware thread, that of the first one from `base` on (EU-041).
    Scratch {
        /// Virtual address of the first byte.
        base: u64,
        /// Bytes of a thread; of a decoded state 1 to 2^18.
        pitch: u64,
        /// Number of hardware threads.
        threads: u64,
    },
    /// An image, which has no untyped elements.
    Texels,
}
