// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the view with snapshots of a card.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Screen};
use super::picture;
use super::view::{Sample, View};

/// A card with two VFs after `seconds`; VF 1 has run on rcs0 for 70 % of the time, VF 2 for 30 %.
fn sample(seconds: u64) -> Sample {
    let ns = seconds * 1_000_000_000;
    let function = |number: u8, percent: u64| {
        let used = ns / 100 * percent;
        serde_json::json!({
            "function": number, "state": "running", "contexts": 3, "on": if percent != 0 { vec!["rcs0"] } else { vec![] },
            "engine_time_ns": if percent != 0 { serde_json::json!({"render": used}) } else { serde_json::json!({}) },
            "waiting": {"render": number}, "messages": seconds * 100, "engine_resets": 0, "cat_errors": 1,
            "quota": {"local_memory": 1 << 30, "ggtt_size": 64 << 20},
            "kernels": {"walkers": 1, "groups": 2, "instructions": seconds * u64::from(number) * 2_000_000, "faults": 0},
            "enabled": true, "connected": true, "power_state": "D0", "bus_master": true, "guest_sections": 0,
            "trapped": {"config": 0, "register_reads": seconds * u64::from(number) * 10}, "memory_bytes": 4096,
            "interrupts": seconds * 7, "resets": 2 })
    };
    let status = serde_json::json!({
        "card": "Flex", "topology": "native", "uptime_seconds": seconds as f64, "total_vfs": 2, "enabled_vfs": 2,
        "resident_bytes": 100 << 20, "functions": [function(0, 0), function(1, 70), function(2, 30)],
        "engines": [
            {"engine": "rcs0", "function": 1, "context": 5, "time_ns": {"1": ns / 100 * 70, "2": ns / 100 * 30}},
            {"engine": "bcs0", "time_ns": {}}],
        "power": {"mhz": 1300, "requested_mhz": 2050, "rc6_ns": ns / 4} });
    Sample { at: Duration::from_secs(seconds), status: serde_json::from_value(status).unwrap() }
}

fn app() -> App {
    let mut app = App::new(Duration::from_secs(1));
    app.take(Ok(sample(10)));
    app.take(Ok(sample(12)));
    app
}

/// The lines of a terminal of this size.
fn lines(app: &App, columns: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, height)).unwrap();
    terminal.draw(|frame| super::draw::draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    buffer.content.chunks(columns.into()).map(|line| line.iter().map(|cell| cell.symbol()).collect()).collect()
}

fn press(app: &mut App, keys: &str) -> bool {
    keys.chars().all(|c| {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        app.key(KeyEvent::new(code, KeyModifiers::NONE))
    })
}

#[test]
fn shares_and_rates_are_of_the_interval() {
    // A late answer does not count: rates are by the card's time.
    let view = View::between(Some(&sample(10)), &Sample { at: Duration::from_millis(12_300), ..sample(12) });
    let engine = &view.engines[0];
    assert!((engine.busy.unwrap() - 1.0).abs() < 1e-9, "{engine:?}");
    assert!((engine.functions["vf1"] - 0.7).abs() < 1e-9 && (engine.functions["vf2"] - 0.3).abs() < 1e-9, "{engine:?}");
    assert_eq!((view.engines[1].busy, engine.running.as_deref()), (Some(0.0), Some("vf1")));
    let vf2 = &view.functions[2];
    assert!((vf2.busy["render"] - 0.3).abs() < 1e-9 && (vf2.traps - 20.0).abs() < 1e-9, "{vf2:?}");
    assert_eq!((vf2.rate("interrupts"), vf2.rate("messages"), vf2.rate("eu_instructions")), (7.0, 100.0, 4e6));
    assert_eq!((vf2.totals["resets"], vf2.values["local_memory_quota"], vf2.waiting["render"]), (2, 1 << 30, 2));
    assert!((view.power.unwrap().rc6 - 0.25).abs() < 1e-9);
    let units = view.execution_units.unwrap();
    assert_eq!(units.instructions, 6e6);
    let parts: Vec<_> = units.functions.iter().map(|(name, part)| (name.as_str(), (part * 3.0).round())).collect();
    assert_eq!(parts, [("vf1", 1.0), ("vf2", 2.0)]);
}

/// After a restart of the card, its counts begin at 0 again: they are of the time since then.
#[test]
fn a_restart_of_the_card_is_reported() {
    let view = View::between(
        Some(&Sample { at: Duration::ZERO, ..sample(100) }),
        &Sample { at: Duration::from_secs(1), ..sample(4) },
    );
    assert!(view.restarted && (view.functions[1].busy["render"] - 0.7).abs() < 1e-9, "{view:?}");
    assert_eq!(view.functions[1].rate("interrupts"), 7.0);
    let mut app = app();
    app.take(Ok(sample(3)));
    assert!(lines(&app, 100, 12)[1].starts_with("the card was started again"));
    app.take(Err("the card is no longer served".into()));
    let shown = lines(&app, 100, 12);
    assert!(shown[1].starts_with("the card is no longer served") && shown[2].starts_with("rcs0"), "{shown:#?}");
}

#[test]
fn the_view_shows_engines_and_functions() {
    let shown = lines(&app(), 132, 12);
    assert_eq!(
        shown[0].trim_end(),
        "Flex  2 of 2 VFs enabled, up 12 s, 1300 MHz, requested 2050, RC6 25 %, 100 MiB resident"
    );
    let bar = |part: usize| "█".repeat(part);
    assert_eq!(shown[2].trim_end(), format!("rcs0    [{}] 100.0 %  vf1 context 5", bar(56)));
    assert_eq!(shown[3].trim_end(), format!("bcs0    [{}]   0.0 %", " ".repeat(56)));
    let (vf1, vf2) = (bar(19), bar(37));
    assert_eq!(shown[4].trim_end(), format!("eus     [{vf1}{vf2}]  6.0M instructions/s"));
    let row = |at: usize| shown[at].split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(row(6).starts_with("FUNC▼ STATE RENDER WAIT TRAP/s CTX INST/s IRQ/s MSG/s FLR"), "{shown:#?}");
    assert!(row(8).starts_with("vf1 working 70.0 % 1 10 3 2.0M 7 100 2 0 1 0 1024 M 64 M 1 M"), "{shown:#?}");
    assert!(shown[11].contains("h: help, q: end"));
}

#[test]
fn keys_sort_filter_freeze_and_end() {
    let order = |app: &App| -> Vec<String> {
        let table = &lines(app, 132, 12)[7..];
        table.iter().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).take(3).collect()
    };
    let mut app = app();
    assert_eq!(order(&app), ["pf", "vf1", "vf2"]);
    assert!(press(&mut app, ">>"));
    assert_eq!(order(&app), ["vf1", "vf2", "pf"], "by busy time of render engines");
    assert!(press(&mut app, "r"));
    assert_eq!(order(&app), ["pf", "vf2", "vf1"]);
    assert!(press(&mut app, "/vf2\n"));
    assert_eq!((order(&app)[0].as_str(), app.screen), ("vf2", Screen::Table));
    assert!(press(&mut app, "/\x1b "));
    assert!(app.frozen && app.filter.is_empty());
    app.take(Ok(sample(20)));
    assert!(lines(&app, 132, 12)[0].contains("up 12 s") && lines(&app, 132, 12)[0].contains(" frozen "));
    assert!(press(&mut app, "h"));
    assert!(lines(&app, 132, 20).iter().any(|line| line.contains("arctic top")));
    assert!(press(&mut app, "x+"));
    assert_eq!((app.screen, app.interval), (Screen::Table, Duration::from_secs(2)));
    assert!(!press(&mut app, "q"));
    assert!(!app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}

/// On a narrow terminal columns are missing, and numbers are whole.
#[test]
fn columns_that_do_not_fit_are_omitted() {
    let shown = lines(&app(), 64, 12);
    let row = |at: usize| shown[at].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(row(6), "FUNC▼ STATE RENDER WAIT TRAP/s CTX INST/s IRQ/s");
    assert_eq!(row(8), "vf1 working 70.0 % 1 10 3 2.0M 7");
    assert!(row(11).contains("8 columns more on a wider terminal"), "{shown:#?}");
    assert!(!lines(&app(), 132, 12)[11].contains("columns more"));
}

/// Any size of the terminal has a view, without a panic.
#[test]
fn small_terminals_have_a_view() {
    let mut app = app();
    app.screen = Screen::Help;
    for (columns, height) in [(1, 1), (3, 2), (20, 5), (40, 8), (400, 100)] {
        assert_eq!(lines(&app, columns, height).len(), usize::from(height));
    }
}

#[test]
fn the_picture_has_bars_and_text() {
    let svg = picture::svg(&app()).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains(">Flex</text>") && svg.contains("fill=\"#98c379\""), "{svg}");
}
