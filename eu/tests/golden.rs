// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernels of Intel's compiler with recorded results: `data/golden.zebin` is `kernels/golden.cl` as ocloc compiles it, and
//! `data/golden.txt` has checksums of the buffers after the same kernels with pocl on the host. `tests/peer.rs` compares the
//! records with pocl, and makes them.

mod cases;
mod random;

use arctic_eu::exec::Way;
use arctic_eu::launch::{Launch, LocalIds, Outcome, Range, Settings};
use arctic_eu::zebin::Zebin;

use cases::{cases, checksum_line, inputs};

const CODE: &[u8] = include_bytes!("data/golden.zebin");
const RESULTS: &str = include_str!("data/golden.txt");

#[test]
fn compiled_kernels_have_the_recorded_results() {
    let zebin = Zebin::parse(CODE.to_vec()).unwrap();
    let mut count = 0;
    for case in cases("golden") {
        for way in [Way::Fast, Way::General] {
            for local_ids in [LocalIds::Driver, LocalIds::Memory] {
                let settings = Settings { way, local_ids, limit: 1_000_000, ..Settings::default() };
                let range = Range { global: case.global, local: case.local, offset: [0; 3] };
                let launch = Launch::new(&zebin, Some(&case.kernel), range, &inputs(&case), settings).unwrap();
                let report = launch.run(&|_| {});
                assert_eq!((report.outcome, report.outside), (Outcome::Complete, 0), "{} {way:?}", case.kernel);
                for (name, _) in &case.arguments {
                    let Some(bytes) = launch.buffer(name) else { continue };
                    let line = checksum_line(&case.kernel, name, &bytes);
                    assert!(RESULTS.contains(&line), "{way:?}, {local_ids:?}: {line}");
                    count += 1;
                }
            }
        }
    }
    assert_eq!(count, RESULTS.lines().count() * 4);
}
