// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What compilers make of the language: calls, private memory, generic pointers, switches, printf.

use crate::numbers::Numbers;
use crate::problem::{Expected, Problem};

pub(super) fn print() -> Problem {
    const COUNT: i32 = 8;
    let lines = (0..COUNT).map(|i| format!("item {i} of {COUNT}: {:.3} text", 1.5 * f64::from(i)));
    Problem::linear("print", 8, 8).scalar(COUNT).printed(lines)
}

pub(super) fn calls() -> Problem {
    const COUNT: usize = 512;
    let input = Numbers::new(20).list(COUNT, |next| next.word() % 10_000 + 1);
    let results: Vec<u32> = input.iter().map(|value| either(*value)).collect();
    Problem::linear("calls", COUNT, 64).input(&input).output(Expected::exact(&results))
}

fn either(value: u32) -> u32 {
    if value & 1 == 1 { collatz(value) } else { gcd(value, 360) }
}

pub(super) fn nested_calls() -> Problem {
    const COUNT: usize = 256;
    let input = Numbers::new(25).list(COUNT, |next| next.word() % 40);
    let results: Vec<u32> =
        input.iter().map(|count| (1..=*count).map(|i| i * i).sum::<u32>() + count * count).collect();
    Problem::linear("nested_calls", COUNT, 64).input(&input).output(Expected::exact(&results))
}

/// The number of steps of the Collatz sequence from `n` to 1.
fn collatz(mut n: u32) -> u32 {
    let mut steps = 0;
    while n != 1 {
        n = if n & 1 == 1 { 3 * n + 1 } else { n / 2 };
        steps += 1;
    }
    steps
}

/// The greatest common divisor.
fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(super) fn private() -> Problem {
    const COUNT: usize = 256;
    let input = Numbers::new(21).list(64, |next| next.within(0..1000));
    let results: Vec<i32> = (0..COUNT).map(|i| of_private(&input, i)).collect();
    Problem::linear("private_memory", COUNT, 64).input(&input).output(Expected::exact(&results))
}

fn of_private(input: &[i32], i: usize) -> i32 {
    let place = |value: i32| usize::try_from(value & 63).unwrap_or_default();
    let mut values: Vec<i32> =
        (0i32..).zip(0..64).map(|(number, j)| input[(i + j) & 63].wrapping_mul(number)).collect();
    let mut sum = 0i32;
    for at in input.iter().map(|value| place(*value)) {
        sum = sum.wrapping_add(values[at]);
        values[at] = sum;
    }
    sum
}

pub(super) fn generic() -> Problem {
    const COUNT: usize = 512;
    let input = Numbers::new(22).list(COUNT, |next| next.within(0..1000));
    let results: Vec<i32> = (0..COUNT).map(|i| of_generic(&input, i)).collect();
    Problem::linear("generic_pointers", COUNT, 16).input(&input).output(Expected::exact(&results))
}

fn of_generic(input: &[i32], i: usize) -> i32 {
    // Groups have a multiple of four items.
    let four = &input[i & !3..][..4];
    match input[i] % 3 {
        0 => four.iter().map(|value| value + 1).sum(),
        1 => input[i] * (1 + 2 + 3 + 4),
        _ => four.iter().sum(),
    }
}

/// The kernel waits for a value that nothing writes.
pub(super) fn endless() -> Problem {
    Problem::linear("endless", 32, 32).input(&[0u32]).output(Expected::exact(&[1u32; 32]))
}

pub(super) fn switch() -> Problem {
    const COUNT: usize = 2048;
    let input = Numbers::new(23).list(COUNT, Numbers::word);
    let results: Vec<u32> = input.iter().map(|value| of_switch(*value)).collect();
    Problem::linear("switch_case", COUNT, 64).input(&input).output(Expected::exact(&results))
}

fn of_switch(value: u32) -> u32 {
    match value % 7 {
        0 => value.wrapping_mul(3).wrapping_add(1),
        1 => (value ^ value >> 7).wrapping_add(11),
        2 => value.wrapping_add(11),
        3 => {
            // The bound is read before each round, as in C.
            let (mut value, mut j) = (value, 0);
            while j < value & 7 {
                value = value.rotate_left(j).wrapping_add(j);
                j += 1;
            }
            value
        }
        4 => (value / 5).wrapping_sub(value % 9),
        5 => value.count_ones() + value.leading_zeros(),
        _ => !value,
    }
}

pub(super) fn source() -> Problem {
    const COUNT: usize = 4096;
    let input = Numbers::new(24).list(COUNT, Numbers::word);
    let results: Vec<u32> = (0..).zip(&input).map(|(i, value)| value.wrapping_mul(*value).wrapping_add(i)).collect();
    Problem::linear("from_source", COUNT, 64).input(&input).output(Expected::exact(&results))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_are_called_have_their_values() {
        assert_eq!((collatz(1), collatz(6), collatz(27)), (0, 8, 111));
        assert_eq!((gcd(48, 360), gcd(7, 360), gcd(360, 360)), (24, 1, 360));
        assert_eq!((either(27), either(28)), (111, 4));
    }

    #[test]
    fn printed_lines_name_the_item() {
        let lines = print().printed;
        assert_eq!((lines.len(), lines[3].as_str()), (8, "item 3 of 8: 4.500 text"));
    }

    #[test]
    fn each_address_space_has_its_sum() {
        let input = [3, 4, 5, 9];
        assert_eq!([0, 1, 2].map(|i| of_generic(&input, i)), [21 + 4, 40, 21]);
    }

    #[test]
    fn private_values_are_overwritten_by_sums() {
        let input = vec![1i32; 64];
        // values[1] is 1, and doubles with each of 64 rounds: the sum overflows to 0.
        assert_eq!(of_private(&input, 0), 0);
        let input: Vec<i32> = (0..64).collect();
        assert_eq!(of_private(&input, 0), (0..64).map(|j| j * j).sum::<i32>());
    }

    #[test]
    fn every_branch_of_the_switch_has_its_value() {
        assert_eq!([7, 8, 9, 10, 11, 12, 13].map(of_switch), [22, 19, 20, of_switch(10), 0, 2 + 28, !13]);
        // 10 & 7 is 2: round 0 leaves 10, round 1 makes 21, and 21 & 7 is 5.
        let third = 21u32.rotate_left(2) + 2;
        assert_eq!(third & 7, 6);
        assert_eq!(of_switch(10), rounds(10));
    }

    /// The branch with a loop, by recursion.
    fn rounds(value: u32) -> u32 {
        fn from(value: u32, j: u32) -> u32 {
            if j < value & 7 { from(value.rotate_left(j).wrapping_add(j), j + 1) } else { value }
        }
        from(value, 0)
    }
}
