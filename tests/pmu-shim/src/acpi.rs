//! Takes the HPET away: where it is, and then no table of that name.

use crate::memory::{self, Physical};
use crate::report::give_up;
use kcore::boot::acpi::{Tables, hpet};

/// Where the HPET's registers are. From now on the guest finds no table that tells it.
pub fn take_hpet(root: Option<u64>) -> u64 {
    let tables =
        Tables::find(&Physical, root).unwrap_or_else(|error| give_up(format_args!("{error}")));
    let found = tables.get(b"HPET");
    let base = found.and_then(|table| hpet::base(&Physical, table));
    let (Some(table), Some(base)) = (found, base) else {
        give_up(format_args!("this machine has no HPET"));
    };
    // The sum of all bytes stays what it is (ACPI specification 6.5, 5.2.6).
    let name = b"TEPH";
    // SAFETY: the table's own bytes, which firmware put into RAM; nobody reads them meanwhile.
    unsafe { memory::write(table.at, name) };
    base
}
