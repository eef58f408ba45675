// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The status of a card.

use serde_json::json;

use super::*;
use crate::generation::Version;

/// The status lists the functions of the card, enabled or not, and every engine, before a driver has loaded firmware.
#[test]
fn status() {
    let (card, _) = card();
    assert_eq!(card.status().functions.len(), 1);
    card.enable_vfs(3);
    let status = card.status();
    assert_eq!(status.functions.iter().map(|f| f.function).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let engines: Vec<_> = status.engines.iter().map(|of| of.engine.as_str()).collect();
    assert_eq!(engines, ["rcs0", "bcs0", "ccs0", "ccs1", "ccs2", "ccs3", "vcs0", "vcs2", "vecs0", "vecs1"]);
    assert_eq!(status.firmware["guc"], None);
    let functions = |card: &Card| card.status().functions.iter().map(|of| of.function).collect::<Vec<_>>();
    let card = with_client_memory();
    assert_eq!((functions(&card), card.enabled_vfs()), (vec![0, 1], 0), "a VF that is not enabled");
}

/// The status of a card that provisions its VFs without a PF driver.
#[test]
fn status_of_a_provisioned_card() {
    let (card, _) = card();
    let quota = Quota {
        ggtt: 64 << 20,
        local_memory: 128 << 20,
        contexts: 256,
        doorbells: 8,
        exec_quantum_ms: 16,
        preempt_timeout_us: 16_000,
    };
    card.provision(&[quota; 2]).unwrap();
    let status = card.status();
    let given = status.functions[2].quota.as_ref().expect("VF 2 has a quota");
    assert_eq!((given.ggtt_size, given.local_memory, given.contexts.count), (64 << 20, 128 << 20, 256));
    assert_eq!(given.scheduling.exec_quantum_ms, 16);
    assert_eq!((status.functions.len(), status.functions[2].contexts), (3, Some(0)));
    assert!(status.engines.iter().any(|engine| engine.engine == "rcs0" && engine.function.is_none()));
    let Version { major, minor, patch } = card.gt().generation.firmware.release;
    assert_eq!(status.firmware["guc"], Some(format!("{major}.{minor}.{patch}")));
    let document = serde_json::to_value(&status).unwrap();
    let names: Vec<_> = document["functions"][2].as_object().unwrap().keys().collect();
    let expected = [
        "cat_errors",
        "contexts",
        "engine_resets",
        "engine_time_ns",
        "function",
        "kernels",
        "messages",
        "on",
        "quota",
        "skipped_contexts",
        "skipped_driver_commands",
        "skipped_user_commands",
        "state",
        "waiting",
    ];
    assert_eq!(names, expected, "names in `arctic status --json`");
    assert_eq!(
        (&document["functions"][2]["state"], &document["engines"][0]),
        (&"running".into(), &json!({"engine": "rcs0", "time_ns": {}}))
    );
    let text = serde_json::to_string(&status).unwrap();
    assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
}
