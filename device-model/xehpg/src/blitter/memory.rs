// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The memory that the rectangle operations access: [`Gam`], with flat CCS as compression.

use arctic_base::blitter::BlitMemory;

use super::ccs::ControlBytes;
use crate::memory::{Access, Fault, FaultReason, Gam, Space, Span, Zeroed};

impl<'m> BlitMemory<'m> for Gam<'m> {
    type Space = Space;
    type Fault = Fault;
    type Control = ControlBytes<'m>;

    #[inline]
    fn span(&mut self, space: Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        Gam::span(self, space, address, len, access)
    }

    #[inline]
    fn zero(&mut self, space: Space, address: u64, len: u64) -> Result<Option<Zeroed>, Fault> {
        Gam::zero(self, space, address, len)
    }

    fn control(
        &mut self,
        space: Space,
        address: u64,
        len: usize,
        access: Access,
    ) -> Result<Option<ControlBytes<'m>>, Fault> {
        Ok(match self.ccs_span(space, address, len, access)? {
            Span::Null(_) => None,
            span => Some(ControlBytes(span)),
        })
    }

    fn not_mapped(space: Space, address: u64, access: Access) -> Fault {
        Fault { space, address, access, reason: FaultReason::NotMapped }
    }

    fn with_address(fault: Fault, address: u64) -> Fault {
        Fault { address, ..fault }
    }
}
