// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Functions that may send a request (contract B.6).

use crate::guc::messages::hxg::Error;
use crate::host::Function;

/// Functions that may request an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Every function.
    Any,
    /// The physical function.
    Physical,
    /// Virtual functions.
    Virtual,
    /// No function: the card does not implement the feature, and the request fails with [`Error::NotSupported`].
    NotSupported,
}

impl Sender {
    /// Checks whether `function` may send the request.
    pub fn check(self, function: Function) -> Result<(), Error> {
        match self {
            Sender::NotSupported => Err(Error::NotSupported),
            Sender::Physical if function.is_vf() => Err(Error::Unauthorized),
            Sender::Virtual if !function.is_vf() => Err(Error::Unauthorized),
            _ => Ok(()),
        }
    }
}
