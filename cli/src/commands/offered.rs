// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Values of arguments that shells complete: the values that a user may mean, while the parser accepts others as well.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};

/// Parser of an argument that completions offer values for. The help does not list them if the argument is declared with
/// `hide_possible_values`.
#[derive(Clone)]
pub struct Offered<T> {
    parse: fn(&str) -> Result<T, String>,
    values: fn() -> Vec<&'static str>,
}

impl<T> Offered<T> {
    /// A parser by `parse`, which returns the value or the reason for which it is not accepted; completions offer `values`.
    pub fn new(parse: fn(&str) -> Result<T, String>, values: fn() -> Vec<&'static str>) -> Self {
        Offered { parse, values }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offered<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        TypedValueParser::parse_ref(&self.parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter().map(PossibleValue::new)))
    }
}

/// A parser of `--card`: accepts each text, and offers the built-in cards.
pub fn card() -> Offered<String> {
    Offered::new(|text| Ok(text.to_owned()), built_in)
}

/// Names of the built-in cards.
pub fn built_in() -> Vec<&'static str> {
    arctic_gpu::card_file::BUILT_IN.iter().map(|(name, _)| *name).collect()
}
