// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The sources of the kernels. `ocloc` builds them on the host, because its compiler takes many times as long in an
//! emulated guest.

/// How a kernel addresses its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// By binding tables, as OpenCL's driver compiles. The driver compiles programs with other addressing again.
    Bindful,
    /// By surface states in a heap, the default of `ocloc` and of Level Zero.
    Bindless,
}

/// One source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    /// Name of the source and of the binary, without extension.
    pub name: &'static str,
    /// OpenCL C.
    pub source: &'static str,
    /// How its kernels address buffers.
    pub addressing: Addressing,
    /// Options of the compiler.
    pub options: &'static str,
}

/// The options of most programs.
const OPTIONS: &str = "-cl-std=CL3.0";

macro_rules! program {
    ($constant:ident, $name:literal, $addressing:ident, $options:expr, $doc:literal) => {
        #[doc = $doc]
        pub const $constant: Program = Program {
            name: $name,
            source: include_str!(concat!("../kernels/", $name, ".cl")),
            addressing: Addressing::$addressing,
            options: $options,
        };
    };
    ($constant:ident, $name:literal, $doc:literal) => {
        program!($constant, $name, Bindful, OPTIONS, $doc);
    };
}

program!(VADD, "vadd", "Addition of vectors.");
program!(SAXPY, "saxpy", "A multiple of a vector plus another.");
program!(REDUCE, "reduce", "Sums of groups.");
program!(ATOMICS, "atomics", "Atomics on global and on shared local memory.");
program!(TRANSPOSE, "transpose", "Transposition of a matrix.");
program!(SGEMM, "sgemm", "Product of matrices.");
program!(MANDELBROT, "mandelbrot", "The Mandelbrot set.");
program!(INT64, "int64", "64-bit integers.");
program!(HALF, "half", "Half precision.");
program!(SUBGROUPS, "subgroups", "Sub-groups.");
program!(PRINT, "print", "printf.");
// With optimisation the compiler inlines all calls.
program!(CALLS, "calls", Bindful, "-cl-std=CL3.0 -cl-opt-disable", "Calls on a stack.");
program!(NESTED, "nested", Bindful, "-cl-std=CL3.0 -cl-opt-disable", "Functions that call functions.");
program!(PRIVATE, "private", "Private memory.");
program!(GENERIC, "generic", "Generic pointers.");
program!(SWITCH, "switch", "A divergent switch.");
program!(NARROW, "narrow", "Bytes and words.");
program!(MATH, "math", "Mathematical functions.");
program!(ENDLESS, "endless", "A loop without an end.");
program!(SOURCE, "source", "A program that the guest compiles.");
program!(IMAGES, "images", "Images.");
program!(SCALE, "scale", Bindless, OPTIONS, "Multiples of a vector, for Level Zero.");

/// The programs that the host builds: all but the one that the guest compiles.
pub const BUILT: [Program; 21] = [
    VADD, SAXPY, REDUCE, ATOMICS, TRANSPOSE, SGEMM, MANDELBROT, INT64, HALF, SUBGROUPS, PRINT, CALLS, PRIVATE, GENERIC,
    SWITCH, NARROW, MATH, IMAGES, SCALE, NESTED, ENDLESS,
];

/// Directory of the binaries in the image.
pub const FOLDER: &str = "/usr/share/arctic/kernels";

impl Program {
    /// Name of its binary in [`FOLDER`].
    pub fn binary(&self) -> String {
        format!("{}.bin", self.name)
    }

    /// The arguments of `ocloc compile` that build `source` into the directory `out` for the card.
    pub fn ocloc_arguments(&self, source: &str, out: &str) -> Vec<String> {
        let mut arguments =
            ["compile", "-q", "-file", source, "-device", "dg2", "-options", self.options].map(str::to_owned).to_vec();
        if self.addressing == Addressing::Bindful {
            arguments.extend(["-stateful_address_mode", "bindful"].map(str::to_owned));
        }
        arguments.extend(["-output", self.name, "-output_no_suffix", "-out_dir", out].map(str::to_owned));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn each_source_is_in_the_table_once() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        let names: Vec<&str> = BUILT.iter().chain([&SOURCE]).map(|program| program.name).collect();
        assert_eq!(names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), files);
        assert_eq!(names.len(), files.len());
    }

    #[test]
    fn programs_of_opencl_are_built_with_binding_tables() {
        let line = |program: Program| program.ocloc_arguments("a.cl", "out").join(" ");
        assert_eq!(
            line(VADD),
            "compile -q -file a.cl -device dg2 -options -cl-std=CL3.0 -stateful_address_mode bindful -output vadd \
             -output_no_suffix -out_dir out"
        );
        assert!(!line(SCALE).contains("bindful"));
    }
}
