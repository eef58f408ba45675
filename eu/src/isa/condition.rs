// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Condition modifiers (ISA-064).

use std::cmp::Ordering;

/// A condition of a result, or of two sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Condition {
    /// Equal; also for unordered values false.
    Eq = 1,
    /// Not equal; true for unordered values.
    Ne = 2,
    /// Greater.
    Gt = 3,
    /// Greater or equal.
    Ge = 4,
    /// Less.
    Lt = 5,
    /// Less or equal.
    Le = 6,
    /// The result does not fit.
    Overflow = 8,
    /// One of the values is NaN.
    Unordered = 9,
}

impl Condition {
    /// The condition of a code; `None` for 0, no condition, and for reserved codes.
    pub const fn from_code(code: u8) -> Option<Condition> {
        Some(match code {
            1 => Condition::Eq,
            2 => Condition::Ne,
            3 => Condition::Gt,
            4 => Condition::Ge,
            5 => Condition::Lt,
            6 => Condition::Le,
            8 => Condition::Overflow,
            9 => Condition::Unordered,
            _ => return None,
        })
    }

    /// Whether the condition holds for two values in this order, `None` if one is NaN. An overflow is no matter of
    /// order: false.
    pub fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Condition::Eq => order == Some(Ordering::Equal),
            Condition::Ne => order != Some(Ordering::Equal),
            Condition::Gt => order == Some(Ordering::Greater),
            Condition::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Condition::Lt => order == Some(Ordering::Less),
            Condition::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Condition::Overflow => false,
            Condition::Unordered => order.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::CONDITION;
    use super::*;

    #[test]
    fn each_code_with_a_condition_has_its_name_and_orders() {
        // Name, and whether it holds for less, equal, greater and unordered.
        for (code, name, expected) in [
            (1, "eq", [false, true, false, false]),
            (2, "ne", [true, false, true, true]),
            (3, "gt", [false, false, true, false]),
            (4, "ge", [false, true, true, false]),
            (5, "lt", [true, false, false, false]),
            (6, "le", [true, true, false, false]),
            (8, "ov", [false; 4]),
            (9, "un", [false, false, false, true]),
        ] {
            let condition = Condition::from_code(code).unwrap();
            assert_eq!((condition as u8, CONDITION[usize::from(code)]), (code, name));
            let orders = [Some(Ordering::Less), Some(Ordering::Equal), Some(Ordering::Greater), None];
            assert_eq!(orders.map(|order| condition.holds(order)), expected, "{name}");
        }
        for code in [0, 7, 10, 11, 12, 13, 14, 15, 16, 255] {
            assert_eq!(Condition::from_code(code), None, "{code}");
        }
    }
}
