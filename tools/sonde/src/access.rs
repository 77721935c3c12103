//! How a machine lets this client in: by a key that is found in one of several places, or, if that is asked for, openly.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use remote_shell::{Key, KeyRing, Mode, Role};

/// Environment variable with a key.
const KEY: &str = "SONDE_KEY";
/// Environment variable with the path of a key file.
const KEY_FILE: &str = "SONDE_KEY_FILE";

/// Where the key is, and which of several.
#[derive(Args, Clone, Debug, Default)]
pub struct Access {
    /// Key, 64 hexadecimal digits; `ps` shows it to everybody on this host
    #[arg(long, value_name = "HEX", conflicts_with_all = ["key_file", "open"])]
    key: Option<String>,
    /// File with a key, or with lines `control HEX` and `observe HEX`
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    key_file: Option<PathBuf>,
    /// Which key of such a file is used [default: control if it has one]
    #[arg(long, value_enum, value_name = "ROLE", conflicts_with_all = ["key", "open"])]
    role: Option<WantedRole>,
    /// Use no key: the machine must have been booted with `udpshell-open`
    #[arg(long)]
    open: bool,
}

/// A role, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WantedRole {
    /// Look.
    Observe,
    /// Everything.
    Control,
}

impl Access {
    /// Finds the key: what the command line says comes first, then the key in the environment, then the file that is named there.
    ///
    /// # Errors
    /// If there is none, or it is none.
    pub fn mode(&self) -> Result<Mode> {
        self.mode_in(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn mode_in(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Mode> {
        if self.open {
            return Ok(Mode::Open);
        }
        let key = if let Some(key) = &self.key {
            Key::parse(key).context("--key")?
        } else if let Some(path) = &self.key_file {
            self.key_of(path)?
        } else if let Some(key) = environment(KEY) {
            Key::parse(key.trim()).context(KEY)?
        } else if let Some(path) = environment(KEY_FILE) {
            self.key_of(Path::new(&path))?
        } else {
            bail!("no key: say --key-file FILE, or set {KEY} or {KEY_FILE}; --open uses none");
        };
        Ok(Mode::Keyed(key))
    }

    /// The key in a file.
    fn key_of(&self, path: &Path) -> Result<Key> {
        let named = || format!("key file {}", path.display());
        let file = fs::read_to_string(path).with_context(named)?;
        if let Ok(key) = Key::parse(file.trim()) {
            return Ok(key);
        }
        let ring = KeyRing::parse(file.as_bytes()).with_context(named)?;
        let key = match self.role {
            Some(WantedRole::Control) => ring.key(Role::Control),
            Some(WantedRole::Observe) => ring.key(Role::Observe),
            None => ring.key(Role::Control).or(ring.key(Role::Observe)),
        };
        let key = key
            .context("it has no key of this role")
            .with_context(named)?;
        Ok(key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &str = "1111111111111111111111111111111111111111111111111111111111111111";
    const OBSERVE: &str = "2222222222222222222222222222222222222222222222222222222222222222";

    /// The key that is found, as digits; nothing without one.
    fn found(access: &Access, environment: &[(&str, &str)]) -> Result<String> {
        let environment = |name: &str| {
            let mut variables = environment.iter();
            let found = variables.find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Ok(match access.mode_in(environment)? {
            Mode::Open => String::new(),
            Mode::Keyed(key) => key.to_hex(),
        })
    }

    /// A key file with this text, which is removed in the end.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> Self {
            let path = env::temp_dir().join(format!("sonde-{name}-{}", std::process::id()));
            fs::write(&path, text).unwrap();
            Self(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn the_command_line_comes_before_the_environment() {
        let file = File::new("first", &format!("control {CONTROL}\nobserve {OBSERVE}\n"));
        let path = file.0.to_str().unwrap();
        let [key, key_file, neither] = [
            Access {
                key: Some(OBSERVE.into()),
                ..Access::default()
            },
            Access {
                key_file: Some(file.0.clone()),
                ..Access::default()
            },
            Access::default(),
        ];
        let both = [(KEY, OBSERVE), (KEY_FILE, path)];
        assert_eq!(found(&key, &[(KEY, CONTROL)]).unwrap(), OBSERVE);
        assert_eq!(found(&key_file, &both).unwrap(), CONTROL);
        assert_eq!(found(&neither, &both).unwrap(), OBSERVE);
        assert_eq!(found(&neither, &both[1..]).unwrap(), CONTROL);
        let open = Access {
            open: true,
            ..Access::default()
        };
        assert_eq!(found(&open, &both).unwrap(), "");
    }

    #[test]
    fn a_file_gives_the_key_of_the_role() {
        let both = File::new(
            "both",
            &format!("# ours\ncontrol {CONTROL}\nobserve {OBSERVE}\n"),
        );
        let one = File::new("one", &format!("observe {OBSERVE}"));
        let bare = File::new("bare", &format!("{CONTROL}\n"));
        let access = |file: &File, role| Access {
            key_file: Some(file.0.clone()),
            role,
            ..Access::default()
        };
        for (file, role, key) in [
            (&both, None, CONTROL),
            (&both, Some(WantedRole::Observe), OBSERVE),
            (&one, None, OBSERVE),
            (&bare, None, CONTROL),
        ] {
            assert_eq!(found(&access(file, role), &[]).unwrap(), key);
        }
        let none = found(&access(&one, Some(WantedRole::Control)), &[]);
        let none = format!("{:#}", none.unwrap_err());
        assert!(none.ends_with(": it has no key of this role"), "{none}");
    }

    #[test]
    fn what_is_wrong_with_a_key_is_told() {
        let told = |access: &Access, environment: &[(&str, &str)]| {
            format!("{:#}", found(access, environment).unwrap_err())
        };
        let access = Access::default();
        assert!(told(&access, &[]).starts_with("no key: say --key-file FILE, or set SONDE_KEY"));
        let short = "SONDE_KEY: a key is 64 hexadecimal digits, not 2";
        assert_eq!(told(&access, &[(KEY, "12")]), short);
        let missing = told(&access, &[(KEY_FILE, "/no/such/file")]);
        assert!(missing.starts_with("key file /no/such/file: "), "{missing}");
        let file = File::new("bad", &format!("control {CONTROL}\nroot {OBSERVE}\n"));
        let line = told(&access, &[(KEY_FILE, file.0.to_str().unwrap())]);
        assert!(line.contains(": line 2: `control KEY`, "), "{line}");
    }
}
