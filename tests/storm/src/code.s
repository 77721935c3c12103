/* What the processes of the storm run: copied to a page of its own in each, at an address that no other process has it at. So a return
   address tells whose it is, and every function begins and ends alike, so that each instruction's chain of frames is known:
   `enter` is 4 bytes, `leave` one, and RET one. */

.macro function name
    .globl \name
\name:
    pushq %rbp
    movq %rsp, %rbp
.endm
.macro return name
    popq %rbp
    ret
    .globl \name\()_end
\name\()_end:
.endm
/* The outermost frame: it has no caller. */
.macro outermost name
    .globl \name
\name:
    xorl %ebp, %ebp
    pushq %rbp
    pushq %rbp
    movq %rsp, %rbp
.endm
/* A call, and a name for the address after it. */
.macro calls name, label
    call \name
    .globl \label
\label:
.endm

/* The time so many nanoseconds from now, in RAX, by the information page. */
.macro deadline nanoseconds
    rdtsc
    shlq $32, %rdx
    orq %rdx, %rax
    movabsq ${INFO_PAGE}, %rcx
    subq {TSC_BOOT}(%rcx), %rax
    mulq {TSC_MULT}(%rcx)
    shrdq $32, %rdx, %rax
    addq $\nanoseconds, %rax
.endm

/* A page of the boot archive is mapped, so it has one for itself. */
.section .text.storm, "ax", @progbits
.balign 4096
.globl storm_code, storm_code_end
storm_code:

/* A client: RDI has the handle of an endpoint in its lower half, that of a memory object in its upper. */
outermost client
    movl %edi, %ebx
    shrq $32, %rdi
    movl %edi, %r13d
    movl ${NOTIFICATION_CREATE}, %eax
    syscall
    movl %edi, %r15d
1:  calls client_round, client_after_round
    jmp 1b
.globl client_end
client_end:

function client_round
    calls client_maps, round_after_maps
    calls client_calls, round_after_calls
    calls client_waits, round_after_waits
    movl ${DEPTH}, %r14d
    calls client_works, round_after_works
return client_round

/* Maps pages, writes to the first, and unmaps them. */
function client_maps
    movl ${MAP}, %eax
    xorl %edi, %edi
    movl %r13d, %esi
    movabsq ${SPARE}, %rdx
    xorl %r10d, %r10d
    movl ${SPARE_PAGES}, %r8d
    movl ${READ_WRITE}, %r9d
    syscall
    testq %rax, %rax
    jnz 1f
    movabsq ${SPARE}, %rsi
    movq %rsi, (%rsi)
    movl ${UNMAP}, %eax
    xorl %edi, %edi
    movl ${SPARE_PAGES}, %edx
    syscall
1:
return client_maps

/* Some calls are over before they are answered. */
function client_calls
    deadline {MOMENT}
    movq %rax, %rdx
    movl ${CALL}, %eax
    movl %ebx, %edi
    xorl %esi, %esi
    syscall
.globl client_called
client_called:
return client_calls

/* Waits for a notification that its timer signals. */
function client_waits
    deadline {MOMENT}
    movq %rax, %rdx
    movl ${TIMER_SET}, %eax
    movl %r15d, %edi
    movl $1, %esi
    syscall
    deadline {MOMENT}
    movq %rax, %rsi
    movl ${WAIT}, %eax
    movl %r15d, %edi
    syscall
return client_waits

/* Calls itself R14 - 1 times, then works. */
function client_works
    decl %r14d
    jz 1f
    calls client_works, works_after_works
    jmp 3f
1:  movl ${WORK}, %eax
2:  decl %eax
    jnz 2b
3:
return client_works

/* Receives from the endpoint in the lower half of RDI; each badge has a function of its own among eight. */
.macro serving name, functions
outermost \name
    movl %edi, %ebx
    shrq $32, %rdi
    movl %edi, %r13d
1:  movl ${RECEIVE}, %eax
    movl %ebx, %edi
    movq $-1, %rsi
    syscall
2:  testq %rax, %rax
    jnz 1b
    testq %rdx, %rdx
    jnz 1b
    andl $7, %edi
    shll $5, %edi
    leaq \functions(%rip), %rax
    addq %rdi, %rax
    calls *%rax, \name\()_after
    movl ${REPLY_RECEIVE}, %eax
    movl %ebx, %edi
    xorl %esi, %esi
    movq $-1, %rdx
    syscall
    jmp 2b
.globl \name\()_end
\name\()_end:
.endm

/* A server, and one that stands between a client and that: it calls the endpoint in the upper half of RDI. */
serving server, serve
serving relay, pass

.balign 32
.globl serve
serve:
.rept 8
    .balign 32
    pushq %rbp
    movq %rsp, %rbp
    movl ${WORK}, %eax
1:  decl %eax
    jnz 1b
    popq %rbp
    ret
    .balign 32
.endr
.globl pass
pass:
.rept 8
    .balign 32
    pushq %rbp
    movq %rsp, %rbp
    movl ${CALL}, %eax
    movl %r13d, %edi
    xorl %esi, %esi
    movq $-1, %rdx
    syscall
    popq %rbp
    ret
    .balign 32
.endr
storm_code_end:
.balign 4096
.text
