//! What `system_power` does with the machine.

/// What happens to the machine in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum PowerAction {
    /// Off.
    Off = 0,
    /// Restart.
    Reboot = 1,
}

impl PowerAction {
    /// The action with this number.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Option<Self> {
        Some(match raw {
            0 => Self::Off,
            1 => Self::Reboot,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pinned() {
        for (raw, action) in [(0, PowerAction::Off), (1, PowerAction::Reboot)] {
            assert_eq!(PowerAction::from_raw(raw), Some(action));
            assert_eq!(action as u64, raw);
        }
        assert_eq!(PowerAction::from_raw(2), None);
    }
}
