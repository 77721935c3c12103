/* Where the other CPUs begin: in real mode at the first byte of a page below 1 MiB, to which the boot CPU has copied
   this and in which it has filled in the fields at the end. DS is made equal to CS, so that all data is found relative to the page. */

.section .rodata.trampoline, "a", @progbits
.balign 8
.globl trampoline_start, trampoline_end
.globl trampoline_gdt_base, trampoline_far, trampoline_root, trampoline_stack, trampoline_entry, trampoline_argument
.code16
trampoline_start:
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    lgdtl (trampoline_gdtr - trampoline_start)
    movl (trampoline_root - trampoline_start), %eax
    movl %eax, %cr3
    movl $0x20, %eax            /* PAE */
    movl %eax, %cr4
    movl $0xc0000080, %ecx      /* EFER: LME, NXE */
    movl $0x900, %eax
    xorl %edx, %edx
    wrmsr
    movl $0x80010011, %eax      /* PG, WP, ET, PE; caches on */
    movl %eax, %cr0
    ljmpl *(trampoline_far - trampoline_start)

.code64
trampoline_long:
    movl $0x10, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    xorl %ebp, %ebp
    movq trampoline_stack(%rip), %rsp
    movq trampoline_argument(%rip), %rdi
    jmpq *trampoline_entry(%rip)

.balign 8
trampoline_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
trampoline_gdtr: .word 23
trampoline_gdt_base: .long trampoline_gdt - trampoline_start    /* plus the page */
.balign 8
trampoline_far: .long trampoline_long - trampoline_start        /* plus the page */
    .word 0x08
.balign 8
trampoline_root: .quad 0        /* a root table below 4 GiB that maps this page at its own address */
trampoline_stack: .quad 0
trampoline_entry: .quad 0
trampoline_argument: .quad 0
trampoline_end:

.section .text.stubs, "ax", @progbits
/* What the trampoline jumps to, RDI being the CPU's block: leaves the map that the page lies in. */
.globl ap_entry
.type ap_entry, @function
ap_entry:
    movq {CPU_ROOT}(%rdi), %rax
    movq %rax, %cr3
    call {started}
    ud2
.size ap_entry, . - ap_entry
