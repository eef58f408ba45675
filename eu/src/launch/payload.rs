// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Payload of a launch: arguments, implicit values, local ids (group C of the contract).

use super::arguments::Argument;
use super::dispatch::SLOTS;
use super::memory::{Space, State};
use super::region::{Contents, items};
use super::{Launch, LaunchError, Range, Settings, image, implicit, load, threads};
use crate::exec::Program;
use crate::exec::memory::{Addressing, ImageFormat};
use crate::zebin::{self, Kernel, Zebin};

/// Hardware threads for which per-thread buffers have room. EU-042.
pub const HARDWARE_THREADS: usize = 4096;
/// Bytes of the printf buffer. Kernels stop writing at 4 MiB.
const PRINTF_BYTES: usize = (1 << 22) + 4096;
/// Largest group.
const MOST_ITEMS: u64 = 1024;
/// Bytes of shared local memory that a group can have.
const MOST_SLM: u32 = 65536;

/// The resources of an argument.
#[derive(Clone, Debug, Default)]
struct Resource {
    value: Vec<u8>,
    address: u64,
    size: usize,
    state: Option<u32>,
    sampler: Option<u32>,
    image: Option<([u32; 3], ImageFormat)>,
    local: Option<u32>,
}

/// Makes a launch.
pub fn prepare(
    zebin: &Zebin,
    kernel: Kernel,
    range: Range,
    arguments: &[(String, Argument)],
    settings: Settings,
) -> Result<Launch, LaunchError> {
    check_range(zebin, &kernel, &range)?;
    let mut space = Space::new();
    // The indirect data comes first, because its address has 32 bits.
    let cross = kernel.payload.iter().map(|part| part.offset.saturating_add(part.size)).max().unwrap_or(0);
    if cross > 1 << 16 || kernel.inline_data > 32 {
        return Err(LaunchError::Payload(format!("a payload of {cross} bytes")));
    }
    let cross = cross.next_multiple_of(32) as usize;
    let inline = (kernel.inline_data as usize).min(cross.max(32));
    let rest = cross.saturating_sub(inline);
    let per_thread = (kernel.per_thread as usize).min(1 << 12);
    let before = if implicit::is_used(zebin, &kernel.name) { implicit::BYTES } else { 0 };
    let sizes = range.regions();
    let mut addresses = [0; 8];
    for (address, local) in addresses.iter_mut().zip(sizes) {
        if let Some(local) = local {
            let threads = threads(local, kernel.simd) as usize;
            *address = space.allocate("indirect data", before + rest + threads * per_thread + 64)?;
        }
    }
    let code = load::load(zebin, &kernel.name, &mut space)?;
    let (mut resources, buffers) = resources(&kernel, arguments, &mut space)?;
    bind(&kernel, &resources, &mut space);
    sampler_table(&kernel, &resources, &mut space);
    let (slm, printf) = local_and_printf(&kernel, &mut resources, before > 0, &mut space)?;
    let scratch = scratch(&kernel, &mut space)?;
    let mut payload = vec![0u8; cross.max(32)];
    let writer =
        Writer { kernel: &kernel, range: &range, resources: &resources, printf, dimensions: settings.dimensions };
    for part in &kernel.payload {
        let value = writer.value(part, &mut space)?;
        store(&mut payload, part, &value);
    }
    let code = Program::translate(&code, load::CODE_BASE, kernel.grf_count, settings.host);
    let mut contents = Contents {
        kernel: &kernel,
        range: &range,
        payload,
        inline,
        before,
        rest,
        per_thread,
        settings: &settings,
        printf,
        scratch,
    };
    let mut regions = [const { None }; 8];
    for ((region, local), indirect) in regions.iter_mut().zip(sizes).zip(addresses) {
        if let Some(local) = local {
            *region = Some(contents.place(local, indirect, &code, &mut space)?);
        }
    }
    Ok(Launch { name: kernel.name.clone(), code, space, buffers, printf, kernel, range, settings, regions, slm })
}

/// Stores a value at its place in the payload, as many bytes as the place has.
pub fn store(payload: &mut [u8], part: &zebin::Argument, value: &[u8]) {
    let start = part.offset as usize;
    let length = value.len().min(part.size as usize);
    payload[start..start + length].copy_from_slice(&value[..length]);
}

fn check_range(zebin: &Zebin, kernel: &Kernel, range: &Range) -> Result<(), LaunchError> {
    let fail = |text: String| Err(LaunchError::Range(text));
    if range.global.contains(&0) || range.local.contains(&0) {
        return fail("a size of the range is 0: use at least 1".into());
    }
    for (global, local) in range.global.iter().zip(range.local) {
        if global % local != 0 && !zebin.has_partial_groups() {
            return fail(format!(
                "the global size {global} is no multiple of the local size {local}, which needs a program that is built with \
                 -cl-std=CL2.0 or later and without -cl-uniform-work-group-size: build it so, or change one of the sizes"
            ));
        }
    }
    let items = items(range.local);
    if items > MOST_ITEMS {
        return fail(format!("a group of {items} work items is larger than {MOST_ITEMS}: use a smaller local size"));
    }
    if let Some(size) = kernel.group_size
        && size != range.local
    {
        return fail(format!("the kernel requires the local size {},{},{}", size[0], size[1], size[2]));
    }
    if ![8, 16, 32].contains(&kernel.simd) && kernel.simd != 1 {
        return fail(format!("the kernel has {} lanes, which no hardware has", kernel.simd));
    }
    if threads(range.local, kernel.simd) > SLOTS {
        return fail(format!(
            "a group of {items} work items with {} of them in a thread has more than {SLOTS} threads: use a smaller local size",
            kernel.simd
        ));
    }
    Ok(())
}

type Buffers = Vec<(String, u64, usize)>;

/// Places the arguments in memory, by number.
fn resources(
    kernel: &Kernel,
    arguments: &[(String, Argument)],
    space: &mut Space,
) -> Result<(Vec<Resource>, Buffers), LaunchError> {
    for (name, _) in arguments {
        if !kernel.arguments.iter().any(|argument| argument.name == *name) {
            return Err(LaunchError::unknown(kernel, name));
        }
    }
    let given = |name: &str| arguments.iter().find(|(found, _)| found == name).map(|(_, value)| value);
    let missing: Vec<String> =
        kernel.arguments.iter().filter(|info| given(&info.name).is_none()).map(description).collect();
    if !missing.is_empty() {
        return Err(LaunchError::Missing(missing.join(", ")));
    }
    let mut all = Vec::new();
    let mut buffers: Buffers = Vec::new();
    for info in &kernel.arguments {
        let Some(given) = given(&info.name) else { continue };
        let parts: Vec<_> = kernel.payload.iter().filter(|part| part.index == Some(info.index)).collect();
        let kind = |expected, form| LaunchError::Kind { name: info.name.clone(), expected, form };
        let mut resource = Resource::default();
        let is_value = parts.iter().any(|part| part.kind == "arg_byvalue");
        let space_of = parts.iter().find(|part| part.kind == "arg_bypointer").map_or("", |part| part.space.as_str());
        let bound = kernel.bindings.iter().any(|(_, argument)| *argument == info.index);
        match given {
            Argument::Value(bytes) if is_value => resource.value.clone_from(bytes),
            Argument::Buffer(bytes) if is_value => resource.value.clone_from(bytes),
            _ if is_value => return Err(kind("a value", "TYPE:NUMBER")),
            Argument::Local(size) if space_of == "local" => resource.local = Some(*size),
            _ if space_of == "local" => return Err(kind("local memory", "local:BYTES")),
            Argument::Sampler(sampler) if space_of == "sampler" => {
                resource.sampler = Some(image::add_sampler(space, *sampler));
            }
            _ if space_of == "sampler" => return Err(kind("a sampler", "sampler:clamp_edge,nearest")),
            Argument::Image { bytes, size, format } if space_of == "image" => {
                let kind = parts.iter().find(|part| !part.image.is_empty()).map_or("", |part| part.image.as_str());
                let (state, address, total) = image::create(space, &info.name, bytes, *size, *format, kind)?;
                resource.state = Some(state);
                resource.address = address;
                resource.size = total;
                resource.image = Some((*size, *format));
                buffers.push((info.name.clone(), address, total));
            }
            _ if space_of == "image" => return Err(kind("an image", "@FILE:image:WIDTHxHEIGHT:FORMAT")),
            // Loads from nowhere give 0.
            Argument::Null => resource.state = Some(space.add_state(State::Buffer { start: 0, size: 0 })),
            // It is found below, when all buffers are there.
            Argument::Same(_) => {}
            Argument::Buffer(bytes) | Argument::Value(bytes) if !parts.is_empty() || bound => {
                resource.address = space.allocate_with(&info.name, bytes)?;
                resource.size = bytes.len();
                let state = State::Buffer { start: resource.address, size: bytes.len() as u64 };
                resource.state = Some(space.add_state(state));
                buffers.push((info.name.clone(), resource.address, bytes.len()));
            }
            // The kernel does not use the argument; its buffer is saved all the same.
            Argument::Buffer(bytes) | Argument::Image { bytes, .. } => {
                resource.address = space.allocate_with(&info.name, bytes)?;
                buffers.push((info.name.clone(), resource.address, bytes.len()));
            }
            _ => {}
        }
        let index = info.index as usize;
        if index > 4096 {
            return Err(LaunchError::Payload(format!("argument number {index}")));
        }
        if all.len() <= index {
            all.resize(index + 1, Resource::default());
        }
        all[index] = resource;
    }
    let mut shared = Buffers::new();
    for info in &kernel.arguments {
        let Some(Argument::Same(other)) = given(&info.name) else { continue };
        let fail = || LaunchError::Same { name: info.name.clone(), other: other.clone() };
        let (_, address, size) = buffers.iter().find(|(name, ..)| name == other).ok_or_else(fail)?;
        let owner = kernel.arguments.iter().find(|info| info.name == *other).ok_or_else(fail)?;
        let state = all.get(owner.index as usize).and_then(|resource: &Resource| resource.state);
        if let Some(resource) = all.get_mut(info.index as usize) {
            resource.address = *address;
            resource.size = *size;
            resource.state = state;
        }
        shared.push((info.name.clone(), *address, *size));
    }
    buffers.extend(shared);
    Ok((all, buffers))
}

/// Name and type of an argument.
fn description(info: &zebin::ArgumentInfo) -> String {
    match info.type_and_size() {
        ("", _) => info.name.clone(),
        (ty, _) => format!("{} ({ty})", info.name),
    }
}

fn bind(kernel: &Kernel, resources: &[Resource], space: &mut Space) {
    for (index, argument) in &kernel.bindings {
        let state = resources.get(*argument as usize).and_then(|resource| resource.state);
        if let (Some(state), Ok(index)) = (state, u8::try_from(*index)) {
            space.bindings.push((index, (state / super::memory::STATE_BYTES) as usize));
        }
    }
}

/// Fills the table for messages that name a sampler by number.
fn sampler_table(kernel: &Kernel, resources: &[Resource], space: &mut Space) {
    for sampler in &kernel.samplers {
        let pointer = image::add_sampler(space, image::inline_sampler(sampler));
        if let Ok(index) = u8::try_from(sampler.index) {
            space.sampler_table.push((index, (pointer / super::memory::SAMPLER_BYTES) as usize));
        }
    }
    for part in kernel.payload.iter().filter(|part| part.space == "sampler") {
        let sampler = part.index.and_then(|index| resources.get(index as usize)).and_then(|resource| resource.sampler);
        if let (Some(pointer), Some(Ok(index))) = (sampler, part.sampler.map(u8::try_from)) {
            space.sampler_table.push((index, (pointer / super::memory::SAMPLER_BYTES) as usize));
        }
    }
}

/// Shared local memory with the parts of local arguments, and the printf buffer.
fn local_and_printf(
    kernel: &Kernel,
    resources: &mut [Resource],
    functions: bool,
    space: &mut Space,
) -> Result<(usize, Option<u64>), LaunchError> {
    let mut slm = kernel.slm_size;
    for resource in resources.iter_mut() {
        if let Some(size) = resource.local {
            let start = slm.next_multiple_of(16);
            slm = start.saturating_add(size);
            resource.address = u64::from(start);
        }
    }
    if slm > MOST_SLM {
        return Err(LaunchError::Range(format!(
            "a group needs {slm} bytes of local memory, and at most {MOST_SLM} are possible"
        )));
    }
    let printf = if functions || kernel.payload.iter().any(|part| part.kind == "printf_buffer") {
        let address = space.allocate("printf buffer", PRINTF_BYTES)?;
        // The next record follows the counter.
        space.poke(address, &4u32.to_le_bytes());
        Some(address)
    } else {
        None
    };
    // EU-050: sizes are powers of two from 1 KiB.
    let size = if slm == 0 { 0 } else { (slm as usize).next_power_of_two().max(1024) };
    Ok((size, printf))
}

/// Scratch memory: the value of r0.5 bits 31:10. EU-041.
fn scratch(kernel: &Kernel, space: &mut Space) -> Result<u32, LaunchError> {
    let size: usize =
        kernel.buffers.iter().filter(|buffer| buffer.kind == "scratch").map(|buffer| buffer.size as usize).sum();
    if size == 0 {
        return Ok(0);
    }
    let pitch = size.next_power_of_two().max(1024);
    let start = space.allocate("scratch memory", pitch * HARDWARE_THREADS)?;
    let offset = space.add_state(State::Scratch { start, pitch: pitch as u64 });
    Ok(offset >> 6)
}

struct Writer<'w> {
    kernel: &'w Kernel,
    range: &'w Range,
    resources: &'w [Resource],
    printf: Option<u64>,
    dimensions: Option<u8>,
}

/// Address of a section with data, or the offset of a surface state for it; 0 without such a section.
fn section(space: &mut Space, name: &str, part: &zebin::Argument) -> Vec<u8> {
    let Some((start, size)) = space.named(name) else { return vec![0; 8] };
    let state = space.add_state(State::Buffer { start, size });
    if let Some(index) = part.binding.and_then(|index| u8::try_from(index).ok()) {
        space.bindings.push((index, (state / super::memory::STATE_BYTES) as usize));
    }
    let value = if part.mode == "bindless" { u64::from(state) } else { start };
    value.to_le_bytes().to_vec()
}

/// Bytes of three dwords.
pub fn triple(values: [u32; 3]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

impl Writer<'_> {
    /// Bytes of a part of the payload.
    fn value(&self, part: &zebin::Argument, space: &mut Space) -> Result<Vec<u8>, LaunchError> {
        let resource = part.index.and_then(|index| self.resources.get(index as usize)).cloned().unwrap_or_default();
        let range = self.range;
        let (image, format) = resource.image.map_or(([0; 3], None), |(size, format)| (size, Some(format)));
        let number = |value: u64| value.to_le_bytes().to_vec();
        Ok(match part.kind.as_str() {
            "global_id_offset" => triple(range.offset),
            "enqueued_local_size" => triple(range.local),
            // Of full groups; each region stores its own.
            "local_size" => triple(range.full()),
            "global_size" => triple(range.global),
            "group_count" => triple(range.groups()),
            "work_dimensions" => number(implicit::dimensions(range, self.dimensions).into()),
            "arg_byvalue" => resource.value.get(part.source_offset as usize..).unwrap_or_default().to_vec(),
            "arg_bypointer" => match (part.mode.as_str(), part.space.as_str()) {
                (_, "sampler") => number(u64::from(resource.sampler.unwrap_or(0))),
                ("bindless", _) => number(u64::from(resource.state.unwrap_or(0))),
                ("stateless" | "slm", _) => number(resource.address),
                _ => Vec::new(),
            },
            "buffer_address" => number(resource.address),
            "buffer_size" => number(resource.size as u64),
            "buffer_offset" | "sampler_snap_wa" => number(0),
            "printf_buffer" => number(self.printf.unwrap_or(0)),
            "private_base_stateless" => {
                let lanes = |buffer: &zebin::Buffer| if buffer.per_lane { self.kernel.simd as usize } else { 1 };
                let size: usize = self
                    .kernel
                    .buffers
                    .iter()
                    .filter(|buffer| buffer.kind == "global")
                    .map(|buffer| buffer.size as usize * lanes(buffer))
                    .sum();
                number(space.allocate("private memory", size.saturating_mul(HARDWARE_THREADS))?)
            }
            // The kernel reads the sampler's mode with the numbers of the driver's header.
            "sampler_address" | "sampler_normalized" => {
                let index = resource.sampler.unwrap_or(0) / super::memory::SAMPLER_BYTES;
                let Some(sampler) = space.samplers.get(index as usize) else { return Ok(number(0)) };
                number(if part.kind == "sampler_address" {
                    match sampler.addressing[0] {
                        Addressing::Border | Addressing::HalfBorder => 1,
                        Addressing::Clamp | Addressing::Cube => 2,
                        Addressing::Wrap => 3,
                        Addressing::Mirror | Addressing::MirrorOnce | Addressing::MirrorEdge => 4,
                    }
                } else {
                    u64::from(sampler.normalized) * 8
                })
            }
            "inline_sampler" => {
                let wanted = part.sampler.unwrap_or(0);
                let found = self.kernel.samplers.iter().find(|sampler| sampler.index == wanted);
                let sampler = image::inline_sampler(found.unwrap_or(&zebin::Sampler::default()));
                number(u64::from(image::add_sampler(space, sampler)))
            }
            "const_base" | "data_const_buffer" => section(space, ".data.const", part),
            "global_base" | "data_global_buffer" => section(space, ".data.global", part),
            "image_width" => number(u64::from(image[0])),
            "image_height" => number(u64::from(image[1])),
            "image_depth" => number(u64::from(image[2])),
            "image_array_size" => {
                let is_line =
                    |other: &&zebin::Argument| other.index == part.index && other.image.starts_with("image_1d");
                number(u64::from(image[if self.kernel.payload.iter().find(is_line).is_some() { 1 } else { 2 }]))
            }
            "image_channel_data_type" => number(format.map_or(0, |format| image::numbers(format).0)),
            "image_channel_order" => number(format.map_or(0, |format| image::numbers(format).1)),
            "image_num_mip_levels" | "image_num_samples" | "image_srgb_channel_order" => number(0),
            "image_flat_image_base_offset" => number(resource.address),
            // Sizes less 1, widths in bytes.
            "image_flat_image_width" | "image_flat_image_pitch" => {
                let bytes = format.map_or(1, |format| format.texel_bytes() as u64);
                number((u64::from(image[0]) * bytes).saturating_sub(1))
            }
            "image_flat_image_height" => number(u64::from(image[1]).saturating_sub(1)),
            other => return Err(LaunchError::Payload(format!("the implicit value {other}"))),
        })
    }
}
