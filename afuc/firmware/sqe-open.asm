; SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
; An open firmware for the emulator, a6xx. It is not for hardware. Written from the documentation of the packets.
[016ee001]
[#jumptbl]
; Load the packet table, which is at the end of the image.
mov $01, CP_SQE_INSTR_BASE
mov $02, 0x2
cwrite $01, [$00 + @REG_READ_ADDR]
cwrite $02, [$00 + @REG_READ_DWORDS]
mov $02, $regdata
mov $03, $regdata
mov $04, #jumptbl << 2
add $02, $02, $04
addhi $03, $03, 0x0
mov $rem, 0x80
cwrite $02, [$00 + @MEM_READ_ADDR]
cwrite $03, [$00 + @MEM_READ_ADDR+0x1]
cwrite $rem, [$00 + @MEM_READ_DWORDS]
cwrite $00, [$00 + @PACKET_TABLE_WRITE_ADDR]
(rep)cwrite $memdata, [$00 + @PACKET_TABLE_WRITE]
cwrite $00, [$00 + @IB_LEVEL]
waitin
mov $01, $data

; Bits 26:8 of the header are the first register.
PKT4:
ushr $02, $01, 0x8
and $02, $02, 0xffff
mov $usraddr, $02
(rep)(xmov3)mov $data, $data
waitin
mov $01, $data

; Packets without an effect in the model.
CP_ME_INIT:
CP_NOP:
CP_SET_MARKER:
CP_SET_MODE:
CP_WAIT_FOR_ME:
(rep)mov $00, $data
waitin
mov $01, $data

CP_WAIT_FOR_IDLE:
mov $addr, |WAIT_FOR_IDLE << 24
waitin
mov $01, $data

CP_WAIT_MEM_WRITES:
mov $addr, |WAIT_MEM_WRITES << 24
waitin
mov $01, $data

; The two low bits of NRT_ADDR are flags.
CP_MEM_WRITE:
mov $02, $data
or $02, $02, 0x3
xor $02, $02, 0x3
mov $addr, |NRT_ADDR << 24
mov $data, $02
mov $data, $data
mov $addr, 0xa204 << 16
(rep)(xmov3)mov $data, $data
waitin
mov $01, $data

; Word 0: register 17:0, count 29:18 (0 is 1); then the address.
CP_REG_TO_MEM:
mov $02, $data
shl $03, $02, 0xe
ushr $03, $03, 0xe
ushr $04, $02, 0x12
and $04, $04, 0xfff
max $04, $04, 0x1
cwrite $03, [$00 + @REG_READ_ADDR]
cwrite $04, [$00 + @REG_READ_DWORDS]
mov $addr, |NRT_ADDR << 24
mov $data, $data
mov $data, $data
mov $addr, 0xa204 << 16
mov $rem, $04
(rep)mov $data, $regdata
waitin
mov $01, $data

; Pairs of register and value.
CP_CONTEXT_REG_BUNCH:
(rep)(xmov3)mov $usraddr, $data
waitin
mov $01, $data

; Groups of header and address.
CP_SET_DRAW_STATE:
(rep)(sds2)cwrite $data, [$00 + @DRAW_STATE_SET_HDR]
waitin
mov $01, $data

; Bits 22:20 of word 0 are the index of the scratch register.
CP_SCRATCH_WRITE:
mov $02, $data
ushr $02, $02, 0x14
and $02, $02, 0x7
add $02, $02, CP_SCRATCH
mov $addr, $02
mov $data, $data
waitin
mov $01, $data

CP_INDIRECT_BUFFER:
cread $02, [$00 + @IB_LEVEL]
brne $02, 0x0, #from_ib1
add $02, $02, 0x1
cwrite $data, [$00 + @IB1_BASE]
cwrite $data, [$00 + @IB1_BASE+0x1]
cwrite $data, [$00 + @IB1_DWORDS]
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data
from_ib1:
cwrite $data, [$00 + @IB2_BASE]
cwrite $data, [$00 + @IB2_BASE+0x1]
cwrite $data, [$00 + @IB2_DWORDS]
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data

IN_IB_END:
cread $02, [$00 + @IB_LEVEL]
sub $02, $02, 0x1
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data
jumptbl:
.jumptbl
