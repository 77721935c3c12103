/* The ways into the kernel and out of it.

   A thread's registers are saved where the CPU's block points: straight into the thread's SavedRegs, whose end is also the
   task state segment's RSP0, so that the CPU pushes the interrupt frame there. Then the CPU's one kernel stack is used from
   its top, with RBP zero, so that a walk of frames ends here. Nothing stays on that stack at an exit.

   From `stubs_start` to `stubs_end` RSP, RBP and GS may still or again be the user's. Where the user's RIP, RSP and RBP are on the way
   in, a sample must know (`kcore::profile::KernelMap`): in RCX, RSP or the CPU's block, and RBP up to `syscall_saved`; in the registers that
   the hardware pushed, and RBP, from `vector_stubs` up to `interrupt_saved`; else in the thread's SavedRegs, also on the way out. The
   kernel's own frames are not there yet, or given up: on the way out, and to idle, RSP leaves them while RBP still points to one. */

.section .text.stubs, "ax", @progbits
.code64
/* The ends are labels, not functions: a symbol table leaves them out. */
.globl stubs_start, stubs_end, idle_end, syscall_switched, syscall_saved, interrupt_saved
stubs_start:

.macro save
    pushq %rax
    pushq %rcx
    pushq %rdx
    pushq %rbx
    pushq %rbp
    pushq %rsi
    pushq %rdi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
.endm

.macro restore
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rbp
    popq %rbx
    popq %rdx
    popq %rcx
    popq %rax
.endm

/* SYSCALL: RCX holds the return address, R11 the flags; the flags that matter are clear (SFMASK). */
.globl syscall_entry
.type syscall_entry, @function
syscall_entry:
    swapgs
    movq %rsp, %gs:{CPU_SCRATCH}
    movq %gs:{CPU_REGS_END}, %rsp
syscall_switched:
    pushq ${USER_SS}
    pushq %gs:{CPU_SCRATCH}
    pushq %r11
    pushq ${USER_CS}
    pushq %rcx
    pushq $0
    pushq ${VECTOR_SYSCALL}
    save
    movq %gs:{CPU_STACK_TOP}, %rsp
    xorl %ebp, %ebp
syscall_saved:
    movq %gs:{CPU_SELF}, %rdi
    call {syscall}
    ud2
.size syscall_entry, . - syscall_entry

/* One stub for each vector, 16 bytes apart. */
.set vector, 0
.macro stub
    .balign 16
    .if vector == 2
        jmp nmi_entry
    .elseif (vector == 8)
        pushq $8
        jmp fatal_entry
    .elseif (vector == 18)
        pushq $0
        pushq $18
        jmp fatal_entry
    .elseif (vector == 10) || (vector == 11) || (vector == 12) || (vector == 13) || (vector == 14) || (vector == 17) || (vector == 21) || (vector == 29) || (vector == 30)
        pushq $vector
        jmp interrupt_entry
    .else
        pushq $0
        pushq $vector
        jmp interrupt_entry
    .endif
    .set vector, vector + 1
.endm
.balign 16
.globl vector_stubs
.type vector_stubs, @function
vector_stubs:
.rept 256
    stub
.endr
.size vector_stubs, . - vector_stubs

/* Exceptions and interrupts; vector and error code are pushed. Flags are put in a known state: the user's direction,
   alignment-check and nested-task flags mean nothing here. */
.type interrupt_entry, @function
interrupt_entry:
    testb $3, {FRAME_CS}-{FRAME_VECTOR}(%rsp)
    jz 1f
    swapgs
    save
    movq %rsp, %rsi
    movq %gs:{CPU_STACK_TOP}, %rsp
    xorl %ebp, %ebp
interrupt_saved:
    pushq $2
    popfq
    movq %gs:{CPU_SELF}, %rdi
    call {interrupt_user}
    ud2
1:  save
    movq %rsp, %rdi
    pushq $2
    popfq
    call {interrupt_kernel}
    ud2
.size interrupt_entry, . - interrupt_entry

/* Double fault and machine check: on a stack of their own, at whose top the CPU's block is found. They do not return. */
.type fatal_entry, @function
fatal_entry:
    save
    cld
    movq %rsp, %rsi
    movq {FRAME_BYTES}(%rsp), %rdi
    call {fatal}
    ud2
.size fatal_entry, . - fatal_entry

/* NMI: as above, but it returns if it was asked for. It may interrupt any instruction of any stub, so it trusts neither GS nor the
   stacks. Of the registers it saves what a callee may change, and RBP, for a sample; all of them if it is the end. */
.globl nmi_entry
.type nmi_entry, @function
nmi_entry:
    subq ${FRAME_RIP}, %rsp
    movq %rax, {FRAME_RAX}(%rsp)
    movq %rcx, {FRAME_RCX}(%rsp)
    movq %rdx, {FRAME_RDX}(%rsp)
    movq %rbp, {FRAME_RBP}(%rsp)
    movq %rsi, {FRAME_RSI}(%rsp)
    movq %rdi, {FRAME_RDI}(%rsp)
    movq %r8, {FRAME_R8}(%rsp)
    movq %r9, {FRAME_R9}(%rsp)
    movq %r10, {FRAME_R10}(%rsp)
    movq %r11, {FRAME_R11}(%rsp)
    cld
    movq %rsp, %rsi
    movq {FRAME_BYTES}(%rsp), %rdi
    call {nmi}
    testb %al, %al
    jz 1f
    movq {FRAME_RAX}(%rsp), %rax
    movq {FRAME_RCX}(%rsp), %rcx
    movq {FRAME_RDX}(%rsp), %rdx
    movq {FRAME_RSI}(%rsp), %rsi
    movq {FRAME_RDI}(%rsp), %rdi
    movq {FRAME_R8}(%rsp), %r8
    movq {FRAME_R9}(%rsp), %r9
    movq {FRAME_R10}(%rsp), %r10
    movq {FRAME_R11}(%rsp), %r11
    addq ${FRAME_RIP}, %rsp
    iretq
1:  movq %rbx, {FRAME_RBX}(%rsp)
    movq %r12, {FRAME_R12}(%rsp)
    movq %r13, {FRAME_R13}(%rsp)
    movq %r14, {FRAME_R14}(%rsp)
    movq %r15, {FRAME_R15}(%rsp)
    movq $2, {FRAME_VECTOR}(%rsp)
    movq $0, {FRAME_ERROR}(%rsp)
    movq %rsp, %rsi
    movq {FRAME_BYTES}(%rsp), %rdi
    call {nmi_foreign}
    ud2
.size nmi_entry, . - nmi_entry

/* To user mode with the registers at RDI, where the next entry saves them; interrupts are off. Whose they are is noted here and no earlier:
   until then a sample must know that the kernel's frames are of the entry before. SYSRET only where it can do no harm: to a thread that
   entered by SYSCALL, at an address of the lower half. */
.globl exit_to_user
.type exit_to_user, @function
exit_to_user:
    leaq {FRAME_BYTES}(%rdi), %rax
    movq %rax, %gs:{CPU_REGS_END}
    movq %rax, %gs:{CPU_RSP0}
    movq %rdi, %rsp
    cmpq ${VECTOR_SYSCALL}, {FRAME_VECTOR}(%rsp)
    jne 1f
    movabsq ${USER_END}, %rax
    cmpq %rax, {FRAME_RIP}(%rsp)
    jae 1f
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    addq $8, %rsp
    popq %r10
    popq %r9
    popq %r8
    popq %rdi
    popq %rsi
    popq %rbp
    popq %rbx
    popq %rdx
    addq $8, %rsp
    popq %rax
    addq $16, %rsp
    popq %rcx
    addq $8, %rsp
    popq %r11
    popq %rsp
    swapgs
    sysretq
1:  restore
    addq $16, %rsp
    swapgs
    iretq
.size exit_to_user, . - exit_to_user

/* Nothing to do: RDI is the top of the stack. The interrupt that ends this enters the scheduler and never comes back; an NMI
   does, to wait on. No thread enters from here. An interrupt that came before is taken at the HLT, since STI takes effect one instruction later. */
.globl enter_idle
.type enter_idle, @function
enter_idle:
    movq $0, %gs:{CPU_REGS_END}
    movq %rdi, %rsp
    xorl %ebp, %ebp
    pushq %rbp
    jmp idle
.size enter_idle, . - enter_idle

stubs_end:

.globl idle
.type idle, @function
idle:
    pushq %rbp
    sti
1:  hlt
    jmp 1b
.size idle, . - idle
idle_end:

/* Back to the kernel's own code, with the registers at RDI that an exception in it has saved: after a fault that was expected. Not among
   the stubs: it is used at boot, before any sample is taken. */
.section .text.resume_kernel, "ax", @progbits
.globl resume_kernel
.type resume_kernel, @function
resume_kernel:
    .cfi_startproc
    movq %rdi, %rsp
    /* Who called it is not on this stack, and is not returned to. */
    .cfi_undefined rip
    restore
    addq $16, %rsp
    iretq
    .cfi_endproc
.size resume_kernel, . - resume_kernel
