// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Comparison of texels with the reference of a message. EU-080.

use crate::exec::memory::{ChannelKind, Comparison, Image};

/// A reference and the comparison of its sampler.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    value: f32,
    comparison: Comparison,
}

impl Reference {
    /// The reference for an image. That for texels that are 0 to 1 is brought into these bounds.
    pub fn new(value: f32, comparison: Comparison, image: &Image) -> Reference {
        let bounded = image.format.channel.kind() == ChannelKind::Unorm;
        Reference { value: if bounded { value.clamp(0.0, 1.0) } else { value }, comparison }
    }

    /// The result for a texel's first component: 0 if the comparison holds, 1 if not. Comparisons with a NaN do not hold,
    /// except that it is not equal.
    pub fn compare(self, texel: f32) -> f32 {
        let holds = match self.comparison {
            Comparison::Always => true,
            Comparison::Never => false,
            Comparison::Less => texel < self.value,
            Comparison::Equal => texel == self.value,
            Comparison::LessOrEqual => texel <= self.value,
            Comparison::Greater => texel > self.value,
            Comparison::NotEqual => texel != self.value,
            Comparison::GreaterOrEqual => texel >= self.value,
        };
        if holds { 0.0 } else { 1.0 }
    }
}
