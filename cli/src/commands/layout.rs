// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fits text to the terminal of stdout.

use std::io::{self, IsTerminal};

use rustix::termios::tcgetwinsize;

/// Number of columns of stdout; `None` if it is not a terminal, or one of unknown size.
pub fn columns() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| tcgetwinsize(&stdout).ok()).flatten();
    size.map(|size| size.ws_col.into()).filter(|columns| *columns != 0)
}

/// Appends `paragraph`, wrapped between words to lines of at most `columns`. The first line begins with `first`, the others with
/// `further`. A word that is longer than a line has a line of its own. Appends nothing if there is no word.
pub fn wrap(text: &mut String, paragraph: &str, [first, further]: [&str; 2], columns: usize) {
    let mut width = 0;
    for word in paragraph.split_whitespace() {
        let length = word.chars().count();
        if width == 0 {
            text.push_str(first);
            width = first.chars().count();
        } else if width + 1 + length > columns {
            text.push('\n');
            text.push_str(further);
            width = further.chars().count();
        } else {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    if width > 0 {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        let wrapped = |paragraph: &str| {
            let mut text = String::new();
            wrap(&mut text, paragraph, ["* ", "    "], 12);
            text
        };
        assert_eq!(wrapped("one two three four"), "* one two\n    three\n    four\n");
        assert_eq!(wrapped("a word-that-is-longer b"), "* a\n    word-that-is-longer\n    b\n");
        assert_eq!(wrapped("  "), "");
    }
}
