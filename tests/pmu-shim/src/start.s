/* From the loader, or from the start-up interrupt, to Rust: 64-bit mode, the first 4 GiB at their own addresses. */

.section .note.pvh, "a", @note
.balign 4
.long 4                         /* bytes of the name */
.long 8                         /* bytes of the value */
.long 18                        /* XEN_ELFNOTE_PHYS32_ENTRY */
.asciz "Xen"
.quad _start32

/* In 32-bit mode: paging, and with it 64-bit mode. */
.macro long_mode
    movl $root, %eax
    movl %eax, %cr3
    movl $0x20, %eax            /* PAE */
    movl %eax, %cr4
    movl $0xc0000080, %ecx      /* EFER: LME, SVME */
    movl $0x1100, %eax
    xorl %edx, %edx
    wrmsr
    movl $0x80010011, %eax      /* PG, WP, ET, PE */
    movl %eax, %cr0
.endm

.section .text.start, "ax", @progbits
first:                          /* of the shim's bytes */
.code32
.globl _start32
_start32:
    cli
    cld
    movl %ebx, %ebp
    long_mode
    lgdt gdtr
    ljmp $0x08, $start64

/* Copied to a page below 1 MiB, where a CPU starts in real mode. */
.globl trampoline_start, trampoline_end
.code16
trampoline_start:
    cli
    cld
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl {TRAMPOLINE} + (trampoline_gdtr - trampoline_start)
    long_mode
    ljmpl $0x08, $again64
.balign 4
trampoline_gdtr: .word 23
    .long gdt
trampoline_end:

.code64
start64:
    xorl %edi, %edi
    movl %ebp, %esi             /* physical address of the start information */
    movq ${boot}, %rax
    jmp 1f
again64:
    movl $0xfee00020, %edi      /* this CPU's APIC id */
    movl (%rdi), %edi
    shrl $24, %edi
    movq ${again}, %rax
1:  movl $0x10, %ecx
    movl %ecx, %ds
    movl %ecx, %es
    movl %ecx, %ss
    lidt idtr
    /* The stack of the CPU with this id. Nobody starts one without. */
    leal 1(%rdi), %ecx
    imulq ${STACK}, %rcx
    leaq stacks(%rcx), %rsp
    xorl %ebp, %ebp
    /* From here on nothing interrupts but in the guest, and where it is let in. */
    clgi
    call *%rax
    ud2

/* Lets the NMI in that is pending. */
.globl take_nmi
take_nmi:
    stgi
    nop
    clgi
    ret

nmi:
    iretq

/* Runs the guest until it exits: RDI points to its registers, RSI is the address of its control block, which holds RAX and RSP. */
.globl run_guest
run_guest:
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    pushq %rdi
    /* What passed since the last exit, and the instructions from here to VMRUN and from there to the exit's reading. */
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    subq 0x70(%rdi), %rax
    addq ${OWN_INSTRUCTIONS}, %rax
    andq 0x78(%rdi), %rax
    subq %rax, {TSC_OFFSET}(%rsi)
    movq %rsi, %rax
    movq 0x00(%rdi), %rcx
    movq 0x08(%rdi), %rdx
    movq 0x10(%rdi), %rbx
    movq 0x18(%rdi), %rbp
    movq 0x20(%rdi), %rsi
    movq 0x30(%rdi), %r8
    movq 0x38(%rdi), %r9
    movq 0x40(%rdi), %r10
    movq 0x48(%rdi), %r11
    movq 0x50(%rdi), %r12
    movq 0x58(%rdi), %r13
    movq 0x60(%rdi), %r14
    movq 0x68(%rdi), %r15
    movq 0x28(%rdi), %rdi
    vmrun %rax
    xchgq %rdi, (%rsp)
    movq %rcx, 0x00(%rdi)
    movq %rdx, 0x08(%rdi)
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    movq %rax, 0x70(%rdi)
    movq %rbx, 0x10(%rdi)
    movq %rbp, 0x18(%rdi)
    movq %rsi, 0x20(%rdi)
    movq %r8, 0x30(%rdi)
    movq %r9, 0x38(%rdi)
    movq %r10, 0x40(%rdi)
    movq %r11, 0x48(%rdi)
    movq %r12, 0x50(%rdi)
    movq %r13, 0x58(%rdi)
    movq %r14, 0x60(%rdi)
    movq %r15, 0x68(%rdi)
    popq %rax
    movq %rax, 0x28(%rdi)
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    ret

.section .data.start, "aw", @progbits
.balign 8
gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
gdtr: .word 23
    .long gdt
/* Interrupts are off, so only an NMI comes; the gate of any exception is not present, and it ends the machine. */
.balign 8
idt: .quad 0, 0, 0, 0
    .word nmi - first, 0x08, 0x8e00, {BASE_HIGH}
    .quad 0
idtr: .word 3 * 16 - 1
    .quad idt

.balign 4096
root: .quad pointers + 3
    .skip 511 * 8
pointers: .quad directories + 0x0003, directories + 0x1003, directories + 0x2003, directories + 0x3003
    .skip 508 * 8
/* 2 MiB pages: present, writable, large. */
directories:
    .set address, 0x83
    .rept 2048
    .quad address
    .set address, address + 0x200000
    .endr

.section .bss.start, "aw", @nobits
.balign 16
stacks: .skip {STACK} * {CPUS}
