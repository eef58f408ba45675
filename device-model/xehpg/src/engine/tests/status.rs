// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Context switch reports in the status page.

use super::*;
use crate::registers::engine_fields::GfxMode;
use arctic_fidelity::proves;

const PAGE: u64 = DATA + 0x1000;

#[test]
fn only_switches_of_the_pf_are_reported() {
    proves!(
        V13_074,
        "the status page at HWS_PGA, in the PF's GGTT, is written for switches of PF contexts from the submission \
        queue, and never for switches of VF contexts"
    );
    let page = |bench: &EngineBench| (0..512).map(|n| bench.get64(PAGE + 8 * n)).collect::<Vec<_>>();
    let mut bench = EngineBench::of_vf(EngineClass::Copy, 1);
    bench.gt.registers.set(bench.base() + reg::HWS_PGA, PAGE as u32);
    assert_eq!(bench.ring(&store(VA + DATA, 1)), Outcome::Complete);
    assert_eq!((bench.get(DATA), page(&bench)), (1, vec![0; 512]));
    let port = &bench.gt.csb_ports[bench.engine.id().index()];
    assert_eq!(port.waiting(), 2, "the GuC receives them");
    bench.give(Function::PF);
    let base = bench.base();
    bench.gt.registers.set(base + reg::GFX_MODE, GfxMode::new().with_disable_legacy_mode(true).into());
    let context = bench.context(0);
    bench.emit(context, &store(VA + DATA, 2));
    bench.gt.registers.set(base + reg::EXECLIST_SQ_CONTENTS, context.load().descriptor as u32);
    bench.engine.load_queue(&bench.gt);
    assert_eq!((bench.run(), bench.get(DATA)), (Outcome::Complete, 2));
    let status = page(&bench);
    assert_eq!((status[8] >> 42, status[9] as u32 >> 10, status[23] >> 32), (0xffff, 0xffff, 1));
}
