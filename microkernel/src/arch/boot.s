/* From the loader to Rust: the CPU is in 32-bit protected mode without paging, EBX points to the start information
   (the PVH boot protocol). This makes a temporary map of the first 4 GiB: at their own addresses, in the direct map, and the
   first of them where the kernel is linked. */

.section .note.pvh, "a", @note
.balign 4
.long 4                         /* bytes of the name */
.long 8                         /* bytes of the value */
.long 18                        /* XEN_ELFNOTE_PHYS32_ENTRY */
.asciz "Xen"
.quad _start32

/* Refuses a processor whose features in EDX lack a bit. */
.macro need bit, message
    movl $\message, %esi
    btl $\bit, %edx
    jnc refuse
.endm

.section .boot.text, "ax", @progbits
.code32
.globl _start32
_start32:
    cli
    cld
    movl $boot_stack_top, %esp
    movl %ebx, %ebp

    /* What is used before `kcore::boot::features` can look: by this code, and CMOV by compiled code. A leaf that is not there
       gives another one's bits. */
    movl $lacks_long_mode, %esi
    movl $0x80000000, %eax
    cpuid
    cmpl $0x80000001, %eax
    jb refuse
    movl $0x80000001, %eax
    cpuid
    need 29, lacks_long_mode
    need 20, lacks_nx
    movl $lacks_leaf, %esi
    xorl %eax, %eax
    cpuid
    testl %eax, %eax
    jz refuse
    movl $1, %eax
    cpuid
    need 5, lacks_msr
    need 6, lacks_pae
    need 15, lacks_cmov

    /* On a machine with too little memory the archive, which is loaded last, lies over the kernel. Where that spares this code,
       it can say so. The start information gives at 12 the number of modules and at 16 where they are described: each
       by 64 bits of address and 64 of size. What is above 4 GiB is not over the kernel. */
    cmpl ${START_MAGIC}, (%ebp)
    jne 1f
    cmpl $0, 12(%ebp)
    je 1f
    cmpl $0, 20(%ebp)
    jne 1f
    movl 16(%ebp), %edi
    movl (%edi), %eax
    cmpl $0, 4(%edi)
    jne 1f
    cmpl $__kernel_end - {KERNEL_BASE}, %eax
    jae 1f
    movl $lacks_memory, %esi
    addl 8(%edi), %eax
    jc refuse
    cmpl $_start32, %eax
    ja refuse
1:

    /* Four directories of 2 MiB pages: present, writable, large. */
    movl $boot_directories, %edi
    movl $0x83, %eax
    xorl %edx, %edx
    movl $2048, %ecx
1:  movl %eax, (%edi)
    movl %edx, 4(%edi)
    addl $0x200000, %eax
    addl $8, %edi
    loop 1b

    /* One directory pointer table for the first two maps, one for the kernel's. */
    movl $boot_directories + 3, %eax
    movl %eax, boot_pointers
    movl %eax, boot_pointers_kernel + 510 * 8
    addl $0x1000, %eax
    movl %eax, boot_pointers + 8
    addl $0x1000, %eax
    movl %eax, boot_pointers + 16
    addl $0x1000, %eax
    movl %eax, boot_pointers + 24
    movl $boot_pointers + 3, boot_root
    movl $boot_pointers + 3, boot_root + 256 * 8
    movl $boot_pointers_kernel + 3, boot_root + 511 * 8

    movl $boot_root, %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $0x20, %eax             /* PAE */
    movl %eax, %cr4
    movl $0xc0000080, %ecx      /* EFER */
    rdmsr
    orl $0x900, %eax            /* LME, NXE */
    wrmsr
    movl %cr0, %eax
    orl $0x80010001, %eax       /* PG, WP, PE */
    movl %eax, %cr0
    lgdt boot_gdtr
    ljmp $0x08, $start64

/* Prints the line at ESI on COM1 and ends the machine. */
refuse:
    lodsb
    testb %al, %al
    jz 3f
    movb %al, %bl
    movl $0xffff, %ecx
2:  movw $0x3fd, %dx
    inb %dx, %al
    testb $0x20, %al
    loopz 2b
    movw $0x3f8, %dx
    movb %bl, %al
    outb %al, %dx
    jmp refuse
3:  movw ${EXIT_PORT}, %dx
    movl ${EXIT_FAILURE}, %eax
    outl %eax, %dx
4:  hlt
    jmp 4b

lacks_long_mode: .asciz "Sonde: this processor lacks 64-bit mode\r\n"
lacks_nx: .asciz "Sonde: this processor lacks no-execute pages (NX)\r\n"
lacks_leaf: .asciz "Sonde: this processor lacks CPUID features\r\n"
lacks_msr: .asciz "Sonde: this processor lacks model-specific registers\r\n"
lacks_pae: .asciz "Sonde: this processor lacks physical address extension (PAE)\r\n"
lacks_cmov: .asciz "Sonde: this processor lacks conditional moves (CMOV)\r\n"
lacks_memory: .asciz "Sonde: not enough memory: the boot archive lies over the kernel\r\n"

.code64
start64:
    movl $0x10, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    movl %ebp, %edi             /* physical address of the start information */
    xorl %ebp, %ebp
    movabsq $boot_stack_top + {DIRECT_MAP}, %rsp
    movabsq ${start}, %rax
    call *%rax
    ud2

.balign 8
boot_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
boot_gdtr: .word 23
    .long boot_gdt

.section .boot.bss, "aw", @nobits
.balign 4096
.globl boot_root
boot_root: .skip 4096
boot_pointers: .skip 4096
boot_pointers_kernel: .skip 4096
boot_directories: .skip 4 * 4096
.skip 32768
boot_stack_top:
