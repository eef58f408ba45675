// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Identities and classes of the engines.

/// An engine, by its index in the generation's table of engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineId(u8);

impl EngineId {
    /// The engine with this index in the table.
    pub const fn new(index: u8) -> Self {
        EngineId(index)
    }

    /// Index in the table, and in arrays with an element for each engine.
    #[inline]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Function of an engine, which determines the commands that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineClass {
    /// 3D and media pipelines, logical contexts.
    Render,
    /// The video decoder (BSD).
    Video,
    /// The copy engine (BLT).
    Copy,
}

impl EngineClass {
    /// Its name in [`FunctionStatus`](arctic_base::status::FunctionStatus).
    pub const fn name(self) -> &'static str {
        match self {
            EngineClass::Render => "render",
            EngineClass::Video => "video-decode",
            EngineClass::Copy => "copy",
        }
    }
}

/// A set of engine classes, one bit per class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classes(u8);

impl Classes {
    /// Every class.
    pub const ALL: Classes = Classes(Self::RENDER.0 | Self::NOT_RENDER.0);
    /// Render.
    pub const RENDER: Classes = Self::of(EngineClass::Render);
    /// Render and copy.
    pub const RENDER_COPY: Classes = Classes(Self::RENDER.0 | Self::of(EngineClass::Copy).0);
    /// Video and copy.
    pub const NOT_RENDER: Classes = Classes(Self::of(EngineClass::Video).0 | Self::of(EngineClass::Copy).0);

    const fn of(class: EngineClass) -> Classes {
        Classes(1 << class as u8)
    }

    /// Returns whether `class` is in the set.
    #[inline]
    pub const fn has(self, class: EngineClass) -> bool {
        self.0 >> class as u8 & 1 != 0
    }
}
