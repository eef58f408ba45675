// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The items of the documents in `docs/spec`, and those that `afuc/docs/items.md` and `eu/docs/items.md` assess, one constant each: `V8_001` is
//! `V8-001`. The build script makes them from the texts.

use crate::Item;

include!(concat!(env!("OUT_DIR"), "/items.rs"));
