// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the hardware errors with the sequences of drivers.

use super::*;
use crate::hardware_error::{ErrorRegisters, HardwareError, Severity};
use arctic_fidelity::proves;

const TILE: u32 = 0x19_0008;
const PRIMARY: u32 = 0x19_0010;
const PCIE: u32 = 0x10_0180;

/// Counts MSIs and messages of fatal errors.
#[derive(Default)]
struct Reports {
    msis: AtomicU64,
    messages: AtomicU64,
}

impl InterruptSink for Reports {
    fn raise(&self, function: Function, _: u16) {
        assert_eq!(function, Function::PF);
        self.msis.fetch_add(1, Ordering::SeqCst);
    }

    fn fatal_error(&self, function: Function) {
        assert_eq!(function, Function::PF);
        self.messages.fetch_add(1, Ordering::SeqCst);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

impl Reports {
    /// MSIs and messages since the last call.
    fn take(&self) -> (u64, u64) {
        (self.msis.swap(0, Ordering::SeqCst), self.messages.swap(0, Ordering::SeqCst))
    }
}

/// A GT with its interrupt enabled.
fn reporting() -> (Gt, Arc<Reports>) {
    let region = |len| SharedRegion::anonymous(len).unwrap();
    let memory = Memory::new(XE_HPG.page_tables, region(1 << 20), Ggtt::new(region(GGTT_BYTES)), Arc::new(NullHost));
    let profile = toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
    let reports = Arc::new(Reports::default());
    let gt = Gt::new(&profile, memory, reports.clone(), Arc::new(ManualClock::default()));
    gt.write(TILE, 1 << 31);
    (gt, reports)
}

fn named(name: &str) -> HardwareError {
    HardwareError::named(name).unwrap()
}

/// GT register, device register and bit of the primary register of each severity (xe: regs/xe_hw_error_regs.h,
/// regs/xe_irq_regs.h).
const REGISTERS: [(Severity, u32, u32, u32); 3] = [
    (Severity::Correctable, 0x10_0160, 0x10_017c, 1 << 26),
    (Severity::NonFatal, 0x10_0164, 0x10_0178, 1 << 27),
    (Severity::Fatal, 0x10_0168, 0x10_0174, 1 << 28),
];

/// The errors: name, bit of the GT, bit of the device.
const ERRORS: [(&str, Option<u32>, Option<u32>); 31] = [
    ("correctable-l3", Some(0), Some(0)),
    ("correctable-guc", Some(1), Some(0)),
    ("correctable-sampler", Some(12), Some(0)),
    ("correctable-slm", Some(13), Some(0)),
    ("correctable-eu-ic", Some(14), Some(0)),
    ("correctable-eu-grf", Some(15), Some(0)),
    ("correctable-gsc", None, Some(8)),
    ("correctable-sgunit", None, Some(12)),
    ("correctable-soc", None, Some(16)),
    ("correctable-unknown", None, None),
    ("nonfatal-gt", Some(0), Some(0)),
    ("nonfatal-gsc", None, Some(8)),
    ("nonfatal-sgunit", None, Some(12)),
    ("nonfatal-soc", None, Some(16)),
    ("nonfatal-mert", None, Some(20)),
    ("nonfatal-unknown", None, None),
    ("fatal-bist", Some(1), Some(0)),
    ("fatal-fpu", Some(3), Some(0)),
    ("fatal-l3", Some(4), Some(0)),
    ("fatal-l3-ecc", Some(5), Some(0)),
    ("fatal-guc", Some(6), Some(0)),
    ("fatal-idi", Some(8), Some(0)),
    ("fatal-sqidi", Some(9), Some(0)),
    ("fatal-sampler", Some(12), Some(0)),
    ("fatal-slm", Some(13), Some(0)),
    ("fatal-eu-ic", Some(14), Some(0)),
    ("fatal-eu-grf", Some(15), Some(0)),
    ("fatal-gsc", None, Some(8)),
    ("fatal-sgunit", None, Some(12)),
    ("fatal-soc", None, Some(16)),
    ("fatal-unknown", None, None),
];

#[test]
fn each_error_is_read_and_cleared() {
    proves!(
        [V13_279, V13_284],
        "each error sets its bit in the GT's and in the device's register of its severity and the error bit of the primary register, and no other. Each bit stays until 1 is written to it; the reserved register reads 0, the routing control stores"
    );
    assert_eq!(HardwareError::all().iter().map(|error| error.name).collect::<Vec<_>>(), ERRORS.map(|row| row.0));
    let (gt, _) = reporting();
    let status: Vec<u32> = (0x10_0160..=PCIE).step_by(4).filter(|at| *at != 0x10_0170).chain([PRIMARY]).collect();
    for (name, unit, source) in ERRORS {
        let error = named(name);
        let (severity, gt_register, device_register, primary) =
            REGISTERS.into_iter().find(|row| name.starts_with(&format!("{}-", row.0.name()))).unwrap();
        assert_eq!(error.severity, severity, "{name}");
        let bit = |bit: Option<u32>| bit.map_or(0, |bit| 1 << bit);
        let pcie = if severity == Severity::Fatal { 1 << 2 } else { 0 };
        let expected = [(gt_register, bit(unit)), (device_register, bit(source)), (PRIMARY, primary), (PCIE, pcie)];
        gt.raise_hardware_error(error);
        for at in &status {
            let value = expected.iter().find(|row| row.0 == *at).map_or(0, |row| row.1);
            assert_eq!(gt.read(*at), value, "{name}: {at:#x}");
            // Neither 0 nor another bit clears it.
            gt.write(*at, 0);
            gt.write(*at, !value);
            assert_eq!(gt.read(*at), value, "{name}: {at:#x}");
        }
        for at in &status {
            gt.write(*at, gt.read(*at));
            assert_eq!(gt.read(*at), 0, "{name}: {at:#x}");
        }
    }
    gt.write(0x10_0170, 0x1234_5678);
    assert_eq!((gt.read(0x10_0170), gt.read(0x10_016c)), (0x1234_5678, 0));
}

#[test]
fn errors_that_are_not_fatal_interrupt() {
    proves!(
        [V13_284, V13_286],
        "correctable and non-fatal errors send an MSI, which the driver's handler serves: it clears the primary register before the source. An error that occurs after that is reported by a further MSI"
    );
    let (gt, reports) = reporting();
    for (severity, gt_register, device_register, primary) in REGISTERS.into_iter().take(2) {
        let first = named(&format!("{}-gsc", severity.name()));
        gt.raise_hardware_error(first);
        gt.raise_hardware_error(first);
        assert_eq!(reports.take(), (1, 0), "one MSI until it is served");
        gt.write(TILE, 0);
        assert_eq!(gt.read(TILE), 1);
        gt.write(TILE, 1);
        assert_eq!(gt.read(PRIMARY), primary);
        gt.write(PRIMARY, primary);
        assert_eq!((gt.read(PRIMARY), gt.read(TILE)), (0, 0));
        // A further source, before the register of sources is read.
        gt.raise_hardware_error(named(&format!("{}-soc", severity.name())));
        assert_eq!(gt.read(device_register), 1 << 8 | 1 << 16);
        gt.write(device_register, 1 << 8);
        assert_eq!((gt.read(device_register), gt.read(gt_register)), (1 << 16, 0));
        assert_eq!(reports.take(), (0, 0), "the interrupt is disabled");
        gt.write(TILE, 1 << 31);
        assert_eq!(reports.take(), (1, 0));
        gt.write(TILE, 0);
        gt.write(PRIMARY, gt.read(PRIMARY));
        gt.write(device_register, gt.read(device_register));
        gt.write(TILE, 1 << 31);
        assert_eq!((reports.take(), gt.read(device_register)), ((0, 0), 0));
    }
}

#[test]
fn fatal_errors_send_a_message() {
    proves!(
        V13_286,
        "a fatal error sends a PCI Express message and no MSI, also if the interrupt is enabled later. Its bit in the primary register is there for a handler that another interrupt calls"
    );
    let (gt, reports) = reporting();
    gt.raise_hardware_error(named("fatal-l3"));
    assert_eq!((reports.take(), gt.read(TILE)), ((0, 1), 1 << 31));
    gt.write(TILE, 0);
    gt.write(TILE, 1 << 31);
    assert_eq!(reports.take(), (0, 0));
    gt.raise_hardware_error(named("correctable-l3"));
    assert_eq!((reports.take(), gt.read(PRIMARY)), ((1, 0), 1 << 26 | 1 << 28));
    gt.write(PRIMARY, 1 << 26);
    assert_eq!((gt.read(PRIMARY), gt.read(TILE)), (1 << 28, 1 << 31));
}

#[test]
fn the_bits_of_a_fatal_error_are_cleared_in_any_order() {
    proves!(
        V13_287,
        "the handler of a fatal error finds the tile in the tile status and its source in the register of fatal errors, and clears both. The bits are independent: in every order, each write clears one register"
    );
    // Registers and bits: tile, primary register, source, GT.
    let bits = [(PCIE, 1 << 2), (PRIMARY, 1 << 28), (0x10_0174, 1), (0x10_0168, 1 << 4)];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [0, 2, 3, 1], [3, 1, 2, 0]] {
        let (gt, _) = reporting();
        gt.raise_hardware_error(named("fatal-l3"));
        for (cleared, n) in order.into_iter().enumerate() {
            let now = order.map(|n| gt.read(bits[n].0));
            let left = |n: usize, place: usize| if place < cleared { 0 } else { bits[n].1 };
            let mut place = 0;
            assert_eq!(now, order.map(|n| (left(n, place), place += 1).0), "{order:?}");
            gt.write(bits[n].0, bits[n].1);
        }
        assert!(bits.iter().all(|(at, _)| gt.read(*at) == 0));
    }
    // With a second error, only the bits of the one that was handled are cleared.
    let (gt, reports) = reporting();
    gt.raise_hardware_error(named("fatal-soc"));
    gt.write(PCIE, 1 << 2);
    gt.raise_hardware_error(named("fatal-gsc"));
    gt.write(0x10_0174, 1 << 16);
    assert_eq!((gt.read(PCIE), gt.read(0x10_0174), reports.take()), (1 << 2, 1 << 8, (0, 2)));
}

#[test]
fn a_vf_sees_no_hardware_error() {
    proves!(V13_005, "a VF has neither error registers nor error bits, and its interrupt does not report them");
    let (gt, reports) = reporting();
    gt.mmio_write(Function::new(1).unwrap(), PRIMARY, 1 << 31, !0);
    HardwareError::all().iter().for_each(|error| gt.raise_hardware_error(*error));
    assert_eq!(reports.take(), (1, 15));
    assert_eq!(gt.mmio_read(Function::new(1).unwrap(), PRIMARY), 1 << 31);
    for offset in (0x10_0160..=PCIE).step_by(4) {
        gt.mmio_write(Function::new(1).unwrap(), offset, !0, !0);
        assert_eq!(gt.mmio_read(Function::new(1).unwrap(), offset), 0);
        assert_eq!(gt.read(offset) == 0, offset == 0x10_016c || offset == 0x10_0170, "{offset:#x}");
    }
}

/// The error registers are reported by severity; a reset of the card clears them.
#[test]
fn error_registers_are_reported() {
    let (gt, _) = reporting();
    let registers = |severity| ErrorRegisters { severity, gt: 0, device: 0, interrupt: false, message: false };
    let none = Severity::ALL.map(registers);
    assert_eq!(gt.error_registers(), none);
    gt.raise_hardware_error(named("nonfatal-gt"));
    gt.raise_hardware_error(named("fatal-unknown"));
    let [_, nonfatal, fatal] = none;
    let expected = [
        none[0],
        ErrorRegisters { gt: 1, device: 1, interrupt: true, ..nonfatal },
        ErrorRegisters { interrupt: true, message: true, ..fatal },
    ];
    assert_eq!(gt.error_registers(), expected);
    gt.reset();
    assert_eq!((gt.error_registers(), gt.read(PRIMARY)), (none, 0));
}
