// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The client for updates of the firmware, of which only the queries are executed (igsc: lib/igsc_heci.h,
//! lib/igsc_lib.c). There is no flash: an update is refused.

use super::controller::Controller;
use super::message::Message;
use super::protocol::{Protocol, Request, guid};

/// igsc: GUID_METEE_FWU.
pub const PROTOCOL: Protocol = guid(0x87d9_0ca5, 0x3495, 0x4559, [0x81, 0x05, 0x3f, 0xbf, 0xa3, 0x7b, 0x8b, 0x79]);

/// Outcome of a command (igsc: GSC_FWU_STATUS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Status {
    Success = 0,
    SizeError = 0x05,
    InvalidParameters = 0x85,
    InvalidCommand = 0x8d,
    Failure = 0x9e,
}

/// A command of the host.
struct Command {
    id: u8,
    /// Minimum and maximum length of the request in bytes.
    bytes: (u32, u32),
    /// Returns the response; `None` if the host expects none.
    reply: fn(&Controller, &Request) -> Option<Message>,
}

/// Maximum length of the client's messages.
const ANY: u32 = u32::MAX;

/// The commands with a public format.
const COMMANDS: [Command; 8] = [
    // START: the header of an image follows
    Command { id: 1, bytes: (48, ANY), reply: |_, request| Some(response(request, Status::Failure)) },
    // DATA: without a START
    Command { id: 2, bytes: (12, ANY), reply: |_, request| Some(response(request, Status::Failure)) },
    // END
    Command { id: 3, bytes: (8, 8), reply: |_, _| None },
    // NO_UPDATE
    Command { id: 5, bytes: (8, 8), reply: |_, _| None },
    // GET_IP_VERSION
    Command { id: 6, bytes: (8, 8), reply: |controller, request| Some(partition(controller, request)) },
    // GET_CONFIG: format, stepping, SKU, then flags, reserved dwords and the debug configuration, all zeros
    Command {
        id: 7,
        bytes: (12, 12),
        reply: |controller, request| {
            let config = response(request, Status::Success).dword(1);
            Some(config.dword(controller.step).dword(controller.sku).filled(60))
        },
    },
    // GET_GFX_DATA_UPDATE_INFO: format 1, which has no security versions
    Command {
        id: 9,
        bytes: (12, 12),
        reply: |controller, request| {
            let data = controller.versions.data;
            let info = response(request, Status::Success).dword(1).dword(data.oem).dword(data.oem);
            Some(info.word(data.major).word(data.vcn).filled(64))
        },
    },
    // GET_SUBSYSTEM_IDS
    Command {
        id: 10,
        bytes: (12, 12),
        reply: |controller, request| {
            let (vendor, device) = controller.subsystem;
            Some(response(request, Status::Success).word(vendor).word(device).filled(24))
        },
    },
];

/// Response to GET_IP_VERSION: partition, length and version. The partitions are firmware, and data and code of the
/// expansion ROM.
fn partition(controller: &Controller, request: &Request) -> Message {
    let versions = &controller.versions;
    let [_, _, _, _, number, 0, 0, 0] = request.head else { return response(request, Status::InvalidParameters) };
    let version = match number {
        1 => versions.graphics.bytes(),
        2 => versions.option_rom.data,
        3 => versions.option_rom.code,
        _ => return response(request, Status::InvalidParameters),
    };
    response(request, Status::Success).dword(number.into()).dword(8).bytes_and(&version)
}

/// Header of the response to `request`, of 12 bytes.
fn response(request: &Request, status: Status) -> Message {
    let is_response = 1;
    Message::new(&[request.head[0], is_response, 0, 0]).dword(status as u32).dword(0)
}

/// Returns the response to `request`. A message that is shorter than a header has none.
pub fn reply(controller: &Controller, request: &Request) -> Option<Message> {
    if request.length < 4 {
        return None;
    }
    let [id, flags, ..] = request.head;
    let Some(command) = COMMANDS.iter().find(|command| command.id == id) else {
        return Some(response(request, Status::InvalidCommand));
    };
    let (shortest, longest) = command.bytes;
    if !(shortest..=longest).contains(&request.length) {
        return Some(response(request, Status::SizeError));
    }
    // A response is no request.
    if flags & 1 != 0 {
        return Some(response(request, Status::InvalidParameters));
    }
    (command.reply)(controller, request)
}
