//! Random bytes from the processor.
//!
//! There is no other source in a guest that has just started. The kernel keeps no pool: who needs bytes that nobody can know
//! takes them from the instruction, or does without what needs them.

use core::arch::x86_64::{__cpuid, _rdrand64_step};

/// Leaf 1, ECX: the processor has RDRAND.
const RDRAND: u32 = 1 << 30;
/// Intel's manual says that ten tries in a row do not fail on a processor that works (Vol. 1, 7.3.17.1). Other processors
/// share the source among all cores, so this is more patient.
const TRIES: u32 = 1000;

/// The processor's generator.
#[derive(Clone, Copy, Debug)]
pub struct Generator(());

/// The generator gave nothing: it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl Generator {
    /// The generator, if the processor has one that works: it must give two numbers that differ, which a known defect of
    /// some processors after a suspend does not.
    #[must_use]
    pub fn new() -> Option<Self> {
        if __cpuid(1).ecx & RDRAND == 0 {
            return None;
        }
        let generator = Self(());
        let (first, second) = generator.word().ok().zip(generator.word().ok())?;
        (first != second).then_some(generator)
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    /// If the generator gives nothing any more. What is in `bytes` then is not random.
    pub fn fill(self, bytes: &mut [u8]) -> Result<(), Broken> {
        for part in bytes.chunks_mut(size_of::<u64>()) {
            part.copy_from_slice(&self.word()?.to_le_bytes()[..part.len()]);
        }
        Ok(())
    }

    fn word(self) -> Result<u64, Broken> {
        let mut word = 0;
        for _ in 0..TRIES {
            // SAFETY: a generator is only made where CPUID has the instruction, and CPUs of one machine have the same ones.
            if unsafe { _rdrand64_step(&mut word) } == 1 {
                return Ok(word);
            }
            core::hint::spin_loop();
        }
        Err(Broken)
    }
}
