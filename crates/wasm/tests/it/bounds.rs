//! What a module cannot do: run for ever, take memory without bounds, break the contract of a queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use redtail_core::plugin::{CancelledWithin, Identity, PluginError, Value};
use redtail_core::{Bytes, Dscp, Ecn, FlowId, Rate, Stream, Time};
use redtail_qdisc::plugin::{
    Actions, Backlog, DropReason, FlowFacts, Limit, PacketId, PacketView, PluginContext,
    PluginQueue, QueueContext,
};
use redtail_qdisc::{LinkFacts, Plugins};
use redtail_wasm::Module;

/// A queue without packets, in WebAssembly's text form.
pub const QUEUE: &str = r#"
    (func (export "mine_new") (param i32))
    (func (export "mine_enqueue") (param i32 i64) (result i32) (i32.const 0))
    (func (export "mine_dequeue") (param i64) (result i64) (i64.const -1))
"#;

/// A module with these functions and what every module has.
pub fn module(functions: &str) -> String {
    format!(
        r#"(module
    (import "redtail" "uniform" (func $uniform (result f64)))
    (import "redtail" "drop" (func $drop (param i64 i32)))
    (import "redtail" "mark" (func $mark (param i64)))
    (import "redtail" "number" (func $number (param i32 f64) (result f64)))
    (import "redtail" "report" (func $report (param i32 f64)))
    (import "redtail" "fail" (func $fail (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 1024) "deadline\00it is so\00")
    (func (export "redtail_abi") (result i32) (i32.const 1))
    (func (export "redtail_buffer") (result i32) (i32.const 0))
    {functions})"#
    )
}

/// The queue with another body of one of its functions.
fn with(function: &str, body: &str) -> String {
    let mut lines = QUEUE.lines().collect::<Vec<_>>();
    let line = lines.iter_mut().find(|line| line.contains(function));
    let line = line.expect("a function of the queue");
    let head = match function {
        "mine_new" => "(func (export \"mine_new\") (param i32)",
        "mine_enqueue" => "(func (export \"mine_enqueue\") (param i32 i64) (result i32)",
        _ => "(func (export \"mine_dequeue\") (param i64) (result i64)",
    };
    let changed = format!("{head} {body})");
    *line = &changed;
    module(&lines.join("\n"))
}

fn context() -> PluginContext {
    let rate = Rate::from_bps(10_000_000);
    PluginContext {
        queue: QueueContext {
            rate,
            stream: Stream::named(1, 0, "queue"),
            link: Arc::new(LinkFacts::of_rate(rate)),
            plugins: Plugins::new(),
        },
        limit: Some(Limit {
            packets: Some(10),
            bytes: None,
            time: None,
        }),
    }
}

fn made_with(
    text: &str,
    params: &[(&str, Value)],
    cancel: &Arc<AtomicBool>,
) -> Result<Box<dyn PluginQueue>, PluginError> {
    let code = wat::parse_str(text).expect("a module");
    let module = Module::new(&code).expect("a module for redtail");
    let params = params
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()));
    let identity = Identity {
        params: params.collect::<BTreeMap<_, _>>(),
        ..Identity::default()
    };
    module.make_queue("mine", &identity, context(), cancel)
}

fn made(text: &str) -> Result<Box<dyn PluginQueue>, PluginError> {
    made_with(text, &[], &Arc::default())
}

/// What a queue asks for.
#[derive(Default)]
struct Asked {
    drops: Vec<(PacketId, DropReason)>,
    marks: Vec<PacketId>,
}

impl Actions for Asked {
    fn drop(&mut self, packet: PacketId, reason: DropReason) -> Result<(), PluginError> {
        self.drops.push((packet, reason));
        Ok(())
    }
    fn mark(&mut self, packet: PacketId) -> Result<bool, PluginError> {
        self.marks.push(packet);
        Ok(true)
    }
    fn backlog(&self) -> Backlog {
        Backlog::default()
    }
}

fn packet() -> PacketView {
    PacketView {
        id: PacketId::from_u64(7 << 24 | 3),
        size: Bytes::new(1500),
        flow: FlowId(5),
        facts: FlowFacts::default(),
        ecn: Ecn::Ect0,
        dscp: Dscp::BEST_EFFORT,
        enqueued: Time::ZERO,
    }
}

fn enqueued(text: &str) -> (Result<(), PluginError>, Asked) {
    let mut asked = Asked::default();
    let mut queue = made(text).unwrap_or_else(|error| panic!("{error}"));
    let result = queue.enqueue(packet(), Time::ZERO, &mut asked);
    (result, asked)
}

fn error_of<T>(result: Result<T, PluginError>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn a_handle_survives_as_a_number_unless_it_is_too_large() {
    for number in [0, 1, 7 << 24 | 3, u64::MAX] {
        assert_eq!(PacketId::from_u64(number).as_u64(), Some(number));
    }
}

#[test]
fn a_packet_is_refused_by_what_is_returned() {
    let (result, asked) = enqueued(&module(QUEUE));
    result.expect("a drop is no error");
    assert_eq!(asked.drops, [(packet().id, DropReason::Early)]);

    let drops = "(call $drop (i64.load (local.get 0)) (i32.const 0)) (i32.const 0)";
    let (result, asked) = enqueued(&with("mine_enqueue", drops));
    result.expect("a drop is no error");
    assert_eq!(asked.drops, [(packet().id, DropReason::Limit)]);

    let both = "(call $drop (i64.load (local.get 0)) (i32.const 0)) (i32.const 1)";
    let (result, _) = enqueued(&with("mine_enqueue", both));
    assert!(error_of(result).contains("returned 1 for a packet that it has dropped"));

    let (result, _) = enqueued(&with("mine_enqueue", "(i32.const 9)"));
    assert!(error_of(result).contains("it returned 9; accepted: 1"));

    let reason = "(call $drop (i64.load (local.get 0)) (i32.const 8)) (i32.const 0)";
    let (result, _) = enqueued(&with("mine_enqueue", reason));
    assert!(error_of(result).contains("for the reason 8"));
}

#[test]
fn a_packet_is_told_as_it_is() {
    // Size at 32, flow at 36, ECN at 55: the mark shows that all are right.
    let body = "(if (i32.and (i32.eq (i32.load offset=32 (local.get 0)) (i32.const 1500))
          (i32.and (i32.eq (i32.load offset=36 (local.get 0)) (i32.const 5))
                   (i32.eq (i32.load8_u offset=55 (local.get 0)) (i32.const 2))))
        (then (call $mark (i64.load (local.get 0)))))
      (i32.const 1)";
    let (result, asked) = enqueued(&with("mine_enqueue", body));
    result.expect("it waits");
    assert_eq!(asked.marks, [packet().id]);
}

#[test]
fn packets_are_dropped_during_enqueue_and_dequeue_only() {
    let drops = "(call $drop (i64.const 1) (i32.const 0))";
    assert!(error_of(made(&with("mine_new", drops))).contains("at no other time"));
    let tells = "(call $report (i32.const 1024) (f64.const 1))";
    assert!(error_of(made(&with("mine_new", tells))).contains("while report runs"));
}

#[test]
fn a_trap_names_what_happened_and_where() {
    let (result, _) = enqueued(&with("mine_enqueue", "(i32.load (i32.const -4))"));
    let error = error_of(result);
    assert!(error.contains("out of bounds memory access"), "{error}");
    let (result, _) = enqueued(&with("mine_enqueue", "unreachable"));
    assert!(error_of(result).contains("unreachable"));
    let (result, _) = enqueued(&with(
        "mine_enqueue",
        "(i32.div_s (i32.const 1) (i32.const 0))",
    ));
    assert!(error_of(result).contains("divide by zero"));
    let endless = module(&format!(
        "(func $deep (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))
         {}",
        QUEUE.replace("(i32.const 0))", "(call $deep (i32.const 0)))")
    ));
    let (result, _) = enqueued(&endless);
    let error = error_of(result);
    assert!(
        error.contains("stack exhausted") && error.contains("deep"),
        "{error}"
    );
    let says = with("mine_new", "(call $fail (i32.const 1033))");
    assert_eq!(error_of(made(&says)), "it says: it is so");
}

#[test]
fn memory_is_bounded() {
    // memory.grow returns -1 beyond 64 MiB: 1024 pages.
    let grows = "(drop (memory.grow (i32.const 1023)))
        (if (i32.ne (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))";
    made(&with("mine_new", grows)).expect("1024 pages are accepted, and no more are given");
    let large = module(QUEUE).replace("\"memory\") 1)", "\"memory\") 1025)");
    assert!(error_of(made(&large)).contains("memory"));
}

#[test]
fn a_call_that_does_not_return_ends_with_an_error() {
    let endless = with("mine_new", "(loop $again (br $again))");
    assert_eq!(error_of(made(&endless)), "it has not returned after 5 s");
}

#[test]
fn a_call_that_does_not_return_is_cancelled() {
    let cancel = Arc::new(AtomicBool::new(false));
    let endless = with("mine_new", "(loop $again (br $again))");
    let told = Arc::clone(&cancel);
    let waits = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        told.store(true, Ordering::Relaxed);
    });
    let error = made_with(&endless, &[], &cancel).err().expect("an error");
    waits.join().expect("it was told");
    assert!(error.cause::<CancelledWithin>().is_some(), "{error}");
}

#[test]
fn params_are_asked_for_in_new() {
    // It waits if the deadline is 3.
    let body = "(if (f64.ne (call $number (i32.const 1024) (f64.const 3)) (f64.const 3)) (then unreachable))";
    let text = with("mine_new", body);
    made(&text).expect("it has a default");
    let with = |key: &str, value: Value| made_with(&text, &[(key, value)], &Arc::default());
    with("deadline", Value::Integer(3)).expect("it is given");
    assert!(error_of(with("deadline", Value::Integer(4))).contains("unreachable"));
    assert_eq!(
        error_of(with("deadline", Value::Text("3 s".to_owned()))),
        "params.deadline is no number; accepted: a number, true or false"
    );
    assert_eq!(
        error_of(with("dead_line", Value::Integer(3))),
        "params have a key that the module does not know: dead_line; accepted: deadline"
    );
}

#[test]
fn another_version_is_refused() {
    let other = module(QUEUE).replace("(result i32) (i32.const 1))", "(result i32) (i32.const 2))");
    assert!(error_of(made(&other)).contains("version 2 of the interface; accepted: version 1"));
    let far = module(QUEUE).replace(
        "\"redtail_buffer\") (result i32) (i32.const 0)",
        "\"redtail_buffer\") (result i32) (i32.const 65500)",
    );
    assert!(error_of(made(&far)).contains("buffer is not in its memory"));
}

#[test]
fn the_bits_of_no_number_are_the_same_everywhere() {
    // 0 / 0 has bits that depend on the processor, unless they are fixed.
    let body =
        "(i64.store (i32.const 0) (i64.reinterpret_f64 (f64.div (f64.const 0) (f64.const 0))))
      (if (i64.ne (i64.load (i32.const 0)) (i64.const 0x7ff8000000000000)) (then unreachable))";
    made(&with("mine_new", body)).expect("canonical");
}
