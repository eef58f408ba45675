// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the selection of contexts by the descriptors in a queue.

use super::*;
use crate::generation::XE_HPG;
use arctic_fidelity::proves;

#[test]
fn the_descriptor_chooses_the_space() {
    proves!(
        V8_030,
        "the descriptor selects the context by its GGTT address, and the use of its PPGTT by bit 8. Without that \
        bit, the addresses in a context's commands are GGTT addresses"
    );
    let host = Host::new();
    let data = host.data(0);
    // The same command with different addresses, each valid in only one of the two address spaces.
    let process = host.with(0, &store(data, 1));
    let global = host.with(1, &[0x1000_0002, data as u32 + 8, 0, 1]);
    host.submit(&[process.descriptor(), global.descriptor() & !(1 << 8)]);
    host.work();
    assert_eq!((host.get(data), host.get(data + 8)), (1, 1));
    assert_eq!([process, global].map(|context| host.head_of(context) != 0), [true; 2]);
}

#[test]
fn status_contains_the_submitted_context_ids() {
    proves!(
        [V8_031, V8_032],
        "status quadwords contain the SW counter and the SW context ID as submitted, whatever software encodes in \
        them (engine numbers, the proxy flag), but neither the function's number nor reserved bits. The status \
        register contains the whole dword"
    );
    let host = Host::new();
    let page = host.page();
    for (n, (counter, id)) in [(0, 0), (0x3f, 0xfffe), (0x2a, 0x1234), (1, 0xffff)].into_iter().enumerate() {
        let context = host.with(0, &wait(host.data(0), n as u32 + 1));
        let low = context.descriptor() & 0xffff_ffff;
        let descriptor = counter << 58 | 7 << 55 | id << 39 | 1 << 38 | low;
        host.write(STATUS_PTR, 0x000f_000b);
        host.submit(&[descriptor]);
        host.work();
        assert_eq!(host.status() >> 32, descriptor >> 32);
        host.put(host.data(0), n as u32 + 1);
        host.work();
        let (came, left) = (host.get64(page + 0x40), host.get64(page + 0x48));
        let name = counter << 16 | id;
        assert_eq!((came >> 10 & 0x3f_ffff, came >> 42), (name, 0xffff));
        assert_eq!((left >> 42, left >> 10 & 0x3f_ffff), (name, 0xffff));
    }
}

#[test]
fn a_context_blocked_on_one_engine_runs_on_another() {
    proves!(
        V8_033,
        "an application has one context ID for all engines. While blocked on one engine, it still runs on another, \
        and the status quadwords of each engine refer to that engine's context"
    );
    let mut render = Host::of(XE_HPG.engines.find(EngineClass::Render, 0).unwrap());
    let mut copy = render.beside(copy());
    let data = render.data(0);
    let blocked = Context { id: 0x77, ..render.with(0, &wait(data, 1)) };
    let runs = Context { id: 0x77, ..copy.with(0, &store(data + 8, 1)) };
    render.load(&[blocked]);
    render.work();
    copy.load(&[runs]);
    copy.work();
    assert_eq!((render.get(data + 8), render.status() >> 39, render.status() >> 7 & 1), (1, 0x77, 1));
    assert_eq!(render.switches(), [switch(1, IDLE, 0x77, 0)]);
    assert_eq!(copy.switches(), [switch(1, IDLE, 0x77, 0), switch(0, 0x77, IDLE, 0)]);
    render.put(data, 1);
    render.work();
    assert_eq!(render.switches(), [switch(0, 0x77, IDLE, 0)]);
}

#[test]
fn proxy_work_stays_in_order() {
    proves!(
        V8_034,
        "workloads that a kernel submits on behalf of others, with its own ID and their LRCAs, run in order. A \
        waiting workload keeps its position and the engine, and can be preempted to idle. Two LRCAs with one ID are \
        two contexts"
    );
    let mut host = Host::new();
    let data = host.data(0);
    let x = host.with(0, &commands(&[&wait(data, 1), &store(data + 8, 1)]));
    let y = host.with(1, &commands(&[&wait(data + 8, 1), &store(data + 16, 1)]));
    let [x, y] = [x, y].map(|context| Context { id: 0x55, ..context });
    host.load(&[x, y]);
    host.work();
    assert_eq!((host.switches(), host.head_of(y)), (vec![switch(1, IDLE, 0x55, 0)], 0), "y must wait for x");
    host.submit(&[]);
    host.work();
    assert_eq!((host.switches(), host.status()), (vec![switch(1, 0x55, IDLE, 4)], 1));
    host.load(&[x, y]);
    host.put(data, 1);
    host.work();
    assert_eq!((host.get(data + 8), host.get(data + 16)), (1, 1));
    let expected = [switch(1, IDLE, 0x55, 0), switch(0, 0x55, 0x55, 0), switch(0, 0x55, IDLE, 0)];
    assert_eq!(host.switches(), expected);
    // A new queue with the other LRCA is a switch, not a lite restore.
    host.put(data, 0);
    host.put(data + 8, 0);
    let x = Context { id: 0x55, ..host.with(0, &wait(data, 1)) };
    let y = Context { id: 0x55, ..host.with(1, &store(data + 24, 1)) };
    host.load(&[x]);
    host.work();
    host.load(&[y]);
    host.work();
    assert_eq!((host.get(data + 24), host.head_of(x)), (1, 0));
    assert_eq!(host.switches()[1], switch(1, 0x55, 0x55, 4));
}

#[test]
fn the_head_is_reported() {
    proves!(
        V8_069,
        "with RING_CTL bits 2:1 set, the head is written to the fifth dword of the PPHWSP whenever it enters \
        another 4 KiB, 64 KiB or 128 KiB of the ring; otherwise never"
    );
    let host = Host::new();
    let data = host.data(0);
    for (ctl, expected) in [(0x3001, 0), (0x3005, 0x1000), (0x3003, 0), (0x3007, 0)] {
        let context = host.context(0);
        host.put(context.image(11), ctl);
        host.put(context.pphwsp() + 16, 0);
        // MI_NOOPs up to the end of the ring's first page and beyond it, then a wait.
        host.emit(context, &vec![0; 0x400 - 2]);
        host.emit(context, &vec![0; 0x100]);
        host.emit(context, &wait(data, 1));
        host.load(&[context]);
        host.work();
        let reported = host.get(context.pphwsp() + 16);
        assert_eq!(reported & !0xfff, expected, "{ctl:#x}");
        assert!(reported <= host.read(0x34));
        host.put(data, 1);
        host.work();
        host.put(data, 0);
    }
    // 64 KiB and more need another ring, in which the head wraps.
    for (ctl, every) in [(0x3_f003, 0x1_0000), (0x3_f007, 0x2_0000), (0x3_f005, 0x1000)] {
        let (context, ring) = (host.context(0), 0xa2_0000);
        for at in (ring..ring + 0x4_0000).step_by(4) {
            host.put(at, 0);
        }
        host.put(context.image(9), ring as u32);
        host.put(context.image(11), ctl);
        let mut seen = Vec::new();
        for stop in (0x4000..=0x4_4000u32).step_by(0x4000) {
            host.put(context.pphwsp() + 16, !0);
            host.put(context.image(7), stop % 0x4_0000);
            host.load(&[context]);
            host.work();
            if host.get(context.pphwsp() + 16) != !0 {
                seen.push(stop - 0x4000);
            }
        }
        let crossed: Vec<u32> =
            (0..0x4_4000).step_by(0x4000).filter(|from| every == 0x1000 || (from + 0x4000) % every == 0).collect();
        assert_eq!(seen, crossed, "{ctl:#x}");
    }
}
