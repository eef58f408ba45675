// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! HXG messages: the header dword and the layout of requests and replies (contract K.7).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use arctic_sriov::number::{byte, count};

/// Origin bit of a message header: set in messages from the GuC.
pub const ORIGIN_GUC: u32 = 1 << 31;

/// Maximum length of an HXG message in a CT buffer, in dwords (8-bit length field).
pub const MAX_DWORDS: usize = 255;

/// Type of a message: header bits 30:28 (xe: abi/guc_messages_abi.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// A request with exactly one reply.
    Request = 0,
    /// A notification without a reply.
    Event = 1,
    /// A request that gets a reply only if it fails.
    FastRequest = 2,
    /// The reply will be sent later.
    NoResponseBusy = 3,
    /// The request must be sent again.
    NoResponseRetry = 5,
    /// The request failed.
    ResponseFailure = 6,
    /// The request succeeded.
    ResponseSuccess = 7,
}

impl Type {
    /// Returns the type in a header dword; `None` for the reserved code 4.
    pub fn of(header: u32) -> Option<Type> {
        Some(match header >> 28 & 7 {
            0 => Type::Request,
            1 => Type::Event,
            2 => Type::FastRequest,
            3 => Type::NoResponseBusy,
            5 => Type::NoResponseRetry,
            6 => Type::ResponseFailure,
            7 => Type::ResponseSuccess,
            _ => return None,
        })
    }
}

/// Returns the action code of a request or event: header bits 15:0.
pub fn action(header: u32) -> u16 {
    (header & 0xffff) as u16
}

/// Error codes of failed requests (xe: abi/guc_errors_abi.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Error {
    /// The message is not a well-formed request.
    ProtocolError = 0x04,
    /// The request is not permitted in the current state of the object.
    InvalidState = 0x0a,
    /// The requested version of the interface is not supported.
    UnsupportedVersion = 0x0b,
    /// No such virtual function.
    InvalidVf = 0x0c,
    /// No resources have been assigned to the virtual function.
    UnprovisionedVf = 0x0d,
    /// The feature is not available.
    NotSupported = 0x20,
    /// No such action.
    UnknownAction = 0x30,
    /// A key-length-value contains an invalid value.
    InvalidKlvData = 0x50,
    /// A parameter has an invalid value.
    InvalidParams = 0x60,
    /// The context id is out of range.
    InvalidContextIndex = 0x61,
    /// The registration's parameters are inconsistent.
    InvalidContextRegistration = 0x62,
    /// The doorbell does not exist, belongs to another function, or is in use.
    InvalidDoorbellId = 0x63,
    /// The engine class or instance does not exist.
    InvalidEngineId = 0x64,
    /// An address is not mapped, or is outside the range accessible to the GuC.
    InvalidGgttAddress = 0x80,
    /// An earlier request on the same object is still pending.
    PendingAction = 0x90,
    /// The context is not registered.
    ContextNotRegistered = 0x100,
    /// The context is already registered.
    ContextAlreadyRegistered = 0x101,
    /// The message or buffer has the wrong length.
    InvalidSize = 0x102,
    /// A key-length-value does not fit its buffer, or its length does not fit its key.
    MalformedKlv = 0x103,
    /// The key is not known.
    InvalidKlvKey = 0x105,
    /// No hardware configuration table.
    NoAttributeTable = 0x201,
    /// The receiver's CT buffer has no space for the message.
    CtbFull = 0x301,
    /// The function is not permitted to make this request.
    Unauthorized = 0x302,
    /// The CT buffers are not usable.
    CtbInvalid = 0x303,
    /// The CT buffers are not configured.
    CtbNotRegistered = 0x304,
    /// The CT descriptors contain invalid values.
    CtbInvalidDesc = 0x306,
}

impl Error {
    /// All error codes.
    pub const ALL: &[Error] = &[
        Error::ProtocolError,
        Error::InvalidState,
        Error::UnsupportedVersion,
        Error::InvalidVf,
        Error::UnprovisionedVf,
        Error::NotSupported,
        Error::UnknownAction,
        Error::InvalidKlvData,
        Error::InvalidParams,
        Error::InvalidContextIndex,
        Error::InvalidContextRegistration,
        Error::InvalidDoorbellId,
        Error::InvalidEngineId,
        Error::InvalidGgttAddress,
        Error::PendingAction,
        Error::ContextNotRegistered,
        Error::ContextAlreadyRegistered,
        Error::InvalidSize,
        Error::MalformedKlv,
        Error::InvalidKlvKey,
        Error::NoAttributeTable,
        Error::CtbFull,
        Error::Unauthorized,
        Error::CtbInvalid,
        Error::CtbNotRegistered,
        Error::CtbInvalidDesc,
    ];
}

/// Result of a handler: data0 of the success reply (28 bits), or the error.
pub type Reply = Result<u32, Error>;

/// Returns the GGTT address in two dwords of a message. GGTT addresses have 32 bits. Larger values are rejected here,
/// so that adding a field offset to an accepted address cannot overflow.
pub fn global_address(low: u32, high: u32) -> Result<u64, Error> {
    if high == 0 { Ok(u64::from(low)) } else { Err(Error::InvalidGgttAddress) }
}

/// Returns the header dword of a reply.
pub fn reply_header(reply: Reply) -> u32 {
    match reply {
        Ok(data0) => ORIGIN_GUC | (Type::ResponseSuccess as u32) << 28 | data0 & 0xfff_ffff,
        Err(error) => ORIGIN_GUC | (Type::ResponseFailure as u32) << 28 | error as u32,
    }
}

/// Returns the header dword of an event from the GuC.
pub fn event_header(action: u16) -> u32 {
    ORIGIN_GUC | (Type::Event as u32) << 28 | u32::from(action)
}

/// Maximum number of dwords stored without an allocation; only relayed messages are longer.
const SHORT: usize = 7;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Dwords {
    Short(u8, [u32; SHORT]),
    Long(Box<[u32]>),
}

/// A message to a host, ready for the CT buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Fence of the request, if this is a reply; 0 for events.
    pub fence: u16,
    dwords: Dwords,
}

impl Outgoing {
    /// Concatenates `header`, `head` and `tail`. The total must not exceed [`MAX_DWORDS`]; excess dwords are dropped.
    fn new(fence: u16, header: u32, head: &[u32], tail: &[u32]) -> Self {
        let len = head.len().saturating_add(tail.len()).saturating_add(1);
        debug_assert!(len <= MAX_DWORDS);
        let all = std::iter::once(header).chain(head.iter().copied()).chain(tail.iter().copied()).take(MAX_DWORDS);
        let dwords = if len <= SHORT {
            let mut short = [0; SHORT];
            short.iter_mut().zip(all).for_each(|(to, from)| *to = from);
            Dwords::Short(byte(len), short)
        } else {
            Dwords::Long(all.collect())
        };
        Outgoing { fence, dwords }
    }

    /// Creates an event with its payload.
    pub fn event(action: u16, payload: &[u32]) -> Self {
        Outgoing::new(0, event_header(action), payload, &[])
    }

    /// Creates an event that carries a message of another function after its own payload.
    pub fn relay(action: u16, payload: &[u32], message: &[u32]) -> Self {
        Outgoing::new(0, event_header(action), payload, message)
    }

    /// Creates the reply to the request with `fence`.
    pub fn reply(fence: u16, reply: Reply) -> Self {
        Outgoing::new(fence, reply_header(reply), &[], &[])
    }

    /// Recreates a message from its HXG dwords; `None` if there are none or too many.
    pub fn restored(fence: u16, hxg: &[u32]) -> Option<Self> {
        let (header, payload) = hxg.split_first()?;
        (hxg.len() <= MAX_DWORDS).then(|| Outgoing::new(fence, *header, payload, &[]))
    }

    /// Returns the HXG dwords.
    pub fn hxg(&self) -> &[u32] {
        match &self.dwords {
            Dwords::Short(len, dwords) => dwords.get(..usize::from(*len)).unwrap_or(dwords),
            Dwords::Long(dwords) => dwords,
        }
    }

    /// Returns the CT header: fence, format 0, length in HXG dwords.
    pub fn ct_header(&self) -> u32 {
        u32::from(self.fence) << 16 | count(self.hxg().len())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use super::*;

    /// Contract K.11: the worked wire examples.
    #[test]
    fn wire_examples() {
        assert_eq!(reply_header(Ok(0x1234)), 0xf000_1234);
        assert_eq!(reply_header(Err(Error::UnknownAction)), 0xe000_0030);
        let done = Outgoing::event(0x1002, &[5, 1]);
        assert_eq!((done.ct_header(), done.hxg()), (3, &[0x9000_1002, 5, 1][..]));
        let reply = Outgoing::reply(0x12, Ok(13));
        assert_eq!((reply.ct_header(), reply.hxg()), (0x0012_0001, &[0xf000_000d][..]));
        assert_eq!(Type::of(0x2000_1001), Some(Type::FastRequest));
        assert_eq!(Type::of(4 << 28), None);
    }
}
