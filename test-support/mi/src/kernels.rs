// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels in assembly, without the end of their threads.

/// The last instruction of a thread.
pub const END_OF_THREAD: &str = "(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}\n";
/// Never ends.
pub const ENDLESS: &str = "L0:\n(W) jmpi L0\n";
/// Waits for a second thread of the group, which never arrives.
pub const ALONE_AT_BARRIER: &str = "
(W)     mov (1|M0) r12.0<1>:ud 0x0:ud
(W)     mov (1|M0) r12.2<1>:ud 0x2020000:ud
(W)     send.gtwy (1|M0) null r12 null:0 0x0 0x02000004
(W)     sync.bar null
";
/// Adds 1 to the dword at the address in the inline data, so many times as r1.2 says.
pub const COUNT: &str = "
(W)     mov (1|M0) r10.0<1>:ud 0x1:ud
(W)     mov (2|M0) r12.0<1>:ud r1.0<1;1,0>:ud
(W)     mov (1|M0) r14.0<1>:ud r1.2<0;1,0>:ud
LOOP:
(W)     send.ugm (1|M0) null r12 r10:1 0x0 0x0800058C
(W)     add (1|M0) r14.0<1>:d r14.0<0;1,0>:d -1:w
(W)     cmp (1|M0) (ne)f0.0 null<1>:d r14.0<0;1,0>:d 0:w
(W&f0.0) jmpi LOOP
";
