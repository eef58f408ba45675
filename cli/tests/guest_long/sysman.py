# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Prints what Level Zero's sysman reads of the first GPU, one value per line. Structures: zes_api.h of Level Zero 1.32."""

import ctypes
import time
from ctypes import byref, c_char, c_double, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p

ze = ctypes.CDLL("libze_loader.so.1")


def structure(*fields, header=True):
    """Returns a type with these fields, after stype and pNext if `header`."""
    start = [("stype", c_uint32), ("next", c_void_p)] if header else []
    return type("Structure", (ctypes.Structure,), {"_fields_": start + list(fields)})


SUBDEVICE = [("on_subdevice", c_uint8), ("subdevice", c_uint32)]
Device = structure(
    ("type", c_uint32), ("vendor", c_uint32), ("device", c_uint32), ("flags", c_uint32), ("subdevice", c_uint32),
    ("clock", c_uint32), ("allocation", c_uint64), ("contexts", c_uint32), ("priority", c_uint32),
    ("threads", c_uint32), ("simd", c_uint32), ("eus", c_uint32), ("subslices", c_uint32), ("slices", c_uint32),
    ("resolution", c_uint64), ("timestamp_bits", c_uint32), ("kernel_timestamp_bits", c_uint32),
    ("uuid", c_uint8 * 16), ("name", c_char * 256),
)
DeviceProperties = structure(
    ("core", Device), ("subdevices", c_uint32), ("serial", c_char * 64), ("board", c_char * 64),
    ("brand", c_char * 64), ("model", c_char * 64), ("vendor", c_char * 64), ("driver", c_char * 64),
)
Pci = structure(
    ("domain", c_uint32), ("bus", c_uint32), ("device", c_uint32), ("function", c_uint32),
    ("generation", c_int32), ("width", c_int32), ("bandwidth", c_int64), ("counters", c_uint8 * 3),
)
Energy = structure(("energy", c_uint64), ("time", c_uint64), header=False)
Limit = structure(("enabled", c_uint8), ("power", c_int32), ("interval", c_int32), header=False)
Frequency = structure(
    ("type", c_uint32), *SUBDEVICE, ("control", c_uint8), ("events", c_uint8), ("min", c_double), ("max", c_double)
)
FrequencyState = structure(
    ("voltage", c_double), ("request", c_double), ("tdp", c_double), ("efficient", c_double), ("actual", c_double),
    ("throttle", c_uint32),
)
MemoryState = structure(("health", c_uint32), ("free", c_uint64), ("size", c_uint64))
Engine = structure(("type", c_uint32), *SUBDEVICE)
Activity = structure(("active", c_uint64), ("time", c_uint64), header=False)
Temperature = structure(("type", c_uint32), *SUBDEVICE, ("max", c_double), ("rest", c_uint8 * 32))
Firmware = structure(*SUBDEVICE, ("control", c_uint8), ("name", c_char * 64), ("version", c_char * 64))


def call(name, *arguments):
    """Calls a function of sysman. Prints its result code and returns False if it fails."""
    result = getattr(ze, name)(*arguments) & 0xFFFFFFFF
    if result:
        print(f"sysman {name} fails with 0x{result:x}")
    return result == 0


def handles(name, *parents):
    """Returns all handles that an enumerating function has."""
    count = c_uint32()
    if not call(name, *parents, byref(count), None):
        return []
    found = (c_void_p * count.value)()
    call(name, *parents, byref(count), found)
    return [c_void_p(handle) for handle in found]


def read(name, handle, kind, stype=0):
    """Returns the structure that a function fills, or None."""
    value = kind(stype) if stype else kind()
    return value if call(name, handle, byref(value)) else None


call("zesInit", 0)
device = handles("zesDeviceGet", handles("zesDriverGet")[0])[0]
if properties := read("zesDeviceGetProperties", device, DeviceProperties, 0x1):
    core = properties.core
    print(f"sysman name {properties.model.decode()}; {core.name.decode()}")
    print(f"sysman device {core.vendor:04x}:{core.device:04x}")
    print(f"sysman serial {properties.serial.decode()}, driver {properties.driver.decode()}")
if pci := read("zesDevicePciGetProperties", device, Pci, 0x2):
    print(f"sysman pci {pci.bus:02x}:{pci.device:02x}.{pci.function} generation {pci.generation} width {pci.width}")
for domain in handles("zesDeviceEnumPowerDomains", device):
    sustained = Limit()
    if call("zesPowerGetLimits", domain, byref(sustained), None, None):
        print(f"sysman power limit {sustained.power} mW, enabled {sustained.enabled}")
    before = read("zesPowerGetEnergyCounter", domain, Energy)
    time.sleep(2)
    after = read("zesPowerGetEnergyCounter", domain, Energy)
    if before and after and after.time != before.time:
        print(f"sysman power {(after.energy - before.energy) / (after.time - before.time):.1f} W")
for domain in handles("zesDeviceEnumFrequencyDomains", device):
    limits = read("zesFrequencyGetProperties", domain, Frequency, 0x9)
    state = read("zesFrequencyGetState", domain, FrequencyState, 0x1B)
    if limits and state:
        print(f"sysman frequency {limits.type} {limits.min:.0f} to {limits.max:.0f} MHz, control {limits.control}")
        print(f"sysman frequency {limits.type} actual {state.actual:.0f}, efficient {state.efficient:.0f}, throttled {state.throttle}")
for module in handles("zesDeviceEnumMemoryModules", device):
    if state := read("zesMemoryGetState", module, MemoryState, 0x1E):
        print(f"sysman memory {state.size >> 20} MiB, free {state.free >> 20} MiB")
engines = {}
for group in handles("zesDeviceEnumEngineGroups", device):
    properties = read("zesEngineGetProperties", group, Engine, 0x5)
    activity = read("zesEngineGetActivity", group, Activity)
    if properties and activity:
        engines[properties.type] = engines.get(properties.type, 0) + 1
print("sysman engine groups " + ", ".join(f"{kind}: {count}" for kind, count in sorted(engines.items())))
for sensor in handles("zesDeviceEnumTemperatureSensors", device):
    properties, degrees = read("zesTemperatureGetProperties", sensor, Temperature, 0x14), c_double()
    if properties and call("zesTemperatureGetState", sensor, byref(degrees)):
        print(f"sysman temperature {properties.type} {degrees.value:.0f} C")
for firmware in handles("zesDeviceEnumFirmwares", device):
    if properties := read("zesFirmwareGetProperties", firmware, Firmware, 0x8):
        print(f"sysman firmware {properties.name.decode()} {properties.version.decode()}")
