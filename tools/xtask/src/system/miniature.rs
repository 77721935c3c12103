//! A guest of a hundred bytes: it proves that the machine, its exit codes and the serial line are what every other test takes
//! them for, whatever state the kernel is in.
//!
//! It prints the prompt, also after each line, echoes what is typed, and obeys three letters: `q` powers off, `f` makes a
//! triple fault, `w` computes for a while, says `.` and powers off.

/// Where it is loaded, in physical memory.
const BASE: u32 = 0x10_0000;
/// Where its code begins in the file.
const CODE: usize = 0x100;
/// Where the note of the boot protocol begins in the file: after the file header and two segments.
const NOTE: usize = 64 + 2 * 56;

/// 32-bit code, as the boot protocol enters it: flat segments, interrupts off.
const TEXT: &[&[u8]] = &[
    &[0x66, 0xba, 0xf8, 0x03],             //  0  mov dx, 0x3f8
    &[0xb0, b'>', 0xee, 0xb0, b' ', 0xee], //  4  prompt: print "> "
    &[0x66, 0xba, 0xfd, 0x03],             // 10  listen: mov dx, 0x3fd
    &[0xec, 0xa8, 0x01],                   // 14  in al, dx; test al, 1
    &[0x74, 0xf7],                         // 17  jz listen
    &[0x66, 0xba, 0xf8, 0x03],             // 19  mov dx, 0x3f8
    &[0xec, 0xee],                         // 23  in al, dx; out dx, al
    &[0x3c, b'\n', 0x74, 0xe7],            // 25  cmp al, '\n'; je prompt
    &[0x3c, b'q', 0x74, 19],               // 29  cmp al, 'q'; je quit
    &[0x3c, b'f', 0x74, 28],               // 33  cmp al, 'f'; je fault
    &[0x3c, b'w', 0x75, 0xe1],             // 37  cmp al, 'w'; jne listen
    &[0xb9, 0, 0, 0, 0x08],                // 41  mov ecx, 1 << 27
    &[0x49, 0x75, 0xfd],                   // 46  wait: dec ecx; jnz wait
    &[0xb0, b'.', 0xee],                   // 49  print "."
    &[0x66, 0xba, 0xf4, 0x00],             // 52  quit: mov dx, 0xf4
    &[0xb8, 0x10, 0, 0, 0, 0xef],          // 56  mov eax, 0x10; out dx, eax
    &[0xf4, 0xeb, 0xfd],                   // 62  hlt; jmp back to it
    &[0x0f, 0x01, 0x1d],                   // 65  fault: lidt [no table]
    &(BASE + CODE as u32 + 74).to_le_bytes(),
    &[0x0f, 0x0b],             // 72  ud2
    &[0, 0, 0, 0, 0, 0, 0, 0], // 74  no table
];

/// The ELF file.
pub fn elf() -> Vec<u8> {
    let entry = u64::from(BASE) + CODE as u64;
    let text = TEXT.concat();
    let len = (CODE + text.len()) as u64;
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    push16(&mut out, &[2, 62]); // executable, x86-64
    push32(&mut out, &[1]);
    push64(&mut out, &[entry, 64, 0]); // segments at 64, no sections
    push32(&mut out, &[0]);
    push16(&mut out, &[64, 56, 2, 64, 0, 0]);
    push32(&mut out, &[1, 7]); // PT_LOAD, all rights
    push64(&mut out, &[0, BASE.into(), BASE.into(), len, len, 4096]);
    push32(&mut out, &[4, 4]); // PT_NOTE
    let note = u64::from(BASE) + NOTE as u64;
    push64(&mut out, &[NOTE as u64, note, note, 24, 24, 4]);
    // XEN_ELFNOTE_PHYS32_ENTRY (Xen, public/elfnote.h): where to enter.
    push32(&mut out, &[4, 8, 18]);
    out.extend(b"Xen\0");
    push64(&mut out, &[entry]);
    out.resize(CODE, 0);
    out.extend(text);
    out
}

fn push16(out: &mut Vec<u8>, numbers: &[u16]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn push32(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn push64(out: &mut Vec<u8>, numbers: &[u64]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}
