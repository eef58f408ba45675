// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reader of `.ze_info`: the part of YAML that IGC writes (maps, lists and scalars, by indentation).

use super::ZebinError;

/// An argument or implicit value in the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// `arg_bypointer`, `arg_byvalue`, `global_id_offset` …
    pub kind: String,
    /// Offset in the payload.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// Number of the kernel's argument.
    pub index: Option<u32>,
    /// `stateless`, `bindless`, `stateful` or `slm`.
    pub mode: String,
    /// `global`, `local`, `constant`, `image`, `sampler`.
    pub space: String,
    /// `readonly`, `writeonly`, `readwrite`.
    pub access: String,
    /// `image_2d`, `image_1d_array` and the like.
    pub image: String,
    /// Alignment of memory for a local pointer.
    pub alignment: u32,
    /// Number of a sampler in the sampler table.
    pub sampler: Option<u32>,
    /// Index in the binding table, for a section with data.
    pub binding: Option<u32>,
    /// Bytes of the argument's value at which this part begins.
    pub source_offset: u32,
}

/// A kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Name.
    pub name: String,
    /// Lanes of a thread.
    pub simd: u32,
    /// Registers of a thread.
    pub grf_count: u32,
    /// Bytes of SLM that the kernel declares.
    pub slm_size: u32,
    /// Number of barriers.
    pub barriers: u32,
    /// Bytes of inline data.
    pub inline_data: u32,
    /// Bytes from the start to the entry for local ids by hardware.
    pub skip_per_thread: u32,
    /// Required size of a group.
    pub group_size: Option<[u32; 3]>,
    /// Order of the walk over local ids.
    pub walk_order: [u32; 3],
    /// Values of the payload.
    pub payload: Vec<Argument>,
    /// Bytes of per-thread data.
    pub per_thread: u32,
    /// Index in the binding table and number of the argument.
    pub bindings: Vec<(u32, u32)>,
    /// Type, slot and bytes of per-thread buffers: `scratch` and `global`.
    pub buffers: Vec<Buffer>,
    /// Inline samplers.
    pub samplers: Vec<Sampler>,
    /// Names and types of the arguments.
    pub arguments: Vec<ArgumentInfo>,
}

/// A buffer for each hardware thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// `scratch` or `global`.
    pub kind: String,
    /// `single_space`, `spill_fill_space`, `private_space`.
    pub usage: String,
    /// Bytes of a thread, or of a lane.
    pub size: u32,
    /// The size is that of a lane.
    pub per_lane: bool,
}

/// A sampler that the kernel declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampler {
    /// Number.
    pub index: u32,
    /// `none`, `repeat`, `clamp_edge`, `clamp_border`, `mirror`.
    pub addressing: String,
    /// `nearest` or `linear`.
    pub filter: String,
    /// Coordinates are 0 to 1.
    pub normalized: bool,
}

/// Name and type of an argument in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentInfo {
    /// Number.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Type, as `float*;8`.
    pub ty: String,
    /// Address space, as `__global`.
    pub space: String,
}

impl ArgumentInfo {
    /// Type without its size, and the size in bytes; 0 if the file does not have it.
    pub fn type_and_size(&self) -> (&str, u32) {
        let (name, size) = self.ty.split_once(';').unwrap_or((&self.ty, ""));
        (name, number(size))
    }
}

/// All kernels of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Kernels.
    pub kernels: Vec<Kernel>,
    /// Per-function data.
    pub functions: Vec<String>,
}

/// A key and a value with the path to them.
struct Entry<'t> {
    /// Names of the enclosing keys, outermost first.
    path: Vec<&'t str>,
    key: &'t str,
    value: &'t str,
    /// True if a new element of the list `path.last()` begins here.
    starts: bool,
}

/// Deepest nesting that is read.
const DEPTH: usize = 16;

/// Divides the text into entries.
fn entries(text: &str) -> Result<Vec<Entry<'_>>, ZebinError> {
    let mut all = Vec::new();
    // Indentation and name of the enclosing keys.
    let mut stack: Vec<(usize, &str)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let fail = |reason| ZebinError::Info { line: number, reason };
        let trimmed = line.trim_end();
        let mut body = trimmed.trim_start();
        if body.is_empty() || body.starts_with('#') || body == "---" || body == "..." {
            continue;
        }
        let mut indent = trimmed.len() - body.len();
        let starts = body.starts_with("- ");
        if starts {
            let rest = body[2..].trim_start();
            indent += body.len() - rest.len();
            body = rest;
        }
        while stack.last().is_some_and(|(outer, _)| *outer >= indent) {
            stack.pop();
        }
        let (key, value) = body.split_once(':').ok_or_else(|| fail("a key is missing"))?;
        let value = value.trim();
        let value = value.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(value);
        if stack.len() >= DEPTH {
            return Err(fail("the nesting is too deep"));
        }
        all.push(Entry { path: stack.iter().map(|(_, name)| *name).collect(), key: key.trim(), value, starts });
        if value.is_empty() {
            stack.push((indent, key.trim()));
        }
    }
    Ok(all)
}

/// A number; other text is 0.
fn number(text: &str) -> u32 {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}

/// Three numbers in brackets.
fn triple(text: &str) -> [u32; 3] {
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    let mut numbers = inner.split(',').map(|text| number(text.trim()));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}

/// Appends an element if one begins, and returns the last.
fn element<T: Default>(list: &mut Vec<T>, starts: bool) -> Option<&mut T> {
    if starts || list.is_empty() {
        list.push(T::default());
    }
    list.last_mut()
}

impl Info {
    /// Reads the text.
    pub fn parse(text: &str) -> Result<Info, ZebinError> {
        let mut info = Info::default();
        // Kernel to which entries of `kernels_misc_info` belong.
        let mut described: Option<usize> = None;
        for entry in entries(text)? {
            let Entry { key, value, starts, .. } = entry;
            match entry.path[..] {
                ["kernels", ref inner @ ..] => {
                    let starts_kernel = inner.is_empty() && starts;
                    if starts_kernel {
                        info.kernels.push(Kernel {
                            grf_count: 128,
                            simd: 8,
                            walk_order: [0, 1, 2],
                            ..Kernel::default()
                        });
                    }
                    let Some(kernel) = info.kernels.last_mut() else { continue };
                    kernel_entry(kernel, inner, key, value, starts);
                }
                ["kernels_misc_info", ref inner @ ..] => match (inner, key) {
                    ([], "name") => described = info.kernels.iter().position(|kernel| kernel.name == value),
                    (["args_info"], _) => {
                        let Some(kernel) = described.and_then(|index| info.kernels.get_mut(index)) else { continue };
                        let Some(argument) = element(&mut kernel.arguments, starts) else { continue };
                        match key {
                            "index" => argument.index = number(value),
                            "name" => argument.name = value.into(),
                            "type_name" => argument.ty = value.into(),
                            "address_qualifier" => argument.space = value.into(),
                            _ => {}
                        }
                    }
                    _ => {}
                },
                ["functions"] if key == "name" => info.functions.push(value.into()),
                _ => {}
            }
        }
        Ok(info)
    }
}

fn kernel_entry(kernel: &mut Kernel, path: &[&str], key: &str, value: &str, starts: bool) {
    match (path, key) {
        ([], "name") => kernel.name = value.into(),
        (["execution_env"], "simd_size") => kernel.simd = number(value),
        (["execution_env"], "grf_count") => kernel.grf_count = number(value),
        (["execution_env"], "slm_size") => kernel.slm_size = number(value),
        (["execution_env"], "barrier_count") => kernel.barriers = number(value),
        (["execution_env"], "inline_data_payload_size") => kernel.inline_data = number(value),
        (["execution_env"], "offset_to_skip_per_thread_data_load") => kernel.skip_per_thread = number(value),
        (["execution_env"], "required_work_group_size") => kernel.group_size = Some(triple(value)),
        (["execution_env"], "work_group_walk_order_dimensions") => {
            let order = triple(value);
            // All zero is written for kernels that do not care.
            if order != [0; 3] {
                kernel.walk_order = order;
            }
        }
        (["payload_arguments"], _) => {
            let Some(argument) = element(&mut kernel.payload, starts) else { return };
            match key {
                "arg_type" => argument.kind = value.into(),
                "offset" => argument.offset = number(value),
                "size" => argument.size = number(value),
                "arg_index" => argument.index = Some(number(value)),
                "addrmode" => argument.mode = value.into(),
                "addrspace" => argument.space = value.into(),
                "access_type" => argument.access = value.into(),
                "image_type" => argument.image = value.into(),
                "slm_alignment" => argument.alignment = number(value),
                "sampler_index" => argument.sampler = Some(number(value)),
                "bti_value" => argument.binding = Some(number(value)),
                "source_offset" => argument.source_offset = number(value),
                _ => {}
            }
        }
        (["per_thread_payload_arguments"], "size") => kernel.per_thread += number(value),
        (["binding_table_indices"], _) => {
            if starts || kernel.bindings.is_empty() {
                kernel.bindings.push((0, 0));
            }
            let Some((table, argument)) = kernel.bindings.last_mut() else { return };
            match key {
                "bti_value" => *table = number(value),
                "arg_index" => *argument = number(value),
                _ => {}
            }
        }
        (["per_thread_memory_buffers"], _) => {
            let Some(buffer) = element(&mut kernel.buffers, starts) else { return };
            match key {
                "type" => buffer.kind = value.into(),
                "usage" => buffer.usage = value.into(),
                "size" => buffer.size = number(value),
                "is_simt_thread" => buffer.per_lane = value == "true",
                _ => {}
            }
        }
        (["inline_samplers"], _) => {
            let Some(sampler) = element(&mut kernel.samplers, starts) else { return };
            match key {
                "sampler_index" => sampler.index = number(value),
                "addrmode" => sampler.addressing = value.into(),
                "filtermode" => sampler.filter = value.into(),
                "normalized" => sampler.normalized = value == "true",
                _ => {}
            }
        }
        _ => {}
    }
}
