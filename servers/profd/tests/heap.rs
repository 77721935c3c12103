//! What profd's heap keeps: nothing of a profile that was answered. A page that the system lends profd comes back only with its end, so
//! what is lost here is lost for as long as it runs.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ipc::abi::Error;
use ipc::proto::profd::{Client, Request, SessionName, Start, dispatch};
use ipc::proto::{Desk, Loopback};
use profd::lscpu::leaves::Leaves;
use profd::service::{Platform, Profd};
use support::driver::{Fake, memory};
use support::record::Record;
use support::{KERNEL, MS, World, clock};

thread_local! {
    /// Bytes that this thread has taken, and not given back.
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

// SAFETY: the system's allocator does all of it; counting touches no block, and takes no memory itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get().wrapping_add(layout.size()));
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's promise is the same, and the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// A clock that a test moves, and memory objects that are forgotten.
#[derive(Default)]
struct Now(std::rc::Rc<Cell<u64>>);

impl Platform for Now {
    type Handle = u32;

    fn now(&self) -> u64 {
        self.0.get()
    }
    fn publish(&mut self, _: &[u8]) -> Result<u32, Error> {
        Ok(1)
    }
    fn begin_survey(&mut self) -> Result<(), Error> {
        Err(Error::Unsupported)
    }
    fn end_survey(&mut self) -> Result<Vec<Leaves>, Error> {
        Err(Error::Unsupported)
    }
    fn is_exposed(&self) -> bool {
        false
    }
}

#[test]
fn a_profile_that_was_answered_leaves_nothing() {
    let (world, memory, time) = (World::new(), memory(1), Now::default());
    let now = time.0.clone();
    let server = Profd::<_, _, Desk>::new(world.catalog(), clock(), Fake::new(&memory), time);
    let mut client = Client::new(Loopback::new(server, dispatch));
    let mut kept = Vec::with_capacity(4);
    for number in 1..=4 {
        let request = Request {
            window_ms: 100,
            by_client: true,
            ..Request::default()
        };
        let session = SessionName::cut("console");
        // It is answered later.
        let _ = client.measure(&Start {
            request,
            number,
            session,
        });
        let loopback = client.transport();
        let opened = now.get();
        loopback.service.driver().open(opened);
        for n in 0..500 {
            let frames = [KERNEL + n % 0x300, 0x40_1061];
            loopback.service.driver().take(&Record {
                tsc: opened + MS,
                ..Record::new(12 + n as u32 % 2, &frames)
            });
        }
        loopback.service.poll(&mut loopback.desk);
        now.set(opened + 100 * MS);
        loopback.service.poll(&mut loopback.desk);
        loopback.service.driver().idle();
        loopback.service.poll(&mut loopback.desk);
        assert!(loopback.desk.last_answer.take().is_some(), "no answer");
        kept.push(LIVE.get());
    }
    // The first finds the images' symbols, which stay.
    assert_eq!(kept[1..], [kept[1]; 3], "bytes after each profile");
}
