// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Programs the BARs of VFs in the PF's own guest, under a VMM without SR-IOV support.
//!
//! QEMU maps a function's BARs at the addresses in that function's own BAR registers, but guests do not program the BAR
//! registers of a VF, because the VF BARs are in the PF's SR-IOV capability. So the card programs them itself, by DMA
//! writes of the PF to the guest's configuration space window (ECAM). The VMM replies to such a message only after its
//! own request to the PF has completed, so a separate thread sends the messages. The thread retries while the VMM
//! rejects them because it has not processed Bus Master Enable yet.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;
use arctic_sriov::header::Identity;
use arctic_sriov::number::byte;

use super::DmaError;
use super::memory::GuestMemory;

/// Register offsets from a function's ECAM address.
const COMMAND: u64 = 0x04;
const BAR0: u64 = 0x10;
/// PCI_COMMAND with only memory space enabled.
const MEMORY_SPACE: u16 = 1 << 1;
/// Time for which the thread retries after errors of the VMM before it waits for a new trigger.
const PATIENCE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Bus, device and function of the PF in its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciAddress {
    /// Bus number.
    pub bus: u8,
    /// Device on the bus, 0 to 31.
    pub device: u8,
    /// Function of the device, 0 to 7.
    pub function: u8,
}

impl PciAddress {
    /// Address of the PF in the printed QEMU arguments of earlier versions.
    pub const PF: PciAddress = PciAddress { bus: 0, device: 1, function: 0 };

    /// The routing ID: bus, device and function in PCI Express encoding.
    pub fn routing_id(self) -> u16 {
        u16::from(self.bus) << 8 | u16::from(self.device) << 3 | u16::from(self.function)
    }

    /// The address with this routing ID.
    pub fn from_routing_id(id: u16) -> Self {
        PciAddress { bus: (id >> 8) as u8, device: (id >> 3 & 0x1f) as u8, function: (id & 7) as u8 }
    }
}

impl FromStr for PciAddress {
    type Err = String;

    /// Parses "00:01.0", with or without the prefix of domain 0.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is not a PCI address: expected bus:device.function in hex, like 00:01.0");
        let number = |text: &str, most: u8| u8::from_str_radix(text, 16).ok().filter(|n| *n <= most);
        let short = text.strip_prefix("0000:").unwrap_or(text);
        let (bus, rest) = short.split_once(':').ok_or_else(wrong)?;
        let (device, function) = rest.split_once('.').ok_or_else(wrong)?;
        let address = || {
            let (bus, device) = (number(bus, 0xff)?, number(device, 0x1f)?);
            Some(PciAddress { bus, device, function: number(function, 7)? })
        };
        address().ok_or_else(wrong)
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.bus, self.device, self.function)
    }
}

/// The configuration space window of the PF's guest, and the PF's address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecam {
    /// Guest address of bus 0.
    pub base: u64,
    /// The PF.
    pub pf: PciAddress,
}

impl Default for Ecam {
    /// QEMU's q35 machine with SeaBIOS.
    fn default() -> Self {
        Ecam { base: 0xb000_0000, pf: PciAddress::PF }
    }
}

impl Ecam {
    /// The address of VF `number`: consecutive after the PF (First VF Offset 1, VF Stride 1).
    pub fn vf(&self, number: u8) -> PciAddress {
        PciAddress::from_routing_id(self.pf.routing_id().wrapping_add(number.into()))
    }

    /// Maximum number of VFs after the PF on its bus, which is where the PF driver expects them.
    pub fn most_vfs(&self) -> u8 {
        !((self.pf.routing_id() & 0xff) as u8)
    }

    /// Guest address of the first register of VF `number`, or of the PF, 0.
    fn registers(&self, number: u8) -> u64 {
        self.base.wrapping_add(u64::from(self.vf(number).routing_id()) << 12)
    }
}

/// Bus addresses of one VF's two BARs.
pub type BarAddresses = [u64; 2];

#[derive(Default)]
struct Work {
    /// The required BAR addresses of each VF, VF 1 first; empty if there is nothing to program or the PF's bus
    /// mastering is disabled.
    wanted: Vec<BarAddresses>,
    /// The BAR addresses last programmed in the VMM, if known.
    placed: Vec<Option<BarAddresses>>,
    /// Number of triggers so far.
    reasons: u64,
    stop: bool,
}

impl Work {
    /// Returns the first VF (index from 0) that is not programmed with the required BAR addresses.
    fn next(&self) -> Option<(usize, BarAddresses)> {
        let misplaced = |(vf, bars): &(usize, &BarAddresses)| self.placed.get(*vf) != Some(&Some(**bars));
        self.wanted.iter().enumerate().find(misplaced).map(|(vf, bars)| (vf, *bars))
    }
}

struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().ignore_poison()
    }
}

/// The thread that programs VF BARs; dropping this value stops it.
pub struct BarPlacer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl BarPlacer {
    /// Starts the thread for `vfs` VFs of a PF with `identity`; its client maps `memory`.
    pub fn start(ecam: Ecam, identity: Identity, vfs: u8, memory: Arc<GuestMemory>) -> io::Result<Self> {
        let work = Work { placed: vec![None; vfs.into()], ..Work::default() };
        let shared = Arc::new(Shared { work: Mutex::new(work), changed: Condvar::new() });
        let thread = {
            let shared = shared.clone();
            thread::Builder::new().name("ecam".into()).spawn(move || run(&shared, ecam, identity, &memory))?
        };
        Ok(BarPlacer { shared, thread: Some(thread) })
    }

    /// Sets the required BAR addresses of the VFs, VF 1 first; an empty list stops programming. Does not block.
    pub fn place(&self, wanted: Vec<BarAddresses>) {
        let mut work = self.shared.work();
        let vfs = work.placed.len();
        work.wanted = wanted;
        work.wanted.truncate(vfs);
        work.reasons = work.reasons.wrapping_add(1);
        self.shared.changed.notify_all();
    }

    /// Must be called after a reset of the machine: the BARs of all functions are no longer programmed.
    pub fn forget(&self) {
        let mut work = self.shared.work();
        work.wanted.clear();
        work.placed.fill(None);
        work.reasons = work.reasons.wrapping_add(1);
    }
}

impl Drop for BarPlacer {
    fn drop(&mut self) {
        self.shared.work().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, ecam: Ecam, identity: Identity, memory: &GuestMemory) {
    let mut work = shared.work();
    // Time of the first error, and the trigger count then.
    let mut refused: Option<(Instant, u64)> = None;
    let mut pause = FIRST_PAUSE;
    while !work.stop {
        let given_up = refused.is_some_and(|(since, reason)| reason == work.reasons && since.elapsed() > PATIENCE);
        let Some((vf, bars)) = work.next().filter(|_| !given_up) else {
            work = shared.changed.wait(work).ignore_poison();
            continue;
        };
        let reasons = work.reasons;
        drop(work);
        let outcome = place((ecam, identity), byte(vf).saturating_add(1), bars, memory);
        work = shared.work();
        match outcome {
            Ok(()) => {
                // If there was a new trigger meanwhile, the BARs are programmed again.
                if work.reasons == reasons
                    && let Some(placed) = work.placed.get_mut(vf)
                {
                    *placed = Some(bars);
                }
                (refused, pause) = (None, FIRST_PAUSE);
            }
            Err(error) => {
                let since =
                    refused.filter(|(_, reason)| *reason == reasons).map_or_else(Instant::now, |(since, _)| since);
                if since.elapsed().saturating_add(pause) > PATIENCE {
                    log::warn!("cannot program the BARs of VF {} in the PF's guest: {error}", vf.saturating_add(1));
                }
                refused = Some((since, reasons));
                work = shared.changed.wait_timeout(work, pause).ignore_poison().0;
                pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Locates the PF at its configured address or, failing that, at its address in the printed arguments of earlier
/// versions; `identity` is the PF's. Returns the configured address if it is at neither. `read` returns a dword at a
/// guest address.
fn locate(ecam: Ecam, identity: Identity, read: impl Fn(u64) -> Result<u32, DmaError>) -> Result<Ecam, DmaError> {
    let id = u32::from(identity.device) << 16 | u32::from(identity.vendor);
    if ecam.pf == PciAddress::PF {
        return Ok(ecam);
    }
    for pf in [ecam.pf, PciAddress::PF] {
        let candidate = Ecam { pf, ..ecam };
        if read(candidate.registers(0))? == id {
            return Ok(candidate);
        }
    }
    Ok(ecam)
}

/// Programs the BARs of VF `number`: decoding off, both addresses, decoding on.
fn place(
    (ecam, identity): (Ecam, Identity),
    number: u8,
    bars: BarAddresses,
    memory: &GuestMemory,
) -> Result<(), DmaError> {
    let client = memory.client().ok_or(DmaError::NoAnswer)?;
    let ecam = locate(ecam, identity, |at| {
        let mut id = [0; 4];
        client.read_at_leisure(at, &mut id).map(|()| u32::from_le_bytes(id))
    })?;
    let registers = ecam.registers(number);
    let addresses: Vec<u8> = bars.iter().flat_map(|address| address.to_le_bytes()).collect();
    client.write_at_leisure(registers.wrapping_add(COMMAND), &0u16.to_le_bytes())?;
    client.write_at_leisure(registers.wrapping_add(BAR0), &addresses)?;
    client.write_at_leisure(registers.wrapping_add(COMMAND), &MEMORY_SPACE.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_lspci_writes_them() {
        let address = |bus, device, function| Ok(PciAddress { bus, device, function });
        assert_eq!("00:01.0".parse(), address(0, 1, 0));
        assert_eq!("0000:3a:1f.7".parse(), address(0x3a, 0x1f, 7));
        for wrong in ["1.0", "00:20.0", "00:01.8", "0001:00:01.0", "00:01", ""] {
            let error = wrong.parse::<PciAddress>().unwrap_err();
            assert!(error.contains("like 00:01.0"), "{error}");
        }
    }

    /// First VF Offset and VF Stride are 1: VF 63 of a PF at 00:01.0 is 00:08.7.
    #[test]
    fn vfs_follow_the_pf() {
        let ecam = Ecam::default();
        assert_eq!((ecam.vf(1).to_string(), ecam.vf(63).to_string()), ("00:01.1".into(), "00:08.7".into()));
        assert_eq!((ecam.most_vfs(), Ecam { pf: "00:1f.0".parse().unwrap(), ..ecam }.most_vfs()), (247, 7));
        assert_eq!((ecam.registers(1), ecam.registers(7)), (0xb000_9000, 0xb000_f000));
        let behind_a_port = Ecam { base: 0xe000_0000, pf: "01:00.0".parse().unwrap() };
        assert_eq!(behind_a_port.registers(8), 0xe010_8000);
    }

    /// A user's QEMU command line may still have the PF at the address of earlier versions; it is then located there.
    #[test]
    fn the_pf_is_looked_for_where_it_used_to_be() {
        const FLEX_170: Identity = Identity::data_center_gpu(0x56c0, 8);
        let card = 0x56c0_8086;
        let configured = Ecam { pf: "00:10.0".parse().unwrap(), ..Ecam::default() };
        let at = |place: u64| move |address| Ok(if address == place { card } else { u32::MAX });
        assert_eq!(locate(configured, FLEX_170, at(0xb008_0000)), Ok(configured));
        assert_eq!(locate(configured, FLEX_170, at(0xb000_8000)), Ok(Ecam::default()));
        assert_eq!(locate(configured, FLEX_170, at(0)), Ok(configured), "it is at neither address");
        assert_eq!(locate(configured, FLEX_170, |_| Err(DmaError::NoAnswer)), Err(DmaError::NoAnswer));
        let unread = locate(Ecam::default(), FLEX_170, |_| Err(DmaError::NoAnswer));
        assert_eq!(unread, Ok(Ecam::default()), "with one possible address nothing is read");
    }
}
