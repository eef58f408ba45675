// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The view as a picture in SVG: a terminal of fixed size.

use std::fmt::Write;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use super::app::App;
use super::draw::draw;

/// Width of the terminal in cells, and the most lines.
const COLUMNS: u16 = 156;
const MOST_LINES: u16 = 90;
/// Size of a cell in units of the picture.
const CELL: (u32, u32) = (8, 17);
const BACKGROUND: &str = "#16181d";
const TEXT: &str = "#d8dbe0";

/// The view as SVG; `None` if a terminal cannot have it.
pub fn svg(app: &App) -> Option<String> {
    let view = app.view.as_ref()?;
    let lines = view.engines.len() + view.execution_units.iter().len() + view.functions.len() + 6;
    let lines = u16::try_from(lines).ok()?.min(MOST_LINES);
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, lines)).ok()?;
    terminal.draw(|frame| draw(frame, app)).ok()?;
    Some(of_buffer(terminal.backend().buffer()))
}

fn colour(colour: Color) -> &'static str {
    match colour {
        Color::LightBlue => "#61afef",
        Color::LightGreen => "#98c379",
        Color::LightYellow => "#e5c07b",
        Color::LightMagenta => "#c678dd",
        Color::LightCyan => "#56b6c2",
        Color::LightRed => "#e06c75",
        Color::Blue => "#3f7fd0",
        Color::Magenta => "#9650b0",
        Color::Yellow => "#d19a66",
        Color::Black => BACKGROUND,
        _ => TEXT,
    }
}

/// Colours of a cell: of the text, and of what is behind it.
fn colours(cell: &Cell) -> (&'static str, &'static str) {
    let behind = if cell.bg == Color::Reset { BACKGROUND } else { colour(cell.bg) };
    let text = colour(cell.fg);
    if cell.modifier.contains(Modifier::REVERSED) { (behind, text) } else { (text, behind) }
}

fn of_buffer(buffer: &Buffer) -> String {
    let (width, height) = CELL;
    let (columns, lines) = (u32::from(buffer.area.width), u32::from(buffer.area.height));
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{BACKGROUND}\"/>",
        columns * width,
        lines * height
    );
    for (line, cells) in (0..).zip(buffer.content.chunks(buffer.area.width.into())) {
        let mut column = 0;
        for run in cells.chunk_by(|a, b| colours(a) == colours(b) && a.modifier == b.modifier) {
            let (text, behind) = colours(run.first().unwrap_or(&Cell::EMPTY));
            let symbols: String = run.iter().map(Cell::symbol).collect();
            let length = u32::try_from(run.len()).unwrap_or(0);
            let (x, y) = (column * width, line * height);
            column += length;
            if behind != BACKGROUND {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{height}\" fill=\"{behind}\"/>",
                    length * width
                );
            }
            if symbols.trim().is_empty() {
                continue;
            }
            if symbols.chars().all(|c| c == '█') {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{text}\"/>",
                    y + 2,
                    length * width,
                    height - 4
                );
                continue;
            }
            let bold = if run.iter().any(|cell| cell.modifier.contains(Modifier::BOLD)) {
                " font-weight=\"bold\""
            } else {
                ""
            };
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{}\" textLength=\"{}\" fill=\"{text}\"{bold} xml:space=\"preserve\">{}</text>",
                y + 13,
                length * width,
                symbols.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}
