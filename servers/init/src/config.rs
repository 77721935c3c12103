//! Reading the compiled configuration. The builder checked it in detail; here only what init itself relies on is.

use alloc::string::String;

use ipc::abi::layout::{NAME_MAX, PAGE_SIZE};
use ipc::abi::startup::STACK_MAX;
use ipc::proto::system::{DEFAULT, INIT, PRIORITY_MAX, Program, SystemConfig};

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The bytes are not a configuration.
    Damaged,
    /// There is no entry of this name, and there must be.
    Missing(&'static str),
    /// A number or a name of this program is out of its range.
    OutOfRange(String),
    /// Two programs have this name, or serve this endpoint.
    Twice(String),
    /// Somebody calls this endpoint, which nobody serves.
    NotServed(String),
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Damaged => f.write_str("the system configuration is damaged"),
            Self::Missing(name) => write!(f, "the system configuration lacks {name}"),
            Self::OutOfRange(name) => write!(f, "{name}: a number or a name is out of range"),
            Self::Twice(name) => write!(f, "{name} is there twice"),
            Self::NotServed(name) => write!(f, "nobody serves {name}"),
        }
    }
}

/// Reads a configuration and checks what init relies on.
///
/// # Errors
/// The first defect.
pub fn read(bytes: &[u8]) -> Result<SystemConfig, ConfigError> {
    let (config, rest): (SystemConfig, _) =
        postcard::take_from_bytes(bytes).map_err(|_| ConfigError::Damaged)?;
    if !rest.is_empty() {
        return Err(ConfigError::Damaged);
    }
    check(&config)?;
    Ok(config)
}

fn check(config: &SystemConfig) -> Result<(), ConfigError> {
    for required in [INIT, DEFAULT] {
        if !config
            .programs
            .iter()
            .any(|program| program.name == required)
        {
            return Err(ConfigError::Missing(required));
        }
    }
    let mut served: alloc::vec::Vec<&String> = alloc::vec::Vec::new();
    for (index, program) in config.programs.iter().enumerate() {
        if !in_range(program) {
            return Err(ConfigError::OutOfRange(program.name.clone()));
        }
        let others = config.programs.get(..index).unwrap_or_default();
        if others.iter().any(|other| other.name == program.name) {
            return Err(ConfigError::Twice(program.name.clone()));
        }
        for name in &program.serves {
            if served.contains(&name) {
                return Err(ConfigError::Twice(name.clone()));
            }
            served.push(name);
        }
    }
    let mut called = config.programs.iter().flat_map(|program| &program.calls);
    match called.find(|name| !served.contains(name)) {
        Some(name) => Err(ConfigError::NotServed(name.clone())),
        None => Ok(()),
    }
}

fn in_range(program: &Program) -> bool {
    let name_fits = |name: &String| (1..=NAME_MAX).contains(&name.len());
    let stack = u64::from(program.stack_kib) * 1024;
    name_fits(&program.name)
        && program.serves.iter().all(name_fits)
        && program.priority <= PRIORITY_MAX
        && (u64::from(program.memory_kib) * 1024).is_multiple_of(PAGE_SIZE)
        && stack.is_multiple_of(PAGE_SIZE)
        && (PAGE_SIZE..=STACK_MAX).contains(&stack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{config, program};
    use alloc::vec::Vec;

    fn bytes(config: &SystemConfig) -> Vec<u8> {
        let mut buffer = [0; 4096];
        postcard::to_slice(config, &mut buffer).unwrap().to_vec()
    }

    #[test]
    fn a_good_configuration_is_read() {
        let config = config();
        assert_eq!(read(&bytes(&config)), Ok(config));
    }

    #[test]
    fn damage_is_noticed() {
        let good = bytes(&config());
        for len in 0..good.len() {
            assert_eq!(read(&good[..len]), Err(ConfigError::Damaged));
        }
        let longer = [good.as_slice(), &[0]].concat();
        assert_eq!(read(&longer), Err(ConfigError::Damaged));
    }

    #[test]
    fn what_init_relies_on_is_checked() {
        let changed = |change: &dyn Fn(&mut SystemConfig)| {
            let mut config = config();
            change(&mut config);
            read(&bytes(&config)).unwrap_err()
        };
        assert_eq!(
            changed(&|config| config.programs.retain(|program| program.name != "default")),
            ConfigError::Missing("default")
        );
        assert_eq!(
            changed(&|config| config.programs.push(program("console"))),
            ConfigError::Twice("console".into())
        );
        assert_eq!(
            changed(&|config| config.programs[0].serves.push("console".into())),
            ConfigError::Twice("console".into())
        );
        assert_eq!(
            changed(&|config| config.programs[0].calls.push("nobody".into())),
            ConfigError::NotServed("nobody".into())
        );
        type Change = fn(&mut Program);
        let changes: [Change; 6] = [
            |program| program.stack_kib = 0,
            |program| program.stack_kib = 3,
            |program| program.stack_kib = 4096,
            |program| program.priority = 32,
            |program| program.memory_kib = 5,
            |program| program.name = "seventeen letters".into(),
        ];
        for change in changes {
            let error = changed(&|config| change(&mut config.programs[1]));
            assert!(matches!(error, ConfigError::OutOfRange(_)), "{error}");
        }
    }
}
