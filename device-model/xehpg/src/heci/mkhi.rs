// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The client MKHI: version of the controller's firmware, and state of ECC (mei: bus-fixup.c, mkhi.h; igsc: lib/ifr.c,
//! lib/ifr.h).

use super::controller::Controller;
use super::message::Message;
use super::protocol::{Protocol, Request, guid};

/// mei: MEI_UUID_IGSC_MKHI, igsc: GUID_METEE_MKHI.
pub const PROTOCOL: Protocol = guid(0xe2c2_afa2, 0x3817, 0x4d19, [0x9d, 0x95, 0x06, 0xb1, 0x6b, 0x58, 0x8a, 0x5d]);

/// Bit of the command that marks a response.
const RESPONSE: u8 = 0x80;

/// Result of a command that the firmware does not have. No result of MKHI is public; this one is of the update client.
const INVALID_COMMAND: u8 = 0x8d;
/// Result of a command of wrong length, as above.
const INVALID_PARAMETERS: u8 = 0x85;

/// A command.
struct Command {
    group: u8,
    command: u8,
    /// Length of the request in bytes.
    bytes: u32,
    /// Appends the data of the response to its header.
    data: fn(&Controller, &Request, Message) -> Message,
}

const COMMANDS: [Command; 2] = [
    // MKHI_GEN_GET_FW_VERSION_CMD: one block of four
    Command {
        group: 0xff,
        command: 0x02,
        bytes: 4,
        data: |controller, _, header| {
            let version = controller.versions.controller;
            let platform = 0;
            header.word(version.minor).bytes_and(&[version.major, platform]).word(version.build).word(version.hotfix)
        },
    },
    // MKHI_GROUP_ID_GFSP, whose commands are in the next dword. GFSP_GET_ECC_CFG_CMD: the card's memory has no ECC, now and
    // after the next reset.
    Command {
        group: 0x31,
        command: 0,
        bytes: 8,
        data: |_, request, header| match request.head[4..] {
            [GET_ECC, 0, 0, 0] => header.dword(GET_ECC.into()).dword(0),
            _ => response(request, INVALID_COMMAND),
        },
    },
];

/// GFSP_GET_ECC_CFG_CMD.
const GET_ECC: u8 = 9;

/// Header of the response to `request`.
fn response(request: &Request, result: u8) -> Message {
    let [group, command, ..] = request.head;
    Message::new(&[group, command | RESPONSE, 0, result])
}

/// Returns the response to `request`. A message that is shorter than a header has none.
pub fn reply(controller: &Controller, request: &Request) -> Option<Message> {
    if request.length < 4 {
        return None;
    }
    let [group, command, ..] = request.head;
    let known = COMMANDS.iter().find(|known| (known.group, known.command) == (group, command));
    Some(match known {
        None => response(request, INVALID_COMMAND),
        Some(known) if known.bytes != request.length => response(request, INVALID_PARAMETERS),
        Some(known) => (known.data)(controller, request, response(request, 0)),
    })
}
