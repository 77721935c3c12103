//! The cases that follow from the types of a call's arguments: each is made once as it should be, then again with one argument
//! after the other made wrong.

extern crate alloc;

use alloc::vec::Vec;
use core::fmt;

use ipc::abi::message::{HANDLES_MAX, PAYLOAD_MAX};
use ipc::abi::{Error, Handle, ObjectType, Rights, Syscall, Tag};
use sysroot::{println, syscall};

use crate::spec::{Arg, Arguments, Spec, Want, Zero};
use crate::suite::Suite;
use crate::table::{self, Kind};
use crate::world::{NEVER_ISSUED, TABLE, World, raw};

/// Whether a call's cases fit what the table says of it; says so if not.
pub fn fits(spec: &Spec) -> bool {
    let kinds = table::arguments(spec.call);
    let fits = kinds.len() == spec.arguments.len()
        && kinds.iter().zip(spec.arguments).all(|(kind, arg)| {
            let bare = matches!(arg, Arg::Rights([]) | Arg::Number([]));
            !bare && arg.kind().is_none_or(|other| other == *kind)
        });
    if !fits {
        println!(
            "FAIL {}: its cases are not for its arguments",
            spec.call.name()
        );
    }
    fits
}

/// Every case of a call.
pub fn run(suite: &mut Suite, spec: &Spec) {
    let mut world = World::new();
    let mut tries = Tries {
        suite,
        spec,
        world: &mut world,
    };
    tries.attempt("as it should be", spec.answer, |_, _| ());
    for (place, arg) in spec.arguments.iter().enumerate() {
        let name = spec
            .call
            .arguments()
            .get(place)
            .copied()
            .unwrap_or_default();
        match *arg {
            Arg::Handle { kind, rights, zero } => {
                tries.wrong_handles(place, name);
                tries.zero(place, name, zero);
                if let Some(kind) = kind {
                    tries.wrong_types(place, name, kind);
                }
                tries.missing_rights(place, name, rights);
            }
            Arg::Rights(values) => {
                let first_unknown = u64::from(Rights::all().bits()) + 1;
                for unknown in [first_unknown, 1 << 31, 1 << 32, u64::MAX] {
                    tries.value(
                        place,
                        name,
                        "no such right",
                        unknown,
                        Err(Error::BadArgument),
                    );
                }
                tries.values(place, name, values);
            }
            Arg::Tag => tries.tags(place, name),
            Arg::Number(values) => tries.values(place, name, values),
            Arg::Any => {
                for value in [0, 1, u64::MAX] {
                    tries.value(place, name, "any", value, spec.answer);
                }
            }
            Arg::Apart => {}
        }
    }
    if let Some(want) = spec.dead {
        let dead = raw(tries.world.dead.raw());
        tries.value(0, "process", "one that has ended", dead, want);
    }
}

/// What fills a handle table: copies of a handle. Closed when dropped.
pub struct Filling(Vec<Handle>);

impl Filling {
    /// Fills this program's table, and says with what error that ended.
    pub fn new(of: Handle) -> (Self, Error) {
        let mut copies = Vec::with_capacity(TABLE);
        loop {
            match syscall::handle_duplicate(of, Rights::empty()) {
                Ok(copy) => copies.push(copy),
                Err(error) => return (Self(copies), error),
            }
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        for copy in &self.0 {
            // They are this program's, and nobody has closed them.
            let _ = syscall::handle_close(*copy);
        }
    }
}

/// A call that makes handles fails when there is no place for one, with this error, and makes nothing.
pub fn without_room(suite: &mut Suite, spec: &Spec, error: Error) {
    let here = spec.call != Syscall::handle_give;
    let makes = table::results(spec.call).contains(&Kind::Handle) && here;
    let Some(valid) = spec.valid.filter(|_| makes && spec.answer.is_ok()) else {
        return;
    };
    let mut world = World::new();
    let arguments = valid(&mut world);
    let (filling, full) = Filling::new(world.notification.raw());
    suite.equal(spec.call, "the table is full", full, error);
    let case = "no place for a handle";
    let returned = suite.check(spec.call, case, &arguments, Err(error));
    drop(filling);
    (spec.undo)(&mut world, &arguments, &returned);
}

struct Tries<'a> {
    suite: &'a mut Suite,
    spec: &'a Spec,
    world: &'a mut World,
}

impl Tries<'_> {
    /// Makes the call with arguments that were right before `spoil` saw them. If it fails, the handles that it was to be made with
    /// must be as they were.
    fn attempt(
        &mut self,
        case: impl fmt::Display,
        want: Want,
        spoil: impl FnOnce(&mut World, &mut Arguments),
    ) {
        let Some(valid) = self.spec.valid else { return };
        let what = self.spec.call;
        let mut arguments = valid(self.world);
        let handles = self.handles(&arguments);
        let before = handles.map(syscall::handle_info);
        spoil(self.world, &mut arguments);
        let returned = self.suite.check(what, &case, &arguments, want);
        if returned.status != 0 && handles.map(syscall::handle_info) != before {
            self.suite
                .holds(what, format_args!("{case}: handles are kept"), false);
        }
        if returned.status == 0 && what != Syscall::handle_give {
            for (kind, result) in table::results(what).iter().zip(returned.registers) {
                if *kind == Kind::Handle {
                    let made = syscall::handle_close(Handle::from_raw(result as u32));
                    self.suite.equal(
                        what,
                        format_args!("{case}: a handle was made"),
                        made,
                        Ok(()),
                    );
                }
            }
        }
        (self.spec.undo)(self.world, &arguments, &returned);
        self.world.tidy();
    }

    /// The handles among right arguments; nothing in the other places.
    fn handles(&self, arguments: &Arguments) -> [Handle; 6] {
        let kinds = table::arguments(self.spec.call);
        let mut handles = [Handle::NONE; 6];
        for (place, (kind, argument)) in kinds.iter().zip(arguments).enumerate() {
            if *kind == Kind::Handle {
                handles[place] = Handle::from_raw(*argument as u32);
            }
        }
        handles
    }

    /// Makes the call with another value in one place.
    fn value(&mut self, place: usize, name: &str, what: &str, value: u64, want: Want) {
        self.attempt(format_args!("{name}: {what}"), want, |_, arguments| {
            arguments[place] = value;
        });
    }

    fn values(&mut self, place: usize, name: &str, values: &[(&str, u64, Want)]) {
        for &(what, value, want) in values {
            self.value(place, name, what, value, want);
        }
    }

    /// Handles that name nothing.
    fn wrong_handles(&mut self, place: usize, name: &str) {
        let bad = Err(Error::BadHandle);
        self.value(place, name, "never issued", raw(NEVER_ISSUED), bad);
        let outside = raw(Handle::new(0xfff, 1));
        self.value(place, name, "behind the largest table", outside, bad);
        self.value(place, name, "no generation", 5, bad);
        self.value(place, name, "all of 32 bits", u32::MAX.into(), bad);
        let wide = Err(Error::BadArgument);
        self.value(place, name, "all of 64 bits", u64::MAX, wide);
        self.attempt(format_args!("{name}: 33 bits"), wide, |_, arguments| {
            arguments[place] |= 1 << 32;
        });
        self.attempt(
            format_args!("{name}: another generation"),
            bad,
            |_, arguments| {
                arguments[place] ^= 1 << 31;
            },
        );
        self.attempt(format_args!("{name}: closed"), bad, |world, arguments| {
            arguments[place] = raw(stale(world));
        });
        let case = format_args!("{name}: closed, and its place used again");
        self.attempt(case, bad, |world, arguments| {
            let old = stale(world);
            let new = world.copy(world.notification.raw(), notification());
            assert_eq!(new.index(), old.index(), "the lowest free place is taken");
            arguments[place] = raw(old);
        });
    }

    fn zero(&mut self, place: usize, name: &str, zero: Zero) {
        match zero {
            Zero::Refused => self.value(place, name, "0", 0, Err(Error::BadHandle)),
            Zero::Caller(want) => self.value(place, name, "0", 0, want),
            Zero::Apart => {}
        }
    }

    fn wrong_types(&mut self, place: usize, name: &str, kind: ObjectType) {
        for (other, handle) in self.world.each() {
            if other != kind {
                let case = format_args!("{name}: {other:?}");
                self.attempt(case, Err(Error::WrongType), |_, arguments| {
                    arguments[place] = raw(handle);
                });
            }
        }
    }

    /// The right handle, without one of the rights it needs.
    fn missing_rights(&mut self, place: usize, name: &str, rights: Rights) {
        for right in rights.iter() {
            let case = format_args!("{name}: without {right:?}");
            self.attempt(case, Err(Error::MissingRight), |world, arguments| {
                let handle = Handle::from_raw(arguments[place] as u32);
                let has = syscall::handle_info(handle).map_or(Rights::empty(), |info| info.1);
                arguments[place] = raw(world.copy(handle, has - right));
            });
        }
    }

    fn tags(&mut self, place: usize, name: &str) {
        let answer = self.spec.answer;
        let unused = Tag::new(7, 0, 0).raw() | !Tag::from_raw(u64::MAX).raw();
        self.value(place, name, "unused bits set", unused, answer);
        let longest = Tag::new(u16::MAX, PAYLOAD_MAX, 0).raw();
        self.value(place, name, "the longest payload", longest, answer);
        let large = Err(Error::TooLarge);
        for (what, tag) in [
            ("one byte too many", Tag::new(0, PAYLOAD_MAX + 1, 0)),
            ("the most bytes", Tag::new(0, usize::from(u16::MAX), 0)),
            ("one handle too many", Tag::new(0, 0, HANDLES_MAX + 1)),
            ("the most handles", Tag::new(0, 0, 15)),
        ] {
            self.value(place, name, what, tag.raw(), large);
        }
    }
}

/// The rights of a notification.
const fn notification() -> Rights {
    Rights::SIGNAL.union(Rights::WAIT)
}

/// A handle that was just closed.
fn stale(world: &mut World) -> Handle {
    let handle = world.copy(world.notification.raw(), notification());
    let _ = syscall::handle_close(handle);
    handle
}
