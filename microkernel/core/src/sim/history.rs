//! Laws about what has been: whose the time was, and what the trace says of it.

use super::Sim;
use super::build::TRACE;
use crate::object::thread::State;
use ipc::abi::trace::TraceRecord;
use std::sync::atomic::Ordering::Relaxed;
use zerocopy::FromZeros;

impl Sim {
    pub(super) fn check_history(&self) {
        self.check_time();
        self.check_trace();
    }

    /// All time of a CPU is charged to idling or to threads; and what is charged to threads is theirs, or of those that have ended.
    fn check_time(&self) {
        let (kernel, pools) = (&self.kernel, &self.kernel.pools);
        let mut busy = 0;
        for (index, cpu) in kernel.cpus.iter().enumerate() {
            let (charged, ()) = cpu.load.meter.look(|| ()).expect("no CPU charges just now");
            let all = charged.until - charged.started;
            assert_eq!(charged.idle + charged.busy, all, "CPU {index}");
            busy += charged.busy;
        }
        let live = (0..pools.threads.len())
            .map(|slot| pools.threads.at(slot).unwrap())
            .filter(|thread| thread.status().state() != State::Dead)
            .map(|thread| thread.cpu_ticks.load(Relaxed));
        let ended = (0..pools.processes.len())
            .filter_map(|slot| pools.processes.occupant(slot))
            .map(|(_, process)| process.cpu_ticks.load(Relaxed) + process.gone_ticks.load(Relaxed));
        assert_eq!(busy, live.sum::<u64>() + ended.sum::<u64>());
    }

    /// Each CPU's trace holds its newest records, whole and in order.
    fn check_trace(&self) {
        for cpu in self.kernel.cpus {
            let written = cpu.trace.written();
            let there = written.min(TRACE as u64);
            let mut records = [TraceRecord::new_zeroed(); TRACE];
            let reading = cpu.trace.read(0, &mut records);
            assert_eq!((reading.next, reading.copied as u64), (written, there));
            assert_eq!(reading.lost, written - there);
            let records = &records[..reading.copied];
            assert!(records.iter().all(|record| record.kind().is_some()));
            assert!(records.is_sorted_by_key(|record| (record.sequence, record.tsc)));
            assert!(records.is_sorted_by_key(|record| record.tsc));
        }
    }
}
