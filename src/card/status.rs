//! What a card is doing now, as a document for programs and a table for people.

use std::fmt;
use std::fs;

use arctic_device_model::profile::provision::Quota;
use serde::{Deserialize, Serialize};

use super::VirtualCard;
use super::function::{CardFunction, Face, TrappedCounts};

const MIB: u64 = 1 << 20;

/// A card at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the card.
    pub card: String,
    /// "together", "split" or "provisioned".
    pub arrangement: String,
    /// Seconds since the card was powered on.
    pub uptime_seconds: f64,
    /// Virtual functions that the card offers.
    pub total_vfs: u8,
    /// Virtual functions that exist now.
    pub enabled_vfs: u8,
    /// Bytes of the host's memory that the program holds, its part of guest memory included.
    pub resident_bytes: u64,
    /// The functions: the PF, then VFs by number.
    pub functions: Vec<FunctionStatus>,
}

/// A function at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionStatus {
    /// 0 for the PF.
    pub function: u8,
    /// The function exists.
    pub enabled: bool,
    /// A VMM is connected to its socket.
    pub connected: bool,
    /// Its driver has switched bus mastering on.
    pub bus_master: bool,
    /// Guest memory sections that its VMM maps.
    pub guest_sections: usize,
    /// What the card file gives it; absent where a PF driver shares out the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// Accesses so far that its VMM could not do by itself.
    pub trapped: TrappedCounts,
    /// Bytes of the host's memory behind its BARs.
    pub memory_bytes: u64,
}

impl VirtualCard {
    /// What the card is doing now.
    pub fn status(&self) -> Status {
        let function = |member: &CardFunction| FunctionStatus {
            function: member.number.0,
            enabled: member.enabled(),
            connected: member.connected(),
            bus_master: member.port.bus_master(),
            guest_sections: member.port.memory.sections(),
            quota: member.number.index().checked_sub(1).and_then(|vf| self.quotas.get(vf).copied()),
            trapped: member.trapped.counts(),
            memory_bytes: member.allocated(),
        };
        let whole = self.members.iter().filter(|member| member.face == Face::Whole);
        Status {
            card: self.profile.name.clone(),
            arrangement: self.family.arrangement.name().into(),
            uptime_seconds: self.started.elapsed().as_secs_f64(),
            total_vfs: self.total_vfs(),
            enabled_vfs: self.family.card.vfs(),
            resident_bytes: resident_bytes(),
            functions: whole.map(|member| function(member)).collect(),
        }
    }
}

/// Bytes of this process in the host's memory; 0 where /proc is not mounted.
fn resident_bytes() -> u64 {
    /// What `statm` counts in on this architecture.
    const PAGE: u64 = 4096;
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE
}

impl FunctionStatus {
    fn state(&self) -> &'static str {
        match (self.enabled, self.connected, self.bus_master) {
            (false, _, _) => "absent",
            (true, false, _) => "no client",
            (true, true, false) => "idle",
            (true, true, true) => "in use",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}, {}: {} of {} VFs enabled, up {:.0} s, {} MiB resident",
            self.card,
            self.arrangement,
            self.enabled_vfs,
            self.total_vfs,
            self.uptime_seconds,
            self.resident_bytes / MIB
        )?;
        writeln!(f, "{:<9} {:<10} {:>10} {:>10} {:>10}  QUOTA", "FUNCTION", "STATE", "TRAPPED", "GGTT", "MEMORY")?;
        // VFs that nobody has touched would only fill the screen.
        let (shown, absent): (Vec<_>, Vec<_>) = self
            .functions
            .iter()
            .partition(|function| function.enabled || function.connected || function.function == 0);
        for function in shown {
            let name = if function.function == 0 { "pf".into() } else { format!("vf{}", function.function) };
            let memory = format!("{} MiB", function.memory_bytes.div_ceil(MIB));
            let (total, ggtt) = (function.trapped.total(), function.trapped.ggtt);
            let quota = function.quota.map_or("-".into(), |quota| {
                format!(
                    "{} MiB local, {} MiB global, {} contexts, {} doorbells, {} ms",
                    quota.local_memory / MIB,
                    quota.ggtt / MIB,
                    quota.contexts,
                    quota.doorbells,
                    quota.exec_quantum_ms
                )
            });
            writeln!(f, "{name:<9} {:<10} {total:>10} {ggtt:>10} {memory:>10}  {quota}", function.state())?;
        }
        if !absent.is_empty() {
            writeln!(f, "{} more VFs are not enabled", absent.len())?;
        }
        Ok(())
    }
}
