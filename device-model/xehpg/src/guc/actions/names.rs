// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Human-readable names of message contents: actions, parameters, keys, errors (xe: abi/guc_actions_abi.h,
//! guc_actions_sriov_abi.h, guc_klvs_abi.h, guc_errors_abi.h).

use crate::guc::actions;
use crate::guc::actions::mailbox;
use crate::guc::messages::hxg::Error;

/// Events that the GuC sends, with names for the dwords after the header.
const EVENTS: &[(u16, &str, &[&str])] = &[
    (0x1002, "SCHED_CONTEXT_MODE_DONE", &["context", "enabled"]),
    (0x1008, "CONTEXT_RESET_NOTIFICATION", &["context"]),
    (0x4600, "DEREGISTER_CONTEXT_DONE", &["context"]),
    (0x5100, "GUC2PF_RELAY_FROM_VF", &["vf", "relay id"]),
    (0x5102, "GUC2VF_RELAY_FROM_PF", &["relay id"]),
    (0x5104, "GUC2PF_ADVERSE_EVENT", &["vf", "threshold key"]),
    (0x5106, "GUC2PF_VF_STATE_NOTIFY", &["vf", "event"]),
    (0x6000, "NOTIFY_MEMORY_CAT_ERROR", &["context", "type"]),
    (0x7001, "TLB_INVALIDATION_DONE", &["seqno"]),
    (0x8002, "STATE_CAPTURE_NOTIFICATION", &["status"]),
];

/// Types of TLB_INVALIDATION, bits 7:0 of its operation, as events of a trace name them (xe: guc_actions_abi.h,
/// xe_guc_tlb_invalidation_type; contract C.3).
const INVALIDATIONS: &[(u32, &str)] = &[
    (0, "a full request"),
    (1, "a page-selective request"),
    (2, "a page-selective request of a context"),
    (3, "a GGTT request"),
];

/// TLB_INVALIDATION_ALL, likewise.
pub const INVALIDATION_ALL: &str = "a request for all functions";

/// The name of a type of TLB_INVALIDATION.
pub fn of_invalidation(kind: u32) -> &'static str {
    INVALIDATIONS.iter().find(|(number, _)| *number == kind).map_or("a request of a reserved type", |(_, name)| name)
}

/// Names of the dwords after a request's header.
const PARAMETERS: &[(u16, &[&str])] = &[
    (0x0010, &["context", "doorbell"]),
    (0x0020, &["context"]),
    (0x0506, &["policies"]),
    (0x1000, &["context"]),
    (0x1001, &["context", "enable"]),
    (0x100b, &["context"]),
    (0x3003, &["event:arguments"]),
    (0x3004, &["control"]),
    (0x4100, &["address low", "address high", "size"]),
    (
        0x4502,
        &[
            "flags",
            "context",
            "class",
            "submit mask",
            "work queue descriptor low",
            "work queue descriptor high",
            "work queue low",
            "work queue high",
            "work queue size",
            "LRC low",
            "LRC high",
        ],
    ),
    (
        0x4601,
        &[
            "flags",
            "context",
            "class",
            "submit mask",
            "work queue descriptor low",
            "work queue descriptor high",
            "work queue low",
            "work queue high",
            "work queue size",
            "LRCs",
        ],
    ),
    (0x4503, &["context"]),
    (0x4509, &["control"]),
    (0x5101, &["vf", "relay id"]),
    (0x5103, &["relay id"]),
    (0x5500, &["version"]),
    (0x5502, &["address low", "address high", "dwords"]),
    (0x5503, &["vf", "address low", "address high", "dwords"]),
    (0x5506, &["vf", "command"]),
    (0x5509, &["key"]),
    (0x550a, &["address low", "address high"]),
    (0x550e, &["address low", "address high", "dwords"]),
    (0x7000, &["seqno", "flags"]),
    (0x7002, &["seqno", "flags"]),
];

/// Keys of key-length-values.
const KEYS: &[(u16, &str)] = &[
    (0x0001, "VF_CFG_GGTT_START"),
    (0x0002, "VF_CFG_GGTT_SIZE"),
    (0x0003, "VF_CFG_LMEM_SIZE"),
    (0x0004, "VF_CFG_NUM_CONTEXTS"),
    (0x0005, "VF_CFG_TILE_MASK"),
    (0x0006, "VF_CFG_NUM_DOORBELLS"),
    (0x0900, "SELF_CFG_MEMIRQ_STATUS_ADDR"),
    (0x0901, "SELF_CFG_MEMIRQ_SOURCE_ADDR"),
    (0x0902, "SELF_CFG_H2G_CTB_ADDR"),
    (0x0903, "SELF_CFG_H2G_CTB_DESCRIPTOR_ADDR"),
    (0x0904, "SELF_CFG_H2G_CTB_SIZE"),
    (0x0905, "SELF_CFG_G2H_CTB_ADDR"),
    (0x0906, "SELF_CFG_G2H_CTB_DESCRIPTOR_ADDR"),
    (0x0907, "SELF_CFG_G2H_CTB_SIZE"),
    (0x1001, "SCHEDULING_POLICIES_RENDER_COMPUTE_YIELD"),
    (0x2001, "CONTEXT_POLICIES_EXECUTION_QUANTUM"),
    (0x2002, "CONTEXT_POLICIES_PREEMPTION_TIMEOUT"),
    (0x2003, "CONTEXT_POLICIES_SCHEDULING_PRIORITY"),
    (0x2004, "CONTEXT_POLICIES_PREEMPT_TO_IDLE_ON_QUANTUM_EXPIRY"),
    (0x2005, "CONTEXT_POLICIES_SLPM_GT_FREQUENCY"),
    (0x3000, "GLOBAL_CFG_GMD_ID"),
    (0x3001, "GLOBAL_CFG_GROUP_SCHEDULING_AVAILABLE"),
    (0x4001, "OPT_IN_FEATURE_EXT_CAT_ERR_TYPE"),
    (0x4003, "OPT_IN_FEATURE_DYNAMIC_INHIBIT_CONTEXT_SWITCH"),
    (0x8001, "VGT_POLICY_SCHED_IF_IDLE"),
    (0x8002, "VGT_POLICY_ADVERSE_SAMPLE_PERIOD"),
    (0x8004, "VGT_POLICY_ENGINE_GROUP_CONFIG"),
    (0x8a01, "VF_CFG_EXEC_QUANTUM"),
    (0x8a02, "VF_CFG_PREEMPT_TIMEOUT"),
    (0x8a03, "VF_CFG_THRESHOLD_CAT_ERR"),
    (0x8a04, "VF_CFG_THRESHOLD_ENGINE_RESET"),
    (0x8a05, "VF_CFG_THRESHOLD_PAGE_FAULT"),
    (0x8a06, "VF_CFG_THRESHOLD_H2G_STORM"),
    (0x8a07, "VF_CFG_THRESHOLD_IRQ_STORM"),
    (0x8a08, "VF_CFG_THRESHOLD_DOORBELL_STORM"),
    (0x8a0a, "VF_CFG_BEGIN_DOORBELL_ID"),
    (0x8a0b, "VF_CFG_BEGIN_CONTEXT_ID"),
    (0x8a0c, "VF_CFG_SCHED_PRIORITY"),
    (0x8a0d, "VF_CFG_THRESHOLD_MULTI_LRC_COUNT"),
    (0x8a0e, "VF_CFG_ENGINE_GROUP_EXEC_QUANTUM"),
    (0x8a0f, "VF_CFG_ENGINE_GROUP_PREEMPT_TIMEOUT"),
    (0x8d00, "VGT_POLICY_RESET_AFTER_VF_SWITCH"),
];

/// Requests that contain a list of key-length-values, and the number of dwords before it.
const LISTS: &[(u16, usize)] = &[(0x0508, 0), (0x0509, 0), (0x100b, 1)];

/// Returns the name of a CT buffer action, mailbox action or event.
pub fn of_action(code: u16) -> Option<&'static str> {
    let request = actions::ACTIONS.iter().find(|action| action.code == code).map(|action| action.name);
    let event = || EVENTS.iter().find(|(known, ..)| *known == code).map(|(_, name, _)| *name);
    request.or_else(|| mailbox::name(code)).or_else(event)
}

/// Returns the names of the dwords after the header. Further dwords have no names.
pub fn of_parameters(code: u16) -> &'static [&'static str] {
    let request = PARAMETERS.iter().find(|(known, _)| *known == code).map(|(_, names)| *names);
    let event = || EVENTS.iter().find(|(known, ..)| *known == code).map(|(.., names)| *names);
    request.or_else(event).unwrap_or(&[])
}

/// Returns the number of dwords before the list of key-length-values in an action; `None` if it has no list.
pub fn list_in(code: u16) -> Option<usize> {
    LISTS.iter().find(|(known, _)| *known == code).map(|(_, at)| *at)
}

/// Returns the name of a key.
pub fn of_key(key: u16) -> Option<&'static str> {
    KEYS.iter().find(|(known, _)| *known == key).map(|(_, name)| *name)
}

/// Returns the name of an error code.
pub fn of_error(code: u16) -> Option<String> {
    Error::ALL.iter().find(|error| **error as u16 == code).map(|error| format!("{error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Event codes are unique and differ from all action codes. Parameter names are given only for known actions and
    /// events.
    #[test]
    fn names_are_unique() {
        for (at, (code, name, _)) in EVENTS.iter().enumerate() {
            assert!(EVENTS[at + 1..].iter().all(|(other, ..)| other != code), "{name}");
            assert!(actions::ACTIONS.iter().all(|action| action.code != *code), "{name}");
            assert_eq!(of_action(*code), Some(*name));
        }
        assert!(KEYS.is_sorted_by_key(|(key, _)| *key));
        assert!(PARAMETERS.iter().all(|(code, _)| of_action(*code).is_some()));
        assert_eq!(of_action(0x4509), Some("CONTROL_CTB"));
        assert_eq!(of_error(0x30).as_deref(), Some("UnknownAction"));
    }

    /// A request of fixed length has no more named dwords than its length.
    #[test]
    fn parameters_fit_their_actions() {
        for action in actions::ACTIONS {
            if let actions::Length::Exact(dwords) = action.length {
                assert!(of_parameters(action.code).len() <= dwords, "{}", action.name);
            }
        }
    }
}
