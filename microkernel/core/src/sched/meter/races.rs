//! A CPU that switches while another looks, in every order, and with every value that a relaxed load may return.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p kcore --lib meter::races`.

use super::Meter;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

/// Two threads take turns on a CPU, and each switch is charged: what is seen adds up at every moment, and nobody has another's time.
#[test]
fn a_look_adds_up() {
    loom::model(|| {
        let shared = Arc::new((Meter::default(), AtomicU64::new(0), AtomicU64::new(0)));
        let (meter, current, ran) = &*shared;
        meter.start(10);
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (meter, current, ran) = &*shared;
                meter.charge(15, true, |_| current.store(1, Relaxed));
                meter.charge(18, false, |spent| {
                    ran.store(ran.load(Relaxed) + spent, Relaxed);
                    current.store(0, Relaxed);
                });
            })
        };
        if let Some((charged, (runs, ran))) =
            meter.look(|| (current.load(Relaxed) == 1, ran.load(Relaxed)))
        {
            assert_eq!(charged.idle + charged.busy, charged.until - charged.started);
            assert_eq!(charged.busy, ran, "what the thread ran");
            assert_eq!(runs, charged.until == 15, "who has the time from then on");
        }
        writer.join().unwrap();
    });
}
