//! A CPU's thread: runs the guest and carries out what leaves it.

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use kvm_bindings::{KVM_INTERNAL_ERROR_EMULATION, KVM_MP_STATE_RUNNABLE, Msrs, kvm_mp_state, kvm_msr_entry};
use kvm_ioctls::{VcpuExit, VcpuFd};
use vmm_sys_util::signal::{Killable, SIGRTMIN, register_signal_handler};

use crate::board::Board;
use crate::error::{Error, Step};
use crate::vm::Exit;

thread_local! {
    /// This thread's `kvm_run.immediate_exit` while it has a CPU.
    static IMMEDIATE_EXIT: Cell<*mut u8> = const { Cell::new(ptr::null_mut()) };
}

/// Makes the next `KVM_RUN` of the thread return at once; the signal itself ends the one that is under way.
extern "C" fn leave_guest(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let flag = IMMEDIATE_EXIT.get();
    if !flag.is_null() {
        // SAFETY: the pointer is set by this thread only, to a byte of its own CPU's `kvm_run` page, and cleared
        // before that page goes.
        unsafe { ptr::write_volatile(flag, 1) };
    }
}

/// Has the signal that fetches CPUs out of the guest handled; once a process is enough.
pub fn handle_kicks() -> Result<(), Error> {
    let registered = register_signal_handler(SIGRTMIN(), leave_guest);
    registered.map_err(io::Error::from).step("a signal handler")
}

/// A running CPU.
pub struct Thread(JoinHandle<()>);

impl Thread {
    /// Starts CPU `number`.
    pub fn start(number: u8, vcpu: VcpuFd, board: Arc<Board>) -> Result<Self, Error> {
        let name = format!("vcpu{number}");
        let thread = thread::Builder::new().name(name).spawn(move || run(number, vcpu, &board));
        Ok(Thread(thread.step("a thread for a CPU")?))
    }

    /// Fetches the CPU out of the guest, and waits for its thread. The board's end has been told before.
    pub fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.0.kill(SIGRTMIN());
        let _ = self.0.join();
    }
}

/// Forgets the flag's address before the CPU is given up.
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
    // Dropped before `vcpu`, which was there first.
    let _kickable = Kickable::new(&mut vcpu);
    // A panic of ours must not leave the others waiting for this CPU.
    let _ends = EndsBoard(board);
    while !board.end.is_over() {
        match step(number, &mut vcpu, board) {
            Some(exit) => board.end.set(exit),
            // KVM leaves it set. Whoever kicks has told the end before, and that is looked at next.
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

/// Runs until the guest is left once; says whether the machine is at its end.
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
        // The in-kernel APIC waits by itself; without it a halted CPU has nothing to wait for.
        Ok(VcpuExit::Hlt) => "halted for good".to_owned(),
        // A triple fault, which is also Linux' last resort for a reset.
        Ok(VcpuExit::Shutdown) => {
            log::info!("CPU {number} shut down at {}", place(vcpu));
            return Some(Exit::TripleFault);
        }
        Ok(VcpuExit::SystemEvent(kind, _)) => format!("sent system event {kind}"),
        Ok(VcpuExit::InternalError) => internal_error(vcpu),
        Ok(VcpuExit::FailEntry(reason, _)) => format!("could not enter the guest (hardware's reason {reason:#x})"),
        Ok(other) => format!("left the guest with {other:?}"),
        Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => return None,
        Err(error) => format!("cannot run: {error}"),
    };
    Some(Exit::Failed(format!("CPU {number} {failure}, at {}", place(vcpu))))
}

/// Where the CPU is.
fn place(vcpu: &VcpuFd) -> String {
    match vcpu.get_regs() {
        Ok(regs) => format!("rip {:#x}, rsp {:#x}, rflags {:#x}", regs.rip, regs.rsp, regs.rflags),
        Err(error) => format!("an unknown place ({error})"),
    }
}

/// What KVM tells of its failure, which most often is an instruction that it cannot emulate.
fn internal_error(vcpu: &mut VcpuFd) -> String {
    let run = vcpu.get_kvm_run();
    // SAFETY: this exit reason says that `internal` is the union's valid member.
    let internal = unsafe { run.__bindgen_anon_1.internal };
    if internal.suberror != KVM_INTERNAL_ERROR_EMULATION {
        return format!("failed within KVM (suberror {})", internal.suberror);
    }
    // Newer KVMs say which instruction it was: flags, its length, up to 15 bytes.
    let bytes: Vec<u8> = internal.data.iter().flat_map(|word| word.to_le_bytes()).collect();
    match (internal.ndata >= 4 && bytes[0] & 1 != 0).then(|| usize::from(bytes[8]).min(15)) {
        Some(len) => format!("came to an instruction that KVM cannot emulate ({:02x?})", &bytes[9..9 + len]),
        None => "came to an instruction that KVM cannot emulate".to_owned(),
    }
}

/// Makes the CPU run from the start instead of waiting to be woken.
pub fn make_runnable(vcpu: &VcpuFd) -> Result<(), Error> {
    vcpu.set_mp_state(kvm_mp_state { mp_state: KVM_MP_STATE_RUNNABLE }).step("start a CPU")
}

/// Model-specific registers as firmware leaves them: all memory write-back, fast string operations.
pub fn set_msrs(vcpu: &VcpuFd) {
    const IA32_MISC_ENABLE: u32 = 0x1a0;
    const IA32_MTRR_DEF_TYPE: u32 = 0x2ff;
    for (index, data) in [(IA32_MISC_ENABLE, 1), (IA32_MTRR_DEF_TYPE, 1 << 11 | 6)] {
        let entry = kvm_msr_entry { index, data, ..Default::default() };
        let set = Msrs::from_entries(&[entry]).map(|msrs| vcpu.set_msrs(&msrs));
        if !matches!(set, Ok(Ok(1))) {
            log::info!("KVM does not take MSR {index:#x}; the guest has to live without");
        }
    }
}
