// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CPUID of the vCPUs.

use kvm_bindings::{CpuId, kvm_cpuid_entry2};

/// Leaf 1, ECX: TSC-deadline mode of the local APIC timer.
const TSC_DEADLINE: u32 = 1 << 24;
/// Leaf 1, ECX: running under a hypervisor.
const HYPERVISOR: u32 = 1 << 31;

/// Derives the CPUID of vCPU `number` of `cpus` from the host's `supported` CPUID: one socket, one thread per core,
/// APIC ID equal to the vCPU's index.
pub fn for_cpu(supported: &CpuId, number: u8, cpus: u8, tsc_deadline: bool) -> CpuId {
    let mut cpuid = supported.clone();
    // Number of APIC ID bits that distinguish the cores of a socket.
    let core_bits = u32::from(cpus).next_power_of_two().trailing_zeros();
    let (id, cores) = (u32::from(number), u32::from(cpus));
    cpuid.retain(|entry| entry.function != 0x1f);
    for entry in cpuid.as_mut_slice() {
        match (entry.function, entry.index) {
            (0x1, _) => {
                entry.ebx = entry.ebx & 0xffff | id << 24 | cores.next_power_of_two() << 16;
                entry.ecx |= HYPERVISOR;
                entry.ecx = if tsc_deadline { entry.ecx | TSC_DEADLINE } else { entry.ecx & !TSC_DEADLINE };
                // HTT: more than one APIC ID in the package.
                entry.edx = entry.edx & !(1 << 28) | u32::from(cpus > 1) << 28;
            }
            // Intel's cache leaf: APIC IDs that share each cache and cores in the package, both minus one.
            (0x4, _) => entry.eax = entry.eax & 0x3fff | (cores.next_power_of_two() - 1) << 26,
            (0xb, 0) => level(entry, id, 0, 1, 1),
            (0xb, 1) => level(entry, id, core_bits, cores, 2),
            (0xb, _) => level(entry, id, 0, 0, 0),
            // AMD's core count.
            (0x8000_0008, _) => entry.ecx = core_bits << 12 | (cores - 1),
            (0x8000_001e, _) => (entry.eax, entry.ebx, entry.ecx) = (id, id, 0),
            _ => {}
        }
    }
    cpuid
}

/// Returns the number of physical address bits of the host's CPUs.
pub fn address_bits(supported: &CpuId) -> u32 {
    let leaf = supported.as_slice().iter().find(|entry| entry.function == 0x8000_0008);
    // The architectural default for CPUs without the leaf.
    leaf.map_or(36, |entry| entry.eax & 0xff)
}

/// Sets a topology level: shift of the APIC ID to the next level, number of CPUs at this level, type of the level.
fn level(entry: &mut kvm_cpuid_entry2, id: u32, shift: u32, count: u32, kind: u32) {
    (entry.eax, entry.ebx, entry.edx) = (shift, count, id);
    entry.ecx = kind << 8 | entry.index;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuid_has_apic_id_and_topology_of_each_cpu() {
        let leaf = |function, index| kvm_cpuid_entry2 { function, index, ebx: 0xffff_ffff, ..Default::default() };
        let offer = [leaf(1, 0), leaf(0xb, 0), leaf(0xb, 1), leaf(0x1f, 0), leaf(0x8000_0008, 0)];
        let cpuid = for_cpu(&CpuId::from_entries(&offer).unwrap(), 2, 3, true);
        let [one, threads, cores, sizes] = cpuid.as_slice() else { panic!("expected all leaves but 0x1f") };
        assert_eq!((one.ebx, one.ecx), (2 << 24 | 4 << 16 | 0xffff, HYPERVISOR | TSC_DEADLINE));
        assert_eq!((threads.eax, threads.ebx, threads.ecx, threads.edx), (0, 1, 0x100, 2));
        assert_eq!((cores.eax, cores.ebx, cores.ecx, cores.edx), (2, 3, 0x201, 2));
        assert_eq!(sizes.ecx, 2 << 12 | 2);
    }

    #[test]
    fn the_width_of_addresses_is_read() {
        let leaf = kvm_cpuid_entry2 { function: 0x8000_0008, eax: 0x3027, ..Default::default() };
        assert_eq!(address_bits(&CpuId::from_entries(&[leaf]).unwrap()), 39);
        assert_eq!(address_bits(&CpuId::from_entries(&[]).unwrap()), 36);
    }
}
