// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic top`: a view of a served card that is drawn again and again: who uses which engine, and how much.

mod app;
mod columns;
mod draw;
mod picture;
#[cfg(test)]
mod tests;
mod view;

use std::fs;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use arctic_gpu::card::status::Status;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::app::App;
use self::view::{Sample, View};
use super::watch::{stop_signal, watch};
use super::{stdout, usage};
use crate::operator::{Connection, Failure, Request};

/// Show who uses a card served by `arctic serve`, or that of `arctic boot`: busy time of each engine and instructions of kernels
/// by function, contexts that wait, frequency and sleep, memory, interrupts, trapped accesses, resets and faults of each function, as they change.
///
/// All times and rates are of the last interval. Keys: q ends, Space freezes the view, < and > choose the column by which the
/// functions are sorted, / filters them, h shows all keys. A card that ends is reported, and the view goes on when one is served at the
/// same place.
///
/// With --json each interval is one line, for scripts; the program ends with the card then.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    arctic top\n  \
    arctic top /tmp/card --interval 0.5\n  \
    arctic top --json --count 1 | jq '.engines[] | select(.busy > 0.5) | .functions'\n  \
    arctic top /tmp/card --svg card.svg")]
pub struct TopArgs {
    /// The card's directory (`arctic serve --dir`), or its operator.sock; the default is the only card of this user
    #[arg(value_name = "DIR|SOCKET")]
    card: Option<PathBuf>,
    /// Seconds between two samples, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print one JSON document per interval, one per line
    #[arg(long)]
    json: bool,
    /// End after N intervals
    #[arg(long, value_name = "N", requires = "json", value_parser = super::quantity::quantity::<u32>("intervals", 1..=1_000_000))]
    count: Option<u32>,
    /// Write the view of one interval as a picture to FILE, and end
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    svg: Option<PathBuf>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let expected = || "expected a number of seconds, 0.1 to 3600".to_owned();
    let seconds: f64 = text.parse().map_err(|_| expected())?;
    let interval = Duration::try_from_secs_f64(seconds).map_err(|_| expected())?;
    let [least, most] = app::INTERVALS;
    if (least..=most).contains(&interval) { Ok(interval) } else { Err(expected()) }
}

/// A card that is sampled.
struct Card {
    path: PathBuf,
    start: Instant,
}

impl Card {
    /// Takes a sample. Each request has a connection of its own: the card closes one that is silent for some seconds.
    fn sample(&self) -> Result<Sample, Failure> {
        let mut connection = Connection::open(&self.path)?;
        let status = connection.request::<Status>(&Request::Status {})?;
        Ok(Sample { at: self.start.elapsed(), status })
    }
}

/// Runs `arctic top`.
pub fn run(arguments: &TopArgs) -> Result<()> {
    let path = super::operator_socket(arguments.card.as_deref())?;
    let card = Card { path, start: Instant::now() };
    if arguments.json {
        return lines(&card, arguments.interval, arguments.count);
    }
    if let Some(file) = &arguments.svg {
        return write_picture(&card, arguments.interval, file);
    }
    if !io::stdout().is_terminal() {
        return Err(usage(anyhow::anyhow!(
            "standard output is no terminal: use --json for lines, or --svg FILE for a picture"
        )));
    }
    let first = card.sample().map_err(|failure| super::failure(&card.path, &failure))?;
    let stop = stop_signal()?;
    let mut terminal = ratatui::try_init().context("cannot set up the terminal")?;
    let result = interactive(&card, arguments.interval, first, &mut terminal, &stop);
    ratatui::try_restore().context("cannot restore the terminal")?;
    result
}

/// Draws the view until a key or a signal ends it.
fn interactive(
    card: &Card,
    interval: Duration,
    first: Sample,
    terminal: &mut ratatui::DefaultTerminal,
    stop: &Receiver<()>,
) -> Result<()> {
    let mut app = App::new(interval);
    app.take(Ok(first));
    let mut sampled = Instant::now();
    loop {
        terminal.draw(|frame| draw::draw(frame, &app)).context("cannot write to the terminal")?;
        let left = app.interval.saturating_sub(sampled.elapsed()).min(Duration::from_millis(200));
        if event::poll(left).context("cannot read the terminal")?
            && let Event::Key(key) = event::read().context("cannot read the terminal")?
            && key.kind == KeyEventKind::Press
            && !app.key(key)
        {
            return Ok(());
        }
        if stop.try_recv() != Err(TryRecvError::Empty) {
            return Ok(());
        }
        if sampled.elapsed() >= app.interval {
            sampled = Instant::now();
            app.take(card.sample().map_err(|failure| match super::is_gone(&failure) {
                true => "the card is no longer served; waiting for another at the same place".into(),
                false => format!("{:#}", super::failure(&card.path, &failure)),
            }));
        }
    }
}

/// Prints a line for each interval, until the card is gone or a signal arrives.
fn lines(card: &Card, interval: Duration, count: Option<u32>) -> Result<()> {
    let mut before = None;
    let mut left = count;
    watch(
        &card.path,
        interval,
        || card.sample(),
        |now| {
            if before.is_some() {
                let view = View::between(before.as_ref(), &now);
                let line = serde_json::to_string(&view).context("cannot format the view")?;
                stdout::print(format_args!("{line}\n"))?;
                left = left.map(|left| left - 1);
            }
            before = Some(now);
            Ok(if left == Some(0) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    )
}

/// Writes the view of one interval as a picture.
fn write_picture(card: &Card, interval: Duration, file: &Path) -> Result<()> {
    let failed = |failure| super::failure(&card.path, &failure);
    let mut app = App::new(interval);
    app.take(Ok(card.sample().map_err(failed)?));
    thread::sleep(interval);
    app.take(Ok(card.sample().map_err(failed)?));
    let Some(svg) = picture::svg(&app) else { bail!("the view cannot be drawn") };
    fs::write(file, svg).with_context(|| format!("cannot write {}", file.display()))
}
