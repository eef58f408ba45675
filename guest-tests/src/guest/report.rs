//! What the guest tells the host: one JSON document with the card as the guest saw it and the result of every check.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// One check on one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `rcs0`, `bcs0`…, or `all` for a check that several engines take part in.
    pub engine: String,
    /// What was checked, in a word or two.
    pub what: String,
    /// Whether the CPU found what the GPU should have written.
    pub ok: bool,
    /// Numbers of a success; expected, found and where of a failure.
    pub detail: String,
    /// How long it took in the guest, the CPU's part included.
    pub seconds: f64,
}

/// The card as the guest's user space sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// PCI vendor and device, `8086:56c0`.
    pub pci_id: String,
    /// PCI revision.
    pub revision: u8,
    /// Usable local memory in bytes; 0 without any.
    pub vram_bytes: u64,
    /// GuC submission interface version as the uAPI tells it, if it does.
    pub guc_submission: Option<String>,
    /// Version of the GuC firmware file in use, from debugfs, if readable.
    pub guc_firmware: Option<String>,
    /// Engines that user space may use.
    pub engines: Vec<String>,
    /// Bytes of GGTT address space of a virtual function; absent on the physical one.
    #[serde(default)]
    pub ggtt_bytes: Option<u64>,
}

/// What `arctic guest vfs` found: the virtual functions in the guest of their physical one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VfsReport {
    /// How many were to be there afterwards.
    pub count: u8,
    /// Whether all is well.
    pub ok: bool,
    /// Why they could not be enabled or disabled.
    pub problem: Option<String>,
    /// How long the kernel took to enable or disable them, the probes of their drivers included.
    pub change_seconds: f64,
    /// How long it took until all had worked.
    pub work_seconds: f64,
    /// Each of them.
    pub vfs: Vec<VfReport>,
}

/// One virtual function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VfReport {
    /// Its number, from 1.
    pub number: u8,
    /// Its PCI address in the guest.
    pub address: String,
    /// The name of its render node.
    pub node: String,
    /// How long its driver's probe took.
    pub probe_seconds: f64,
    /// Bytes of GGTT address space.
    pub ggtt_bytes: Option<u64>,
    /// Usable bytes of local memory.
    pub lmem_bytes: u64,
    /// GuC context ids.
    pub contexts: Option<u32>,
    /// Doorbells.
    pub doorbells: Option<u32>,
    /// Engines that user space may use.
    pub engines: Vec<String>,
    /// The engines that stored, copied and signalled as asked, one of each class.
    pub worked: Vec<String>,
    /// How long its work took.
    pub work_seconds: f64,
    /// What went wrong.
    pub problem: Option<String>,
}

impl VfsReport {
    /// Everything that went wrong, in one sentence each.
    pub fn problems(&self) -> Vec<String> {
        let of_one = |vf: &VfReport| Some(format!("vf{}: {}", vf.number, vf.problem.as_ref()?));
        self.problem.clone().into_iter().chain(self.vfs.iter().filter_map(of_one)).collect()
    }
}

/// What `arctic guest rounds` did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// How many rounds were right.
    pub rounds: u64,
    /// How long they took.
    pub seconds: f64,
    /// What was wrong with the next one.
    pub problem: Option<String>,
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Kernel release of the guest.
    pub kernel: String,
    /// The card; absent when it could not be opened.
    pub card: Option<Card>,
    /// Whether every result is ok and there is at least one.
    pub ok: bool,
    /// SHA-256 of the test card's pixels as the guest read them, if it was drawn.
    pub picture_sha256: Option<String>,
    /// Every check in the order it ran.
    pub results: Vec<Outcome>,
}

impl Outcome {
    /// One line for people.
    pub fn line(&self) -> String {
        let verdict = if self.ok { "ok  " } else { "FAIL" };
        format!("{verdict} {:<6} {:<18} {:>7.3} s  {}", self.engine, self.what, self.seconds, self.detail)
    }
}

/// Writes `value` as JSON so that a reader finds either nothing or all of it.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    write_atomically(path, &text)
}

/// Writes `bytes` to a neighbour of `path`, makes them durable and renames the neighbour over `path`.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = fs::File::create(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&part, path)
}

/// The guest's kernel release, as `uname -r` prints it.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_file() {
        let report = Report {
            kernel: "7.2.12".into(),
            card: Some(Card {
                pci_id: "8086:56c0".into(),
                revision: 8,
                vram_bytes: 16 << 30,
                guc_submission: Some("1.26.0".into()),
                guc_firmware: None,
                engines: vec!["rcs0".into(), "bcs0".into()],
                ggtt_bytes: None,
            }),
            ok: false,
            picture_sha256: None,
            results: vec![Outcome {
                engine: "rcs0".into(),
                what: "stores".into(),
                ok: false,
                detail: "byte 0x40: expected 1, got 0".into(),
                seconds: 0.25,
            }],
        };
        let path = std::env::temp_dir().join(format!("arctic-report-{}.json", std::process::id()));
        write_json(&path, &report).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        assert!(text.contains("\"what\": \"stores\""));
        assert!(report.results[0].line().starts_with("FAIL rcs0   stores"));
    }
}
