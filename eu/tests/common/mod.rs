// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What several tests need: zebin files of own kernels, and launches of them.
#![allow(dead_code, reason = "each test file uses a part")]

use arctic_eu::capture::{
    Capture, CapturedEnd, CapturedLaunch, Content, EndReason, Origin, PAGE_BYTES, Page, PageName,
};
use arctic_eu::exec::payload::{Dispatch, Header, LocalIds};
use arctic_eu::launch::{Argument, Launch, Range, Report, Settings};
use arctic_eu::text::assemble;
use arctic_eu::zebin::Zebin;

/// A zebin with kernels as pairs of name and code, and their description.
pub fn zebin(kernels: &[(&str, Vec<u8>)], info: &str) -> Vec<u8> {
    let mut sections: Vec<(String, u32, Vec<u8>)> = vec![(String::new(), 0, Vec::new())];
    for (name, code) in kernels {
        sections.push((format!(".text.{name}"), 1, code.clone()));
    }
    sections.push((".ze_info".into(), 0xff00_0011, info.as_bytes().to_vec()));
    let mut names = vec![0u8];
    let mut offsets = Vec::new();
    sections.push((".strtab".into(), 3, Vec::new()));
    for (name, ..) in &sections {
        offsets.push(names.len() as u32);
        names.extend(name.as_bytes());
        names.push(0);
    }
    let count = sections.len();
    sections[count - 1].2 = names;
    let mut body: Vec<u8> = Vec::new();
    let mut headers: Vec<u8> = Vec::new();
    for ((_, kind, bytes), name) in sections.iter().zip(&offsets) {
        let offset = 64 + body.len() as u64;
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for value in [0, 0, offset, bytes.len() as u64] {
            headers.extend(value.to_le_bytes());
        }
        headers.extend([0; 24]);
        body.extend(bytes);
    }
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    file[0x28..0x30].copy_from_slice(&(64 + body.len() as u64).to_le_bytes());
    file[0x3c..0x3e].copy_from_slice(&(count as u16).to_le_bytes());
    file[0x3e..0x40].copy_from_slice(&(count as u16 - 1).to_le_bytes());
    file.extend(body);
    file.extend(headers);
    file
}

/// Code of a text of this test.
pub fn code(text: &str) -> Vec<u8> {
    assemble(text).unwrap_or_else(|errors| panic!("{}", errors.render(text, "test")))
}

/// The end of a thread.
pub const END: &str = "(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}\n";

/// Description of a kernel `k` with local ids in registers (X, Y, Z), inline data and these pointers: the first argument `a`
/// at offset 24 of the payload, 8 bytes each.
pub fn info(simd: u32, pointers: &[&str], more: &str) -> String {
    let ids = (simd * 2).next_multiple_of(32) * 3;
    let mut text = format!(
        "---\nversion: '1.73'\nkernels:\n  - name: k\n    execution_env:\n      grf_count: 128\n      \
         inline_data_payload_size: 32\n      offset_to_skip_per_thread_data_load: 0\n      simd_size: {simd}\n{more}    \
         payload_arguments:\n      - arg_type: global_id_offset\n        offset: 0\n        size: 12\n      - arg_type: \
         local_size\n        offset: 12\n        size: 12\n"
    );
    for (index, _) in pointers.iter().enumerate() {
        let offset = 24 + index * 8;
        text += &format!(
            "      - arg_type: arg_bypointer\n        offset: {offset}\n        size: 8\n        arg_index: {index}\n        \
             addrmode: stateless\n        addrspace: global\n        access_type: readwrite\n"
        );
    }
    text += &format!(
        "    per_thread_payload_arguments:\n      - arg_type: local_id\n        offset: 0\n        size: {ids}\n"
    );
    text += "kernels_misc_info:\n  - name: k\n    args_info:\n";
    for (index, name) in pointers.iter().enumerate() {
        text += &format!("      - index: {index}\n        name: {name}\n        type_name: 'int*;8'\n");
    }
    text
}

/// Settings with local ids in registers.
pub fn settings() -> Settings {
    Settings { local_ids: arctic_eu::launch::LocalIds::Hardware, limit: 1_000_000, ..Settings::default() }
}

/// Runs a kernel `k` with one buffer `a`, and returns the report and the buffer.
pub fn run(text: &str, simd: u32, more: &str, global: u32, local: u32, buffer: Vec<u8>) -> (Report, Vec<u8>) {
    let file = zebin(&[("k", code(text))], &info(simd, &["a"], more));
    let zebin = Zebin::parse(file).unwrap();
    let range = Range { global: [global, 1, 1], local: [local, 1, 1], offset: [0; 3] };
    let launch = Launch::new(&zebin, None, range, &[("a".into(), Argument::Buffer(buffer))], settings()).unwrap();
    let report = launch.run(&|_| {});
    let bytes = launch.buffer("a").unwrap();
    (report, bytes)
}

/// Little-endian dwords.
pub fn dwords(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|dword| u32::from_le_bytes(*dword)).collect()
}

/// Code of hexadecimal dwords.
pub fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().flat_map(|word| u32::from_str_radix(word, 16).unwrap().to_le_bytes()).collect()
}

/// Address of the code of [`capture`], and of the page that its kernel stores to.
pub const CAPTURED_CODE: u64 = 0x8000_0001_0000;
/// See [`CAPTURED_CODE`].
pub const CAPTURED_DATA: u64 = 0x2_0000;

/// A captured walker of SIMD16, with groups of one thread: local ids in r1 to r3, and the address of [`CAPTURED_DATA`] in r4.6. The
/// card has left these dwords in the page, which was 0.
pub fn capture(code: &[u8], groups: u32, left: &[u32]) -> Capture {
    let page = |bytes: &[u8]| {
        let mut page = Box::new([0; PAGE_BYTES]);
        page[..bytes.len()].copy_from_slice(bytes);
        Content::of(page)
    };
    let mut inline = [0; 32];
    inline[24..].copy_from_slice(&CAPTURED_DATA.to_le_bytes());
    let left: Vec<u8> = left.iter().flat_map(|dword| dword.to_le_bytes()).collect();
    let name = |address| PageName { address, compressed: false };
    let code_page = Page::Memory { before: page(code), after: None };
    let data_page = Page::Memory { before: Content::Zeros, after: Some(page(&left)) };
    Capture {
        origin: Origin { function: 2, engine: "ccs0".into(), number: 12 },
        commands: vec![0x6904_0302],
        walker: vec![0x7208_0025; 39],
        launch: CapturedLaunch {
            dispatch: Dispatch {
                simd: 16,
                threads: 1,
                last_mask: 0xffff,
                header: Header::default(),
                ids: Some(LocalIds { local: [16, 1, 1], order: [0, 1, 2], emitted: [true; 3], registers: 3 }),
                inline: Some(inline),
                cr0: [0; 2],
                exceptions: true,
            },
            registers: 128,
            slm: 1024,
            instruction_base: CAPTURED_CODE - 0x1000,
            kernel: 0x1000,
            system_routine: None,
            code_limit: 1 << 20,
            general_base: 0,
            first: Some([0; 3]),
            start: [0; 3],
            end: [groups, 1, 1],
            order: [0, 1, 2],
        },
        surfaces: Vec::new(),
        samplers: Vec::new(),
        pages: [(name(CAPTURED_CODE), code_page), (name(CAPTURED_DATA), data_page)].into_iter().collect(),
        end: CapturedEnd { groups: groups.into(), instructions: 0, reason: EndReason::Complete },
    }
}
