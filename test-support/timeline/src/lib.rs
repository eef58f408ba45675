// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reads a timeline for Perfetto's page by the wire format of protocol buffers and the field numbers of Perfetto's published schema
//! (protos/perfetto/trace/perfetto_trace.proto). It shares no code and no declaration with the writer in `cli/src/perfetto`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

/// A value of a field.
#[derive(Clone, Copy, Debug)]
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message, in the order of the file.
struct Message<'b>(Vec<(u64, Value<'b>)>);

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().context("a number without an end")?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    bail!("a number of more than 64 bits")
}

fn taken<'b>(bytes: &mut &'b [u8], count: u64) -> Result<&'b [u8]> {
    let (taken, rest) =
        usize::try_from(count).ok().and_then(|count| bytes.split_at_checked(count)).context("a field is cut off")?;
    *bytes = rest;
    Ok(taken)
}

impl<'b> Message<'b> {
    fn of(mut bytes: &'b [u8]) -> Result<Self> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)?),
                1 => Value::Bytes(taken(&mut bytes, 8)?),
                2 => {
                    let length = varint(&mut bytes)?;
                    Value::Bytes(taken(&mut bytes, length)?)
                }
                5 => Value::Bytes(taken(&mut bytes, 4)?),
                other => bail!("wire type {other}"),
            };
            fields.push((key >> 3, value));
        }
        Ok(Message(fields))
    }

    fn all(&self, field: u64) -> impl Iterator<Item = Value<'b>> + use<'_, 'b> {
        self.0.iter().filter(move |(number, _)| *number == field).map(|(_, value)| *value)
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.all(field).find_map(|value| if let Value::Number(number) = value { Some(number) } else { None })
    }

    fn bytes(&self, field: u64) -> Option<&'b [u8]> {
        self.all(field).find_map(|value| if let Value::Bytes(bytes) = value { Some(bytes) } else { None })
    }

    fn message(&self, field: u64) -> Result<Option<Message<'b>>> {
        self.bytes(field).map(Message::of).transpose()
    }

    fn text(&self, field: u64) -> Result<Option<String>> {
        Ok(self.bytes(field).map(|bytes| String::from_utf8(bytes.to_vec())).transpose()?)
    }
}

/// A track.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Name.
    pub name: String,
    /// The track below which it is.
    pub parent: Option<u64>,
    /// Its place there.
    pub rank: u64,
}

/// Values that are shown with an event, by name; numbers in decimal.
pub type Values = BTreeMap<String, String>;

/// A slice of a track.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The track.
    pub track: u64,
    /// Number of slices around it.
    pub depth: usize,
    /// Times in nanoseconds of the axis.
    pub begin: u64,
    /// End of it.
    pub end: u64,
    /// Name.
    pub name: String,
    /// Values of its begin and its end.
    pub values: Values,
}

/// An event without duration.
#[derive(Clone, Debug, PartialEq)]
pub struct Instant {
    /// The track.
    pub track: u64,
    /// Time in nanoseconds of the axis.
    pub at: u64,
    /// Name.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// A timeline.
#[derive(Debug, Default, PartialEq)]
pub struct Timeline {
    /// Tracks by number.
    pub tracks: BTreeMap<u64, Track>,
    /// Slices in the order of their ends.
    pub slices: Vec<Slice>,
    /// Instants in the order of the file.
    pub instants: Vec<Instant>,
}

impl Timeline {
    /// Names of a track and of those above it: `small: functions/vf1/ccs0`.
    pub fn path(&self, uuid: u64) -> String {
        let Some(track) = self.tracks.get(&uuid) else { return String::new() };
        let above = track.parent.filter(|parent| *parent < uuid).map(|parent| self.path(parent) + "/");
        above.unwrap_or_default() + &track.name
    }
}

/// Clocks of the trace: time of the axis minus time of the clock.
type Clocks = BTreeMap<u64, i128>;

fn clocks(snapshot: &Message<'_>) -> Result<Clocks> {
    let axis = snapshot.number(2).unwrap_or(6);
    let mut times = BTreeMap::new();
    for clock in snapshot.all(1) {
        let Value::Bytes(clock) = clock else { bail!("a clock that is no message") };
        let clock = Message::of(clock)?;
        let id = clock.number(1).context("a clock without a number")?;
        times.insert(id, i128::from(clock.number(2).context("a clock without a time")?));
    }
    let now = *times.get(&axis).context("a snapshot of clocks without that of the axis")?;
    Ok(times.into_iter().map(|(id, time)| (id, now - time)).collect())
}

/// The values of an event: numbers are in the fields 3 and 7, texts in 6.
fn values(event: &Message<'_>) -> Result<Values> {
    let mut values = Values::new();
    for annotation in event.all(4) {
        let Value::Bytes(annotation) = annotation else { bail!("a value that is no message") };
        let annotation = Message::of(annotation)?;
        let name = annotation.text(10)?.context("a value without a name")?;
        let number = annotation.number(3).or(annotation.number(7)).map(|number| number.to_string());
        values.insert(name, number.or(annotation.text(6)?).context("a value of an unknown type")?);
    }
    Ok(values)
}

/// Reads a trace. Refuses one that is not complete, events of tracks that were not described before, slices without a begin or an end,
/// and ends before their begins.
pub fn read(trace: &[u8]) -> Result<Timeline> {
    let mut timeline = Timeline::default();
    let mut known: Clocks = [(6, 0)].into();
    let mut open: BTreeMap<u64, Vec<(u64, String, Values)>> = BTreeMap::new();
    for (number, (field, value)) in Message::of(trace)?.0.into_iter().enumerate() {
        let (1, Value::Bytes(packet)) = (field, value) else { bail!("field {field} is no packet") };
        let packet = Message::of(packet).with_context(|| format!("packet {number}"))?;
        if let Some(snapshot) = packet.message(6)? {
            known.extend(clocks(&snapshot)?);
        }
        if let Some(track) = packet.message(60)? {
            let uuid = track.number(1).context("a track without a number")?;
            let name = track.text(2)?.context("a track without a name")?;
            let track = Track { name, parent: track.number(5), rank: track.number(12).unwrap_or(0) };
            ensure!(
                track.parent.is_none_or(|parent| timeline.tracks.contains_key(&parent)),
                "{} has no parent",
                track.name
            );
            ensure!(timeline.tracks.insert(uuid, track).is_none(), "track {uuid} is described twice");
        }
        let Some(event) = packet.message(11)? else { continue };
        let offset = known.get(&packet.number(58).unwrap_or(6)).context("an unknown clock")?;
        let at = u64::try_from(i128::from(packet.number(8).context("an event without a time")?) + offset)?;
        let track = event.number(11).context("an event without a track")?;
        ensure!(timeline.tracks.contains_key(&track), "track {track} is not described");
        let (name, shown) = (event.text(23)?, values(&event)?);
        let open = open.entry(track).or_default();
        match (event.number(9), name) {
            (Some(1), Some(name)) => open.push((at, name, shown)),
            (Some(2), None) => {
                let (begin, name, mut values) =
                    open.pop().with_context(|| format!("packet {number} ends a slice that has not begun"))?;
                ensure!(begin <= at, "packet {number}: the slice {name} ends before it begins");
                values.extend(shown);
                timeline.slices.push(Slice { track, depth: open.len(), begin, end: at, name, values });
            }
            (Some(3), Some(name)) => timeline.instants.push(Instant { track, at, name, values: shown }),
            (kind, name) => bail!("packet {number}: an event of kind {kind:?} with the name {name:?}"),
        }
    }
    ensure!(open.values().all(Vec::is_empty), "slices without an end");
    Ok(timeline)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "the messages of the tests are short")]

    use super::*;

    /// A field with bytes.
    fn bytes(field: u8, bytes: &[u8]) -> Vec<u8> {
        [&[field << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn track(uuid: u8, name: &str) -> Vec<u8> {
        // Field 60 has a key of two bytes.
        let track = [vec![1 << 3, uuid], bytes(2, name.as_bytes())].concat();
        bytes(1, &[&[0xe2, 3, track.len() as u8], &track[..]].concat())
    }

    fn event(at: u8, track: u8, kind: u8, name: &str) -> Vec<u8> {
        let mut event = vec![9 << 3, kind, 11 << 3, track];
        if !name.is_empty() {
            event.extend([0xba, 1, name.len() as u8]);
            event.extend(name.as_bytes());
        }
        bytes(1, &[vec![8 << 3, at], bytes(11, &event)].concat())
    }

    fn refusal(packets: &[Vec<u8>]) -> String {
        format!("{:#}", read(&packets.concat()).unwrap_err())
    }

    #[test]
    fn slices_and_instants_are_read() {
        let packets = [track(1, "rcs0"), event(2, 1, 1, "vf1"), event(3, 1, 3, "reset"), event(5, 1, 2, "")];
        let timeline = read(&packets.concat()).unwrap();
        let slice = Slice { track: 1, depth: 0, begin: 2, end: 5, name: "vf1".into(), values: Values::new() };
        let instant = Instant { track: 1, at: 3, name: "reset".into(), values: Values::new() };
        assert_eq!((timeline.slices, timeline.instants), (vec![slice], vec![instant]));
    }

    #[test]
    fn traces_that_are_not_valid_are_refused() {
        assert!(refusal(&[event(2, 1, 1, "vf1")]).contains("track 1 is not described"));
        assert!(refusal(&[track(1, "a"), track(1, "b")]).contains("described twice"));
        assert!(refusal(&[track(1, "a"), event(2, 1, 1, "vf1")]).contains("slices without an end"));
        assert!(refusal(&[track(1, "a"), event(2, 1, 2, "")]).contains("a slice that has not begun"));
        assert!(refusal(&[track(1, "a"), event(2, 1, 1, "vf1"), event(1, 1, 2, "")]).contains("ends before it begins"));
        let complete = [track(1, "a"), event(2, 1, 3, "reset")].concat();
        let (first, length) = (track(1, "a").len(), complete.len());
        assert!((1..length).filter(|cut| *cut != first).all(|cut| read(&complete[..cut]).is_err()));
    }
}
