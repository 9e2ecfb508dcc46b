//! The interface between redtail and a plug-in that is a WebAssembly module, for Rust: version 1.
//!
//! A module has no operating system, no files, no clock and no threads. Each link of each run has an instance with a
//! memory of its own, of at most 64 MiB. Times are picoseconds since the start of the run and never decrease.
//!
//! A queue is a type that implements [`Queue`]; `queue!(my_queue: MyQueue);` makes its functions. A congestion controller
//! is one that implements [`Controller`]; `controller!(mine: Mine);` makes its functions. A panic ends the run.

#![allow(dead_code)]

use std::ffi::{CStr, CString};

/// A time since the start of the run, or a length of time, in picoseconds.
pub type Time = u64;
/// A second.
pub const SECOND: Time = 1_000_000_000_000;
/// No limit.
pub const NONE: u64 = u64::MAX;

/// The place of a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Rate of the link, bit/s.
    pub rate: u64,
    /// Most packets that may wait, or [`NONE`].
    pub limit_packets: u64,
    /// Most bytes that may wait, or [`NONE`].
    pub limit_bytes: u64,
}

impl Context {
    /// Whether a packet fits within the file's limit.
    pub fn admits(&self, packet: &Packet) -> bool {
        packet.waiting_packets < self.limit_packets
            && packet.waiting_bytes.saturating_add(u64::from(packet.size)) <= self.limit_bytes
    }
}

/// A packet that arrives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Names the packet from now on.
    pub id: u64,
    /// Tells connections apart, as addresses and ports do.
    pub key: u64,
    /// Packets that wait, without this one.
    pub waiting_packets: u64,
    /// Bytes that wait, without this one.
    pub waiting_bytes: u64,
    /// Size on the link, bytes.
    pub size: u32,
    /// Number of the flow.
    pub flow: u32,
    /// Number of the traffic group, in the order of the file.
    pub group: u32,
    /// Number of the host that sends data.
    pub sender: u32,
    /// Number of the host that receives it.
    pub receiver: u32,
    /// Port of the side that serves; 0 if it is not known.
    pub port: u16,
    /// 0 for TCP, 1 for UDP.
    pub protocol: u8,
    /// 0 without ECN, 1 for ECT(1), 2 for ECT(0), 3 for CE.
    pub ecn: u8,
    /// 0 to 63.
    pub dscp: u8,
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug)]
pub enum Reason {
    /// It does not fit.
    Limit = 0,
    /// The control law chose it.
    Early = 1,
    /// The control law drops every packet.
    Forced = 2,
}

/// A queue.
pub trait Queue: Sized {
    /// Makes a queue. The keys of `params` are asked for here.
    fn new(context: &Context) -> Self;
    /// A packet arrives: whether it waits from now on, or is dropped.
    fn enqueue(&mut self, packet: &Packet, now: Time) -> bool;
    /// The id of the packet to send next. Not called while nothing waits.
    fn dequeue(&mut self, now: Time) -> Option<u64>;
    /// The link is idle and asks for a packet, and none waits.
    fn on_empty(&mut self, _now: Time) {}
    /// When a queue that holds packets back is to be called again; only with `queue!(NAME: TYPE, wakes)`.
    fn next_wakeup(&mut self, _now: Time) -> Option<Time> {
        None
    }
    /// This time has come.
    fn on_wakeup(&mut self, _now: Time) {}
    /// The average of the control law, for time series.
    fn average(&mut self) -> Option<f64> {
        None
    }
    /// The probability of the control law, for time series.
    fn probability(&mut self) -> Option<f64> {
        None
    }
    /// The warm-up is over.
    fn start_measuring(&mut self, _now: Time) {}
    /// Calls [`report`] for each figure of its own.
    fn report(&mut self, _now: Time) {}
}

/// The connection of a controller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The initial window, bytes.
    pub initial_cwnd: f64,
    /// Payload bytes of a full segment.
    pub mss: u32,
}

/// What a controller decides. Windows are bytes, rates bytes/s.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// The window; less than a segment counts as one.
    pub cwnd: f64,
    /// For time series, and for pacing by the window; infinite without one.
    pub ssthresh: f64,
    /// 0 for a window-based controller.
    pub pacing_rate: f64,
    /// The most that leaves at once at the pacing rate; less than a segment counts as one.
    pub send_quantum: f64,
    /// The name of the state.
    pub state: Option<&'static FirstByte>,
    /// 1 while the window is small to measure the round trip.
    pub probes_rtt: i32,
}

/// The first byte of a text that ends with a zero: see [`state`].
pub type FirstByte = u8;

/// The name of a state, `state(c"SlowStart")`.
pub const fn state(name: &'static CStr) -> Option<&'static FirstByte> {
    name.to_bytes_with_nul().first()
}

impl Control {
    /// A window without pacing and states.
    pub fn window(cwnd: f64, ssthresh: f64) -> Self {
        Self {
            cwnd,
            ssthresh,
            pacing_rate: 0.0,
            send_quantum: 0.0,
            state: None,
            probes_rtt: 0,
        }
    }
}

/// [`Sample::episode`]: fast recovery.
pub const RECOVERY: u32 = 1;

/// What an acknowledgement tells: the rate sample of draft-ietf-ccwg-bbr-06, section 4.1.2. Amounts are bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it arrived.
    pub now: Time,
    /// What it newly acknowledged, cumulatively or selectively.
    pub newly_acked: u64,
    /// What it newly acknowledged cumulatively; 0 for a duplicate.
    pub advanced: u64,
    /// Declared lost because of it.
    pub newly_lost: u64,
    /// What it newly reports as marked.
    pub newly_marked: u64,
    /// Delivered since the start, in order or not.
    pub total_delivered: u64,
    /// Reported as marked since the start.
    pub total_marked: u64,
    /// `total_delivered` when the newest delivered segment was sent, or [`NONE`].
    pub prior_delivered: u64,
    /// Delivered since then.
    pub delivered: u64,
    /// Declared lost since then.
    pub lost: u64,
    /// Reported as marked since then.
    pub marked: u64,
    /// Bytes/s; 0 if the interval is too short to give one.
    pub delivery_rate: f64,
    /// Round trip of the newest delivered segment that was sent once, or [`NONE`].
    pub rtt: Time,
    /// The smoothed one, or [`NONE`].
    pub srtt: Time,
    /// In flight before it.
    pub prior_in_flight: u64,
    /// In flight after it.
    pub in_flight: u64,
    /// In flight just after the newest delivered segment was sent.
    pub sent_in_flight: u64,
    /// Pacing holds back the next segment for this time.
    pub held_for: Time,
    /// After it: 0 without loss recovery, [`RECOVERY`], 2 after a timeout.
    pub episode: u32,
    /// 1 if the sender had no data to send, so the path may be faster.
    pub app_limited: u32,
    /// 1 if in the latest round trip the window limited sending.
    pub window_limited: u32,
}

/// A segment that has just been declared lost.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Offset of its first byte.
    pub start: u64,
    /// In flight just after it was sent.
    pub sent_in_flight: u64,
    /// Lost since it was sent, its own bytes included.
    pub lost: u64,
    /// Delivered since the start.
    pub total_delivered: u64,
    /// Payload bytes.
    pub size: u32,
    /// 1 if the sender had no more data when it was sent.
    pub app_limited: u32,
}

/// A loss, marks that count as one, or a timeout.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When it was detected.
    pub now: Time,
    /// Bytes outstanding (FlightSize of RFC 5681).
    pub flight_size: u64,
    /// 0 for a loss, 1 for marks, 2 for a timeout.
    pub cause: u32,
    /// 1 for a further timeout of data that a timeout has retransmitted already.
    pub repeated: u32,
}

/// A congestion controller, for one sender.
pub trait Controller: Sized {
    /// Makes a controller. The keys of `params` are asked for here.
    fn new(connection: &Connection) -> Self;
    /// What it decides; asked for after each of the other calls.
    fn control(&self) -> Control;
    /// An acknowledgement, a duplicate or one in fast recovery too.
    fn on_ack(&mut self, sample: &Sample);
    /// A segment was declared lost; before `on_ack` for the acknowledgement that showed it.
    fn on_lost(&mut self, _lost: &Lost, _now: Time) {}
    /// Fast recovery begins, or marks count as a loss; before `on_ack`.
    fn on_recovery(&mut self, _event: &Event) {}
    /// The retransmission timer expired.
    fn on_timeout(&mut self, _event: &Event) {}
    /// The handshake took this time.
    fn on_handshake(&mut self, _rtt: Time, _now: Time) {}
    /// Sending resumes after the application had nothing to send.
    fn on_restart(&mut self, _delivered: u64, _now: Time) {}
    /// The latest loss or timeout was none.
    fn on_undo(&mut self) {}
    /// The sender sets the window.
    fn set_cwnd(&mut self, cwnd: f64);
    /// Calls [`report`] for each figure of its own.
    fn report(&mut self, _now: Time) {}
}

mod imported {
    #[link(wasm_import_module = "redtail")]
    unsafe extern "C" {
        pub safe fn drop(id: u64, reason: i32);
        pub safe fn mark(id: u64);
        pub safe fn uniform() -> f64;
        pub fn number(key: *const u8, otherwise: f64) -> f64;
        pub fn text(key: *const u8, text: *mut u8, size: u32) -> i32;
        pub fn report(name: *const u8, value: f64);
        pub fn fail(message: *const u8);
    }
}

fn with_zero(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).expect("zeros have been replaced")
}

/// Drops a waiting packet, or the one that arrives; `enqueue` then returns false. During `enqueue` and `dequeue`.
pub fn drop(id: u64, reason: Reason) {
    imported::drop(id, reason as i32);
}

/// Sets CE on a packet if its sender uses ECN. During `enqueue` and `dequeue`.
pub fn mark(id: u64) {
    imported::mark(id);
}

/// A random number from 0 up to 1, from the stream of this queue in this replication.
pub fn uniform() -> f64 {
    imported::uniform()
}

/// The number that `params` has for a key, 1 for true and 0 for false, or `otherwise`. During `new`.
pub fn number(key: &str, otherwise: f64) -> f64 {
    let key = with_zero(key);
    // The bytes end with a zero.
    unsafe { imported::number(key.as_ptr().cast(), otherwise) }
}

/// The text that `params` has for a key, up to 255 bytes. During `new`.
pub fn text(key: &str) -> Option<String> {
    let (key, mut buffer) = (with_zero(key), [0_u8; 256]);
    // redtail writes at most as many bytes as there are, the last of them zero.
    let length = unsafe { imported::text(key.as_ptr().cast(), buffer.as_mut_ptr(), 256) };
    let text = CStr::from_bytes_until_nul(&buffer).ok()?;
    (length >= 0).then(|| text.to_string_lossy().into_owned())
}

/// Tells a figure of this queue: it becomes the metric `queue.NAME`. During `report`.
pub fn report(name: &str, value: f64) {
    let name = with_zero(name);
    // The bytes end with a zero.
    unsafe { imported::report(name.as_ptr().cast(), value) }
}

/// Ends the run with a message.
pub fn fail(message: &str) -> ! {
    let message = with_zero(message);
    // The bytes end with a zero.
    unsafe { imported::fail(message.as_ptr().cast()) }
    unreachable!("redtail does not return from it")
}

#[unsafe(no_mangle)]
extern "C" fn redtail_abi() -> i32 {
    // From here on a panic says what is wrong.
    std::panic::set_hook(Box::new(|panic| fail(&panic.to_string())));
    1
}

#[unsafe(no_mangle)]
extern "C" fn redtail_buffer() -> *const u64 {
    // redtail writes into it before a call.
    static BUFFER: Buffer = Buffer(std::cell::UnsafeCell::new([0; 32]));
    struct Buffer(std::cell::UnsafeCell<[u64; 32]>);
    // There are no threads.
    unsafe impl Sync for Buffer {}
    BUFFER.0.get().cast()
}

/// Makes the functions of a queue: `queue!(my_queue: MyQueue);`, and `queue!(my_queue: MyQueue, wakes);` for one that
/// holds packets back.
#[macro_export]
macro_rules! queue {
    ($name:ident : $type:ty, wakes) => {
        $crate::queue!($name: $type);
        const _: () = {
            #[unsafe(export_name = concat!(stringify!($name), "_next_wakeup"))]
            extern "C" fn next_wakeup(now: u64) -> u64 {
                with(|queue| redtail_plugin::Queue::next_wakeup(queue, now)).unwrap_or(u64::MAX)
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_wakeup"))]
            extern "C" fn on_wakeup(now: u64) {
                with(|queue| redtail_plugin::Queue::on_wakeup(queue, now))
            }
        };
    };
    ($name:ident : $type:ty) => {
        thread_local! {
            static QUEUE: std::cell::RefCell<Option<$type>> = const { std::cell::RefCell::new(None) };
        }
        fn with<R>(call: impl FnOnce(&mut $type) -> R) -> R {
            QUEUE.with_borrow_mut(|queue| call(queue.as_mut().expect("new is called first")))
        }
        const _: () = {
            use redtail_plugin::{Context, Packet, Queue};
            // The structures are valid during the call: redtail writes them into the buffer before it.
            #[unsafe(export_name = concat!(stringify!($name), "_new"))]
            extern "C" fn new(context: &Context) {
                let made = <$type as Queue>::new(context);
                QUEUE.with_borrow_mut(|queue| *queue = Some(made));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_enqueue"))]
            extern "C" fn enqueue(packet: &Packet, now: u64) -> i32 {
                with(|queue| i32::from(queue.enqueue(packet, now)))
            }
            #[unsafe(export_name = concat!(stringify!($name), "_dequeue"))]
            extern "C" fn dequeue(now: u64) -> u64 {
                with(|queue| queue.dequeue(now)).unwrap_or(u64::MAX)
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_empty"))]
            extern "C" fn on_empty(now: u64) {
                with(|queue| queue.on_empty(now))
            }
            #[unsafe(export_name = concat!(stringify!($name), "_average"))]
            extern "C" fn average() -> f64 {
                with(|queue| queue.average()).unwrap_or(f64::NAN)
            }
            #[unsafe(export_name = concat!(stringify!($name), "_probability"))]
            extern "C" fn probability() -> f64 {
                with(|queue| queue.probability()).unwrap_or(f64::NAN)
            }
            #[unsafe(export_name = concat!(stringify!($name), "_start_measuring"))]
            extern "C" fn start_measuring(now: u64) {
                with(|queue| queue.start_measuring(now))
            }
            #[unsafe(export_name = concat!(stringify!($name), "_report"))]
            extern "C" fn report(now: u64) {
                with(|queue| queue.report(now))
            }
        };
    };
}

/// Makes the functions of a congestion controller: `controller!(mine: Mine);`.
#[macro_export]
macro_rules! controller {
    ($name:ident : $type:ty) => {
        const _: () = {
            use redtail_plugin::{Connection, Control, Controller, Event, Lost, Sample};
            use std::cell::{RefCell, UnsafeCell};

            thread_local! {
                static CONTROLLER: RefCell<Option<$type>> = const { RefCell::new(None) };
            }
            /// What redtail reads after each call.
            struct Place(UnsafeCell<Control>);
            // There are no threads.
            unsafe impl Sync for Place {}
            static PLACE: Place = Place(UnsafeCell::new(Control {
                cwnd: 0.0,
                ssthresh: f64::INFINITY,
                pacing_rate: 0.0,
                send_quantum: 0.0,
                state: None,
                probes_rtt: 0,
            }));
            fn with(call: impl FnOnce(&mut $type)) {
                CONTROLLER.with_borrow_mut(|controller| {
                    let controller = controller.as_mut().expect("new is called first");
                    call(controller);
                    // redtail reads it between calls.
                    unsafe { *PLACE.0.get() = controller.control() };
                });
            }
            // The structures are valid during the call: redtail writes them into the buffer before it.
            #[unsafe(export_name = concat!(stringify!($name), "_new"))]
            extern "C" fn new(connection: &Connection) {
                let made = <$type as Controller>::new(connection);
                CONTROLLER.with_borrow_mut(|controller| *controller = Some(made));
                with(|_| {});
            }
            #[unsafe(export_name = concat!(stringify!($name), "_control"))]
            extern "C" fn control() -> *const Control {
                PLACE.0.get()
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_ack"))]
            extern "C" fn on_ack(sample: &Sample) {
                with(|controller| controller.on_ack(sample));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_lost"))]
            extern "C" fn on_lost(lost: &Lost, now: u64) {
                with(|controller| controller.on_lost(lost, now));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_recovery"))]
            extern "C" fn on_recovery(event: &Event) {
                with(|controller| controller.on_recovery(event));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_timeout"))]
            extern "C" fn on_timeout(event: &Event) {
                with(|controller| controller.on_timeout(event));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_handshake"))]
            extern "C" fn on_handshake(rtt: u64, now: u64) {
                with(|controller| controller.on_handshake(rtt, now));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_restart"))]
            extern "C" fn on_restart(delivered: u64, now: u64) {
                with(|controller| controller.on_restart(delivered, now));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_on_undo"))]
            extern "C" fn on_undo() {
                with(|controller| controller.on_undo());
            }
            #[unsafe(export_name = concat!(stringify!($name), "_set_cwnd"))]
            extern "C" fn set_cwnd(cwnd: f64) {
                with(|controller| controller.set_cwnd(cwnd));
            }
            #[unsafe(export_name = concat!(stringify!($name), "_report"))]
            extern "C" fn report(now: u64) {
                with(|controller| controller.report(now));
            }
        };
    };
}
