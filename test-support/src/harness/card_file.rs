// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of the card file parser. Each input must either be rejected with a one-line error message, or describe
//! a card that can be created.

use crate::null_machine::NullMachine;
use arctic_gpu::gpu::PowerOnError;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use arctic_device_model::host::{ManualClock, NullHost};
use arctic_device_model::sync::IgnorePoison;
use arctic_gpu::card_file::{self, CardFile, CardFileError};
use arctic_gpu::gpu::Model;
use arctic_gpu::{CardError, CardProfile, PciDevice, Topology, VirtualCard, WorkStatus};

/// Maximum number of input bytes that are used; further bytes are ignored.
const MOST: usize = 4096;
/// Maximum length of an error message in bytes.
const LONGEST: usize = 600;

/// Runs one input. Panics if an accepted input does not describe a usable card, or if an error message is malformed.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(&input[..input.len().min(MOST)]) else { return };
    match card_file::parse("my.toml", text) {
        Ok(CardFile::Flex(profile)) => power_on(&profile),
        Ok(card) => assert!(card.physical_function(0).is_ok(), "{card:?}"),
        Err(error) => refused(text, &error),
    }
}

fn refused(text: &str, error: &CardFileError) {
    let message = error.to_string();
    assert!(message.starts_with("my.toml"), "{message:?}");
    assert!(!message.contains(char::is_control), "{message:?}");
    assert!(message.len() <= LONGEST, "{} bytes: {message:?}", message.len());
    match error {
        CardFileError::Wrong { line, message, .. } => {
            assert!(!message.trim().is_empty());
            let lines = text.matches('\n').count() + 1;
            assert!(line.is_none_or(|line| (1..=lines).contains(&line)), "line {line:?} of {lines}");
        }
        _ => panic!("unexpected error {message:?}"),
    }
}

/// Creates a card from the profile. Skips profiles seen before, because creating a card is slow.
fn power_on(profile: &CardProfile) {
    assert!((1..=80).contains(&profile.name.len()) && !profile.name.contains(char::is_control));
    static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut unnamed = profile.clone();
    unnamed.name = "any".into();
    let mut seen = SEEN.lock().ignore_poison();
    if seen.len() > 10_000 {
        seen.clear();
    }
    if !seen.insert(format!("{unnamed:?}")) {
        return;
    }
    drop(seen);
    // Limits the card to 1 GiB of local memory, the minimum, and to three VFs. Creates it with and without a PF driver.
    let local_memory = profile.local_memory.min(1 << 30);
    let mut profile = profile.clone();
    profile.local_memory = local_memory;
    for topology in [Topology::Native, Topology::Provisioned] {
        let null = || Arc::new(NullMachine);
        let builder = VirtualCard::builder(profile.clone()).vfs(3).topology(topology);
        let builder = builder.clock(Arc::new(ManualClock::default())).without_threads(|| {});
        match builder.plug_into(null(), Arc::new(NullHost)) {
            Ok(card) => {
                let mut identity = [0; 4];
                card.pf().read_config(0, &mut identity);
                assert_eq!(u32::from_le_bytes(identity), u32::from(profile.device) << 16 | 0x8086);
                assert_eq!(card.total_vfs(), profile.total_vfs.min(3));
                while card.work() != WorkStatus::Idle(None) {}
            }
            // The profile may provision more than the reduced local memory.
            Err(error @ CardError::PowerOn(PowerOnError::Resources(_))) => {
                assert!(!error.to_string().contains(char::is_control), "{error}")
            }
            Err(error) => panic!("{error}"),
        }
    }
}
