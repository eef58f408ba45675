// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counters of the driver in the kernel's performance monitoring (xe: `xe_pmu.c`).

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::device::Engine;

/// Devices that have events.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// `struct perf_event_attr` in its first form, of 64 bytes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// `PERF_FLAG_FD_CLOEXEC`.
const FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// Bytes of [`Attributes`], which the kernel takes as the form's version.
const ATTRIBUTES_BYTES: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == ATTRIBUTES_BYTES as usize);

/// The events of one card.
pub struct Pmu {
    folder: PathBuf,
    kind: u32,
}

impl Pmu {
    /// The events of the card with this PCI address.
    pub fn of_card(address: &str) -> Result<Pmu> {
        Pmu::at(&Path::new(DEVICES).join(format!("xe_{}", address.replace(':', "_"))))
    }

    fn at(folder: &Path) -> Result<Pmu> {
        let kind = read(&folder.join("type"))?;
        let kind = kind.parse().with_context(|| format!("the type of the events is {kind:?}"))?;
        Ok(Pmu { folder: folder.to_owned(), kind })
    }

    /// The value of `perf_event_attr.config` for an event with these parameters. Each has the bits that its file in `format` says.
    fn config(&self, event: &str, parameters: &[(&str, u64)]) -> Result<u64> {
        let text = read(&self.folder.join("events").join(event))?;
        let number = text.strip_prefix("event=0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let number = number.with_context(|| format!("the event {event} is {text:?}"))?;
        let mut config = 0;
        for (name, value) in [("event", number)].iter().chain(parameters) {
            let bits = read(&self.folder.join("format").join(name))?;
            let Some((first, last)) = bits.strip_prefix("config:").and_then(|bits| bits.split_once('-')) else {
                bail!("the format of {name} is {bits:?}");
            };
            let (first, last): (u32, u32) = (first.parse()?, last.parse()?);
            let most = u64::MAX.checked_shr(63_u32.saturating_sub(last.saturating_sub(first))).unwrap_or(0);
            anyhow::ensure!(*value <= most, "{name} is at most {most}, not {value}");
            config |= value << first;
        }
        Ok(config)
    }

    /// Opens an event of an engine, for a function: 0 is the PF.
    pub fn engine_event(&self, event: &str, engine: Engine, function: u64) -> Result<Event> {
        let parameters = [
            ("gt", engine.gt.into()),
            ("engine_class", engine.class.into()),
            ("engine_instance", engine.instance.into()),
            ("function", function),
        ];
        let config = self.config(event, &parameters)?;
        let attributes = Attributes { kind: self.kind, size: ATTRIBUTES_BYTES, config, ..Attributes::default() };
        // SAFETY: the structure has the size that it says, and outlives the call. All tasks on CPU 0, no group, no flags.
        let file =
            unsafe { libc::syscall(libc::SYS_perf_event_open, std::ptr::from_ref(&attributes), -1, 0, -1, FD_CLOEXEC) };
        if file < 0 {
            return Err(std::io::Error::last_os_error()).with_context(|| format!("perf_event_open of {event}"));
        }
        // SAFETY: a successful open returns a file descriptor that nothing else owns.
        Ok(Event(unsafe { File::from_raw_fd(i32::try_from(file)?) }))
    }
}

/// An open event.
pub struct Event(File);

impl Event {
    /// Its value.
    pub fn value(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes).context("read of an event")?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_placed_by_their_formats() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("type", "23\n");
        put("events/engine-active-ticks", "event=0x02\n");
        for (name, bits) in
            [("event", "0-11"), ("engine_instance", "12-19"), ("engine_class", "20-27"), ("gt", "60-63")]
        {
            put(&format!("format/{name}"), &format!("config:{bits}\n"));
        }
        let pmu = Pmu::at(folder.path()).unwrap();
        assert_eq!(pmu.kind, 23);
        let of = |parameters: &[(&str, u64)]| pmu.config("engine-active-ticks", parameters);
        assert_eq!(of(&[("engine_class", 4), ("engine_instance", 3)]).unwrap(), 4 << 20 | 3 << 12 | 2);
        assert_eq!(of(&[("gt", 15)]).unwrap(), 15 << 60 | 2);
        assert_eq!(of(&[("gt", 16)]).unwrap_err().to_string(), "gt is at most 15, not 16");
        assert!(pmu.config("no-such-event", &[]).is_err());
        assert!(of(&[("function", 0)]).is_err());
    }
}
