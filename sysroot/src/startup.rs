//! What the loader left for this program: the startup page and the kernel's information page.

use ipc::abi::info::InfoPage;
use ipc::abi::layout::{INFO_PAGE, PAGE_SIZE};
use ipc::abi::startup::{STARTUP_PAGE, StartupPage};
use ipc::abi::{ABI_VERSION, Handle};

/// Ends a program that was built for another kernel or loader than this one's: the first thing that a program does.
pub fn check_version() {
    if info().abi_version != u64::from(ABI_VERSION) {
        crate::exit(crate::ExitCode::BAD_STARTUP);
    }
    // Looking at it ends a program whose loader is of another version.
    let _ = page();
}

/// The startup page. It never changes, so it is read anew at each call instead of being kept.
#[must_use]
pub fn page() -> StartupPage<'static> {
    // SAFETY: the loader maps the page there before the program's first instruction, read-only and for good, and no other
    // address space maps it for writing then (`ipc::abi::startup`).
    let bytes =
        unsafe { core::slice::from_raw_parts(STARTUP_PAGE as *const u8, PAGE_SIZE as usize) };
    // A loader of another version cannot be reported to anybody: no handle can be found. The exit code must do.
    StartupPage::read(bytes).unwrap_or_else(|_| crate::exit(crate::ExitCode::BAD_STARTUP))
}

/// The handle that was given under this name, for as long as the program runs; `None` if it was not given.
#[must_use]
pub fn handle(name: &str) -> Option<Handle> {
    page().handle(name)
}

/// The program's arguments, without its name.
pub fn args() -> impl Iterator<Item = &'static str> {
    page().args()
}

/// The program's name.
#[must_use]
pub fn name() -> &'static str {
    page().name
}

/// The kernel's information page.
#[must_use]
pub fn info() -> InfoPage {
    // SAFETY: the kernel maps the page into every process, aligned, read-only and for good, and never changes it once
    // programs run.
    unsafe { (INFO_PAGE as *const InfoPage).read() }
}
