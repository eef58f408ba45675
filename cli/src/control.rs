// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The requests of the control socket, and their effect on the card.

use arctic_gpu::VirtualCard;
use arctic_gpu::hardware_error::ErrorRegisters;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A request of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Raises a hardware error. The answer is [`Raised`].
    RaiseHardwareError {
        /// Name of the error.
        error: String,
    },
    /// Reads the error registers. The answer is [`Registers`].
    ErrorRegisters {},
}

/// A hardware error was raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    /// Name of the error.
    pub raised: String,
}

/// The card's error registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    /// The registers, by severity.
    pub registers: Vec<ErrorRegisters>,
}

/// Carries out `request` on `card`. Returns the answer, or the reason for which the card refuses.
pub fn carry_out(card: &VirtualCard, request: Request) -> Result<Value, String> {
    let answer = match request {
        Request::RaiseHardwareError { error } => {
            if !card.raise_hardware_error(&error) {
                return Err(format!("the card has no error {error:?}"));
            }
            serde_json::to_value(Raised { raised: error })
        }
        Request::ErrorRegisters {} => Ok(json!({ "registers": card.error_registers() })),
    };
    answer.map_err(|error| error.to_string())
}
