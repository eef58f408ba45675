// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The view on a terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table};

use super::app::{App, Screen};
use super::columns::{columns, fitting, short};
use super::view::{Engine, ExecutionUnits, View};

const MIB: u64 = 1 << 20;

/// Colours of the functions, in turn; the PF has the first one.
const COLOURS: [Color; 8] = [
    Color::LightBlue,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightMagenta,
    Color::LightCyan,
    Color::LightRed,
    Color::Blue,
    Color::Magenta,
];

/// The keys, and what they do.
const KEYS: [(&str, &str); 9] = [
    ("q, Esc, Ctrl-C", "end"),
    ("Space", "freeze the view, and go on"),
    ("<, >", "sort by the column to the left, to the right"),
    ("r", "reverse the order"),
    ("/", "show functions with a text in name or state; Enter ends the input, Esc clears it"),
    ("a", "show only functions that did something"),
    ("Up, Down", "scroll the functions"),
    ("+, -", "longer, shorter interval"),
    ("h, ?", "this help"),
];

/// Colour of the function with this name.
fn colour(function: &str) -> Style {
    let number = function.strip_prefix("vf").and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    Style::new().fg(COLOURS[number % COLOURS.len()])
}

/// Draws the view, or what there is instead.
pub fn draw(frame: &mut Frame<'_>, app: &App) {
    let area = frame.area();
    let engines = app.view.as_ref().map_or(0, |view| view.engines.len() + view.execution_units.iter().len() + 1);
    let engines = u16::try_from(engines).unwrap_or(u16::MAX);
    let rows = [Constraint::Length(2), Constraint::Max(engines), Constraint::Min(3), Constraint::Length(1)];
    let [heading, top, bottom, footer] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(self::heading(app)), heading);
    if let Some(view) = &app.view {
        let width = usize::from(area.width);
        let engines = view.engines.iter().map(|engine| self::engine(engine, width));
        let units = view.execution_units.iter().map(|units| execution_units(units, width));
        frame.render_widget(Paragraph::new(engines.chain(units).collect::<Vec<_>>()), top);
        functions(frame, bottom, app, view);
    }
    frame.render_widget(Paragraph::new(self::footer(app, area.width)), footer);
    if app.screen == Screen::Help {
        help(frame, area);
    }
}

/// The lines about the card.
fn heading(app: &App) -> Vec<Line<'static>> {
    let Some(view) = &app.view else { return vec![Line::from(app.message.clone().unwrap_or_default())] };
    let mut parts = vec![match (view.total_vfs, view.enabled_vfs) {
        (0, _) => "no VFs".to_owned(),
        (total, enabled) => format!("{enabled} of {total} VFs enabled"),
    }];
    parts.push(format!("up {}", duration(view.uptime_seconds)));
    if let Some(power) = &view.power {
        parts.push(format!("{} MHz, requested {}", power.now.mhz, power.now.requested_mhz));
        parts.push(format!("RC6 {:.0} %", power.rc6 * 100.0));
    }
    parts.push(format!("{} MiB resident", view.resident_bytes / MIB));
    let mut first = vec![Span::from(view.card.clone()).bold(), Span::from("  "), Span::from(parts.join(", "))];
    if app.frozen {
        first.push(" frozen ".black().on_yellow());
    }
    let stream = view.stream.as_ref().filter(|stream| stream.enabled);
    let stream =
        stream.map(|stream| format!("stream {}: {} reports, {} lost", stream.unit, stream.written, stream.lost));
    let second = app.message.clone().map(|message| Line::from(message.light_red()));
    vec![Line::from(first), second.or(stream.map(Line::from)).unwrap_or_default()]
}

/// Formats a number of seconds.
fn duration(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// A name and a bar with the parts of functions.
fn bar(name: &str, functions: &BTreeMap<String, f64>, width: usize) -> Vec<Span<'static>> {
    const NAME: usize = 8;
    let cells = (width.saturating_sub(NAME + 12) / 2).clamp(10, 60);
    let mut spans = vec![Span::from(format!("{name:<NAME$}")), Span::from("[")];
    let mut drawn = 0;
    let mut end = 0.0;
    for (function, part) in functions {
        end += part;
        let until = (0..cells).take_while(|cell| (*cell as f64 + 0.5) / cells as f64 <= end).count();
        spans.push(Span::styled("█".repeat(until.saturating_sub(drawn)), colour(function)));
        drawn = drawn.max(until);
    }
    spans.push(Span::from(" ".repeat(cells - drawn)));
    spans.push(Span::from("] "));
    spans
}

/// The line of the execution units: the functions' parts of the instructions, and the rate of all.
fn execution_units(units: &ExecutionUnits, width: usize) -> Line<'static> {
    let mut spans = bar("eus", &units.functions, width);
    spans.push(Span::from(format!("{:>5} instructions/s", short(units.instructions))));
    Line::from(spans)
}

/// The line of an engine: the time of the functions that used it, and what it executes.
fn engine(engine: &Engine, width: usize) -> Line<'static> {
    let mut spans = bar(&engine.engine, &engine.functions, width);
    let busy = engine.busy.map_or_else(|| "      -".into(), |busy| format!("{:>5.1} %", busy * 100.0));
    spans.push(Span::from(format!("{busy}  ")));
    if let Some(function) = &engine.running {
        spans.push(Span::styled(function.clone(), colour(function)));
        let context = engine.context.map_or_else(String::new, |context| format!(" context {context}"));
        let kernel = engine
            .kernel
            .map_or_else(String::new, |kernel| format!(", kernel {:#x}: {} groups", kernel.address, kernel.groups));
        spans.push(Span::from(format!("{context}{kernel}")));
    }
    Line::from(spans)
}

/// The table of functions.
fn functions(frame: &mut Frame<'_>, area: Rect, app: &App, view: &View) {
    let all = columns(view);
    let columns = &all[..fitting(&all, area.width)];
    let sorted = app.column.min(columns.len().saturating_sub(1));
    let title = |(at, column): (usize, &super::columns::Column)| {
        let arrow = if at == sorted { if app.reversed { "▲" } else { "▼" } } else { "" };
        let text = format!("{}{arrow}", column.title);
        let line = if column.left { Line::from(text) } else { Line::from(text).right_aligned() };
        Cell::from(line)
    };
    let heading = Row::new(columns.iter().enumerate().map(title)).style(Style::new().add_modifier(Modifier::REVERSED));
    let shown = app.shown(view, &all);
    let rows = shown.iter().skip(app.first.min(shown.len().saturating_sub(1))).map(|function| {
        let cell = |column: &super::columns::Column| {
            let text = (column.text)(function, &column.key);
            let style = if column.key == "function" { colour(&function.function) } else { Style::new() };
            let line = if column.left { Line::from(text) } else { Line::from(text).right_aligned() };
            Cell::from(line.style(style))
        };
        Row::new(columns.iter().map(cell))
    });
    let widths = columns.iter().map(|column| Constraint::Length(column.width));
    frame.render_widget(Table::new(rows, widths).header(heading).column_spacing(1), area);
}

fn footer(app: &App, width: u16) -> Line<'static> {
    if app.screen == Screen::Filter {
        return Line::from(vec!["show: ".bold(), Span::from(app.filter.clone()), "▏".bold()]);
    }
    let mut parts = vec![format!("every {:.1} s", app.interval.as_secs_f64())];
    if !app.filter.is_empty() {
        parts.push(format!("only {:?}", app.filter));
    }
    if app.only_active {
        parts.push("only active functions".into());
    }
    let columns = app.view.as_ref().map_or_else(Vec::new, columns);
    match columns.len() - fitting(&columns, width) {
        0 => {}
        more => parts.push(format!("{more} columns more on a wider terminal")),
    }
    parts.push("h: help, q: end".into());
    Line::from(parts.join("   ")).dim()
}

/// The keys, in the middle of the terminal.
fn help(frame: &mut Frame<'_>, area: Rect) {
    let line =
        |(keys, what): &(&'static str, &'static str)| Line::from(vec![format!("{keys:<16}").bold(), Span::from(*what)]);
    let lines: Vec<Line<'_>> = KEYS.iter().map(line).collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0) + 4;
    let size = |wanted: usize, most: u16| u16::try_from(wanted).unwrap_or(u16::MAX).min(most);
    let (width, height) = (size(width, area.width), size(lines.len() + 2, area.height));
    let middle = |most: u16, size: u16| (most - size) / 2;
    let window = Rect::new(middle(area.width, width), middle(area.height, height), width, height);
    frame.render_widget(Clear, window);
    let block = Block::bordered().title(" arctic top ");
    frame.render_widget(Paragraph::new(lines).block(block), window);
}
