//! What `system_power` does with the machine.

use super::numbered::numbered;

numbered! {
    /// What happens to the machine in the end.
    pub enum PowerAction: u64 {
        /// Off.
        Off = 0,
        /// Restart.
        Reboot = 1,
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
