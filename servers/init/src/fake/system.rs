//! A small system: its archive, and its entries.

use ipc::bootfs::Archive;
use ipc::proto::system::{OnDeath, Program, Start, SystemConfig};

/// An archive with these files.
pub fn archive(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = Archive::default();
    for (name, data) in files {
        archive.add(name, data);
    }
    archive.finish()
}

/// An entry that has nothing.
pub fn program(name: &str) -> Program {
    Program {
        name: name.into(),
        image: String::new(),
        start: Start::Demand,
        priority: 3,
        memory_kib: 512,
        stack_kib: 64,
        serves: Vec::new(),
        calls: Vec::new(),
        ports: Vec::new(),
        interrupts: Vec::new(),
        device_memory: Vec::new(),
        pci: None,
        profiler: false,
        bootfs: false,
        log: false,
        system: Vec::new(),
        on_death: OnDeath::Leave,
    }
}

/// init, a console that is restarted, a shell without which nothing works, and the default.
pub fn config() -> SystemConfig {
    let server = |name: &str, on_death| Program {
        image: format!("bin/{name}"),
        start: Start::Boot,
        serves: vec![name.into()],
        on_death,
        ..program(name)
    };
    let console = Program {
        interrupts: vec![4],
        log: true,
        ..server("console", OnDeath::Restart)
    };
    let shell = Program {
        calls: vec!["init".into(), "console".into()],
        ..server("shell", OnDeath::Halt)
    };
    let init = server("init", OnDeath::Halt);
    SystemConfig {
        programs: vec![init, console, shell, program("default")],
    }
}
