//! The boot command line, as each of its readers takes it, and the key file of the remote shell.

use std::num::NonZero;

use arbitrary::Unstructured;
use net::remote::settings::Wanted;
use net::settings::{self as address, Settings};
use remote_shell::{Command, Key, KeyRing, Role};

/// A line, whose length goes before it, and a file.
pub fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let line: &str = input.arbitrary().unwrap_or_default();
    let file = input.take_rest();

    let words = kcore::boot::command_line::words(line).count();
    assert!(words <= line.split(' ').count());
    if let Some(unknown) = kcore::boot::command_line::unknown(line) {
        let _ = unknown.to_string();
    }

    match address::read(line) {
        Ok(Settings::Static {
            address: own,
            gateway,
        }) => {
            assert!(address::is_host(own.address(), own));
            assert!(gateway.is_none_or(|at| address::is_neighbour(at, own)));
        }
        Ok(_) => {}
        Err(mistake) => assert!(!mistake.to_string().is_empty()),
    }

    match net::remote::settings::read(line, Some(file)) {
        Ok(Wanted::At(port, access)) => {
            assert!(port >= NonZero::<u16>::MIN);
            let asked = line.split(' ').any(|word| word == "udpshell-open");
            let is_open = matches!(access, net::remote::settings::Access::Open);
            assert_eq!(is_open, asked, "nobody asked for an open shell");
        }
        Ok(Wanted::Off) => {}
        Err(mistake) => assert!(!mistake.to_string().is_empty()),
    }

    match KeyRing::parse(file) {
        Ok(ring) => {
            let keys: Vec<_> = [Role::Control, Role::Observe]
                .into_iter()
                .filter_map(|role| Some((role, ring.key(role)?)))
                .collect();
            assert!(!keys.is_empty(), "no key, and nobody is told");
            for (role, key) in keys {
                let line = format!("{role} {}\n", key.to_hex());
                let read = KeyRing::parse(line.as_bytes());
                assert_eq!(
                    read.ok().as_ref().and_then(|ring| ring.key(role)),
                    Some(key)
                );
            }
        }
        Err(mistake) => assert!(!mistake.to_string().is_empty()),
    }
    let _ = Key::parse(line);
    if let Ok(command) = Command::new(line) {
        assert!(!command.as_str().contains(char::is_control));
    }
}
