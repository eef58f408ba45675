// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! HXG messages: the header dword and the layout of requests and replies (contract K.7).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use arctic_sriov::number::byte;
use bitfield_struct::bitfield;

/// Maximum length of an HXG message in a CT buffer, in dwords (8-bit length field).
pub const MAX_DWORDS: usize = 255;

/// Type of a message (xe: abi/guc_messages_abi.h).
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

/// G2H: a request to enable or disable a context is complete.
pub const SCHED_CONTEXT_MODE_DONE: u16 = 0x1002;
/// G2H: a context is deregistered.
pub const DEREGISTER_CONTEXT_DONE: u16 = 0x4600;
/// G2H: a TLB invalidation is complete.
pub const TLB_INVALIDATION_DONE: u16 = 0x7001;

/// Header dword of a message (xe: abi/guc_messages_abi.h).
#[bitfield(u32)]
pub struct Header {
    /// Action code of a request or event, error code of a failure.
    pub code: u16,
    /// Data of a request or event, hint of a failure. A success has its data in these bits and the code's.
    #[bits(12)]
    pub data0: u32,
    #[bits(3)]
    kind_bits: u8,
    /// The GuC is the origin, not a host.
    pub from_guc: bool,
}

/// Header of an HXG message in a CT buffer (xe: abi/guc_communication_ctb_abi.h).
#[bitfield(u32)]
pub struct CtHeader {
    /// Number of HXG dwords behind the header.
    pub dwords: u8,
    #[bits(4)]
    __: u8,
    /// Format: 0 is HXG.
    #[bits(4)]
    pub format: u8,
    /// Identifies a request, and its reply.
    pub fence: u16,
}

/// Data of a success: header bits 27:0.
const SUCCESS_DATA: u32 = 0xfff_ffff;

impl Header {
    /// Returns the header of a success with the low 28 bits of `data`.
    pub fn success(data: u32) -> Self {
        Header::from(data & SUCCESS_DATA).with_kind_bits(Type::ResponseSuccess as u8)
    }

    /// Returns the header of a failure.
    pub const fn failure(code: u16) -> Self {
        Header::new().with_code(code).with_kind_bits(Type::ResponseFailure as u8)
    }

    /// Returns the data of a success.
    pub fn success_data(self) -> u32 {
        u32::from(self) & SUCCESS_DATA
    }

    /// Returns the type of a message from a host; `None` for one from the GuC.
    pub const fn kind_from_host(self) -> Option<Type> {
        if self.from_guc() { None } else { self.kind() }
    }

    /// Returns the type; `None` for the reserved code 4.
    pub const fn kind(self) -> Option<Type> {
        Some(match self.kind_bits() {
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
    /// The VF was moved since it has sent what the request refers to.
    VfMigrated = 0x107,
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

/// A request: its header, and the dwords behind it. A CT buffer states their number; the mailbox always has three, which
/// retain the contents of earlier messages.
#[derive(Clone, Copy, Debug)]
pub struct Request<'m> {
    /// The header, with the action's code and data.
    pub header: Header,
    /// The dwords behind the header.
    pub payload: &'m [u32],
}

impl Request<'_> {
    /// Returns the dwords of a payload that must have exactly `N`.
    pub fn all<const N: usize>(&self) -> Result<[u32; N], Error> {
        self.payload.try_into().map_err(|_| Error::InvalidSize)
    }

    /// Returns the dword of a payload that must have exactly one.
    pub fn one(&self) -> Result<u32, Error> {
        self.all().map(|[value]| value)
    }
}

/// Contents of a success reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Data in the header.
    pub data0: u32,
    /// The dwords behind the header, of replies in the mailbox.
    pub dwords: [u32; 3],
}

impl From<u32> for Answer {
    fn from(data0: u32) -> Self {
        Answer { data0, dwords: [0; 3] }
    }
}

/// Result of a request.
pub type Reply = Result<Answer, Error>;

/// Returns the GGTT address in two dwords of a message. GGTT addresses have 32 bits. Larger values are rejected here,
/// so that adding a field offset to an accepted address cannot overflow.
pub fn global_address(low: u32, high: u32) -> Result<u64, Error> {
    if high == 0 { Ok(u64::from(low)) } else { Err(Error::InvalidGgttAddress) }
}

/// Returns the header dword of a reply.
pub fn reply_header(reply: Result<u32, Error>) -> u32 {
    let header = match reply {
        Ok(data) => Header::success(data),
        Err(error) => Header::failure(error as u16),
    };
    header.with_from_guc(true).into()
}

/// The header dword that tells a host to wait for the reply.
pub fn busy_header() -> u32 {
    Header::new().with_kind_bits(Type::NoResponseBusy as u8).with_from_guc(true).into()
}

/// Returns the header dword of an event from the GuC.
pub fn event_header(action: u16) -> u32 {
    Header::new().with_code(action).with_kind_bits(Type::Event as u8).with_from_guc(true).into()
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
    pub fn reply(fence: u16, reply: Result<u32, Error>) -> Self {
        Outgoing::new(fence, reply_header(reply), &[], &[])
    }

    /// Recreates a message from its HXG dwords; `None` if there are none or too many.
    pub fn restored(fence: u16, hxg: &[u32]) -> Option<Self> {
        let (header, payload) = hxg.split_first()?;
        (hxg.len() <= MAX_DWORDS).then(|| Outgoing::new(fence, *header, payload, &[]))
    }

    /// Returns whether the message answers a request of the host: a reply, or an event that completes one.
    pub fn answers_request(&self) -> bool {
        const COMPLETIONS: [u16; 3] = [SCHED_CONTEXT_MODE_DONE, DEREGISTER_CONTEXT_DONE, TLB_INVALIDATION_DONE];
        let header = self.hxg().first().map_or(Header::new(), |header| Header::from(*header));
        header.kind() != Some(Type::Event) || COMPLETIONS.contains(&header.code())
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
        CtHeader::new().with_fence(self.fence).with_dwords(byte(self.hxg().len())).into()
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
        assert_eq!(Header::from(0x2000_1001).kind_from_host(), Some(Type::FastRequest));
        assert_eq!((Header::from(4 << 28).kind(), Header::from(0xa000_1001).kind_from_host()), (None, None));
    }
}
