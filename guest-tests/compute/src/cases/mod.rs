// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The kernels in order of execution, each with its problem. The CPU's computations are in the modules of the problems.

mod basic;
mod groups;
mod images;
mod language;

use crate::problem::Problem;
use crate::programs::{self, Program};

/// The interface by which a kernel is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenCL, with a program that the host built.
    OpenCl,
    /// OpenCL, with a program that the driver compiles.
    OpenClSource,
    /// Level Zero.
    LevelZero,
    /// Level Zero, with the number of groups in memory.
    LevelZeroIndirect,
}

impl std::fmt::Display for Api {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(match self {
            Self::OpenCl => "OpenCL",
            Self::OpenClSource => "OpenCL, compiled in the guest",
            Self::LevelZero => "Level Zero",
            Self::LevelZeroIndirect => "Level Zero, indirect",
        })
    }
}

/// A kernel with its problem.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Unique name.
    pub name: &'static str,
    /// What it exercises.
    pub what: &'static str,
    /// How it is run.
    pub api: Api,
    /// The program that has the kernel.
    pub program: Program,
    /// It is run only if it is named.
    pub on_request: bool,
    /// The launches of its kernels.
    pub problems: Problems,
}

/// Makes launches of kernels of one program. Expected results are computed here.
#[derive(Clone, Copy, Debug)]
pub enum Problems {
    /// One launch.
    One(fn() -> Problem),
    /// Several launches, one after the other.
    Several(fn() -> Vec<Problem>),
}

impl Problems {
    /// The launches.
    pub fn list(self) -> Vec<Problem> {
        match self {
            Self::One(make) => vec![make()],
            Self::Several(make) => make(),
        }
    }
}

/// Name of the case whose result is the picture.
pub const PICTURE: &str = "mandelbrot";

/// All cases. The first is the one that every change of the card is tried with.
pub const CASES: &[Case] = &[
    case("vadd", "local ids by hardware", programs::VADD, basic::vadd_by_hardware),
    case("vadd_ids", "local ids in memory, groups of 48", programs::VADD, basic::vadd_in_memory),
    case("saxpy", "fma", programs::SAXPY, basic::saxpy),
    case("reduce", "shared local memory, barriers", programs::REDUCE, groups::reduce),
    case("atomics", "global inc, add, max, min, xor, cmpxchg", programs::ATOMICS, groups::global_atomics),
    case("atomics_local", "atomics on shared local memory", programs::ATOMICS, groups::local_atomics),
    case("transpose", "two dimensions, tiles in shared local memory", programs::TRANSPOSE, groups::transpose),
    case("sgemm", "product of matrices by tiles", programs::SGEMM, groups::sgemm),
    case(PICTURE, "divergent loops", programs::MANDELBROT, basic::mandelbrot),
    case("int64_mul", "64-bit multiplication", programs::INT64, basic::int64_multiply),
    case("int64_div", "64-bit division", programs::INT64, basic::int64_divide),
    case("int64_shift", "64-bit shifts", programs::INT64, basic::int64_shift),
    case("half", "half precision", programs::HALF, basic::half_precision),
    case("narrow", "bytes and words, saturation", programs::NARROW, basic::narrow),
    case("math", "sin, exp, log, pow, sqrt, fmod", programs::MATH, basic::math),
    case("subgroups", "reduce, scan, broadcast, shuffle", programs::SUBGROUPS, groups::sub_groups),
    case("block_io", "block reads and writes of sub-groups", programs::SUBGROUPS, groups::block_io),
    case("printf", "printf", programs::PRINT, language::print),
    case("calls", "calls on a stack, scratch memory", programs::CALLS, language::calls),
    case("private", "private memory, indexed at run time", programs::PRIVATE, language::private),
    case("generic", "generic pointers", programs::GENERIC, language::generic),
    case("switch", "divergent switch", programs::SWITCH, language::switch),
    images("image_1d", "lines in all formats, copied, sampled, written", images::lines),
    images("image_1d_array", "arrays of lines", images::arrays_of_lines),
    images("image_2d", "planes, tiled, compressed and linear", images::planes),
    images("image_2d_array", "arrays of planes", images::arrays_of_planes),
    images("image_3d", "volumes", images::volumes),
    images("image_buffer", "images of buffers", images::buffers),
    case("image_read_write", "typed reads and writes of one image", programs::IMAGES, images::read_and_written),
    images("sampler_outside", "border, edge, repetition, mirror", images::sampled_outside),
    images("sampler_linear", "means of texels", images::linear_filters),
    images("image_colors", "order of channels, sRGB, intensity, luminance", images::colors),
    Case { api: Api::LevelZero, ..case("level_zero", "bindless addressing", programs::SCALE, basic::scale) },
    Case {
        api: Api::LevelZeroIndirect,
        ..case("level_zero_indirect", "groups from memory", programs::SCALE, basic::scale)
    },
    Case { api: Api::OpenClSource, ..case("source", "compiled in the guest", programs::SOURCE, language::source) },
    case("calls_nested", "functions that call functions", programs::NESTED, language::nested_calls),
    Case { on_request: true, ..case("endless", "no end, on request only", programs::ENDLESS, language::endless) },
];

const fn case(name: &'static str, what: &'static str, program: Program, problem: fn() -> Problem) -> Case {
    Case { name, what, api: Api::OpenCl, program, on_request: false, problems: Problems::One(problem) }
}

const fn images(name: &'static str, what: &'static str, problems: fn() -> Vec<Problem>) -> Case {
    let (api, program) = (Api::OpenCl, programs::IMAGES);
    Case { name, what, api, program, on_request: false, problems: Problems::Several(problems) }
}

/// Returns the case with this name.
pub fn named(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::problem::Argument;
    use crate::programs::Addressing;

    #[test]
    fn cases_have_unique_names_and_the_addressing_of_their_interface() {
        let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), CASES.len());
        for case in CASES {
            let bindless = case.program.addressing == Addressing::Bindless;
            assert_eq!(bindless, matches!(case.api, Api::LevelZero | Api::LevelZeroIndirect), "{}", case.name);
        }
        assert_eq!(named("reduce").map(|case| case.name), Some("reduce"));
        assert!(named("nothing").is_none());
    }

    /// Each program that the host builds is used, and each kernel is in the source of its program.
    #[test]
    fn programs_and_kernels_belong_together() {
        let used: BTreeSet<_> =
            CASES.iter().filter(|case| case.api != Api::OpenClSource).map(|case| case.program.name).collect();
        let built: BTreeSet<_> = programs::BUILT.iter().map(|program| program.name).collect();
        assert_eq!(used, built);
        for case in CASES {
            for problem in case.problems.list() {
                let kernel = problem.kernel;
                // Those of images have names of several parts.
                let name =
                    kernel.split_once('_').filter(|_| case.program == programs::IMAGES).map_or(kernel, |(_, rest)| {
                        ["_f", "_i", "_ui"].iter().find_map(|kind| rest.strip_suffix(kind)).unwrap_or(rest)
                    });
                assert!(case.program.source.contains(name), "{}: {kernel}", case.name);
            }
        }
    }

    /// Groups divide the items; there is something to compare; the result differs from what the buffers hold before.
    #[test]
    fn each_problem_can_be_right_and_wrong() {
        for case in CASES {
            for problem in case.problems.list() {
                can_be_right_and_wrong(case, &problem);
            }
        }
    }

    fn can_be_right_and_wrong(case: &Case, problem: &Problem) {
        for axis in 0..3 {
            assert!(problem.global[axis].is_multiple_of(problem.local[axis]), "{}", case.name);
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (bytes, expected) in problem.arguments.iter().filter_map(Argument::output) {
            assert!(!expected.is_empty() && expected.compare(bytes).is_err(), "{}: {problem}", case.name);
            before.push(bytes.to_vec());
            after.push(expected.bytes().to_vec());
        }
        let printed: String = problem.printed.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(problem.check(&after, &printed), Ok(()), "{}: {problem}", case.name);
        assert!(problem.check(&before, "").is_err(), "{}: {problem}", case.name);
    }
}
