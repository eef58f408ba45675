// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Streams of xe's observation interface (`DRM_IOCTL_XE_OBSERVATION`).

use std::fs::File;
use std::os::fd::FromRawFd;

use crate::device::{Device, DrmError};
use crate::number::count;
use crate::uapi::xe as uapi;

/// Format of OAG and OAR with counter select 5: `DRM_XE_OA_FMT_TYPE_*` in bits 7:0, the select in bits 15:8.
pub const OAG_256: u64 = 5 << 8;
/// The same of OAR.
pub const OAR_256: u64 = 5 << 8 | 1;

/// `DRM_XE_OA_PROPERTY_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Reports are written to a buffer.
    SampleOa = 2,
    /// The set of [`add_config`].
    OaMetricSet = 3,
    /// The format.
    OaFormat = 4,
    /// Exponent of the timer.
    OaPeriodExponent = 5,
    /// The queue of which the counters are enabled.
    ExecQueueId = 7,
    /// Size of the buffer in bytes.
    OaBufferSize = 12,
}

/// An open stream.
pub struct Stream {
    /// Its file, from which reports are read. A read does not block.
    pub file: File,
}

impl Stream {
    /// Opens a stream on the first unit with these properties.
    pub fn open(device: &Device, properties: &[(Property, u64)]) -> Result<Stream, DrmError> {
        let mut chain: Vec<uapi::SetProperty> = properties
            .iter()
            .map(|(property, value)| uapi::SetProperty {
                property: *property as u32,
                value: *value,
                ..Default::default()
            })
            .collect();
        for next in (1..chain.len()).rev() {
            let address = std::ptr::from_ref(&chain[next]) as u64;
            chain[next - 1].next_extension = address;
        }
        let descriptor = observe(device, uapi::OBSERVATION_OP_STREAM_OPEN, chain.as_ptr() as u64)?;
        // SAFETY: a successful open returns a file descriptor that nothing else owns.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: the descriptor is open.
        unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
        Ok(Stream { file })
    }
}

/// Adds a set of registers with their values. Returns its number.
pub fn add_config(device: &Device, uuid: &str, registers: &[(u32, u32)]) -> Result<u64, DrmError> {
    let pairs: Vec<u32> = registers.iter().flat_map(|(register, value)| [*register, *value]).collect();
    let mut config =
        uapi::OaConfig { n_regs: count(registers.len()), regs_ptr: pairs.as_ptr() as u64, ..Default::default() };
    for (to, from) in config.uuid.as_flattened_mut().iter_mut().zip(uuid.bytes()) {
        *to = from;
    }
    let number = observe(device, uapi::OBSERVATION_OP_ADD_CONFIG, std::ptr::from_ref(&config) as u64)?;
    Ok(u64::from(number.unsigned_abs()))
}

/// Removes a set.
pub fn remove_config(device: &Device, number: u64) -> Result<(), DrmError> {
    observe(device, uapi::OBSERVATION_OP_REMOVE_CONFIG, std::ptr::from_ref(&number) as u64).map(drop)
}

fn observe(device: &Device, operation: u64, parameters: u64) -> Result<i32, DrmError> {
    let mut request = uapi::ObservationParam { observation_op: operation, param: parameters, ..Default::default() };
    device.ioctl_with_result(&mut request)
}
