// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Items that share data: barriers, atomics, tiles, sub-groups.

use crate::numbers::Numbers;
use crate::problem::{Expected, Problem, bytes};

pub(super) fn reduce() -> Problem {
    const COUNT: usize = 16_384;
    const GROUP: usize = 64;
    // Sums of 64 such numbers are exact in any order.
    let input = Numbers::new(10).list(COUNT, |next| next.float(-100..100));
    let sums: Vec<f32> = input.chunks(GROUP).map(|group| group.iter().sum()).collect();
    Problem::linear("reduce", COUNT, GROUP).input(&input).output(Expected::exact(&sums)).local(4 * GROUP)
}

pub(super) fn global_atomics() -> Problem {
    const COUNT: usize = 2048;
    let values = Numbers::new(11).list(COUNT, Numbers::word);
    let (results, counts) = reduced(&values);
    // The second element is a maximum, the third a minimum.
    let before = bytes(&[0u32, 0, u32::MAX, 0, 0]);
    let problem =
        Problem::linear("global_atomics", COUNT, 64).input(&values).output_over(before, Expected::exact(&results));
    let problem = problem.output_over(bytes(&[0u32; 256]), Expected::exact(&counts));
    problem.output(Expected::exact(&[1u32; COUNT]))
}

/// What the atomic operations leave: count, maximum, minimum, exclusive or, sum; and a sum by lowest byte.
fn reduced(values: &[u32]) -> ([u32; 5], [u32; 256]) {
    let mut results = [0, 0, u32::MAX, 0, 0u32];
    let mut counts = [0u32; 256];
    for value in values {
        results[0] += 1;
        results[1] = results[1].max(*value);
        results[2] = results[2].min(*value);
        results[3] ^= value;
        results[4] = results[4].wrapping_add(*value);
        let count = &mut counts[(value & 255) as usize];
        *count = count.wrapping_add(value >> 8);
    }
    (results, counts)
}

pub(super) fn local_atomics() -> Problem {
    const COUNT: usize = 8192;
    let values = Numbers::new(12).list(COUNT, Numbers::word);
    let mut counts = [0u32; 256];
    values.iter().for_each(|value| counts[(value & 255) as usize] += 1);
    let problem = Problem::linear("local_atomics", COUNT, 128).input(&values);
    problem.output_over(bytes(&[0u32; 256]), Expected::exact(&counts))
}

pub(super) fn transpose() -> Problem {
    const WIDTH: usize = 128;
    const HEIGHT: usize = 64;
    let input = Numbers::new(13).list(WIDTH * HEIGHT, Numbers::word);
    let transposed: Vec<u32> = (0..WIDTH * HEIGHT).map(|i| input[(i % HEIGHT) * WIDTH + i / HEIGHT]).collect();
    let problem = Problem::new("transpose", [WIDTH, HEIGHT, 1], [16, 16, 1]);
    problem.input(&input).output(Expected::exact(&transposed)).scalar(128u32).scalar(64u32)
}

pub(super) fn sgemm() -> Problem {
    const SIZE: usize = 64;
    let mut numbers = Numbers::new(14);
    // Sums of 64 products of such numbers are exact in any order, and with fused multiplications.
    let (a, b) =
        (numbers.list(SIZE * SIZE, |next| next.float(-8..8)), numbers.list(SIZE * SIZE, |next| next.float(-8..8)));
    let element = |i: usize| (0..SIZE).map(|j| a[i / SIZE * SIZE + j] * b[j * SIZE + i % SIZE]).sum();
    let product: Vec<f32> = (0..SIZE * SIZE).map(element).collect();
    let problem = Problem::new("sgemm", [SIZE, SIZE, 1], [16, 16, 1]);
    problem.input(&a).input(&b).output(Expected::exact(&product)).scalar(64u32).scalar(64u32)
}

/// Items of a sub-group.
const SUB_GROUP: usize = 16;

pub(super) fn sub_groups() -> Problem {
    const COUNT: usize = 1024;
    let input = Numbers::new(15).list(COUNT, |next| next.within(-1000..1000));
    let results: Vec<i32> = input.chunks(SUB_GROUP).flat_map(of_sub_group).collect();
    Problem::linear("sub_groups", COUNT, 64).input(&input).output(Expected::exact(&results))
}

/// For each item: sum, inclusive sum, exclusive maximum, item 5, and the item whose number differs in the lowest two bits.
fn of_sub_group(values: &[i32]) -> Vec<i32> {
    let item = |i: usize| {
        let before = values[..i].iter().copied().max().unwrap_or(i32::MIN);
        [values.iter().sum(), values[..=i].iter().sum(), before, values[5], values[i ^ 3]]
    };
    (0..values.len()).flat_map(item).collect()
}

pub(super) fn block_io() -> Problem {
    const COUNT: usize = 2048;
    let input = Numbers::new(16).list(COUNT, |next| next.word() >> 1);
    let results: Vec<u32> = input.iter().map(|value| value + 1).collect();
    // Each item has two elements.
    Problem::linear("block_io", COUNT / 2, 64).input(&input).output(Expected::exact(&results))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Argument;

    fn words(problem: &Problem, index: usize) -> Vec<u32> {
        let bytes = match &problem.arguments[index] {
            Argument::Input(bytes) => bytes,
            Argument::Output { expected, .. } => expected.bytes(),
            other => panic!("{other:?}"),
        };
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn the_transposed_matrix_has_the_element_with_exchanged_indices() {
        let problem = transpose();
        let (input, output) = (words(&problem, 0), words(&problem, 1));
        for (x, y) in [(0, 0), (127, 63), (5, 40)] {
            assert_eq!(output[x * 64 + y], input[y * 128 + x]);
        }
    }

    #[test]
    fn a_product_of_matrices_is_that_of_rows_and_columns() {
        let problem = sgemm();
        let float = |index| words(&problem, index).into_iter().map(f32::from_bits).collect::<Vec<_>>();
        let (a, b, c) = (float(0), float(1), float(2));
        let sum: f64 = (0..64).map(|i| f64::from(a[3 * 64 + i]) * f64::from(b[i * 64 + 9])).sum();
        assert_eq!(f64::from(c[3 * 64 + 9]), sum);
    }

    #[test]
    fn atomics_leave_the_same_in_any_order() {
        let (results, counts) = reduced(&[0x102, 0x503, 0xffff_ff02]);
        assert_eq!(results, [3, 0xffff_ff02, 0x102, 0xffff_fb03, 0x507]);
        assert_eq!((counts[2], counts[3]), (1 + 0xff_ffff, 5));
        let mut values = Numbers::new(1).list(100, Numbers::word);
        let before = reduced(&values);
        values.reverse();
        assert_eq!(reduced(&values), before);
    }

    #[test]
    fn sub_groups_scan_in_the_order_of_their_items() {
        let values: Vec<i32> = (1..=16).collect();
        let results = of_sub_group(&values);
        assert_eq!(results[..5], [136, 1, i32::MIN, 6, 4]);
        assert_eq!(results[5 * 15..], [136, 136, 15, 6, 13]);
        let histogram = words(&local_atomics(), 1);
        assert_eq!(histogram.iter().sum::<u32>(), 8192);
        assert_eq!(words(&reduce(), 1).len(), 256);
    }
}
