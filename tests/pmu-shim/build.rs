//! How the shim is linked: by its own script, for the bare target only.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=shim.ld");
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo always sets it");
    let options = [
        "--build-id=sha1",
        "-zmax-page-size=0x1000",
        "--gc-sections",
        "--no-dynamic-linker",
        "--no-eh-frame-hdr",
    ];
    for option in options {
        println!("cargo:rustc-link-arg-bins={option}");
    }
    println!("cargo:rustc-link-arg-bins=-T{here}/shim.ld");
}
