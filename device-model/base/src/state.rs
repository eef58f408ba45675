// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state: what a unit of the card holds, for one virtual function or for a card without any, in a form that can be
//! stored and restored, on the same card or on another one.
//!
//! Each unit has a type for its saved state ([`SavedState`]) beside its code, with a version. Saved state of a function
//! contains no data of other functions, and no addresses or numbers of the card that differ where the function is provisioned
//! differently: GGTT addresses are offsets in the function's range, contexts and doorbells have the function's own ids.
//!
//! Saved state that is restored comes from outside. A restore checks all of it, and fails instead of panicking.

use std::marker::PhantomData;

use serde::de::{self, DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The saved state of one unit.
pub trait SavedState: Serialize + DeserializeOwned {
    /// Name of the unit, for messages.
    const UNIT: &'static str;
    /// Version of the format. A change of the type's fields or of their meaning increments it.
    const VERSION: u32;
}

/// A unit of the card that can save and restore its state for one function.
///
/// For both, the function must be stopped: none of its contexts is on an engine, and its requests are not executed
/// ([`SaveError::Running`], [`RestoreError::Running`]). Contexts that have left their engine are saved in the
/// function's memory. No engine or execution queue holds state of the function then.
pub trait SaveState {
    /// The saved state.
    type Saved: SavedState;

    /// Returns the unit's state of the function.
    fn save(&self) -> Result<Self::Saved, SaveError>;

    /// Replaces the unit's state of the function. After an error, it may be partially replaced.
    fn restore(&mut self, saved: &Self::Saved) -> Result<(), RestoreError>;
}

/// Reason why a function cannot be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    /// The function is not a VF.
    #[error("only virtual functions can be saved")]
    NotVirtual,
    /// No GuC firmware is running.
    #[error("the GuC is not running")]
    NoFirmware,
    /// The function is not stopped.
    #[error("the function is not paused")]
    Running,
    /// A GGTT address that the function has registered lies outside its range: it was provisioned differently then.
    #[error("{unit}: address {address:#x} is outside the function's GGTT range")]
    OutsideRange {
        /// The unit.
        unit: &'static str,
        /// The GGTT address.
        address: u64,
    },
}

/// Reason why saved state cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The function is not a VF.
    #[error("only virtual functions can be restored")]
    NotVirtual,
    /// No GuC firmware is running.
    #[error("the GuC is not running")]
    NoFirmware,
    /// The function is not stopped.
    #[error("the function is not paused")]
    Running,
    /// The function is provisioned differently than the saved one.
    #[error("the saved function had {resource} {saved:#x}, this one has {here:#x}")]
    Provisioning {
        /// The resource.
        resource: &'static str,
        /// Quota of the saved function.
        saved: u64,
        /// Quota of the function to restore.
        here: u64,
    },
    /// The saved state contains an invalid value.
    #[error("invalid saved state of {unit}: {what}")]
    Invalid {
        /// The unit.
        unit: &'static str,
        /// What is invalid.
        what: &'static str,
    },
}

impl RestoreError {
    /// Returns the error for an invalid value in the saved state `T`.
    pub fn invalid<T: SavedState>(what: &'static str) -> Self {
        RestoreError::Invalid { unit: T::UNIT, what }
    }
}

/// Saved state with the version of its format. Deserialising it fails for every version but [`SavedState::VERSION`],
/// before the state itself is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Versioned<T> {
    // Before `state` also in formats that sort fields by name.
    format: u32,
    state: T,
}

impl<T: SavedState> Versioned<T> {
    /// Returns `state` with the current version.
    pub fn new(state: T) -> Self {
        Versioned { format: T::VERSION, state }
    }

    /// Returns the state.
    pub fn state(&self) -> &T {
        &self.state
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Format,
    State,
}

impl<'de, T: SavedState> Deserialize<'de> for Versioned<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_struct("Versioned", &["format", "state"], VersionedVisitor(PhantomData))
    }
}

struct VersionedVisitor<T>(PhantomData<T>);

impl<T: SavedState> VersionedVisitor<T> {
    fn check<E: de::Error>(version: u32) -> Result<(), E> {
        if version == T::VERSION {
            return Ok(());
        }
        Err(E::custom(format_args!("saved state of {} has version {version}, not {}", T::UNIT, T::VERSION)))
    }
}

impl<'de, T: SavedState> Visitor<'de> for VersionedVisitor<T> {
    type Value = Versioned<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the version of the saved state of {}, then the state", T::UNIT)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        Self::check(seq.next_element()?.ok_or_else(|| de::Error::invalid_length(0, &self))?)?;
        Ok(Versioned::new(seq.next_element()?.ok_or_else(|| de::Error::invalid_length(1, &self))?))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut checked = false;
        let mut state = None;
        while let Some(field) = map.next_key()? {
            match field {
                Field::Format if !checked => checked = Self::check(map.next_value()?).map(|()| true)?,
                Field::State if checked && state.is_none() => state = Some(map.next_value()?),
                Field::State if !checked => return Err(de::Error::missing_field("format")),
                Field::Format => return Err(de::Error::duplicate_field("format")),
                Field::State => return Err(de::Error::duplicate_field("state")),
            }
        }
        state.map(Versioned::new).ok_or_else(|| de::Error::missing_field("state"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Unit {
        value: u8,
    }

    impl SavedState for Unit {
        const UNIT: &'static str = "the unit";
        const VERSION: u32 = 3;
    }

    fn read(text: &str) -> Result<Versioned<Unit>, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// State is written with its version and read only with it: another version is reported, whatever follows.
    #[test]
    fn unknown_versions_are_refused() {
        let saved = Versioned::new(Unit { value: 7 });
        let text = toml::to_string(&saved).unwrap();
        assert_eq!(text, "format = 3\n\n[state]\nvalue = 7\n");
        assert_eq!(read(&text), Ok(saved));
        for state in ["value = 7", "other = true"] {
            let error = read(&format!("format = 4\n[state]\n{state}\n")).unwrap_err();
            assert!(error.contains("saved state of the unit has version 4, not 3"), "{error}");
        }
        assert!(read("format = 3\n").is_err());
        assert!(read("[state]\nvalue = 7\n").unwrap_err().contains("missing field `format`"));
        assert!(read("format = 3\n[state]\nvalue = 700\n").is_err());
    }
}
