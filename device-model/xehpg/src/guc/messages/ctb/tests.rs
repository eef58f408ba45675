// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Exhaustive tests of ring positions on rings of a few dwords, with a list as the reference model.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use std::collections::VecDeque;
use std::convert::Infallible;

use arctic_fidelity::proves;

use super::*;

/// Returns the positions from `head` to `tail`, found by iterating.
fn written(size: u32, head: u32, tail: u32) -> Vec<u32> {
    let mut positions = Vec::new();
    let mut at = head;
    while at != tail {
        positions.push(at);
        at = if at == size - 1 { 0 } else { at + 1 };
    }
    positions
}

/// Contract B.6: all heads and tails of all rings up to 12 dwords, with all lengths up to the ring's size (6 734
/// cases). Checks the used and free space, wrapping, and the split of a copy at the end of the ring.
#[test]
fn every_head_and_tail() {
    proves!(GUC_001, "all positions of rings up to 12 dwords");
    let mut cases = 0;
    for size in 1..=12 {
        let ring = Ring(size);
        assert!(!ring.contains(size) && !ring.contains(u32::MAX) && ring.contains(size - 1));
        for head in 0..size {
            for tail in 0..size {
                let used = written(size, head, tail);
                assert_eq!(ring.used(head, tail), used.len() as u32);
                let free = (0..size).filter(|position| !used.contains(position)).count() as u32;
                assert_eq!(ring.room(head, tail), free - 1, "{size} {head} {tail}");
                for len in 0..=size {
                    let path: Vec<u32> = (head..head + len).map(|at| if at < size { at } else { at - size }).collect();
                    assert_eq!(ring.before_end(head, len), path.iter().filter(|at| **at >= head).count() as u32);
                    let end = path.last().map_or(head, |last| (last + 1) % size);
                    assert_eq!(ring.advance(head, len), end, "{size} {head} {len}");
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, (1..=12_u32).map(|size| size * size * (size + 1)).sum::<u32>());
    assert_eq!(cases, 6734);
}

/// Reference model on a list of dwords: skips up to `padding` zeros, then takes a header and the dwords that it
/// announces. Also returns the number of dwords read.
fn plain(mut dwords: VecDeque<u32>, padding: usize) -> (Next, usize) {
    let all = dwords.len();
    let mut zeros = 0;
    while dwords.front() == Some(&0) {
        dwords.pop_front();
        zeros += 1;
        if zeros > padding && !dwords.is_empty() {
            return (Next::Corrupt(STATUS_UNDERFLOW), zeros);
        }
    }
    let Some(header) = dwords.pop_front() else { return (Next::Nothing, all) };
    let len = header % 256;
    let promised = len >= 1 && dwords.len() >= len as usize;
    let next = if promised { Next::Message { header, len } } else { Next::Corrupt(STATUS_UNDERFLOW) };
    (next, all - dwords.len())
}

/// Contract B.6: all rings up to 7 dwords, with all heads (the GuC's own offset, always inside the ring), all tails up
/// to two beyond the end and `u32::MAX`, all numbers of leading zeros, all padding limits up to 8, and all lengths in a
/// header (256, with and without other bits set): 28 rings and heads, 6 580 224 messages. For a tail inside the ring,
/// the result equals that of the model. Each dword is read once, in order and inside the ring, and no unwritten dword
/// is read.
#[test]
fn every_message() {
    proves!([GUC_002, GUC_003], "all contents of rings up to 7 dwords, against a list");
    let mut cases = 0_u64;
    for size in 1..=7_u32 {
        for head in 0..size {
            for tail in (0..size + 2).chain([u32::MAX]) {
                let list = if tail < size { written(size, head, tail) } else { Vec::new() };
                for zeros in 0..=size {
                    for padding in 0..=8 {
                        for header in (0..256).flat_map(|len| [len, 0x1234_0000 | len]) {
                            let dword = |n: usize| if n < zeros as usize { 0 } else { header };
                            let mut read = Vec::new();
                            let mut at = head;
                            let Ok(next) = Ring(size).next(&mut at, tail, padding, |position| {
                                read.push(position);
                                Ok::<_, Infallible>(dword(read.len() - 1))
                            });
                            cases += 1;
                            if tail >= size {
                                assert_eq!((next, at, read.len()), (Next::Corrupt(STATUS_OVERFLOW), head, 0));
                                continue;
                            }
                            let (expected, taken) = plain((0..list.len()).map(dword).collect(), padding as usize);
                            assert_eq!(next, expected, "{size} {head} {tail} {zeros} {padding} {header:#x}");
                            assert_eq!(read, list[..taken], "{size} {head} {tail} {zeros} {padding} {header:#x}");
                            assert_eq!(at, list.get(taken).copied().unwrap_or(tail));
                        }
                    }
                }
            }
        }
    }
    let rings = |size: u64| size * (size + 3) * (size + 1);
    assert_eq!(cases, (1..=7).map(rings).sum::<u64>() * 9 * 512);
}

/// Padding with the real limit: all runs of up to 300 zeros in a ring of 400 dwords, from the start and across the end.
/// Up to the length of the longest message, zeros are padding; a longer run is an error.
#[test]
fn padding_has_an_end() {
    proves!(GUC_002, "zeros up to the length of a message are padding");
    for head in [0, 200] {
        for zeros in 0..=300_u32 {
            let mut at = head;
            let mut reads = 0;
            let ring = Ring(400);
            let Ok(next) = ring.next(&mut at, ring.advance(head, 310), MAX_DWORDS as u32, |_| {
                reads += 1;
                Ok::<_, Infallible>(if reads > zeros { 1 } else { 0 })
            });
            let expected =
                if zeros <= 255 { Next::Message { header: 1, len: 1 } } else { Next::Corrupt(STATUS_UNDERFLOW) };
            assert_eq!(next, expected, "{zeros}");
            assert!(reads <= 257);
        }
    }
}

/// Sending with any possible head of the host: a message is written if there is space for it, and unread dwords are
/// never overwritten. All rings up to 9 dwords, all heads and tails, all lengths up to 10: 2850 cases.
#[test]
fn no_message_overwrites_what_is_unread() {
    proves!(GUC_001, "all heads, tails and lengths in rings up to 9 dwords");
    for size in 1..=9 {
        for (head, tail) in (0..size).flat_map(|head| (0..size).map(move |tail| (head, tail))) {
            let unread = written(size, head, tail);
            for need in 1..=10_u32 {
                // The condition used by `send`.
                if need > Ring(size).room(head, tail) {
                    assert!(unread.len() as u32 + need >= size, "{size} {head} {tail} {need}: rejected needlessly");
                    continue;
                }
                let new: Vec<u32> = (0..need).map(|n| Ring(size).advance(tail, n)).collect();
                assert!(new.iter().all(|at| !unread.contains(at)), "{size} {head} {tail} {need}");
                assert_ne!(Ring(size).advance(tail, need), head, "{size} {head} {tail} {need}: full looks empty");
            }
        }
    }
}

/// CT buffers are restored as they were saved, with waiting messages of any length. Positions outside a ring, invalid
/// messages and too many messages are refused.
#[test]
fn a_channel_is_saved_and_restored() {
    let location = Location { descriptor: 0x1000, buffer: 0x2000, bytes: 4096 };
    let position = |own| SavedPosition { own, published: own, broken: false };
    let restored = |saved: &SavedChannel| Channel::restored(location, location, saved, 3);
    let waiting = vec![(7, vec![0xf000_0001]), (0, vec![0x9000_1002, 5, 1]), (0, (1..=255).collect())];
    let saved = SavedChannel { h2g: position(1023), g2h: SavedPosition { published: 9, ..position(12) }, waiting };
    assert_eq!(restored(&saved).map(|channel| channel.save()), Some(saved.clone()));
    let channel = restored(&saved).unwrap();
    assert_eq!((channel.waiting(), channel.unsent(), channel.h2g.offset()), (3, true, 1023));
    let refused = [
        SavedChannel { h2g: position(1024), ..saved.clone() },
        SavedChannel { g2h: SavedPosition { published: u32::MAX, ..position(0) }, ..saved.clone() },
        SavedChannel { waiting: vec![(0, Vec::new())], ..saved.clone() },
        SavedChannel { waiting: vec![(0, vec![0; 256])], ..saved.clone() },
        SavedChannel { waiting: vec![(0, vec![1]); 4], ..saved.clone() },
    ];
    assert!(refused.iter().all(|saved| restored(saved).is_none()));
}
