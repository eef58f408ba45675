/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Enumerates the bus and assigns addresses, as firmware and operating system do. No BAR has an address initially. */

#include "pci.h"
#include "boot_info.h"
#include "console.h"
#include "cpu.h"
#include "mailbox.h"
#include "mmio.h"

#define BRIDGE_BUSES 0x18
#define BRIDGE_MEMORY 0x20
#define BRIDGE_PREFETCHABLE 0x24
#define BRIDGE_PREFETCHABLE_BASE_HIGH 0x28
#define BRIDGE_PREFETCHABLE_LIMIT_HIGH 0x2c

#define BRIDGE_CONTROL 0x3e
#define SECONDARY_BUS_RESET 0x40

#define CARD_BUS 1
#define MIB (1ull << 20)

struct function pf, vfs[65];
static struct function host_bridge, root_port;

/* Next free address for BARs. */
static uint64_t room;

static struct function function_at(uint16_t routing_id)
{
    return (struct function){ .routing_id = routing_id, .config = boot->ecam + ((uint64_t)routing_id << 12) };
}

struct mailbox_accesses *accesses_of(const struct function *function)
{
    unsigned number = function->routing_id - pf.routing_id;
    return &mailbox.accesses[number < 7 ? number : 7];
}

uint64_t counted_read(const struct function *function)
{
    __atomic_fetch_add(&accesses_of(function)->reads, 1, __ATOMIC_RELAXED);
    return function->registers.address;
}

uint32_t config_read32(const struct function *function, uint16_t at)
{
    return read32(function->config + at);
}

uint16_t config_read16(const struct function *function, uint16_t at)
{
    return read16(function->config + at);
}

void config_write32(const struct function *function, uint16_t at, uint32_t value)
{
    write32(function->config + at, value);
}

void config_write16(const struct function *function, uint16_t at, uint16_t value)
{
    write16(function->config + at, value);
}

/* Walks both capability lists. Fails if a list is cyclic or contains an invalid offset. */
static void find_capabilities(struct function *function, const char *name)
{
    if (config_read16(function, 0x06) & 0x10) {
        unsigned steps = 0;
        for (uint16_t at = read8(function->config + 0x34); at; at = read8(function->config + at + 1)) {
            if (at < 0x40 || at & 3 || ++steps > 48)
                fail("%s: capability list leads to %x after %u steps", name, (uint64_t)at, (uint64_t)steps);
            switch (read8(function->config + at)) {
            case CAP_EXPRESS:
                function->express = at;
                break;
            case CAP_MSI:
                function->msi = at;
                break;
            case CAP_POWER:
                function->power = at;
                break;
            case CAP_MSIX:
                fail("%s: MSI-X at %x: the driver would use memory-based interrupts", name, (uint64_t)at);
            }
        }
    }
    unsigned steps = 0;
    uint32_t header;
    for (uint16_t at = 0x100; at; at = header >> 20) {
        header = config_read32(function, at);
        if (at < 0x100 || at & 3 || ++steps > 64)
            fail("%s: extended capabilities lead to %x after %u steps", name, (uint64_t)at, (uint64_t)steps);
        switch (header & 0xffff) {
        case EXT_ARI:
            function->ari = at;
            break;
        case EXT_SRIOV:
            function->sriov = at;
            break;
        case EXT_VF_REBAR:
            function->vf_rebar = at;
            break;
        }
        if (header == 0 || header == 0xffffffff)
            break;
    }
}

/* Sizes the 64-bit BAR at `at` as operating systems do, and restores its value. */
static struct bar size_bar(const struct function *function, uint16_t at)
{
    uint32_t low = config_read32(function, at), high = config_read32(function, at + 4);
    config_write32(function, at, ~0u);
    config_write32(function, at + 4, ~0u);
    uint64_t seen = config_read32(function, at) | (uint64_t)config_read32(function, at + 4) << 32;
    config_write32(function, at, low);
    config_write32(function, at + 4, high);
    if ((seen & 0xf) != 0xc)
        fail("BAR at %x of %x: expected 64-bit prefetchable memory (type 0xc), seen %x", (uint64_t)at,
             (uint64_t)function->routing_id, seen);
    uint64_t size = -(seen & ~0xfull);
    if (size & (size - 1))
        fail("BAR at %x: size %x is not a power of two", (uint64_t)at, size);
    return (struct bar){ size, 0 };
}

static void find_bridges(void)
{
    host_bridge = function_at(0);
    expect("class of 00:00.0, a host bridge", 0x0600, config_read32(&host_bridge, 0x08) >> 16);
    root_port = function_at(boot->root_port_devfn);
    find_capabilities(&root_port, "root port");
    expect("class of the root port, a PCI bridge", 0x0604, config_read32(&root_port, 0x08) >> 16);
    expect("header type of the root port", 1, read8(root_port.config + 0x0e) & 0x7f);
    if (!root_port.express)
        fail("the root port has no PCI Express capability");
    expect("PCI Express port type", 4, config_read16(&root_port, root_port.express + EXPRESS_CAPS) >> 4 & 0xf);
    step("bridges: host bridge %x, root port %x at devfn %x", (uint64_t)config_read32(&host_bridge, 0),
         (uint64_t)config_read32(&root_port, 0), (uint64_t)root_port.routing_id);
    unsigned others = 0;
    for (uint16_t device = 0; device < 32; device++) {
        struct function other = function_at(device << 3);
        uint32_t id = config_read32(&other, 0);
        if (other.routing_id != 0 && other.routing_id != root_port.routing_id)
            others += id != 0xffffffff;
    }
    step("bus 0: %u other devices; absent devices read all ones", (uint64_t)others);
}

void number_buses(void)
{
    struct function nobody = function_at(CARD_BUS << 8);
    config_write16(&root_port, BRIDGE_CONTROL, 0);
    config_write32(&root_port, BRIDGE_BUSES, 0);
    expect("bus 1 before the root port has bus numbers", 0xffffffff, config_read32(&nobody, 0));
    config_write32(&root_port, BRIDGE_BUSES, CARD_BUS << 16 | CARD_BUS << 8);
    expect("bus numbers of the root port", CARD_BUS << 16 | CARD_BUS << 8,
           config_read32(&root_port, BRIDGE_BUSES) & 0xffffff);
    uint32_t can = config_read32(&root_port, root_port.express + EXPRESS_DEVICE_CAPS2);
    if (!(can & ARI_FORWARDING))
        fail("the root port does not forward ARI: device capabilities 2 are %x", (uint64_t)can);
    uint16_t control = root_port.express + EXPRESS_DEVICE_CONTROL2;
    config_write16(&root_port, control, config_read16(&root_port, control) | ARI_FORWARDING);
    expect("ARI forwarding", ARI_FORWARDING, config_read16(&root_port, control) & ARI_FORWARDING);
    step("bus numbers 0, 1, 1; ARI forwarding is on");
}

static void look_at_sriov(void)
{
    uint16_t at = pf.sriov;
    uint16_t total = config_read16(&pf, at + SRIOV_TOTAL_VFS);
    expect("InitialVFs and TotalVFs", total, config_read16(&pf, at + SRIOV_INITIAL_VFS));
    if (total < 2)
        fail("TotalVFs is %u: this guest needs 2", (uint64_t)total);
    expect("VF device ID", 0x56c0, config_read16(&pf, at + SRIOV_DEVICE));
    expect("first VF offset", 1, config_read16(&pf, at + SRIOV_OFFSET));
    expect("VF stride", 1, config_read16(&pf, at + SRIOV_STRIDE));
    expect("page of 4 KiB", 1, config_read32(&pf, at + SRIOV_PAGE_SIZE));
    expect("initial VF Enable", 0, config_read16(&pf, at + SRIOV_CONTROL) & VF_ENABLE);
    pf.vf_registers = size_bar(&pf, at + SRIOV_BAR);
    pf.vf_local = size_bar(&pf, at + SRIOV_BAR + 8);
    expect("VF BAR 0", 16 * MIB, pf.vf_registers.size);
    struct function vf = function_at(pf.routing_id + 1);
    expect("a VF before VF Enable", 0xffffffff, config_read32(&vf, 0));
    step("SR-IOV at %x: %u VFs, BARs of %u and %u MiB each", (uint64_t)at, (uint64_t)total,
         pf.vf_registers.size / MIB, pf.vf_local.size / MIB);
}

/* Selects the smallest and the largest size of VF Resizable BAR, checks their effect and restores the size. */
static void look_at_vf_rebar(void)
{
    uint16_t at = pf.vf_rebar;
    uint32_t sizes = config_read32(&pf, at + 4) >> 4, control = config_read32(&pf, at + 8);
    expect("BAR index of VF Resizable BAR", 2, control & 7);
    expect("number of resizable VF BARs", 1, control >> 5 & 7);
    unsigned first = __builtin_ctz(sizes), last = 31 - __builtin_clz(sizes);
    unsigned both[2] = { first, last };
    for (int n = 0; n < 2; n++) {
        config_write32(&pf, at + 8, (control & ~0x3f00u) | both[n] << 8);
        expect("VF BAR 2 resized", MIB << both[n], size_bar(&pf, pf.sriov + SRIOV_BAR + 8).size);
    }
    config_write32(&pf, at + 8, control);
    expect("VF BAR 2 with its original size", pf.vf_local.size, size_bar(&pf, pf.sriov + SRIOV_BAR + 8).size);
    step("VF Resizable BAR at %x: %u to %u MiB", (uint64_t)at, 1ull << first, 1ull << last);
}

static void find_card(void)
{
    pf = function_at(CARD_BUS << 8);
    expect("01:00.0, the card's PF", 0x56c08086, config_read32(&pf, 0));
    expect("class and revision", 0x03800008, config_read32(&pf, 0x08));
    expect("header type", 0, read8(pf.config + 0x0e) & 0x7f);
    expect("GGC: 8 MiB of GGTT entries", 0xc0, config_read16(&pf, 0x50) & 0xc0);
    find_capabilities(&pf, "PF");
    if (!pf.express || !pf.msi || !pf.power || !pf.ari || !pf.sriov || !pf.vf_rebar)
        fail("PF: a capability is missing: Express %x, MSI %x, power %x, ARI %x, SR-IOV %x, VF ReBAR %x",
             (uint64_t)pf.express, (uint64_t)pf.msi, (uint64_t)pf.power, (uint64_t)pf.ari, (uint64_t)pf.sriov,
             (uint64_t)pf.vf_rebar);
    if (!(config_read32(&pf, pf.express + EXPRESS_DEVICE_CAPS) & FLR_CAPABLE))
        fail("PF: no Function Level Reset");
    step("PF at 01:00.0: Express %x, MSI %x, power %x, ARI %x", (uint64_t)pf.express, (uint64_t)pf.msi,
         (uint64_t)pf.power, (uint64_t)pf.ari);
    pf.registers = size_bar(&pf, 0x10);
    pf.local = size_bar(&pf, 0x18);
    expect("BAR 0, GTTMMADR", 16 * MIB, pf.registers.size);
    config_write32(&pf, 0x20, ~0u);
    config_write32(&pf, 0x30, ~0u);
    expect("BAR 4", 0, config_read32(&pf, 0x20));
    expect("expansion ROM", 0, config_read32(&pf, 0x30));
    step("BARs: GTTMMADR %u MiB, LMEM %u MiB", pf.registers.size / MIB, pf.local.size / MIB);
    look_at_sriov();
    look_at_vf_rebar();
    unsigned others = 0;
    for (uint16_t devfn = 1; devfn < 256; devfn++) {
        struct function other = function_at(CARD_BUS << 8 | devfn);
        others += config_read32(&other, 0) != 0xffffffff;
    }
    expect("other functions on the card's bus", 0, others);
}

void enumerate(void)
{
    find_bridges();
    number_buses();
    find_card();
}

static void place_bar(const struct function *function, uint16_t at, struct bar *bar, uint64_t count)
{
    room = (room + bar->size - 1) & -bar->size;
    bar->address = room;
    room += bar->size * count;
    if (room > boot->mmio64 + boot->mmio64_size)
        fail("no space for BARs below %x", boot->mmio64 + boot->mmio64_size);
    config_write32(function, at, bar->address);
    config_write32(function, at + 4, bar->address >> 32);
    uint64_t seen = config_read32(function, at) | (uint64_t)config_read32(function, at + 4) << 32;
    expect("a BAR's address", bar->address | 0xc, seen);
    map(bar->address, bar->size * count);
}

void place(void)
{
    room = boot->mmio64;
    uint16_t total = config_read16(&pf, pf.sriov + SRIOV_TOTAL_VFS);
    place_bar(&pf, 0x18, &pf.local, 1);
    place_bar(&pf, pf.sriov + SRIOV_BAR + 8, &pf.vf_local, total);
    place_bar(&pf, 0x10, &pf.registers, 1);
    place_bar(&pf, pf.sriov + SRIOV_BAR, &pf.vf_registers, total);
    uint64_t last = ((room + MIB - 1) & -MIB) - 1;
    config_write32(&root_port, BRIDGE_MEMORY, 0x0000fff0);      /* disabled: the limit is below the base */
    config_write32(&root_port, BRIDGE_PREFETCHABLE, (last >> 16 & 0xfff0) << 16 | (boot->mmio64 >> 16 & 0xfff0));
    config_write32(&root_port, BRIDGE_PREFETCHABLE_BASE_HIGH, boot->mmio64 >> 32);
    config_write32(&root_port, BRIDGE_PREFETCHABLE_LIMIT_HIGH, last >> 32);
    config_write16(&root_port, COMMAND, COMMAND_MEMORY | COMMAND_MASTER);
    expect("a register before memory decoding is enabled", 0xffffffff, read32(pf.registers.address + 0x101010));
    config_write16(&pf, COMMAND, COMMAND_MEMORY | COMMAND_MASTER);
    uint32_t seen = read32(counted_read(&pf) + 0x101010);
    if (!(seen & 0x80) || seen == 0xffffffff)
        fail("GU_CNTL: expected LMEM_INIT (0x80), seen %x", (uint64_t)seen);
    step("placed: GTTMMADR at %x, LMEM at %x, VFs' at %x and %x; memory decoding and bus mastering are on",
         pf.registers.address, pf.local.address, pf.vf_registers.address, pf.vf_local.address);
}

void enable_msi(const struct function *function, uint8_t vector)
{
    uint64_t address = msi_address();
    config_write32(function, function->msi + 0x04, address);
    config_write32(function, function->msi + 0x08, address >> 32);
    config_write16(function, function->msi + 0x0c, vector);
    config_write16(function, function->msi + 0x02, 1);
    expect("MSI Enable", 1, config_read16(function, function->msi + 0x02) & 1);
}

static void wait_milliseconds(uint64_t milliseconds)
{
    for (uint64_t start = tsc(); tsc() - start < microseconds(1000 * milliseconds);)
        pause();
}

void function_level_reset(const struct function *function)
{
    uint16_t control = function->express + EXPRESS_DEVICE_CONTROL;
    config_write16(function, control, config_read16(function, control) | INITIATE_FLR);
    wait_milliseconds(100);     /* PCIe 6.6.2 */
    expect("Initiate FLR when read", 0, config_read16(function, control) & INITIATE_FLR);
}

void secondary_bus_reset(void)
{
    config_write16(&root_port, BRIDGE_CONTROL, SECONDARY_BUS_RESET);
    expect("the PF while its bus is in reset", 0xffffffff, config_read32(&pf, 0));
    wait_milliseconds(2);
    config_write16(&root_port, BRIDGE_CONTROL, 0);
    wait_milliseconds(100);     /* PCIe 6.6.1 */
    expect("the PF after its bus was in reset", 0x56c08086, config_read32(&pf, 0));
}

void enable_vfs(uint16_t count)
{
    config_write16(&pf, pf.sriov + SRIOV_NUM_VFS, count);
    config_write16(&pf, pf.sriov + SRIOV_CONTROL, VF_ARI);
    config_write16(&pf, pf.sriov + SRIOV_CONTROL, VF_ARI | VF_ENABLE | VF_MEMORY);
    expect("SR-IOV Control", VF_ARI | VF_ENABLE | VF_MEMORY, config_read16(&pf, pf.sriov + SRIOV_CONTROL));
    for (uint16_t n = 1; n <= count; n++) {
        struct function *vf = &vfs[n];
        *vf = function_at(pf.routing_id + n);
        expect("IDs in a VF's own configuration space", 0xffffffff, config_read32(vf, 0));
        find_capabilities(vf, "VF");
        if (!vf->express || !vf->msi || vf->power || vf->sriov)
            fail("VF %u: Express %x, MSI %x, power %x, SR-IOV %x", (uint64_t)n, (uint64_t)vf->express,
                 (uint64_t)vf->msi, (uint64_t)vf->power, (uint64_t)vf->sriov);
        expect("a VF's own BAR register", 0, config_read32(vf, 0x10));
        vf->registers = (struct bar){ pf.vf_registers.size, pf.vf_registers.address + (n - 1) * pf.vf_registers.size };
        vf->local = (struct bar){ pf.vf_local.size, pf.vf_local.address + (n - 1) * pf.vf_local.size };
        config_write16(vf, COMMAND, COMMAND_MASTER);
    }
    vfs[count + 1].config = 0;
    struct function beyond = function_at(pf.routing_id + count + 1);
    expect("the function after the last VF", 0xffffffff, config_read32(&beyond, 4));
    step("%u VFs enabled: configuration spaces, capabilities, BARs by the PF's registers", (uint64_t)count);
}

void disable_vfs(void)
{
    config_write16(&pf, pf.sriov + SRIOV_CONTROL, 0);
    config_write16(&pf, pf.sriov + SRIOV_NUM_VFS, 0);
    for (uint16_t n = 1; vfs[n].config; n++) {
        expect("a VF's configuration space after VF Enable was cleared", 0xffffffff, config_read32(&vfs[n], 4));
        expect("a VF's register after VF Enable was cleared", 0xffffffff, read32(vfs[n].registers.address + 0x1901f8));
    }
    step("VFs disabled: neither configuration space nor BARs respond");
}
