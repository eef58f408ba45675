// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! vCPU threads: run the guest and handle its exits.

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use kvm_bindings::{KVM_INTERNAL_ERROR_EMULATION, KVM_MP_STATE_RUNNABLE, Msrs, kvm_mp_state, kvm_msr_entry};
use kvm_ioctls::{VcpuExit, VcpuFd};
use vmm_sys_util::signal::{Killable, SIGRTMIN, register_signal_handler};

use crate::error::{Error, Step};
use crate::machine::Board;
use crate::vm::Exit;

thread_local! {
    /// `kvm_run.immediate_exit` of this thread's vCPU; null without a vCPU.
    static IMMEDIATE_EXIT: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
}

/// Signal handler: makes the next `KVM_RUN` of the thread return immediately. The signal itself interrupts a `KVM_RUN`
/// in progress.
extern "C" fn leave_guest(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let flag = IMMEDIATE_EXIT.get();
    if !flag.is_null() {
        // SAFETY: the pointer is set only by this thread, to a byte of its vCPU's `kvm_run` page, and cleared before
        // that page is unmapped.
        unsafe { ptr::write_volatile(flag, 1) };
    }
}

/// Registers the handler of the signal that forces vCPUs out of the guest. Idempotent; required once per process.
pub fn handle_kicks() -> Result<(), Error> {
    let registered = register_signal_handler(SIGRTMIN(), leave_guest);
    registered.map_err(io::Error::from).step("a signal handler")
}

/// A running vCPU thread.
pub struct Thread(JoinHandle<()>);

impl Thread {
    /// Starts vCPU `number`.
    pub fn start(number: u8, vcpu: VcpuFd, board: Arc<Board>) -> Result<Self, Error> {
        let name = format!("vcpu{number}");
        let thread = thread::Builder::new().name(name).spawn(move || run(number, vcpu, &board));
        Ok(Thread(thread.step("a thread for a CPU")?))
    }

    /// Forces the vCPU out of the guest and joins its thread. `Board::end` must have been set before.
    pub fn stop(self) {
        // An error means that the thread has already exited.
        let _ = self.0.kill(SIGRTMIN());
        let _ = self.0.join();
    }
}

/// Sets the address of the vCPU's flag, and clears it before the vCPU is dropped.
struct Kickable;

impl Kickable {
    fn new(vcpu: &mut VcpuFd) -> Self {
        IMMEDIATE_EXIT.set(&raw mut vcpu.get_kvm_run().immediate_exit);
        Kickable
    }
}

impl Drop for Kickable {
    fn drop(&mut self) {
        IMMEDIATE_EXIT.set(ptr::null_mut());
    }
}

fn run(number: u8, mut vcpu: VcpuFd, board: &Board) {
    // Dropped before `vcpu`, which is declared earlier.
    let _kickable = Kickable::new(&mut vcpu);
    // Other threads must not wait forever for this vCPU if this thread panics.
    let _ends = EndsBoard(board);
    while !board.end.is_over() {
        match step(number, &mut vcpu, board) {
            Some(exit) => board.end.set(exit),
            // KVM does not clear the flag. `board.end` is set before the signal is sent, and is checked next.
            None if vcpu.get_kvm_run().immediate_exit != 0 => vcpu.set_kvm_immediate_exit(0),
            None => {}
        }
    }
}

struct EndsBoard<'b>(&'b Board);

impl Drop for EndsBoard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end.set(Exit::Failed("a CPU's thread panicked".into()));
        }
    }
}

/// Runs the vCPU until its next exit. Returns the VM's exit if this exit ends the VM.
fn step(number: u8, vcpu: &mut VcpuFd, board: &Board) -> Option<Exit> {
    let failure = match vcpu.run() {
        Ok(VcpuExit::MmioRead(address, data)) => {
            board.read(address, data);
            return None;
        }
        Ok(VcpuExit::MmioWrite(address, data)) => {
            board.write(address, data);
            return None;
        }
        Ok(VcpuExit::IoIn(port, data)) => {
            board.port_in(port, data);
            return None;
        }
        Ok(VcpuExit::IoOut(port, data)) => return board.port_out(port, data),
        Ok(VcpuExit::Intr | VcpuExit::IrqWindowOpen | VcpuExit::SetTpr) => return None,
        // The in-kernel APIC handles HLT; without it, nothing could wake the vCPU.
        Ok(VcpuExit::Hlt) => "halted permanently".to_owned(),
        // A triple fault, which Linux also uses as its last method of reset.
        Ok(VcpuExit::Shutdown) => {
            log::info!("CPU {number} shut down at {}", place(vcpu));
            return Some(Exit::TripleFault);
        }
        Ok(VcpuExit::SystemEvent(kind, _)) => format!("sent system event {kind}"),
        Ok(VcpuExit::InternalError) => internal_error(vcpu),
        Ok(VcpuExit::FailEntry(reason, _)) => format!("could not enter the guest (hardware reason {reason:#x})"),
        Ok(other) => format!("had an unexpected exit {other:?}"),
        Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => return None,
        Err(error) => format!("cannot run: {error}"),
    };
    Some(Exit::Failed(format!("CPU {number} {failure}, at {}", place(vcpu))))
}

/// Formats the vCPU's registers for messages.
fn place(vcpu: &VcpuFd) -> String {
    match vcpu.get_regs() {
        Ok(regs) => format!("rip {:#x}, rsp {:#x}, rflags {:#x}", regs.rip, regs.rsp, regs.rflags),
        Err(error) => format!("an unknown address ({error})"),
    }
}

/// Describes an internal error of KVM, usually caused by an instruction that it cannot emulate.
fn internal_error(vcpu: &mut VcpuFd) -> String {
    let run = vcpu.get_kvm_run();
    // SAFETY: for this exit reason `internal` is the valid member of the union.
    let internal = unsafe { run.__bindgen_anon_1.internal };
    if internal.suberror != KVM_INTERNAL_ERROR_EMULATION {
        return format!("failed within KVM (suberror {})", internal.suberror);
    }
    // Newer versions of KVM report the instruction: flags, length, up to 15 bytes.
    let bytes: Vec<u8> = internal.data.iter().flat_map(|word| word.to_le_bytes()).collect();
    match (internal.ndata >= 4 && bytes[0] & 1 != 0).then(|| usize::from(bytes[8]).min(15)) {
        Some(len) => format!("reached an instruction that KVM cannot emulate ({:02x?})", &bytes[9..9 + len]),
        None => "reached an instruction that KVM cannot emulate".to_owned(),
    }
}

/// Makes the vCPU runnable immediately, without a startup IPI.
pub fn make_runnable(vcpu: &VcpuFd) -> Result<(), Error> {
    vcpu.set_mp_state(kvm_mp_state { mp_state: KVM_MP_STATE_RUNNABLE }).step("start a CPU")
}

/// Initialises MSRs as firmware does: all memory write-back, fast string operations.
pub fn set_msrs(vcpu: &VcpuFd) {
    const IA32_MISC_ENABLE: u32 = 0x1a0;
    const IA32_MTRR_DEF_TYPE: u32 = 0x2ff;
    for (index, data) in [(IA32_MISC_ENABLE, 1), (IA32_MTRR_DEF_TYPE, 1 << 11 | 6)] {
        let entry = kvm_msr_entry { index, data, ..Default::default() };
        let set = Msrs::from_entries(&[entry]).map(|msrs| vcpu.set_msrs(&msrs));
        if !matches!(set, Ok(Ok(1))) {
            log::info!("KVM does not support MSR {index:#x}; it is left unset");
        }
    }
}
