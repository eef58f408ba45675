// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Functions that a VMM saves and restores through the library.

use std::sync::Arc;
use std::time::Duration;

use arctic_gpu::vm_memory::{GuestAddress, GuestMemoryMmap};
use arctic_gpu::{GuestRam, PciDevice, SavedDevice, StateError, Topology, VirtualCard, card_file};
use arctic_test_support::null_machine::NullMachine;

const LIMIT: Duration = Duration::from_secs(5);
/// VF_SW_FLAG(1).
const SW_FLAG: u64 = 0x19_0244;

fn card(name: &str, vfs: u8, topology: Topology) -> VirtualCard {
    let ram = GuestRam::new(Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap()));
    let card = VirtualCard::builder(card_file::load(name).unwrap())
        .vfs(vfs)
        .topology(topology)
        .plug_into(Arc::new(NullMachine), ram)
        .unwrap();
    // Memory space and bus master.
    card.functions().iter().for_each(|function| function.write_config(4, &[6, 0]));
    card
}

fn function(card: &VirtualCard, number: usize) -> (&dyn PciDevice, &dyn SavedDevice) {
    let function =
        &**card.functions().iter().find(|function| usize::from(function.number().number()) == number).unwrap();
    (function, function.saved_device().unwrap())
}

fn read(function: &dyn PciDevice, bar: u8, offset: u64) -> u32 {
    let mut data = [0; 4];
    function.read_bar(bar, offset, &mut data);
    u32::from_le_bytes(data)
}

fn write(function: &dyn PciDevice, bar: u8, offset: u64, value: u32) {
    function.write_bar(bar, offset, &value.to_le_bytes());
}

fn config(function: &dyn PciDevice) -> Vec<u8> {
    let mut data = vec![0; 256];
    function.read_config(0, &mut data);
    data
}

fn saved(device: &dyn SavedDevice) -> Vec<u8> {
    let mut bytes = Vec::new();
    device.save(&mut bytes).unwrap();
    bytes
}

/// A VF continues on another card, as another VF: registers, configuration space and contents of memory are those of the saved
/// one. Memory without data takes no bytes.
#[test]
fn a_vf_is_restored_on_another_card() {
    let (source, target) = (card("small", 2, Topology::Provisioned), card("small", 2, Topology::Provisioned));
    let (vf, device) = function(&source, 1);
    write(vf, 2, 0x10_0000, 0x1234_5678);
    write(vf, 0, SW_FLAG, 0x55aa);
    vf.write_config(0x3c, &[9]);
    assert!(matches!(device.save(&mut Vec::new()), Err(StateError::Save(_))), "it is not paused");
    device.pause(LIMIT).unwrap();
    assert!(matches!(device.pause(LIMIT), Err(StateError::Not("running"))));
    let bytes = saved(device);
    assert_eq!(saved(device), bytes, "saving changes nothing");
    assert!(bytes.len() < 64 << 10, "{} bytes", bytes.len());

    let (other, restored) = function(&target, 2);
    write(other, 2, 0x20_0000, 1);
    assert!(matches!(restored.restore(&mut &bytes[..]), Err(StateError::Restore(_))), "it is not paused");
    restored.pause(LIMIT).unwrap();
    restored.restore(&mut &bytes[..]).unwrap();
    assert_eq!((read(other, 2, 0x10_0000), read(other, 2, 0x20_0000)), (0x1234_5678, 0));
    assert_eq!((read(other, 0, SW_FLAG), config(other)), (0x55aa, config(vf)));
    restored.resume().unwrap();
    assert!(matches!(restored.resume(), Err(StateError::Not("paused"))));
    device.resume().unwrap();
}

/// What does not fit is refused in a sentence, and leaves a paused function empty; one that is not paused does not change.
#[test]
fn other_streams_are_refused() {
    let (source, target) = (card("small", 2, Topology::Provisioned), card("small", 1, Topology::Provisioned));
    let (vf, device) = function(&source, 1);
    device.pause(LIMIT).unwrap();
    let empty = saved(device);
    write(vf, 2, 0, 0x1234_5678);
    write(vf, 0, SW_FLAG, 0x55aa);
    let bytes = saved(device);
    let (larger_vf, larger) = function(&target, 1);
    write(larger_vf, 0, SW_FLAG, 0x55aa);
    write(larger_vf, 2, 0, 1);
    assert!(larger.restore(&mut &bytes[..]).is_err(), "it is not paused");
    assert_eq!((read(larger_vf, 0, SW_FLAG), read(larger_vf, 2, 0)), (0x55aa, 1));
    larger.pause(LIMIT).unwrap();
    let error = larger.restore(&mut &bytes[..]).unwrap_err().to_string();
    assert!(error.starts_with("the saved function had GGTT bytes 0x"), "{error}");
    assert_eq!((read(larger_vf, 0, SW_FLAG), read(larger_vf, 2, 0)), (0, 0));

    let ivb = card("ivb", 0, Topology::Native);
    let (_, integrated) = function(&ivb, 0);
    integrated.pause(LIMIT).unwrap();
    let of_ivb = saved(integrated);
    let contents = bytes.windows(8).rposition(|window| window == b"ARCTICST").unwrap();
    let changed = |at: usize| {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        changed
    };
    let streams = [
        (of_ivb, "the saved state is a Gen6 or Gen7 card, not a virtual function of an Xe-HPG card"),
        (Vec::new(), "cannot transfer the saved state: "),
        (changed(0), "this is not saved state of an Arctic card"),
        (changed(8), "the saved state has format 0, this version reads format 1"),
        (changed(23), "the saved state has 72057594037"),
        (changed(40), "the saved state is damaged: its sum is wrong"),
        (bytes[..100].to_vec(), "the saved state has 100 bytes, not the "),
        (bytes[..contents].to_vec(), "cannot transfer the saved state: "),
        (changed(contents + 12), "the saved state is of unknown kind LEMO, not contents of local memory"),
        (changed(bytes.len() - 100), "the saved state is damaged: its sum is wrong"),
        (bytes[..bytes.len() - 1].to_vec(), "cannot transfer the saved state: "),
    ];
    for (stream, expected) in streams {
        device.restore(&mut &bytes[..]).unwrap();
        assert_eq!((read(vf, 2, 0), read(vf, 0, SW_FLAG)), (0x1234_5678, 0x55aa));
        let error = device.restore(&mut &stream[..]).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}, not {expected}");
        assert_eq!(saved(device), empty, "{error}");
    }
    device.resume().unwrap();
}

/// The physical function of a Flex card, and VFs that its driver provisions, say that they cannot be saved.
#[test]
fn unsupported_functions_are_refused_with_the_reason() {
    let provisioned = card("small", 1, Topology::Provisioned);
    let (_, pf) = function(&provisioned, 0);
    let expected = "saving the physical function or all of this card is not supported, only virtual functions";
    for error in [pf.pause(LIMIT), pf.resume(), pf.save(&mut Vec::new()), pf.restore(&mut &[][..])] {
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
    let native = card("small", 1, Topology::Native);
    let error = function(&native, 1).1.pause(LIMIT).unwrap_err().to_string();
    assert!(error.contains("while a driver of the physical function provisions it"), "{error}");
}

/// An integrated GPU is saved and restored as a unit.
#[test]
fn an_integrated_gpu_is_restored_on_another_card() {
    for name in ["ivb", "snb"] {
        let (source, target) = (card(name, 0, Topology::Native), card(name, 0, Topology::Native));
        let (gpu, device) = function(&source, 0);
        // An entry of the GGTT, and a register.
        write(gpu, 0, (2 << 20) + 40, 0x5001);
        write(gpu, 0, 0x2310, 0x55);
        assert!(matches!(device.save(&mut Vec::new()), Err(StateError::Not("paused"))));
        device.pause(LIMIT).unwrap();
        let bytes = saved(device);
        let (other, restored) = function(&target, 0);
        assert!(restored.restore(&mut &bytes[..]).is_err(), "it is not paused");
        restored.pause(LIMIT).unwrap();
        restored.restore(&mut &bytes[..]).unwrap();
        assert_eq!((read(other, 0, (2 << 20) + 40), read(other, 0, 0x2310)), (0x5001, 0x55));
        assert_eq!(config(other), config(gpu));
        restored.resume().unwrap();
        let state = |gpu| (read(gpu, 0, (2 << 20) + 40), read(gpu, 0, 0x2310));
        let pieces = [&bytes[..], &bytes[..7]];
        assert!(pieces.iter().all(|bytes| restored.restore(&mut &bytes[..]).is_err()));
        assert_eq!(state(other), (0x5001, 0x55), "it is not paused");
        restored.pause(LIMIT).unwrap();
        assert!(restored.restore(&mut &bytes[..7]).is_err());
        assert_eq!(state(other), (0, 0), "it is empty");
        restored.restore(&mut &bytes[..]).unwrap();
        assert_eq!(state(other), (0x5001, 0x55));
        restored.resume().unwrap();
    }
}
