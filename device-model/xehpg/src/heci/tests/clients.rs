// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the clients of HECI2 with the messages that `mei`, `igsc` and fwupd send, and of hosts that violate the
//! protocol.

use super::*;
use crate::heci::{mkhi, update};

/// Address of the host's client.
const HOST: u8 = 9;
const MKHI: u8 = 1;
const UPDATE: u8 = 2;

/// Flow control message of host or firmware.
fn flow_control(client: u8) -> [u8; 8] {
    [0x08, client, HOST, 0, 0, 0, 0, 0]
}

impl Driver {
    /// A driver after enumeration.
    fn started() -> Self {
        let mut driver = Driver::new();
        driver.link();
        assert_eq!(driver.exchange(&[0x01, 0, 2, 2]), [0x81, 1, 2, 2]);
        driver
    }

    /// A driver that is connected with `client`, and may send a message to it.
    fn connected(client: u8) -> Self {
        let mut driver = Driver::started();
        driver.send(&[0x06, client, HOST, 0]);
        assert_eq!(driver.received(), [(0, vec![0x86, client, HOST, 0]), (0, flow_control(client).into())]);
        driver
    }

    /// Sends a packet to `client`.
    fn send_packet(&mut self, client: u8, packet: &[u8], flags: u32) {
        let addresses = u32::from(client) | u32::from(HOST) << 8;
        self.write_packet(flags | addresses, packet);
    }

    /// Reads all messages from the firmware's buffer, with the addresses in their headers.
    fn received(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.interrupts = 0;
        assert!(self.interrupt());
        let mut messages = Vec::new();
        while self.filled() > 0 {
            let header = self.window.read(ME_CB_RW);
            assert_eq!(header & 0xfe00_0000, COMPLETE, "flags of {header:#x}");
            messages.push((header & 0xffff, self.payload(header)));
        }
        let csr = self.csr();
        self.set_csr(csr | INTERRUPT_GENERATE);
        self.end_of_interrupt();
        messages
    }

    /// Exchanges messages with `client` as `mei_cl_write` and `mei_cl_read_start` do: the message, then the credit for
    /// the reply. Returns the reply.
    fn query(&mut self, client: u8, message: &[u8]) -> Vec<u8> {
        self.send_packet(client, message, COMPLETE);
        assert_eq!(self.received(), [], "no reply before the host permits it");
        self.send(&flow_control(client));
        let messages = self.received();
        let [(addresses, reply), (0, permission)] = &messages[..] else { panic!("{messages:?}") };
        assert_eq!(*addresses, u32::from(client) | u32::from(HOST) << 8);
        assert_eq!(permission[..], flow_control(client));
        reply.clone()
    }

    /// The link is down, and can be established again.
    fn assert_link_down(mut self, violation: &str) {
        assert_eq!(self.window.read(ME_CSR_HA) & READY, 0, "{violation}");
        assert_eq!(self.window.refused().malformed, 1, "{violation}");
        assert!(std::mem::take(&mut self.interrupts) == 1 && self.interrupt(), "{violation}");
        self.link();
        self.exchange(&[0x01, 0, 2, 2]);
    }
}

/// mei: hbm.c, mei_hbm_enum_clients_req, mei_hbm_prop_req. GUIDs: mei_cl_bus.h and bus-fixup.c write the first three
/// fields with their low bytes first.
#[test]
fn enumeration_lists_both_clients_of_heci2_and_none_of_heci1() {
    let mut driver = Driver::started();
    let enumerated = driver.exchange(&[0x04, 3, 0, 0]);
    assert_eq!((enumerated.len(), &enumerated[..8]), (36, &[0x84, 0, 0, 0, 0b110, 0, 0, 0][..]));
    assert_eq!(enumerated[8..], [0; 28]);
    let mkhi = driver.exchange(&[0x05, MKHI, 0, 0]);
    let guid = [0xa2, 0xaf, 0xc2, 0xe2, 0x17, 0x38, 0x19, 0x4d, 0x9d, 0x95, 0x06, 0xb1, 0x6b, 0x58, 0x8a, 0x5d];
    assert_eq!(mkhi, [&[0x85, MKHI, 0, 0][..], &guid, &[1, 1, 0, 0], &[0, 0x10, 0, 0]].concat());
    assert_eq!(mkhi::PROTOCOL, guid);
    let update = driver.exchange(&[0x05, UPDATE, 0, 0]);
    let guid = [0xa5, 0x0c, 0xd9, 0x87, 0x95, 0x34, 0x59, 0x45, 0x81, 0x05, 0x3f, 0xbf, 0xa3, 0x7b, 0x8b, 0x79];
    assert_eq!(update, [&[0x85, UPDATE, 0, 0][..], &guid, &[1, 1, 0, 0], &[0x0c, 0x10, 0, 0]].concat());
    assert_eq!(update::PROTOCOL, guid);
    driver.window.clients = Clients::new(GSC_CLIENTS);
    let enumerated = driver.exchange(&[0x04, 3, 0, 0]);
    assert_eq!((enumerated[0], &enumerated[1..]), (0x84, &[0; 35][..]));
}

/// mei: mei_hbm_cl_connect_res, mei_hbm_cl_disconnect_res.
#[test]
fn client_accepts_one_connection_until_it_is_disconnected() {
    let mut driver = Driver::connected(MKHI);
    assert_eq!(driver.exchange(&[0x06, MKHI, 8, 0]), [0x86, MKHI, 8, 2], "already connected");
    assert_eq!(driver.exchange(&[0x06, UPDATE, 0, 0]), [0x86, UPDATE, 0, 5], "host address 0");
    assert_eq!(driver.exchange(&[0x06, 3, 8, 0]), [0x86, 3, 8, 1], "no such client");
    assert_eq!(driver.exchange(&[0x10, MKHI, HOST, 1]), [0x90, MKHI, HOST, 5, 1, 0, 0, 0], "no notifications");
    assert_eq!(driver.exchange(&[0x07, MKHI, 8, 0]), [0x87, MKHI, 8, 1], "not this host's client");
    assert_eq!(driver.exchange(&[0x07, MKHI, HOST, 0]), [0x87, MKHI, HOST, 0]);
    assert_eq!(driver.exchange(&[0x07, MKHI, HOST, 0]), [0x87, MKHI, HOST, 1]);
    driver.send(&[0x06, MKHI, 8, 0]);
    assert_eq!(driver.received()[0], (0, vec![0x86, MKHI, 8, 0]));
}

/// mei: bus-fixup.c, mei_fwver and mkhi_fw_ver_block: minor, major, platform, build, hotfix.
#[test]
fn mkhi_reports_the_firmware_version() {
    let mut driver = Driver::connected(MKHI);
    for _ in 0..2 {
        let version = driver.query(MKHI, &[0xff, 0x02, 0, 0]);
        assert_eq!(version, [0xff, 0x82, 0, 0, 0, 0, 101, 0, 0x71, 0x0c, 1, 0]);
    }
}

/// igsc: igsc_ecc_config_get. Other commands of the group, other groups, and wrong lengths have an error in the result.
#[test]
fn mkhi_reports_memory_without_ecc_and_refuses_other_commands() {
    let mut driver = Driver::connected(MKHI);
    let get = [0x31, 0, 0, 0, 9, 0, 0, 0];
    assert_eq!(driver.query(MKHI, &get), [0x31, 0x80, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    let set = [0x31, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(driver.query(MKHI, &set), [0x31, 0x80, 0, 0x85]);
    let errors = [0x31, 0, 0, 0, 3, 0, 0, 0];
    assert_eq!(driver.query(MKHI, &errors), [0x31, 0x80, 0, 0x8d]);
    assert_eq!(driver.query(MKHI, &[0xff, 0x02, 0, 0, 0]), [0xff, 0x82, 0, 0x85]);
    assert_eq!(driver.query(MKHI, &[0xff, 0x03, 0, 0]), [0xff, 0x83, 0, 0x8d]);
    // GFX_SRV_MKHI_GET_IP_VERSION_CMD, partition PSC.
    assert_eq!(driver.query(MKHI, &[0x30, 0x02, 0, 0, 4, 0, 0, 0]), [0x30, 0x82, 0, 0x8d]);
}

/// igsc: gsc_fwu_get_version, gsc_device_hw_config, gsc_fwdata_get_version, gsc_device_subsystem_ids. fwupd:
/// plugins/intel-gsc/tests/intel-gsc-setup.json has these messages of a card of the next generation.
#[test]
fn update_client_reports_versions_and_configuration() {
    let mut driver = Driver::connected(UPDATE);
    let mut query = |request: &[u8]| driver.query(UPDATE, request);
    let header = |command| [command, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let version = |partition, version| [&header(6)[..], &[partition, 0, 0, 0, 8, 0, 0, 0], version].concat();
    assert_eq!(query(&[6, 0, 0, 0, 1, 0, 0, 0]), version(1, b"DG02\x01\0\x71\x0c"));
    assert_eq!(query(&[6, 0, 0, 0, 2, 0, 0, 0]), version(2, &[0x14, 0, 0x24, 4, 0, 0, 0, 0]));
    assert_eq!(query(&[6, 0, 0, 0, 3, 0, 0, 0]), version(3, &[0x14, 0, 0x31, 4, 0, 0, 0, 0]));
    let config = [&header(7)[..], &[1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0], &[0; 36]].concat();
    assert_eq!(query(&[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), config);
    let data = [1, 0, 0, 0, 0x8b, 2, 0, 0, 0x8b, 2, 0, 0, 101, 0, 1, 0];
    assert_eq!(query(&[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), [&header(9)[..], &data, &[0; 36]].concat());
    let subsystem = [&header(10)[..], &[0x86, 0x80, 0x05, 0x49, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(query(&[10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), subsystem);
}

/// igsc: lib/igsc_heci.h, GSC_FWU_STATUS. START and DATA fail, and END and NO_UPDATE, which have no response, are ignored.
#[test]
fn update_client_refuses_updates_and_malformed_queries() {
    let mut driver = Driver::connected(UPDATE);
    let mut start = [0; 48 + 20];
    start[0] = 1;
    let refused = |command, status| [command, 1, 0, 0, status, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(driver.query(UPDATE, &start), refused(1, 0x9e));
    assert_eq!(driver.query(UPDATE, &start[..47]), refused(1, 5));
    let data: [u8; 12] = std::array::from_fn(|n| if n == 0 { 2 } else { 0 });
    assert_eq!(driver.query(UPDATE, &data), refused(2, 0x9e));
    for wrong in
        [&[6, 0, 0, 0, 0, 0, 0, 0], &[6, 0, 0, 0, 4, 0, 0, 0], &[6, 0, 0, 0, 1, 1, 0, 0], &[6, 1, 0, 0, 1, 0, 0, 0]]
    {
        assert_eq!(driver.query(UPDATE, wrong), refused(6, 0x85), "{wrong:?}");
    }
    assert_eq!(driver.query(UPDATE, &[6, 0, 0, 0]), refused(6, 5));
    assert_eq!(driver.query(UPDATE, &[6, 0, 0, 0, 1, 0, 0, 0, 0]), refused(6, 5));
    for unknown in [0, 4, 8, 11, 0xff] {
        assert_eq!(driver.query(UPDATE, &[unknown, 0, 0, 0]), refused(unknown, 0x8d));
    }
    for ignored in [&[3, 0, 0, 0, 0, 0, 0, 0][..], &[5, 0, 0, 0, 0, 0, 0, 0], &[6, 0], &[]] {
        driver.send_packet(UPDATE, ignored, COMPLETE);
        assert_eq!(driver.received(), [(0, flow_control(UPDATE).to_vec())], "{ignored:?}");
    }
    assert_eq!(driver.window.refused(), Refused::default());
}

/// mei: mei_cl_read_start sends the credit before the message as well. Each credit permits one reply.
#[test]
fn each_credit_of_the_host_permits_one_reply() {
    let mut driver = Driver::connected(MKHI);
    for _ in 0..2 {
        driver.send(&flow_control(MKHI));
        assert_eq!(driver.received(), []);
    }
    for _ in 0..2 {
        driver.send_packet(MKHI, &[0xff, 0x02, 0, 0], COMPLETE);
        assert_eq!(driver.received().len(), 2);
    }
    driver.send_packet(MKHI, &[0xff, 0x02, 0, 0], COMPLETE);
    assert_eq!(driver.received(), [], "no credit");
    // Another host client's credit, and that of another client, permit nothing.
    driver.send(&[0x08, MKHI, 8, 0, 0, 0, 0, 0]);
    driver.send(&[0x08, UPDATE, HOST, 0, 0, 0, 0, 0]);
    assert_eq!(driver.received(), []);
    driver.send(&flow_control(MKHI));
    assert_eq!(driver.received().len(), 2);
}

/// mei: mei_cl_write sends a message that exceeds the buffer in packets. A message of the driver has the flag `internal`.
#[test]
fn message_in_packets_is_one_message() {
    let mut driver = Driver::connected(UPDATE);
    driver.send(&flow_control(UPDATE));
    driver.received();
    for packet in [&[6][..], &[], &[0, 0, 0, 1, 0]] {
        driver.send_packet(UPDATE, packet, 0);
        assert_eq!(driver.received(), []);
    }
    driver.send_packet(UPDATE, &[0, 0], COMPLETE | 1 << 30);
    assert_eq!(driver.received()[0].1.len(), 28);
    let mut large = vec![0; 400];
    large[0] = 1;
    for _ in 0..10 {
        driver.send_packet(UPDATE, &large, 0);
        driver.received();
    }
    driver.send(&flow_control(UPDATE));
    driver.received();
    driver.send_packet(UPDATE, &[0; 108], COMPLETE);
    assert_eq!(driver.received()[0].1[4], 0x9e, "4108 bytes, the maximum");
    for _ in 0..10 {
        driver.send_packet(UPDATE, &large, 0);
        driver.received();
    }
    driver.send_packet(UPDATE, &[0; 109], COMPLETE);
    driver.assert_link_down("4109 bytes");
}

#[test]
fn messages_that_the_firmware_has_not_permitted_take_the_link_down() {
    let mut driver = Driver::connected(MKHI);
    driver.send_packet(MKHI, &[0xff, 0x02, 0, 0], COMPLETE);
    driver.received();
    driver.send_packet(MKHI, &[0xff, 0x02, 0, 0], COMPLETE);
    driver.assert_link_down("a second message before the reply to the first");
    for flag in [1 << 28, 1 << 29] {
        let mut driver = Driver::connected(MKHI);
        driver.send_packet(MKHI, &[0xff, 0x02, 0, 0], COMPLETE | flag);
        driver.assert_link_down("extended header or DMA ring");
    }
}

/// Messages to a client that is not connected are ignored: the firmware may have ended the connection.
#[test]
fn messages_without_a_connection_are_counted_and_ignored() {
    let mut driver = Driver::started();
    driver.send_packet(MKHI, &[0xff, 0x02, 0, 0], COMPLETE);
    assert_eq!((driver.received(), driver.window.refused().unconnected), (vec![], 1));
    let mut driver = Driver::connected(MKHI);
    driver.send_packet(UPDATE, &[6, 0, 0, 0, 1, 0, 0, 0], COMPLETE);
    assert_eq!((driver.received(), driver.window.refused().unconnected), (vec![], 1));
}

/// A connection ends with the link, whether the host resets or stops it, and with the reset of the window.
#[test]
fn connections_end_with_the_link() {
    let mut driver = Driver::connected(MKHI);
    driver.link();
    driver.exchange(&[0x01, 0, 2, 2]);
    assert_eq!(driver.exchange(&[0x07, MKHI, HOST, 0]), [0x87, MKHI, HOST, 1]);
    for end in [0x01, 0x02] {
        let mut driver = Driver::connected(MKHI);
        driver.exchange(&[end, 0, 2, 2]);
        assert_eq!(driver.exchange(&[0x07, MKHI, HOST, 0]), [0x87, MKHI, HOST, 1]);
    }
    let mut driver = Driver::connected(MKHI);
    driver.window.reset();
    driver.link();
    assert_eq!(driver.exchange(&[0x01, 0, 2, 2]), [0x81, 1, 2, 2]);
    assert_eq!(driver.exchange(&[0x04, 0, 0, 0])[4], 0b110, "the clients are those of the window");
    assert_eq!(driver.exchange(&[0x07, MKHI, HOST, 0]), [0x87, MKHI, HOST, 1]);
}

/// An action of a host: bus messages about connections, and packets to clients, with addresses that exist and that do not.
#[derive(Clone, Debug)]
enum Action {
    Bus(u8, u8, u8),
    Packet(u32, Vec<u8>, u32),
    Read,
}

proptest! {
    /// Messages in any order cause no panic, leave room for the next reply, and the link can be established afterwards.
    #[test]
    fn hosts_that_violate_flow_control(actions in prop::collection::vec(
        prop_oneof![
            3 => (prop_oneof![Just(1_u8), Just(2), 4..9_u8], 0..4_u8, 0..3_u8).prop_map(|(c, a, h)| Action::Bus(c, a, h)),
            3 => (
                0..0x0304_u32,
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..500),
                    (0..12_u8, 0..4_u8).prop_map(|(id, part)| vec![id, 0, 0, 0, part, 0, 0, 0]),
                    Just(vec![0xff, 2, 0, 0]),
                ],
                prop_oneof![4 => Just(COMPLETE), 1 => Just(0), 1 => (0..16_u32).prop_map(|flags| flags << 28)],
            ).prop_map(|(addresses, bytes, flags)| Action::Packet(addresses, bytes, flags)),
            1 => Just(Action::Read),
        ],
        0..60,
    )) {
        let mut driver = Driver::started();
        for action in actions {
            match action {
                Action::Bus(command, client, host) => driver.send_unchecked(COMPLETE, &[command, client, host, 0, 0, 0, 0, 0]),
                Action::Packet(addresses, bytes, flags) => driver.send_unchecked(addresses | flags, &bytes),
                Action::Read => {
                    while driver.filled() > 0 {
                        driver.window.read(ME_CB_RW);
                    }
                    driver.send_unchecked(COMPLETE, &[0x13, 0, 0, 0]);
                }
            }
            prop_assert!(driver.filled() <= DEPTH);
        }
        driver.window.write(H_CSR, INTERRUPT_STATUS);
        driver.interrupts = 0;
        driver.link();
        prop_assert_eq!(driver.exchange(&[0x01, 0, 2, 2]), [0x81, 1, 2, 2]);
    }
}
