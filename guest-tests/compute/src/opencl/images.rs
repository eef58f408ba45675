// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Images: made from texels, and read.

use std::ptr;

use anyhow::Result;

use super::api::{self, ImageDescription, ImageFormat};
use super::{Object, OpenCl, check, object};
use crate::picture::{Picture, Shape, Storage};

/// An image, and the buffer that has its texels if it is one of a buffer.
pub struct Image {
    // Dropped in this order.
    image: Object,
    buffer: Option<Object>,
}

impl Image {
    /// The object that is a kernel's argument.
    pub fn object(&self) -> &Object {
        &self.image
    }
}

/// The description of an image without its buffer.
fn description(picture: &Picture) -> ImageDescription {
    let [width, second, third] = picture.size;
    let (image_type, height, depth, array_size) = match picture.shape {
        Shape::Line => (api::IMAGE_1D, 0, 0, 0),
        Shape::Lines => (api::IMAGE_1D_ARRAY, 0, 0, second),
        Shape::Plane => (api::IMAGE_2D, second, 0, 0),
        Shape::Planes => (api::IMAGE_2D_ARRAY, second, 0, third),
        Shape::Volume => (api::IMAGE_3D, second, third, 0),
        Shape::Buffer => (api::IMAGE_1D_BUFFER, 0, 0, 0),
    };
    ImageDescription { image_type, width, height, depth, array_size, ..ImageDescription::default() }
}

impl OpenCl {
    /// Makes an image with these texels. The driver copies them by a copy engine.
    pub(super) fn image(&self, picture: &Picture, texels: &[u8], is_written: bool) -> Result<Image> {
        let buffer = if picture.shape == Shape::Buffer { Some(self.buffer(texels)?) } else { None };
        let storage = match picture.storage {
            Storage::Preferred => 0,
            Storage::Uncompressed => api::MEM_UNCOMPRESSED,
            Storage::Linear => api::MEM_LINEAR,
        };
        let access = if is_written { api::MEM_READ_WRITE } else { api::MEM_READ_ONLY };
        // An image of a buffer has its memory.
        let flags = if buffer.is_some() { access } else { access | api::MEM_COPY_HOST | storage };
        let start = if buffer.is_some() { ptr::null_mut() } else { texels.as_ptr().cast_mut().cast() };
        let memory = buffer.as_ref().map_or(ptr::null_mut(), |buffer| buffer.raw);
        let description = ImageDescription { memory, ..description(picture) };
        let format = ImageFormat { order: picture.order.code(), channel: picture.channel.code() };
        let mut status = 0;
        // SAFETY: format and description are those of OpenCL, and the texels are as many as they say, one behind the other; the
        // driver copies them and does not write to them.
        let raw = unsafe {
            (self.functions.clCreateImage)(self.context.raw, flags, &format, &description, start, &mut status)
        };
        let image = object(raw, status, self.functions.clReleaseMemObject, "clCreateImage")?;
        Ok(Image { image, buffer })
    }

    /// Reads the texels of an image, one behind the other.
    pub(super) fn read_image(&self, image: &Image, picture: &Picture) -> Result<Vec<u8>> {
        if let Some(buffer) = &image.buffer {
            return self.read(buffer, picture.bytes());
        }
        let mut bytes = vec![0u8; picture.bytes()];
        // SAFETY: the read is blocking, and `bytes` has as many texels as are read.
        let status = unsafe {
            (self.functions.clEnqueueReadImage)(
                self.queue.raw,
                image.image.raw,
                1,
                [0; 3].as_ptr(),
                picture.size.as_ptr(),
                0,
                0,
                bytes.as_mut_ptr().cast(),
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        };
        check(status, "clEnqueueReadImage")?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Channel, Order};

    #[test]
    fn dimensions_are_those_of_opencl() {
        let picture = |shape| Picture {
            shape,
            size: [7, 5, 3],
            order: Order::R,
            channel: Channel::Float,
            storage: Storage::Preferred,
        };
        let described = |shape| {
            let ImageDescription { image_type, width, height, depth, array_size, .. } = description(&picture(shape));
            (image_type, width, height, depth, array_size)
        };
        assert_eq!(described(Shape::Planes), (api::IMAGE_2D_ARRAY, 7, 5, 0, 3));
        assert_eq!(described(Shape::Lines), (api::IMAGE_1D_ARRAY, 7, 0, 0, 5));
        assert_eq!(described(Shape::Volume), (api::IMAGE_3D, 7, 5, 3, 0));
    }
}
