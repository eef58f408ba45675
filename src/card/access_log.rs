// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Log lines of accesses to a function: `0: read 0:0x145998 RP_STATE_CAP = 0x00070d17`.

use std::fmt::{self, Display, Formatter};

use arctic_device_model::gpu::Gpu;
use arctic_device_model::host::Function;

/// The bytes of an access as one number; more than eight bytes in hexadecimal, in their order.
pub struct Value<'d>(pub &'d [u8]);

impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Value(data) = self;
        match data.len() {
            1..=8 => {
                f.write_str("0x")?;
                data.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            _ => write!(f, "{data:02x?}"),
        }
    }
}

/// An offset in a BAR, with the name of what is there.
pub struct Place<'g> {
    /// The card.
    pub gpu: &'g dyn Gpu,
    /// The function.
    pub function: Function,
    /// Index of the BAR.
    pub bar: u8,
    /// Offset in bytes.
    pub offset: u64,
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Place { gpu, function, bar, offset } = self;
        write!(f, "{bar}:{offset:#x}")?;
        gpu.name_of(*function, *bar, *offset).map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arctic_device_model::gpu::{Host, Model};
    use arctic_device_model::host::{HostClock, NullHost};

    use super::*;
    use crate::card_file;

    #[test]
    fn a_value_is_a_number() {
        let shown = |data: &[u8]| Value(data).to_string();
        assert_eq!(shown(&[0x17, 0x0d, 7, 0]), "0x00070d17");
        assert_eq!((shown(&[6]), shown(&[1, 2, 3, 4, 5, 6, 7, 8])), ("0x06".into(), "0x0807060504030201".into()));
        assert_eq!((shown(&[]), shown(&[1; 9])), ("[]".into(), "[01, 01, 01, 01, 01, 01, 01, 01, 01]".into()));
    }

    /// A place has the name of its register, GGTT entry or doorbell, of every family.
    #[test]
    fn a_place_has_its_name() {
        for (card, bar, offset, expected) in [
            ("ivb", 0, 0x14_5998, "0:0x145998 RP_STATE_CAP"),
            ("ivb", 0, 0x2_2030, "0:0x22030 bcs0.RING_BUFFER_TAIL"),
            ("ivb", 0, 0x20_0010, "0:0x200010 GGTT[0x4]"),
            ("ivb", 0, 0x1f_fffc, "0:0x1ffffc"),
            ("ivb", 2, 0x1000, "2:0x1000"),
            ("small", 0, 0x941c, "0:0x941c GDRST"),
            ("small", 0, 0x19_0640, "0:0x190640 vf1.VF_SW_FLAG[0]"),
            ("small", 0, 0x40_1004, "0:0x401004 doorbell[1]"),
            ("small", 0, 0x80_0008, "0:0x800008 GGTT[0x1]"),
            ("small", 0, 0x4_0000, "0:0x40000"),
        ] {
            let gpu = powered_on(card);
            let place = Place { gpu: &*gpu, function: Function::PF, bar, offset };
            assert_eq!(place.to_string(), expected, "{card}");
        }
    }

    fn powered_on(card: &str) -> Arc<dyn Gpu> {
        let null = Arc::new(NullHost);
        let host = Host { memory: null.clone(), interrupts: null, clock: Arc::new(HostClock::default()) };
        card_file::load(card).unwrap().power_on(0, false, host).unwrap()
    }
}
