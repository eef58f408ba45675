// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The thread with a client that refuses each message.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use arctic_device_model::host::Function;

use super::*;
use crate::vfio_user::channel::tests::connection;
use crate::vfio_user::inbox::{Inbox, Received};
use crate::vfio_user::wire::{FLAG_ERROR, HEADER_LEN, Header, TYPE_REPLY, command};

const BARS: BarAddresses = [0x10_0000_0000, 0x20_0000_0000];

/// A PF behind a root port, for which the buses are searched.
fn ecam() -> Ecam {
    Ecam { base: 0xb000_0000, pf: "01:00.0".parse().unwrap() }
}

fn identity() -> Identity {
    arctic_device_model::pci::identity(0x56c0, 8)
}

/// The PF's client; its messages arrive on this thread.
struct Client {
    inbox: Arc<Inbox>,
    memory: Arc<GuestMemory>,
    socket: UnixStream,
}

impl Client {
    fn new() -> Self {
        let (sender, inbox, socket) = connection();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let memory = Arc::new(GuestMemory::default());
        let dma = Arc::new(ClientDma::new(sender, inbox.clone(), 4096, memory.ledger().clone(), Function::PF));
        memory.connect(dma);
        Client { inbox, memory, socket }
    }

    /// Starts the thread, and requires a write for the only VF.
    fn place(&self) -> BarPlacer {
        let placer = BarPlacer::start(ecam(), identity(), 1, [Arc::default(), self.memory.clone()]).unwrap();
        placer.pf_changed(PfState { decoded: vec![BARS], bus_master: true, vf_bars: BARS });
        placer
    }

    /// Receives a read message. Returns its header and the guest address.
    fn receive(&mut self) -> (Header, u64) {
        let (mut header, mut body) = ([0; HEADER_LEN], [0; 16]);
        self.socket.read_exact(&mut header).unwrap();
        self.socket.read_exact(&mut body).unwrap();
        let header = Header::decode(&header);
        assert_eq!(header.command, command::DMA_READ, "nothing is written before the PF was recognised");
        (header, u64::from_le_bytes(body[..8].try_into().unwrap()))
    }

    fn refuse(&self, header: Header) {
        let size = u32::try_from(HEADER_LEN).unwrap();
        let reply = Header { size, flags: TYPE_REPLY | FLAG_ERROR, error: 19, ..header };
        (&self.socket).write_all(&reply.encode()).unwrap();
        let received = self.inbox.receive(&mut Vec::new(), &mut Vec::new());
        assert!(matches!(received, Ok(Received::Reply)));
    }

    /// Stops the thread while it waits for the reply to `header`.
    fn stop(&mut self, placer: BarPlacer, header: Header) {
        placer.shared.work().stop = true;
        self.refuse(header);
        drop(placer);
        self.check_idle();
    }

    fn check_idle(&mut self) {
        self.socket.set_nonblocking(true).unwrap();
        assert_eq!(self.socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "no further message");
    }
}

/// The search for the PF reads hundreds of addresses. It does not delay the end of the thread.
#[test]
fn a_search_ends_with_the_thread() {
    let mut client = Client::new();
    let placer = client.place();
    let (header, address) = client.receive();
    assert_eq!(address, ecam().registers(0));
    client.refuse(header);
    let (header, next) = client.receive();
    assert_ne!(next, address, "the search continues after a refusal");
    assert!(!placer.withholds(1), "the search has not failed");
    client.stop(placer, header);
}

/// A search starts again if the window may have moved meanwhile. That is no failure of the VMM.
#[test]
fn a_search_starts_again_when_the_window_may_have_moved() {
    for moved in [BarPlacer::machine_reset, BarPlacer::sender_changed, BarPlacer::client_gone] {
        let mut client = Client::new();
        let placer = client.place();
        let (header, first) = client.receive();
        moved(&placer);
        client.refuse(header);
        let (header, again) = client.receive();
        assert_eq!(again, first);
        assert!(!placer.withholds(1));
        client.stop(placer, header);
    }
}

/// After a search that was refused everywhere the VF is withheld, and the search is repeated.
#[test]
fn a_refused_search_is_repeated_and_withholds_the_vf() {
    let mut client = Client::new();
    let placer = client.place();
    let (mut header, first) = client.receive();
    for _ in 0..3 * 256 {
        client.refuse(header);
        let address;
        (header, address) = client.receive();
        if address == first {
            break;
        }
        assert!(!placer.withholds(1));
    }
    client.refuse(header);
    client.receive();
    assert!(placer.withholds(1), "the last attempt has failed");
}

#[test]
fn a_search_ends_at_the_deadline() {
    let mut client = Client::new();
    let (placement, pf) = (Placement::new(1), PfState::default());
    let work = Mutex::new(Work { placement, pf, triggers: 0, moves: 3, stop: false });
    let shared = Shared { work, changed: Condvar::new() };
    let memory = client.memory.clone();
    let writer = Writer {
        shared: &shared,
        ecam: ecam(),
        identity: identity(),
        requester: Arc::default(),
        pf: memory,
        lines: LineLimit::default(),
    };
    let pf = Pf { identity: identity(), vf_bars: BARS };
    let attempt = Attempt {
        client: client.memory.client().unwrap(),
        pf,
        vf: 0,
        step: Step::MemoryOn,
        moves: 3,
        deadline: Instant::now(),
        window: None,
    };
    assert_eq!(writer.write(&attempt), Err((WindowError::Stopped, Outcome::Unsent)));
    client.check_idle();
    // With time left, this thread reaches the message, which it must not wait for.
    let later = Attempt { deadline: attempt.deadline + Duration::from_secs(600), ..attempt };
    assert_eq!(writer.write(&later), Err((DmaError::WrongThread.into(), Outcome::Refused)));
}

/// The VF's registers are written many times during a pause, by the guest or by the thread itself.
#[test]
fn a_pause_ends_with_a_trigger_but_not_with_a_write_to_the_vf() {
    let (placement, pf) = (Placement::new(1), PfState::default());
    let work = Mutex::new(Work { placement, pf, triggers: 5, moves: 0, stop: false });
    let shared = Shared { work, changed: Condvar::new() };
    thread::scope(|scope| {
        let pausing = scope.spawn(|| {
            let work = shared.pause(shared.work(), Duration::from_secs(600), 5);
            (work.triggers, work.stop)
        });
        for round in 0..10_000 {
            shared.observe(|placement| placement.memory_space(0, round % 2 == 0));
            thread::yield_now();
        }
        shared.trigger(|_| ());
        assert_eq!(pausing.join().unwrap(), (6, false), "the pause has ended with the trigger");
    });
    let work = shared.pause(shared.work(), Duration::from_secs(600), 5);
    assert_eq!(work.triggers, 6, "a trigger before the pause");
    drop(work);
    shared.work().stop = true;
    assert!(shared.pause(shared.work(), Duration::from_secs(600), 6).stop);
}
