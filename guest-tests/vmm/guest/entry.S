/* SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause */
/* Entry point of the processors, transitions to ring 3 and back, and interrupts. */

#include "cpu.h"

    .section .text.entry, "ax"
    .globl entry
/* Entry point of all processors; see boot_info.h for their state. Processors after the second are unused and halt. */
entry:
    cld
    cmp $2, %rsi
    jae 1f
    imul $-0x4000, %rsi, %rax
    lea stack_top(%rax), %rsp
    xor %ebp, %ebp
    call processor
1:  hlt
    jmp 1b

/* void to_ring3(void (*function)(void), uint64_t stack): does not return. */
    .globl to_ring3
to_ring3:
    sub $8, %rsi                /* stack alignment as after a call */
    pushq $SELECTOR_USER_DATA
    pushq %rsi
    pushq $0x202                /* interrupts enabled */
    pushq $SELECTOR_USER_CODE
    pushq %rdi
    iretq

/* void load_tables(const struct descriptor_pointer *gdt, const struct descriptor_pointer *idt, uint16_t task) */
    .globl load_tables
load_tables:
    lgdt (%rdi)
    lidt (%rsi)
    mov $SELECTOR_KERNEL_DATA, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov $SELECTOR_USER_DATA, %eax
    mov %eax, %ds
    mov %eax, %es
    ltr %dx
    popq %rax
    pushq $SELECTOR_KERNEL_CODE
    pushq %rax
    lretq

/* 256 entries of 16 bytes. For exceptions without an error code, 0 is pushed. */
    .balign 16
    .globl vectors
vectors:
    .set vector, 0
    .rept 256
    .balign 16
    .if vector == VECTOR_UNDEFINED
    jmp undefined
    .elseif vector >= 32
    pushq $vector
    jmp interrupt
    .else
    .if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21)
    pushq $0
    .endif
    pushq $vector
    jmp exception
    .endif
    .set vector, vector + 1
    .endr

/* Counts the vector and signals end of interrupt to the local APIC. Short, since KVM may interpret ring 0. */
interrupt:
    xchg %rax, (%rsp)
    lock incq MAILBOX_INTERRUPTS(, %rax, 8)
    mov $APIC_BASE + APIC_EOI, %eax
    movl $0, (%rax)
    pop %rax
    iretq

exception:
    mov %rsp, %rdi
    movq %cr2, %rsi
    and $-16, %rsp
    call exception_taken

/* UD2 in ring 3 requests a service of ring 0. rax has the service number, rdi and rsi have its arguments; the result is
 * returned in rax.
 * (PVM, a KVM without hardware virtualisation, does not deliver INT and SYSCALL as expected, but does deliver
 * exceptions.) */
undefined:
    testb $3, 8(%rsp)
    jz 2f
    push %rbx
    mov 8(%rsp), %rbx
    cmpw $0x0b0f, (%rbx)
    jne 1f
    addq $2, 8(%rsp)
    push %rcx
    push %rdx
    push %rsi
    push %rdi
    push %r8
    push %r9
    push %r10
    push %r11
    mov %rsp, %rbx
    mov %rsi, %rdx
    mov %rdi, %rsi
    mov %rax, %rdi
    and $-16, %rsp
    call service_at_ring0
    mov %rbx, %rsp
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rdi
    pop %rsi
    pop %rdx
    pop %rcx
    pop %rbx
    iretq
1:  pop %rbx
2:  pushq $0
    pushq $VECTOR_UNDEFINED
    jmp exception

    .section .bss
    .balign 4096
    .skip 0x8000
stack_top:
    .section .note.GNU-stack, "", @progbits
