// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A hostile client affects only its own function. The client of the PF misbehaves, and VF 1's client measures delays.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use arctic_gpu::vfio_user::wire::command;
use arctic_test_support::client::*;
use arctic_test_support::in_time;
use arctic_test_support::mi::{self, Compare, Global, Reg};
use arctic_test_support::served::Served;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use vmm_sys_util::eventfd::EventFd;
use vmm_sys_util::tempdir::TempDir;

use crate::{eventually, serve, status};

/// Limit for the total delay per minute that one client may cause to others.
const ALLOWED: Duration = Duration::from_secs(1);
/// Duration of a round of VF 1's client without delays, on a busy host.
const OWN: Duration = Duration::from_millis(40);

/// A served card with VF 1 in a separate guest, and the clients of both functions.
struct Card {
    served: Served,
    dir: TempDir,
    pf: Raw,
    vf: Raw,
}

impl Card {
    fn start() -> Card {
        let dir = TempDir::new().unwrap();
        let served = serve("small", dir.as_path(), &["--vfs", "1", "--split"]);
        let mut pf = Raw::connect(&dir.as_path().join("pf.sock"));
        // NumVFs; VF Enable and VF MSE.
        pf.write(CONFIG, 0x330, &[1, 0]);
        pf.write(CONFIG, 0x328, &[9, 0]);
        let vf = Raw::connect(&dir.as_path().join("vf1.sock"));
        Card { served, dir, pf, vf }
    }

    /// Sends SIGTERM; checks for exit status 0 within the time limit.
    fn ends(self) {
        let start = Instant::now();
        let (code, text) = self.served.end(libc::SIGTERM);
        assert_eq!(code, Some(0), "{text}");
        assert!(start.elapsed() < in_time!(Duration::from_secs(3)), "{:?}", start.elapsed());
    }
}

/// Repeatedly resets VF 1, which needs each engine and the GuC, and queries the card's status for the duration
/// `rounds`. Returns the maximum and the sum of the delays beyond `OWN`.
fn lost(vf: &mut Raw, dir: &Path, rounds: Duration) -> (Duration, Duration) {
    let (start, mut longest, mut sum) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    while start.elapsed() < rounds {
        let round = Instant::now();
        vf.request(command::DEVICE_RESET, &[], &[]);
        status(dir);
        let more = round.elapsed().saturating_sub(OWN);
        (longest, sum) = (longest.max(more), sum + more);
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("longest delay {longest:?}, total {sum:?}");
    (longest, sum)
}

/// The client clears O_NONBLOCK of its eventfd, which also affects the card's descriptor, and fills the counter.
/// Raising the interrupt, resets of VF 1, the function's next client and the program's exit do not block.
#[test]
fn blocking_eventfd_of_a_client_does_not_block_the_card() {
    for _ in 0..3 {
        let mut card = Card::start();
        let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
        let irqs = |flags: u32| -> Vec<u8> { [20, flags, 1, 0, 1].into_iter().flat_map(u32::to_le_bytes).collect() };
        card.pf.request(command::DEVICE_SET_IRQS, &irqs(4 | 32), &[fd.as_raw_fd()]);
        card.pf.request(command::DEVICE_SET_IRQS, &irqs(1 | 32), &[]);
        eventually("the interrupt", || fd.read().is_ok());
        fd.write(u64::MAX - 1).unwrap();
        // SAFETY: the descriptor is open while `fd` exists.
        let shared = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd.as_raw_fd()) };
        fcntl_setfl(shared, fcntl_getfl(shared).unwrap() - OFlags::NONBLOCK).unwrap();
        let start = Instant::now();
        for _ in 0..5 {
            card.pf.request(command::DEVICE_SET_IRQS, &irqs(1 | 32), &[]);
        }
        let (longest, _) = lost(&mut card.vf, card.dir.as_path(), Duration::from_millis(300));
        assert!(longest < in_time!(ALLOWED), "{longest:?}");
        assert!(start.elapsed() < in_time!(Duration::from_secs(3)), "{:?}", start.elapsed());
        drop(card.pf);
        eventually("the PF has no client", || status(card.dir.as_path())["functions"][0]["connected"] == false);
        card.pf = Raw::connect(&card.dir.as_path().join("pf.sock"));
        assert_eq!(card.pf.read_u32(CONFIG, 0), 0x56c0_8086);
        card.ends();
    }
}

/// Makes the GuC read guest memory repeatedly for `seconds`, and replies to each DMA request after `delay`.
fn request_and_reply(mut pf: Raw, delay: Duration, seconds: u64) -> usize {
    let (start, mut answered) = (Instant::now(), 0);
    let goes_on = || start.elapsed() < Duration::from_secs(seconds);
    pf.map_firmware();
    while goes_on() {
        pf.load_firmware();
        while goes_on()
            && let Some(question) = pf.question(Duration::from_millis(20))
        {
            std::thread::sleep(delay);
            pf.answer(&question, Ok(0));
            answered += 1;
        }
    }
    answered
}

/// The GuC's DMA engine reads a firmware image from a client's memory, page by page, with the GuC's lock held. With fast and with slow replies, resets of
/// VF 1, which need the GuC, are delayed by less than the limit each, and by less than twice the limit in total.
#[test]
fn endless_dma_requests_delay_vf_resets_within_the_limit() {
    for delay in [0, 1500, 9000].map(Duration::from_micros) {
        let mut card = Card::start();
        card.pf.map(IOVA, 0x2000, &[]);
        let Card { served, dir, pf, mut vf } = card;
        let attack = std::thread::spawn(move || request_and_reply(pf, delay, 4));
        let (longest, sum) = lost(&mut vf, dir.as_path(), Duration::from_secs(4));
        let answered = attack.join().unwrap();
        println!("{delay:?}: {answered} replies");
        assert!(answered > 20, "too few requests of the GuC");
        // Twice the limit for the sum, because a busy host delays each round.
        let limit = in_time!(ALLOWED);
        assert!(longest < limit && sum < 2 * limit, "{delay:?}: longest delay {longest:?}, total {sum:?}");
        let (code, text) = served.end(libc::SIGTERM);
        assert_eq!(code, Some(0), "{text}");
        let warnings = text.matches("pf: the guest's memory has no file descriptor").count();
        if delay.as_millis() == 9 {
            assert!(text.contains("pf: other functions have waited too long for this function's client"), "{text}");
        }
        assert!(warnings == 1 && text.contains("-object memory-backend-memfd"), "one warning with the remedy: {text}");
    }
}

/// The client sends many requests and reads no reply, and an engine reads its memory by message. The card waits for
/// space in the client's socket for at most the same time, and then disconnects the client.
#[test]
fn client_that_reads_no_replies_is_disconnected() {
    let mut card = Card::start();
    card.pf.map(IOVA, 0x2000, &[]);
    // The engine waits for a dword in local memory, and then loads from guest memory.
    let wait = mi::semaphore_wait(Global(DATA), Compare::Equal, 1);
    let load = mi::load_register_mem(Reg::Own(mi::GPR0), Global(GUEST));
    card.pf.write(LMEM, DATA, &[0; 4]);
    card.pf.run(&[&wait[..], &load.repeat(100)].concat(), &[]);
    // The first message releases the engine; the replies to the others fill the socket.
    let go_on = access(DATA, LMEM, 4, &1_u32.to_le_bytes());
    let message = [&card.pf.header(command::REGION_WRITE, &go_on).encode()[..], &go_on].concat();
    card.pf.stream.write_all(&message).unwrap();
    let question = access(0, CONFIG, 4096, &[]);
    let message = [&card.pf.header(command::REGION_READ, &question).encode()[..], &question].concat();
    card.pf.stream.set_nonblocking(true).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        while card.pf.stream.write_all(&message).is_ok() {}
        std::thread::sleep(Duration::from_millis(2));
    }
    // The server disconnects the PF's client, which disables its VFs. Until then status queries are not delayed.
    let (mut longest, mut connected) = (Duration::ZERO, true);
    while connected {
        let round = Instant::now();
        connected = status(card.dir.as_path())["functions"][0]["connected"] == true;
        longest = longest.max(round.elapsed());
        assert!(start.elapsed() < in_time!(Duration::from_secs(5)), "the client is still connected");
    }
    println!("disconnected after {:?}, longest status query {longest:?}", start.elapsed());
    assert!(longest < in_time!(ALLOWED), "{longest:?}");
    card.ends();
}

/// A client with a maximum message size below the minimum is rejected with an error reply of the protocol.
#[test]
fn a_client_of_tiny_messages_is_refused() {
    let dir = TempDir::new().unwrap();
    let served = serve("small", dir.as_path(), &[]);
    for (size, error) in [(0, libc::EINVAL), (1, libc::EINVAL), (63, libc::EINVAL), (64, 0), (1 << 30, 0)] {
        let mut stream = std::os::unix::net::UnixStream::connect(dir.as_path().join("pf.sock")).unwrap();
        let body = format!("\0\0\0\0{{\"capabilities\":{{\"max_data_xfer_size\":{size}}}}}\0");
        let length = 16 + body.len() as u32;
        let header = [&[1, 0, 1, 0][..], &length.to_le_bytes(), &[0; 8]].concat();
        stream.write_all(&[&header[..], body.as_bytes()].concat()).unwrap();
        let mut reply = [0; 16];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[12..16], (error as u32).to_le_bytes(), "{size}");
        drop(stream);
        eventually("the PF has no client", || status(dir.as_path())["functions"][0]["connected"] == false);
    }
    assert_eq!(served.end(libc::SIGTERM).0, Some(0));
}
