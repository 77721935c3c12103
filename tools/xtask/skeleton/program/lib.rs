//! The work of the program `@name@`. It knows nothing of the machine, so it is tested on the host.

use core::ops::Range;

/// How many of these numbers are primes.
#[must_use]
pub fn primes(numbers: Range<u64>) -> u64 {
    numbers.filter(|&number| is_prime(number)).count() as u64
}

fn is_prime(number: u64) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    number > 1 && divisors.all(|divisor| !number.is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_counted() {
        assert_eq!(primes(0..30), 10);
        assert_eq!(primes(24..29), 0);
        assert_eq!(primes(0..10_000), 1229);
    }
}
