//! Links a program for Sonde. Every package with programs names this file as its build script, so that the linker script
//! and its options are said once.

use std::env;
use std::path::Path;

fn main() {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for every build script");
    let script = Path::new(&package)
        .ancestors()
        .map(|folder| folder.join("sysroot/program.ld"))
        .find(|script| script.is_file())
        .expect("the linker script is in the same repository");
    println!("cargo:rerun-if-changed={}", script.display());
    println!(
        "cargo:rerun-if-changed={}",
        script.with_file_name("link.rs").display()
    );
    println!("cargo:rustc-link-arg-bins=-T{}", script.display());
    for option in [
        "--build-id=sha1",
        "-zmax-page-size=0x1000",
        "--gc-sections",
        "--no-dynamic-linker",
        "--no-eh-frame-hdr",
    ] {
        println!("cargo:rustc-link-arg-bins={option}");
    }
}
