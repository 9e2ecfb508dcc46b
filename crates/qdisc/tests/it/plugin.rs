//! A plug-in that breaks its contract is caught, with words that say what it did.

use crate::common::{Heard, Probe};
use redtail_core::{Ecn, Rate, Span, Stream, Time};
use redtail_qdisc::plugin::{
    Actions, PacketId, PacketView, PluginError, PluginParams, PluginQueue, Plugins, catching,
};
use redtail_qdisc::{
    AnyQueue, Backlog, DropReason, Internals, Limit, LinkFacts, QueueContext, QueueDiscipline,
    QueueParams,
};

/// What the queue under test does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Twice,
    DroppedBefore,
    OfAnother,
    Lost,
    DropsWhatLeft,
    MarksWhatLeft,
    OverLimit,
    WakesInThePast,
    Probability,
    Average,
    Fails,
}

struct Faulty {
    fault: Fault,
    waiting: Vec<PacketId>,
    latest: Option<PacketId>,
}

impl PluginQueue for Faulty {
    fn enqueue(
        &mut self,
        packet: PacketView,
        _now: Time,
        actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        match self.fault {
            Fault::DroppedBefore => return actions.drop(packet.id, DropReason::Early),
            Fault::DropsWhatLeft => {
                actions.drop(packet.id, DropReason::Early)?;
                return actions.drop(packet.id, DropReason::Early);
            }
            Fault::Fails => return Err(PluginError::new("out of order").because(7_u8)),
            _ => {}
        }
        self.waiting.push(packet.id);
        Ok(())
    }

    fn dequeue(
        &mut self,
        _now: Time,
        actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        if let (Fault::Twice, Some(latest)) = (self.fault, self.latest) {
            return Ok(Some(latest));
        }
        if self.fault == Fault::MarksWhatLeft
            && let Some(latest) = self.latest
        {
            actions.mark(latest)?;
        }
        if matches!(self.fault, Fault::Lost | Fault::WakesInThePast) {
            self.waiting.clear();
        }
        if self.fault == Fault::OfAnother {
            return Ok(Some(another_queues()));
        }
        self.latest = (!self.waiting.is_empty()).then(|| self.waiting.remove(0));
        Ok(self.latest)
    }

    fn next_wakeup(&self, now: Time) -> Result<Option<Time>, PluginError> {
        Ok((self.fault == Fault::WakesInThePast).then_some(now))
    }

    fn internals(&self) -> Result<Internals, PluginError> {
        Ok(Internals {
            average: (self.fault == Fault::Average).then_some(f64::NAN),
            probability: (self.fault == Fault::Probability).then_some(1.5),
        })
    }
}

/// The name of the ninth packet of a queue of its own.
fn another_queues() -> PacketId {
    use std::sync::{Arc, Mutex};

    struct Thief(Arc<Mutex<Option<PacketId>>>);

    impl PluginQueue for Thief {
        fn enqueue(
            &mut self,
            packet: PacketView,
            _now: Time,
            _actions: &mut dyn Actions,
        ) -> Result<(), PluginError> {
            *self.0.lock().unwrap() = Some(packet.id);
            Ok(())
        }
        fn dequeue(
            &mut self,
            _now: Time,
            _actions: &mut dyn Actions,
        ) -> Result<Option<PacketId>, PluginError> {
            Ok(None)
        }
    }

    let stolen = Arc::default();
    let kept = Arc::clone(&stolen);
    let plugins = Plugins::new().with("mine", move |_, _| Ok(Box::new(Thief(Arc::clone(&kept)))));
    let mut queue = build(plugins, None);
    for id in 0..9 {
        queue.enqueue(
            Probe::new(id, 500, Ecn::NotEct),
            Time::ZERO,
            &mut Heard::default(),
        );
    }
    let id = *stolen.lock().unwrap();
    id.expect("a packet came")
}

fn build(plugins: Plugins, limit: Option<Limit>) -> AnyQueue<Probe> {
    let spec = QueueParams::Plugin(PluginParams {
        class: "mine".to_owned(),
        limit,
        params: [].into(),
        source: None,
    });
    let link = LinkFacts::of_rate(Rate::from_bps(1_000_000));
    spec.build(QueueContext {
        rate: link.rate,
        stream: Stream::named(1, 0, "queue"),
        link: link.into(),
        plugins,
    })
}

/// Two packets come and two are asked for; what the run says.
fn complaint(fault: Fault) -> Option<String> {
    let failure = catching(|| {
        let plugins = Plugins::new().with("mine", move |_, _| {
            Ok(Box::new(Faulty {
                fault,
                waiting: Vec::new(),
                latest: None,
            }))
        });
        let mut queue = build(
            plugins,
            Some(Limit::packets(if fault == Fault::OverLimit {
                1
            } else {
                2
            })),
        );
        let mut heard = Heard::default();
        for id in 0..2 {
            queue.enqueue(Probe::new(id, 500, Ecn::Ect0), Time::ZERO, &mut heard);
        }
        queue.internals();
        let now = Time::ZERO + Span::from_ms(4);
        queue.dequeue(now, &mut heard);
        queue.dequeue(now, &mut heard);
    });
    failure.err().map(|failure| failure.to_string())
}

#[test]
fn a_plug_in_that_keeps_its_contract_runs() {
    assert_eq!(complaint(Fault::None), None);
}

#[test]
fn what_a_wrong_plug_in_does_is_said() {
    let left = "the packet is not in this queue any more: it was returned or dropped before";
    for (fault, method, says) in [
        (Fault::Twice, "dequeue at 0.004 s", left),
        (Fault::DropsWhatLeft, "enqueue at 0 s", left),
        (Fault::MarksWhatLeft, "dequeue at 0.004 s", left),
        (
            Fault::OfAnother,
            "dequeue at 0.004 s",
            "the packet was never in this queue",
        ),
        (
            Fault::Lost,
            "dequeue at 0.004 s",
            "it gave no packet while 2 packets wait: they are lost, or, if it holds them back, \
             next_wakeup must give a later time",
        ),
        (
            Fault::WakesInThePast,
            "dequeue at 0.004 s",
            "it gave no packet while 2 packets wait: they are lost, or, if it holds them back, \
             next_wakeup must give a later time",
        ),
        (
            Fault::OverLimit,
            "enqueue at 0 s",
            "2 packets of 1000 bytes wait, more than its limit (1 packet); it must drop what does \
             not fit, or have no limit in the file",
        ),
        (
            Fault::Probability,
            "internals at 0 s",
            "the probability 1.5 is not between 0 and 1",
        ),
        (
            Fault::Average,
            "internals at 0 s",
            "the average NaN is not finite",
        ),
        (Fault::Fails, "enqueue at 0 s", "out of order"),
    ] {
        let expected = format!("the queue \"mine\" failed in {method}: {says}");
        assert_eq!(complaint(fault), Some(expected), "{fault:?}");
    }
}

#[test]
fn dropped_packets_do_not_wait_and_are_not_asked_for() {
    assert_eq!(complaint(Fault::DroppedBefore), None);
}

#[test]
fn the_cause_of_a_failure_is_handed_on() {
    let failure = catching(|| {
        let plugins = Plugins::new().with("mine", |_, _| {
            Err(PluginError::new("no").because("why".to_owned()))
        });
        build(plugins, None);
    });
    let failure = failure.expect_err("it cannot be made");
    assert_eq!(failure.to_string(), "the queue \"mine\" failed in new: no");
    assert_eq!(failure.cause::<String>().map(String::as_str), Some("why"));
    assert_eq!(failure.cause::<u8>(), None);
}

#[test]
fn a_name_that_nobody_registered_is_told_with_those_that_are() {
    let failure = catching(|| {
        build(Plugins::new().with("yours", |_, _| unreachable!()), None);
    });
    assert_eq!(
        failure.expect_err("it is not known").to_string(),
        "the queue \"mine\" failed in new: this run was started without it; known: yours"
    );
}

/// Keeps every packet, and says that it has lost this many of them.
struct Loses(u64);

impl PluginQueue for Loses {
    fn enqueue(
        &mut self,
        _packet: PacketView,
        _now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<(), PluginError> {
        Ok(())
    }

    fn dequeue(
        &mut self,
        _now: Time,
        _actions: &mut dyn Actions,
    ) -> Result<Option<PacketId>, PluginError> {
        Ok(None)
    }

    fn missing(&self) -> u64 {
        self.0
    }
}

#[test]
fn packets_that_are_lost_do_not_wait_before_it_is_known_which_they_are() {
    // Three packets of 500, 500 and 1100 B; with more lost than came, none waits.
    for (lost, packets, bytes) in [(0, 3, 2100), (1, 2, 1400), (3, 0, 0), (4, 0, 0)] {
        let plugins = Plugins::new().with("mine", move |_, _| Ok(Box::new(Loses(lost))));
        let mut queue = build(plugins, None);
        for (id, size) in (0..).zip([500, 500, 1100]) {
            let packet = Probe::new(id, size, Ecn::NotEct);
            queue.enqueue(packet, Time::ZERO, &mut Heard::default());
        }
        assert_eq!(queue.backlog(), Backlog { packets, bytes }, "{lost} lost");
        assert_eq!(queue.backlog().packets + queue.missing(), 3);
    }
}
