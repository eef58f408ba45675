// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! QEMU's arguments for a guest with an IOMMU, and for the function that programs the VF BARs in such a guest.

use clap::ValueEnum;

use crate::devices::Device;

/// An IOMMU of QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Viommu {
    /// VT-d
    Intel,
    /// AMD-Vi
    Amd,
}

impl Viommu {
    /// QEMU's arguments; they must precede those of the devices. An IOMMU that remaps interrupts needs a split irqchip
    /// under KVM. QEMU assigns the first free slot to the PCI function of AMD-Vi if it has no address.
    pub fn arguments(self) -> &'static [[&'static str; 2]] {
        match self {
            Self::Intel => &[
                ["-machine", "kernel-irqchip=split"],
                ["-device", "intel-iommu,intremap=on,caching-mode=on,aw-bits=48"],
            ],
            Self::Amd => &[
                ["-machine", "kernel-irqchip=split"],
                ["-device", "AMDVI-PCI,id=iommupci0,addr=1a.0"],
                ["-device", "amd-iommu,intremap=on,dma-remap=on,pci-id=iommupci0"],
            ],
        }
    }

    /// The kernel argument that makes Linux translate the PF.
    pub fn kernel_argument(self) -> &'static str {
        match self {
            Self::Intel => "intel_iommu=on iommu=nopt",
            Self::Amd => "iommu=nopt",
        }
    }

    /// The option's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Intel => "intel",
            Self::Amd => "amd",
        }
    }
}

/// The function that programs the VF BARs of a guest with an IOMMU: name of its socket without extension.
pub const REQUESTER: &str = "ecam";

/// A root bus with functions that the IOMMU does not translate, and its only port: QEMU accepts nothing but bridges on
/// that bus. Its slot on the first bus is behind those of 63 VFs.
const BYPASS: [[&str; 2]; 2] = [
    ["-device", "pxb-pcie,id=ecam-bus,bus=pcie.0,addr=19.0,bus_nr=240,bypass_iommu=on"],
    ["-device", "pcie-root-port,id=ecam-port,bus=ecam-bus,addr=0.0,chassis=240,slot=0,hotplug=off"],
];

/// Returns QEMU's arguments for the function that programs the VF BARs, with the `socket`, and for its bus.
pub fn requester(socket: &str) -> Vec<String> {
    let at = ("ecam-port", "0.0");
    let device = Device { id: REQUESTER, at, socket, multifunction: false, posted_writes: true };
    BYPASS.as_flattened().iter().map(ToString::to_string).chain(device.arguments()).collect()
}
