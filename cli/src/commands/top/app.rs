// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of the program: the card's view, and what the keys have changed.

use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::columns::Column;
use super::view::{Function, Sample, View};

/// Shortest and longest interval of samples.
pub const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3600)];

/// What has the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// The table.
    #[default]
    Table,
    /// The text of the filter.
    Filter,
    /// The help.
    Help,
}

/// The state of the program.
pub struct App {
    /// Interval of samples.
    pub interval: Duration,
    /// The last sample.
    last: Option<Sample>,
    /// The view; `None` before the first sample.
    pub view: Option<View>,
    /// A sentence about the card, such as that it is no longer served.
    pub message: Option<String>,
    /// The view does not change.
    pub frozen: bool,
    /// What has the keys.
    pub screen: Screen,
    /// Index of the column by which the functions are sorted.
    pub column: usize,
    /// The order is reversed.
    pub reversed: bool,
    /// Functions are shown with this text in name or state.
    pub filter: String,
    /// Only functions are shown that did something.
    pub only_active: bool,
    /// Number of functions above the first line.
    pub first: usize,
}

impl App {
    /// The state at the start.
    pub fn new(interval: Duration) -> Self {
        App {
            interval,
            last: None,
            view: None,
            message: None,
            frozen: false,
            screen: Screen::default(),
            column: 0,
            reversed: false,
            filter: String::new(),
            only_active: false,
            first: 0,
        }
    }

    /// Takes a sample, or the reason for which there is none.
    pub fn take(&mut self, sample: Result<Sample, String>) {
        match sample {
            Ok(sample) => {
                let view = View::between(self.last.as_ref(), &sample);
                self.message = view.restarted.then(|| "the card was started again".into());
                self.last = Some(sample);
                if !self.frozen {
                    self.view = Some(view);
                }
            }
            Err(reason) => self.message = Some(reason),
        }
    }

    /// Processes a key. Returns false at the end of the program.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control {
            return key.code != KeyCode::Char('c');
        }
        match (self.screen, key.code) {
            (Screen::Help, _) => self.screen = Screen::Table,
            (Screen::Filter, KeyCode::Char(c)) => self.filter.push(c),
            (Screen::Filter, KeyCode::Backspace) => _ = self.filter.pop(),
            (Screen::Filter, KeyCode::Enter) => self.screen = Screen::Table,
            (Screen::Filter, KeyCode::Esc) => {
                self.filter.clear();
                self.screen = Screen::Table;
            }
            (Screen::Table, KeyCode::Char('q') | KeyCode::Esc) => return false,
            (Screen::Table, KeyCode::Char('h' | '?')) => self.screen = Screen::Help,
            (Screen::Table, KeyCode::Char('/')) => self.screen = Screen::Filter,
            (Screen::Table, KeyCode::Char(' ')) => self.frozen = !self.frozen,
            (Screen::Table, KeyCode::Char('r')) => self.reversed = !self.reversed,
            (Screen::Table, KeyCode::Char('a')) => self.only_active = !self.only_active,
            (Screen::Table, KeyCode::Char('<')) => self.column = self.column.saturating_sub(1),
            (Screen::Table, KeyCode::Char('>')) => {
                let columns = self.view.as_ref().map_or(1, |view| super::columns::columns(view).len());
                self.column = (self.column + 1).min(columns - 1);
            }
            (Screen::Table, KeyCode::Up) => self.first = self.first.saturating_sub(1),
            (Screen::Table, KeyCode::Down) => {
                let functions = self.view.as_ref().map_or(1, |view| view.functions.len());
                self.first = (self.first + 1).min(functions.saturating_sub(1));
            }
            (Screen::Table, KeyCode::Char('+')) => self.interval = (self.interval * 2).min(INTERVALS[1]),
            (Screen::Table, KeyCode::Char('-')) => self.interval = (self.interval / 2).max(INTERVALS[0]),
            (Screen::Table | Screen::Filter, _) => {}
        }
        true
    }

    /// The functions that are shown, in their order.
    pub fn shown<'v>(&self, view: &'v View, columns: &[Column]) -> Vec<&'v Function> {
        let passes = |of: &&Function| {
            let named = self.filter.is_empty() || of.function.contains(&self.filter) || of.state.contains(&self.filter);
            named && (!self.only_active || of.active())
        };
        let mut shown: Vec<&Function> = view.functions.iter().filter(passes).collect();
        let Some(column) = columns.get(self.column.min(columns.len().saturating_sub(1))) else { return shown };
        shown.sort_by(|a, b| column.order(a, b));
        if self.reversed {
            shown.reverse();
        }
        shown
    }
}
