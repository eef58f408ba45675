; SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
; An open firmware for the emulator, a6xx and a7xx. It is not for hardware. Written from the documentation of the packets.
;
; Registers with a meaning between packets:
;   $10       address of the preemption record while the second ring is executed; $0e to $11 are used by IN_PREEMPT only
;   $13       predicate, bit 0
;   $14       bits 2:0 render mode: binning, GMEM, system memory; b8 and b9 CP_SKIP_IB2_ENABLE_LOCAL and _GLOBAL;
;             b16 protected mode; b31 the packets are those of the second ring
;   $15       level from which draw-state groups were entered
;   $16       draw-state groups that the current draw still has to execute
.if a7xx
[01730001]
.equ SDS_LEVEL, 0x4
.else
[016ee001]
.equ SDS_LEVEL, 0x3
.endif
[#jumptbl]
; Load the packet table, which is at the end of the section.
mov $01, CP_SQE_INSTR_BASE
mov $02, 0x2
cwrite $01, [$00 + @REG_READ_ADDR]
cwrite $02, [$00 + @REG_READ_DWORDS]
mov $02, $regdata
mov $03, $regdata
.if a7xx
call #load_table
nop
; BV's section follows the table, and LPAC's that of BV. Each clears its bit of THREAD_SYNC when it has started.
mov $04, 0x6
cwrite $04, [$00 + @THREAD_SYNC]
add $02, $02, 0x200
addhi $03, $03, 0x0
cwrite $02, [$00 + @BV_INSTR_BASE]
cwrite $03, [$00 + @BV_INSTR_BASE+0x1]
cwrite $06, [$00 + @BV_CNTL]
call #find_table
nop
add $02, $02, 0x200
addhi $03, $03, 0x0
cwrite $02, [$00 + @LPAC_INSTR_BASE]
cwrite $03, [$00 + @LPAC_INSTR_BASE+0x1]
cwrite $06, [$00 + @LPAC_CNTL]
wait_start:
cread $04, [$00 + @THREAD_SYNC]
brne $04, 0x0, #wait_start
nop
jump #started
nop
; $02 and $03 are the address of a section, and then that of its packet table: word 1 is a NOP with the offset in words.
find_table:
.endif
add $04, $02, 0x4
addhi $05, $03, 0x0
mov $06, 0x1
cwrite $04, [$00 + @MEM_READ_ADDR]
cwrite $05, [$00 + @MEM_READ_ADDR+0x1]
cwrite $06, [$00 + @MEM_READ_DWORDS]
mov $04, $memdata
shl $04, $04, 0x8
ushr $04, $04, 0x6
.if a7xx
add $02, $02, $04
ret
addhi $03, $03, 0x0
load_table:
call #find_table
nop
.else
add $02, $02, $04
addhi $03, $03, 0x0
.endif
mov $rem, 0x80
cwrite $02, [$00 + @MEM_READ_ADDR]
cwrite $03, [$00 + @MEM_READ_ADDR+0x1]
cwrite $rem, [$00 + @MEM_READ_DWORDS]
cwrite $00, [$00 + @PACKET_TABLE_WRITE_ADDR]
(rep)cwrite $memdata, [$00 + @PACKET_TABLE_WRITE]
.if a7xx
ret
nop
started:
.endif
cwrite $00, [$00 + @IB_LEVEL]
; System memory mode, protected.
mov $14, 0x4
mov $02, 0x1 << 16
or $14, $14, $02
mov $02, 0x1
cwrite $02, [$00 + @PREEMPT_ENABLE]
waitin
mov $01, $data

; A packet of a form that this firmware does not have: a zero word is illegal.
unsupported:
[00000000]

; Bits 26:8 of the header are the first register.
PKT4:
ushr $02, $01, 0x8
and $02, $02, 0xffff
brne $14, b16, #unprotected
nop
mov $usraddr, $02
(rep)(xmov3)mov $data, $data
waitin
mov $01, $data
unprotected:
mov $addr, $02
(rep)(xmov3)mov $data, $data
waitin
mov $01, $data

; Packets without an effect in the model, which has no 3D engine and no second security state.
CP_BLIT:
CP_CONTEXT_UPDATE:
CP_EVENT_WRITE_CFL:
CP_EVENT_WRITE_SHD:
CP_EVENT_WRITE_ZPD:
CP_EXEC_CS:
CP_EXEC_CS_INDIRECT:
CP_INTERRUPT:
CP_LOAD_STATE6:
CP_LOAD_STATE6_FRAG:
CP_LOAD_STATE6_GEOM:
CP_ME_INIT:
CP_NOP:
CP_RUN_OPENCL:
CP_SET_AMBLE:
CP_SET_BIN_DATA5:
CP_SET_BIN_DATA5_OFFSET:
CP_SET_MODE:
CP_SET_PSEUDO_REG:
CP_SET_SECURE_MODE:
CP_SET_SUBDRAW_SIZE:
CP_SET_VISIBILITY_OVERRIDE:
CP_SMMU_TABLE_UPDATE:
CP_WAIT_FOR_ME:
.if a7xx
CP_RESET_CONTEXT_STATE:
.endif
ignore:
(rep)mov $00, $data
waitin
mov $01, $data

.if a7xx
; Bits 1:0 are the processors that execute the packets which follow: 1 BR, 2 BV, 3 both. With b31 BR and BV wait for each
; other first; the control registers 0x210 and 0x211 count how often each has come. A processor that does not execute
; packets reads all of them, and has a packet table that ignores them. It is not preempted then.
CP_THREAD_CONTROL:
mov $02, $data
brne $02, b31, #no_barrier
cread $03, [$00 + 0x210]
add $03, $03, 0x1
cwrite $03, [$00 + 0x210]
barrier:
cread $04, [$00 + 0x211]
sub $04, $04, $03
breq $04, b31, #barrier
nop
no_barrier:
brne $02, b0, #leave
mov $01, CP_SQE_INSTR_BASE
mov $02, 0x2
cwrite $01, [$00 + @REG_READ_ADDR]
cwrite $02, [$00 + @REG_READ_DWORDS]
mov $02, $regdata
mov $03, $regdata
call #load_table
nop
; Not before the table has IN_PREEMPT.
cwrite $06, [$00 + @PREEMPT_ENABLE]
waitin
mov $01, $data
leave:
cwrite $00, [$00 + @PREEMPT_ENABLE]
mov $rem, 0x80
cwrite $00, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #ignore
(rep)cwrite $02, [$00 + @PACKET_TABLE_WRITE]
mov $02, 0xa
cwrite $02, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #IN_IB_END
cwrite $02, [$00 + @PACKET_TABLE_WRITE]
mov $02, 0x17
cwrite $02, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #CP_THREAD_CONTROL
cwrite $02, [$00 + @PACKET_TABLE_WRITE]
mov $02, 0x3f
cwrite $02, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #CP_INDIRECT_BUFFER
cwrite $02, [$00 + @PACKET_TABLE_WRITE]
waitin
mov $01, $data
.endif

; Bit 0 switches the check of CP_PROTECT on.
CP_SET_PROTECTED_MODE:
mov $02, $data
mov $03, 0x1 << 16
or $14, $14, $03
breq $02, b0, #ignore
nop
jump #ignore
xor $14, $14, $03

; IB2s are skipped only if nothing of them is visible, which the model does not know: the bits are kept.
CP_SKIP_IB2_ENABLE_LOCAL:
mov $02, 0x100
jump #keep_bit
mov $03, $data
CP_SKIP_IB2_ENABLE_GLOBAL:
mov $02, 0x200
mov $03, $data
keep_bit:
or $14, $14, $02
breq $03, b0, #ignore
nop
jump #ignore
xor $14, $14, $02

; The render mode of a marker, bits 3:0 of word 0: 2 is binning; 3 to 6 are GMEM; 1, 8 and 12 are system memory. Others,
; and markers with bit 8, change no mode.
CP_SET_MARKER:
mov $02, $data
breq $02, b8, #ignore
and $02, $02, 0xf
mov $03, 0x1
shl $03, $03, $02
mov $04, 0x1
and $05, $03, 0x4
brne $05, 0x0, #enter_mode
nop
mov $04, 0x2
and $05, $03, 0x78
brne $05, 0x0, #enter_mode
nop
mov $04, 0x4
and $05, $03, 0x1102
breq $05, 0x0, #ignore
nop
enter_mode:
ushr $14, $14, 0x3
shl $14, $14, 0x3
jump #ignore
or $14, $14, $04

; The predicate is a bit, 24:20 of word 0, of a register.
CP_REG_TEST:
mov $02, $data
shl $03, $02, 0xe
ushr $03, $03, 0xe
cwrite $03, [$00 + @REG_READ_ADDR]
cwrite $00, [$00 + @REG_READ_DWORDS]
ushr $02, $02, 0x14
and $02, $02, 0x1f
mov $03, $regdata
ushr $03, $03, $02
jump #ignore
and $13, $03, 0x1

; Modes, 31:28 of word 0: 1 the predicate, 2 two registers are equal, 3 the render mode is among bits 27:25, 4 a register
; has a value, 5 the thread is among bits 27:25. If the condition is false, the words after the packet are skipped.
CP_COND_REG_EXEC:
mov $02, $data
ushr $03, $02, 0x1c
breq $03, 0x1, #if_predicate
nop
breq $03, 0x3, #if_mode
nop
breq $03, 0x5, #if_thread
nop
shl $04, $02, 0xe
ushr $04, $04, 0xe
cwrite $00, [$00 + @REG_READ_DWORDS]
cwrite $04, [$00 + @REG_READ_ADDR]
mov $05, $regdata
breq $03, 0x4, #if_equal
mov $06, $data
brne $03, 0x2, #unsupported
nop
shl $06, $06, 0xe
ushr $06, $06, 0xe
cwrite $06, [$00 + @REG_READ_ADDR]
mov $06, $regdata
if_equal:
xor $04, $05, $06
breq $04, 0x0, #skip_unless
mov $04, 0x1
jump #skip_unless
mov $04, $00
if_predicate:
ushr $04, $02, 0x12
and $04, $04, 0x1f
jump #skip_unless
ushr $04, $13, $04
; BV is bit 25, BR bit 26; this is BR.
if_thread:
jump #skip_unless
ushr $04, $02, 0x1a
if_mode:
ushr $04, $02, 0x19
and $04, $04, $14
and $04, $04, 0x7
breq $04, 0x0, #skip_unless
nop
mov $04, 0x1
; Bit 0 of $04 is the condition; the next word is the number of words.
skip_unless:
mov $02, $data
breq $04, b0, #ignore
shl $02, $02, 0x8
ushr $rem, $02, 0x8
jump #ignore
nop

; The words after the packet are executed if the word at the first address is not 0 and that at the second is below the
; reference, as signed numbers.
CP_COND_EXEC:
cwrite $00, [$00 + @MEM_READ_DWORDS]
cwrite $data, [$00 + @MEM_READ_ADDR]
cwrite $data, [$00 + @MEM_READ_ADDR+0x1]
mov $02, $memdata
cwrite $data, [$00 + @MEM_READ_ADDR]
cwrite $data, [$00 + @MEM_READ_ADDR+0x1]
mov $03, $memdata
mov $06, 0x8000 << 16
xor $03, $03, $06
xor $05, $data, $06
; Bit 2: less.
cmp $04, $03, $05
min $02, $02, 0x1
ushr $04, $04, 0x2
jump #skip_unless
and $04, $04, $02

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

; Word 0: register 17:0, count 29:18 (0 is 1), b31 adds to the memory; then the address.
CP_REG_TO_MEM:
mov $02, $data
breq $02, b31, #unsupported
nop
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

; An event with an address writes its value at once, because there is no pipeline to wait for.
.if a7xx
CP_EVENT_WRITE7:
.else
CP_EVENT_WRITE:
.endif
mov $00, $data
breq $rem, 0x0, #no_value
nop
mov $addr, |NRT_ADDR << 24
mov $data, $data
mov $data, $data
mov $addr, 0xa204 << 16
(rep)mov $data, $data
no_value:
waitin
mov $01, $data

; Word 0: register 17:0, count 29:19 (0 is 1), b30 shifts left by two; then the address.
CP_MEM_TO_REG:
mov $02, $data
breq $02, b30, #unsupported
nop
ushr $03, $02, 0x13
and $03, $03, 0x7ff
max $03, $03, 0x1
shl $02, $02, 0xe
ushr $02, $02, 0xe
cwrite $data, [$00 + @MEM_READ_ADDR]
cwrite $data, [$00 + @MEM_READ_ADDR+0x1]
cwrite $03, [$00 + @MEM_READ_DWORDS]
mov $usraddr, $02
mov $rem, $03
(rep)mov $data, $memdata
waitin
mov $01, $data

; Word 0 is the tracker; then register and values.
.if a7xx
UNKN109:
.else
CP_REG_WRITE:
.endif
mov $00, $data
mov $usraddr, $data
(rep)mov $data, $data
waitin
mov $01, $data

; Word 0: function 2:0, signed b3, memory bit 4; $03 and $04 the address, $05 the reference, $06 the mask. Sets bit 0 of $09 if the
; masked value passes. Bits of $09 are functions: always, LT, LE, EQ, NE, GE, GT.
passes:
breq $02, b5, #unsupported
nop
brne $02, b4, #register
cwrite $00, [$00 + @REG_READ_DWORDS]
cwrite $03, [$00 + @MEM_READ_ADDR]
cwrite $04, [$00 + @MEM_READ_ADDR+0x1]
cwrite $00, [$00 + @MEM_READ_DWORDS]
jump #compare
mov $07, $memdata
register:
cwrite $03, [$00 + @REG_READ_ADDR]
mov $07, $regdata
compare:
and $07, $07, $06
mov $0a, $05
brne $02, b3, #unsigned
mov $09, 0x8000 << 16
xor $07, $07, $09
xor $0a, $0a, $09
unsigned:
cmp $08, $07, $0a
breq $08, 0x0, #known
mov $09, 0x71
breq $08, b0, #known
mov $09, 0x2d
mov $09, 0x17
known:
and $0a, $02, 0x7
ret
ushr $09, $09, $0a

; Memory or a register is written if the value passes; bit 8 of word 0 is memory.
CP_COND_WRITE5:
mov $02, $data
mov $03, $data
mov $04, $data
mov $05, $data
call #passes
mov $06, $data
brne $09, b0, #skip
nop
brne $02, b8, #write_register
nop
mov $addr, |NRT_ADDR << 24
mov $data, $data
mov $data, $data
mov $addr, 0xa204 << 16
mov $data, $data
waitin
mov $01, $data
write_register:
mov $02, $data
mov $00, $data
mov $usraddr, $02
mov $data, $data
waitin
mov $01, $data

; Function GE, in memory, without mask.
.if a7xx
CP_WAIT_TIMESTAMP:
.else
CP_WAIT_MEM_GTE:
.endif
mov $02, 0x15
mov $00, $data
mov $03, $data
mov $04, $data
mov $05, $data
jump #wait
not $06, 0x0

CP_WAIT_REG_MEM:
mov $02, $data
mov $03, $data
mov $04, $data
mov $05, $data
mov $06, $data
wait:
call #passes
nop
brne $09, b0, #wait
nop
skip:
(rep)mov $00, $data
waitin
mov $01, $data

; Pairs of register and value.
CP_CONTEXT_REG_BUNCH:
(rep)(xmov3)mov $usraddr, $data
waitin
mov $01, $data

; Groups of header and address. The hardware keeps the groups that are set and those that no draw has executed yet.
CP_SET_DRAW_STATE:
(rep)(sds2)cwrite $data, [$00 + @DRAW_STATE_SET_HDR]
waitin
mov $01, $data

; A draw executes the groups that were set since they were executed last, if the render mode is in their mask.
CP_DRAW_AUTO:
CP_DRAW_INDIRECT:
CP_DRAW_INDIRECT_MULTI:
CP_DRAW_INDX:
CP_DRAW_INDX_INDIRECT:
CP_DRAW_INDX_OFFSET:
(rep)mov $00, $data
cread $15, [$00 + @IB_LEVEL]
cread $16, [$00 + @DRAW_STATE_SET_PENDING]
next_group:
breq $16, 0x0, #no_group
; The lowest bit of $16.
sub $02, $00, $16
and $02, $02, $16
xor $16, $16, $02
msb $03, $02
cwrite $03, [$00 + @DRAW_STATE_SEL]
cread $03, [$00 + @DRAW_STATE_HDR]
ushr $04, $03, 0x10
and $04, $04, $14
and $04, $04, 0x7
breq $04, 0x0, #next_group
and $03, $03, 0xffff
cread $04, [$00 + @DRAW_STATE_SET_PENDING]
xor $04, $04, $02
cwrite $04, [$00 + @DRAW_STATE_SET_PENDING]
cwrite $03, [$00 + @SDS_DWORDS]
mov $02, SDS_LEVEL
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data
no_group:
cwrite $15, [$00 + @IB_LEVEL]
waitin
mov $01, $data

; dst = ((dst & src0) rotated left by 28:24) | src1, or with b29 + src1; b30 and b31: src1 and src0 are registers.
CP_REG_RMW:
mov $02, $data
shl $03, $02, 0xe
ushr $03, $03, 0xe
cwrite $00, [$00 + @REG_READ_DWORDS]
cwrite $03, [$00 + @REG_READ_ADDR]
mov $04, $regdata
mov $05, $data
brne $02, b31, #src0
mov $06, $data
cwrite $05, [$00 + @REG_READ_ADDR]
mov $05, $regdata
src0:
brne $02, b30, #src1
nop
cwrite $06, [$00 + @REG_READ_ADDR]
mov $06, $regdata
src1:
and $04, $04, $05
ushr $05, $02, 0x18
and $05, $05, 0x1f
rot $04, $04, $05
breq $02, b29, #rmw_write
add $05, $04, $06
or $05, $04, $06
rmw_write:
mov $usraddr, $03
mov $data, $05
waitin
mov $01, $data

; The sum of the words at the addresses after the first is written to the first; b0 to b2 negate, b29 is 64 bits.
CP_MEM_TO_MEM:
mov $02, $data
mov $03, $data
mov $04, $data
mov $05, $00
mov $06, $00
and $07, $02, 0x7
mov $09, 0x2
next_source:
breq $rem, 0x0, #sum
nop
cwrite $data, [$00 + @MEM_READ_ADDR]
cwrite $data, [$00 + @MEM_READ_ADDR+0x1]
cwrite $09, [$00 + @MEM_READ_DWORDS]
mov $08, $memdata
brne $02, b29, #narrow
mov $0a, $00
mov $0a, $memdata
narrow:
breq $07, b0, #negate
nop
add $05, $05, $08
jump #next_source_bit
addhi $06, $06, $0a
negate:
sub $05, $05, $08
subhi $06, $06, $0a
next_source_bit:
jump #next_source
ushr $07, $07, 0x1
sum:
mov $addr, |NRT_ADDR << 24
mov $data, $03
mov $data, $04
mov $addr, 0xa204 << 16
mov $data, $05
brne $02, b29, #summed
nop
mov $data, $06
summed:
waitin
mov $01, $data

; Number of words, source, destination.
CP_MEMCPY:
mov $02, $data
cwrite $data, [$00 + @MEM_READ_ADDR]
cwrite $data, [$00 + @MEM_READ_ADDR+0x1]
cwrite $02, [$00 + @MEM_READ_DWORDS]
mov $addr, |NRT_ADDR << 24
mov $data, $data
mov $data, $data
mov $addr, 0xa204 << 16
mov $rem, $02
(rep)mov $data, $memdata
waitin
mov $01, $data

; The read pointer of the ring is written to the address.
CP_WHERE_AM_I:
mov $addr, |NRT_ADDR << 24
mov $data, $data
mov $data, $data
mov $addr, 0xa204 << 16
cread $02, [$00 + @RB_RPTR]
mov $data, $02
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

; The registers of a level are four after those of the level before.
CP_INDIRECT_BUFFER:
cread $02, [$00 + @IB_LEVEL]
add $04, $02, 0x1
breq $04, SDS_LEVEL, #unsupported
shl $03, $02, 0x2
cwrite $data, [$03 + @IB1_BASE]
cwrite $data, [$03 + @IB1_BASE+0x1]
mov $05, $data
shl $05, $05, 0xc
ushr $05, $05, 0xc
cwrite $05, [$03 + @IB1_DWORDS]
cwrite $04, [$00 + @IB_LEVEL]
waitin
mov $01, $data

IN_IB_END:
cread $02, [$00 + @IB_LEVEL]
breq $02, SDS_LEVEL, #next_group
sub $02, $02, 0x1
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data

; Preemption. CP_CONTEXT_SWITCH_PRIV_NON_SECURE_RESTORE_ADDR is the address of a record of 64 words: +0x00 base (two
; words), CP_RB_CNTL and write pointer of a second ring; the rest is for what is interrupted. The second ring is executed
; from its start to CP_CONTEXT_SWITCH_YIELD.
IN_PREEMPT:
cread $0e, [$00 + @REG_READ_ADDR]
cread $0f, [$00 + @REG_READ_DWORDS]
mov $10, CP_CONTEXT_SWITCH_PRIV_NON_SECURE_RESTORE_ADDR
mov $11, 0x2
cwrite $10, [$00 + @REG_READ_ADDR]
cwrite $11, [$00 + @REG_READ_DWORDS]
mov $10, $regdata
mov $11, $regdata
cwrite $11, [$00 + @LOAD_STORE_HI]
store $01, [$10 + 0x40]
store $02, [$10 + 0x44]
store $03, [$10 + 0x48]
store $04, [$10 + 0x4c]
store $05, [$10 + 0x50]
store $06, [$10 + 0x54]
store $07, [$10 + 0x58]
store $08, [$10 + 0x5c]
store $09, [$10 + 0x60]
store $0a, [$10 + 0x64]
store $0b, [$10 + 0x68]
store $0c, [$10 + 0x6c]
store $0d, [$10 + 0x70]
store $12, [$10 + 0x74]
store $13, [$10 + 0x78]
store $14, [$10 + 0x7c]
store $15, [$10 + 0x80]
store $16, [$10 + 0x84]
store $rem, [$10 + 0x88]
store $0e, [$10 + 0x24]
store $0f, [$10 + 0x28]
cread $02, [$00 + @IB1_BASE]
store $02, [$10 + 0x8c]
cread $02, [$00 + @IB1_BASE+0x1]
store $02, [$10 + 0x90]
cread $02, [$00 + @IB1_DWORDS]
store $02, [$10 + 0x94]
cread $02, [$00 + @IB2_BASE]
store $02, [$10 + 0x98]
cread $02, [$00 + @IB2_BASE+0x1]
store $02, [$10 + 0x9c]
cread $02, [$00 + @IB2_DWORDS]
store $02, [$10 + 0xa0]
cread $02, [$00 + @SDS_BASE]
store $02, [$10 + 0xa4]
cread $02, [$00 + @SDS_BASE+0x1]
store $02, [$10 + 0xa8]
cread $02, [$00 + @SDS_DWORDS]
store $02, [$10 + 0xac]
cread $02, [$00 + @MEM_READ_ADDR]
store $02, [$10 + 0xb0]
cread $02, [$00 + @MEM_READ_ADDR+0x1]
store $02, [$10 + 0xb4]
cread $02, [$00 + @MEM_READ_DWORDS]
store $02, [$10 + 0xb8]
cread $02, [$00 + @IB_LEVEL]
store $02, [$10 + 0xbc]
.if a7xx
cread $02, [$00 + @IB3_BASE]
store $02, [$10 + 0xc0]
cread $02, [$00 + @IB3_BASE+0x1]
store $02, [$10 + 0xc4]
cread $02, [$00 + @IB3_DWORDS]
store $02, [$10 + 0xc8]
.endif
; The ring: CP_RB_BASE to CP_RB_WPTR are eight registers.
mov $02, CP_RB_BASE
mov $03, 0x8
cwrite $02, [$00 + @REG_READ_ADDR]
cwrite $03, [$00 + @REG_READ_DWORDS]
mov $02, $regdata
store $02, [$10 + 0x10]
mov $02, $regdata
store $02, [$10 + 0x14]
mov $02, $regdata
store $02, [$10 + 0x18]
mov $02, $regdata
mov $02, $regdata
mov $02, $regdata
mov $02, $regdata
mov $02, $regdata
store $02, [$10 + 0x1c]
cread $02, [$00 + @RB_RPTR]
store $02, [$10 + 0x20]
load $02, [$10 + 0x0]
load $03, [$10 + 0x4]
load $04, [$10 + 0x8]
load $05, [$10 + 0xc]
call #set_ring
mov $06, $00
cwrite $00, [$00 + @IB_LEVEL]
mov $02, 0x8000 << 16
or $14, $14, $02
mov $rem, 0x0
waitin
mov $01, $data

; $02 to $06: base, size, write pointer and read pointer.
set_ring:
mov $addr, CP_RB_BASE
mov $data, $02
mov $data, $03
mov $data, $04
mov $addr, CP_RB_WPTR
mov $data, $05
ret
cwrite $06, [$00 + @RB_RPTR]

; In the second ring: back to what was interrupted.
CP_CONTEXT_SWITCH_YIELD:
(rep)mov $00, $data
brne $14, b31, #ignore
nop
load $02, [$10 + 0x10]
load $03, [$10 + 0x14]
load $04, [$10 + 0x18]
load $05, [$10 + 0x1c]
call #set_ring
load $06, [$10 + 0x20]
load $02, [$10 + 0x8c]
cwrite $02, [$00 + @IB1_BASE]
load $02, [$10 + 0x90]
cwrite $02, [$00 + @IB1_BASE+0x1]
load $02, [$10 + 0x94]
cwrite $02, [$00 + @IB1_DWORDS]
load $02, [$10 + 0x98]
cwrite $02, [$00 + @IB2_BASE]
load $02, [$10 + 0x9c]
cwrite $02, [$00 + @IB2_BASE+0x1]
load $02, [$10 + 0xa0]
cwrite $02, [$00 + @IB2_DWORDS]
load $02, [$10 + 0xa4]
cwrite $02, [$00 + @SDS_BASE]
load $02, [$10 + 0xa8]
cwrite $02, [$00 + @SDS_BASE+0x1]
load $02, [$10 + 0xac]
cwrite $02, [$00 + @SDS_DWORDS]
load $02, [$10 + 0xb0]
cwrite $02, [$00 + @MEM_READ_ADDR]
load $02, [$10 + 0xb4]
cwrite $02, [$00 + @MEM_READ_ADDR+0x1]
load $02, [$10 + 0xb8]
cwrite $02, [$00 + @MEM_READ_DWORDS]
load $02, [$10 + 0xbc]
cwrite $02, [$00 + @IB_LEVEL]
.if a7xx
load $02, [$10 + 0xc0]
cwrite $02, [$00 + @IB3_BASE]
load $02, [$10 + 0xc4]
cwrite $02, [$00 + @IB3_BASE+0x1]
load $02, [$10 + 0xc8]
cwrite $02, [$00 + @IB3_DWORDS]
.endif
load $02, [$10 + 0x24]
cwrite $02, [$00 + @REG_READ_ADDR]
load $02, [$10 + 0x28]
cwrite $02, [$00 + @REG_READ_DWORDS]
mov $addr, CP_CONTEXT_SWITCH_CNTL
mov $data, $00
cwrite $00, [$00 + @PREEMPT_TRIGGER]
load $01, [$10 + 0x40]
load $02, [$10 + 0x44]
load $03, [$10 + 0x48]
load $04, [$10 + 0x4c]
load $05, [$10 + 0x50]
load $06, [$10 + 0x54]
load $07, [$10 + 0x58]
load $08, [$10 + 0x5c]
load $09, [$10 + 0x60]
load $0a, [$10 + 0x64]
load $0b, [$10 + 0x68]
load $0c, [$10 + 0x6c]
load $0d, [$10 + 0x70]
load $12, [$10 + 0x74]
load $13, [$10 + 0x78]
load $14, [$10 + 0x7c]
load $15, [$10 + 0x80]
load $16, [$10 + 0x84]
load $rem, [$10 + 0x88]
iret
nop
.if a7xx
.align 32
.endif
jumptbl:
.jumptbl

.if a7xx
; BV begins without packets to execute: it has the packet table that ignores them.
.section BV
[01000001]
[#jumptbl]
mov $05, 0x1
cwrite $05, [$00 + @COPROCESSOR_LOCK]
lock:
cread $04, [$00 + @COPROCESSOR_LOCK]
brne $04, b0, #lock
nop
cread $04, [$00 + @THREAD_SYNC]
mov $05, 0x2
bic $04, $04, $05
cwrite $04, [$00 + @THREAD_SYNC]
cwrite $00, [$00 + @COPROCESSOR_LOCK]
cwrite $00, [$00 + @IB_LEVEL]
leave:
mov $rem, 0x80
cwrite $00, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #ignore
(rep)cwrite $02, [$00 + @PACKET_TABLE_WRITE]
mov $02, 0xa
cwrite $02, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #IN_IB_END
cwrite $02, [$00 + @PACKET_TABLE_WRITE]
mov $02, 0x17
cwrite $02, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #CP_THREAD_CONTROL
cwrite $02, [$00 + @PACKET_TABLE_WRITE]
mov $02, 0x3f
cwrite $02, [$00 + @PACKET_TABLE_WRITE_ADDR]
mov $02, #CP_INDIRECT_BUFFER
cwrite $02, [$00 + @PACKET_TABLE_WRITE]
waitin
mov $01, $data

; As in BR.
CP_THREAD_CONTROL:
mov $02, $data
brne $02, b31, #no_barrier
cread $03, [$00 + 0x211]
add $03, $03, 0x1
cwrite $03, [$00 + 0x211]
barrier:
cread $04, [$00 + 0x210]
sub $04, $04, $03
breq $04, b31, #barrier
nop
no_barrier:
brne $02, b1, #leave
cread $02, [$00 + @BV_INSTR_BASE]
cread $03, [$00 + @BV_INSTR_BASE+0x1]
add $04, $02, 0x4
addhi $05, $03, 0x0
mov $06, 0x1
cwrite $04, [$00 + @MEM_READ_ADDR]
cwrite $05, [$00 + @MEM_READ_ADDR+0x1]
cwrite $06, [$00 + @MEM_READ_DWORDS]
mov $04, $memdata
shl $04, $04, 0x8
ushr $04, $04, 0x6
add $02, $02, $04
addhi $03, $03, 0x0
mov $rem, 0x80
cwrite $02, [$00 + @MEM_READ_ADDR]
cwrite $03, [$00 + @MEM_READ_ADDR+0x1]
cwrite $rem, [$00 + @MEM_READ_DWORDS]
cwrite $00, [$00 + @PACKET_TABLE_WRITE_ADDR]
(rep)cwrite $memdata, [$00 + @PACKET_TABLE_WRITE]
waitin
mov $01, $data

; A packet of a form that this section does not have.
unsupported:
[00000000]

PKT4:
ushr $02, $01, 0x8
and $02, $02, 0xffff
mov $usraddr, $02
(rep)(xmov3)mov $data, $data
waitin
mov $01, $data

CP_EVENT_WRITE7:
CP_ME_INIT:
CP_NOP:
CP_SET_PROTECTED_MODE:
CP_SET_SECURE_MODE:
CP_WAIT_FOR_IDLE:
CP_WAIT_FOR_ME:
CP_WAIT_MEM_WRITES:
ignore:
(rep)mov $00, $data
waitin
mov $01, $data

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

CP_SCRATCH_WRITE:
mov $02, $data
ushr $02, $02, 0x14
and $02, $02, 0x7
add $02, $02, CP_SCRATCH
mov $addr, $02
mov $data, $data
waitin
mov $01, $data

; As BR does it.
CP_WAIT_REG_MEM:
mov $02, $data
mov $03, $data
mov $04, $data
mov $05, $data
mov $06, $data
breq $02, b5, #unsupported
cwrite $00, [$00 + @REG_READ_DWORDS]
cwrite $00, [$00 + @MEM_READ_DWORDS]
wait:
breq $02, b4, #memory
cwrite $03, [$00 + @REG_READ_ADDR]
jump #compare
mov $07, $regdata
memory:
cwrite $03, [$00 + @MEM_READ_ADDR]
cwrite $04, [$00 + @MEM_READ_ADDR+0x1]
mov $07, $memdata
compare:
and $07, $07, $06
mov $0a, $05
brne $02, b3, #unsigned
mov $09, 0x8000 << 16
xor $07, $07, $09
xor $0a, $0a, $09
unsigned:
cmp $08, $07, $0a
breq $08, 0x0, #known
mov $09, 0x71
breq $08, b0, #known
mov $09, 0x2d
mov $09, 0x17
known:
and $0a, $02, 0x7
ushr $09, $09, $0a
brne $09, b0, #wait
nop
jump #ignore
nop

CP_INDIRECT_BUFFER:
cread $02, [$00 + @IB_LEVEL]
add $04, $02, 0x1
breq $04, SDS_LEVEL, #unsupported
shl $03, $02, 0x2
cwrite $data, [$03 + @IB1_BASE]
cwrite $data, [$03 + @IB1_BASE+0x1]
mov $05, $data
shl $05, $05, 0xc
ushr $05, $05, 0xc
cwrite $05, [$03 + @IB1_DWORDS]
cwrite $04, [$00 + @IB_LEVEL]
waitin
mov $01, $data

IN_IB_END:
cread $02, [$00 + @IB_LEVEL]
sub $02, $02, 0x1
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data

.align 32
jumptbl:
.jumptbl

; LPAC has a ring of its own.
.section LPAC
[01000001]
[#jumptbl]
mov $05, 0x1
cwrite $05, [$00 + @COPROCESSOR_LOCK]
lock:
cread $04, [$00 + @COPROCESSOR_LOCK]
brne $04, b0, #lock
nop
cread $04, [$00 + @THREAD_SYNC]
mov $05, 0x4
bic $04, $04, $05
cwrite $04, [$00 + @THREAD_SYNC]
cwrite $00, [$00 + @COPROCESSOR_LOCK]
cread $02, [$00 + @LPAC_INSTR_BASE]
cread $03, [$00 + @LPAC_INSTR_BASE+0x1]
add $04, $02, 0x4
addhi $05, $03, 0x0
mov $06, 0x1
cwrite $04, [$00 + @MEM_READ_ADDR]
cwrite $05, [$00 + @MEM_READ_ADDR+0x1]
cwrite $06, [$00 + @MEM_READ_DWORDS]
mov $04, $memdata
shl $04, $04, 0x8
ushr $04, $04, 0x6
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

; A packet of a form that this section does not have.
unsupported:
[00000000]

PKT4:
ushr $02, $01, 0x8
and $02, $02, 0xffff
mov $usraddr, $02
(rep)(xmov3)mov $data, $data
waitin
mov $01, $data

CP_EVENT_WRITE7:
CP_ME_INIT:
CP_NOP:
CP_SET_PROTECTED_MODE:
CP_SET_SECURE_MODE:
CP_WAIT_FOR_IDLE:
CP_WAIT_FOR_ME:
CP_WAIT_MEM_WRITES:
ignore:
(rep)mov $00, $data
waitin
mov $01, $data

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

CP_SCRATCH_WRITE:
mov $02, $data
ushr $02, $02, 0x14
and $02, $02, 0x7
add $02, $02, CP_SCRATCH
mov $addr, $02
mov $data, $data
waitin
mov $01, $data

; As BR does it.
CP_WAIT_REG_MEM:
mov $02, $data
mov $03, $data
mov $04, $data
mov $05, $data
mov $06, $data
breq $02, b5, #unsupported
cwrite $00, [$00 + @REG_READ_DWORDS]
cwrite $00, [$00 + @MEM_READ_DWORDS]
wait:
breq $02, b4, #memory
cwrite $03, [$00 + @REG_READ_ADDR]
jump #compare
mov $07, $regdata
memory:
cwrite $03, [$00 + @MEM_READ_ADDR]
cwrite $04, [$00 + @MEM_READ_ADDR+0x1]
mov $07, $memdata
compare:
and $07, $07, $06
mov $0a, $05
brne $02, b3, #unsigned
mov $09, 0x8000 << 16
xor $07, $07, $09
xor $0a, $0a, $09
unsigned:
cmp $08, $07, $0a
breq $08, 0x0, #known
mov $09, 0x71
breq $08, b0, #known
mov $09, 0x2d
mov $09, 0x17
known:
and $0a, $02, 0x7
ushr $09, $09, $0a
brne $09, b0, #wait
nop
jump #ignore
nop

CP_INDIRECT_BUFFER:
cread $02, [$00 + @IB_LEVEL]
add $04, $02, 0x1
breq $04, SDS_LEVEL, #unsupported
shl $03, $02, 0x2
cwrite $data, [$03 + @IB1_BASE]
cwrite $data, [$03 + @IB1_BASE+0x1]
mov $05, $data
shl $05, $05, 0xc
ushr $05, $05, 0xc
cwrite $05, [$03 + @IB1_DWORDS]
cwrite $04, [$00 + @IB_LEVEL]
waitin
mov $01, $data

IN_IB_END:
cread $02, [$00 + @IB_LEVEL]
sub $02, $02, 0x1
cwrite $02, [$00 + @IB_LEVEL]
waitin
mov $01, $data

.align 32
jumptbl:
.jumptbl
.endif
