//! The Web: users who look at pages, and pages made of objects.
//!
//! The models of the literature differ only in their distributions and in how connections are used. So
//! there is one browser, with the parameters of the [`WebModel`] that the file names.
//!
//! ```text
//! user:  page, think, page, think …      the think time counted from the page's start or its end
//! page:  its number of objects; the first is the document, the others are in it
//! object: a request, the service time, a response
//! ```
//!
//! Objects go over connections in one of three ways. *Launched*: each over a connection of its own, a
//! gap after the one before it, complete or not (HTTP/1.0 as in ns-2's `webtraf`). *Fetched*: the document
//! first, then the others over at most `parallel` connections (HTTP/1.1, persistent or not).
//! *Multiplexed*: the document first, then all others at once on the same connection, with their frames
//! interleaved (HTTP/2).
//!
//! Each page draws from a stream of its own, named by its number, and think times are drawn from another
//! stream. So the n-th page of a user does not depend on how fast the network is (common random
//! numbers).

mod model;

use std::sync::Arc;

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{
    Bytes, Dscp, Metric, ParamError, Rate, Span, Stream, Time, earlier, metrics, schemars, serde,
};

use crate::access::{Direction, Group};
use crate::application::{Answer, Application, ConnectionId, Exchange, Network, Server};
use crate::bounds::refuse_nothing;
use crate::bounds::{MOST_AT_ONCE, refuse_short_gap};
use crate::dealt::Dealt;
use crate::dist::Dist;
use crate::keys::groups;
use crate::kind::{MakeUser, TrafficKind, UserKind};
use crate::load::Load;
use crate::start::Start;
use crate::table::Traces;

pub use model::{Browser, ServerChoice, ThinkFrom, WebModel};

groups! {
    /// Web users: each looks at a page, thinks, and looks at the next.
    pub struct WebParams of users {
        /// The model: distributions, and how connections are used. Each key below replaces a parameter of the model.
        pub model: WebModel,
        /// Load to offer, in place of a number of users: a share of the rate of the first bottleneck link that the data crosses, headers included. How many users offer it is found by simulation.
        /// Source: none; there are `users`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub load: Option<Load>,
        /// Time between pages.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub think: Option<Dist<Span>>,
        /// Event from which the time between pages is counted.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub think_from: Option<ThinkFrom>,
        /// Objects of a page, rounded up; at least one.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub objects: Option<Dist<f64>>,
        /// Time between the launches of a page's objects, if they do not wait for each other.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub gap: Option<Dist<Span>>,
        /// Payload of the first object of a page.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub document: Option<Dist<Bytes>>,
        /// Payload of the other objects.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub object: Option<Dist<Bytes>>,
        /// Payload of a request.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub request: Option<Dist<Bytes>>,
        /// Time between the arrival of a request at the server and its response.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub service: Option<Dist<Span>>,
        /// Largest number of simultaneous connections of a page; 0 if its objects do not wait for each other.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub parallel: Option<u32>,
        /// Share of pages with persistent connections, which serve one object after another.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub persistent: Option<f64>,
        /// All objects of a page are requested at once on one connection, and the responses are interleaved.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub multiplexed: Option<bool>,
        /// Time for which an idle connection is kept for the user's next page.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub keep_alive: Option<Span>,
        /// Which host of the group a connection goes to.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub server: Option<ServerChoice>,
        /// Number of consecutive pages from the same server, if the server is drawn for pages.
        /// Source: the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pages_per_server: Option<Dist<f64>>,
        /// When users begin their first page; dealt out. Left out, each begins by thinking.
        /// Source: users were active before the run began, so they do not begin a page at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub start: Option<Dealt<Start>>,
        /// When users begin no more pages; dealt out. Left out, they continue to the end of the run.
        /// Source: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub stop: Option<Dealt<Start>>,
    }
}

impl TrafficKind for WebParams {
    fn example() -> &'static str {
        r#"model = "request-think"
users = 3
stop = "2 s""#
    }

    fn metrics() -> &'static [&'static Metric] {
        METRICS
    }

    fn is_person(&self) -> bool {
        true
    }

    fn noun(&self) -> &'static str {
        "Web user"
    }

    fn starts(&self) -> Option<&Dealt<Start>> {
        self.start.as_ref()
    }

    fn stops(&self) -> Option<&Dealt<Start>> {
        self.stop.as_ref()
    }

    fn requested_load(&self) -> Option<Load> {
        self.load
    }

    fn clear_load(&mut self) {
        self.load = None;
    }

    fn check(&self) -> Result<(), ParamError> {
        self.load.map_or(Ok(()), Load::check)?;
        for (key, size) in [
            ("document", &self.document),
            ("object", &self.object),
            ("request", &self.request),
        ] {
            if let Some(size) = size {
                refuse_nothing(key, size)?;
            }
        }
        if self
            .persistent
            .is_some_and(|share| !(0.0..=1.0).contains(&share))
        {
            return Err(ParamError::new(
                "persistent",
                "is not between 0 and 1",
                "a share from 0 to 1",
            ));
        }
        let browser = self.browser();
        if browser.multiplexed && browser.parallel != 1 {
            return Err(ParamError::new(
                "parallel",
                format!(
                    "is {} while the objects of a page are multiplexed on one connection",
                    browser.parallel
                ),
                "1, or multiplexed = false",
            ));
        }
        if self.gap.is_some() && browser.parallel != 0 {
            return Err(ParamError::new(
                "gap",
                "is given while the objects of a page wait for each other",
                "parallel = 0 with it, or no gap",
            ));
        }
        if browser.think_from == ThinkFrom::PageStart {
            let accepted = "a time such as \"15 s\", or think_from = \"page-end\"";
            refuse_short_gap("think", &browser.think, accepted).map_err(|error| ParamError {
                problem: format!(
                    "{} from the start of a page to that of the next: pages without end",
                    error.problem
                ),
                ..error
            })?;
        }
        Ok(())
    }
}

impl UserKind for WebParams {
    type User = WebUser;

    fn make_users(&self, _: &Traces) -> MakeUser<WebUser> {
        let browser = Arc::new(self.browser());
        let (starts, hosts) = (self.start.is_some(), self.access().host_count() as u32);
        Box::new(move |_, start, stop, stream| {
            let start = starts.then_some(start);
            Self::user(&browser, start, stop, hosts, stream)
        })
    }

    fn offered(&self) -> Option<f64> {
        let browser = self.browser();
        // Rounding up adds about a half to a law without steps.
        let objects = match browser.objects.only() {
            Some(objects) => objects.ceil(),
            None => browser.objects.mean()? + 0.5,
        };
        let embedded = objects - 1.0;
        let page = browser.document.mean()? + embedded.max(0.0) * browser.object.mean()?;
        let offered = page / browser.think.mean()?;
        offered.is_finite().then_some(offered)
    }

    fn is_multiplexed(&self) -> bool {
        self.browser().multiplexed
    }
}

impl WebParams {
    /// The model's browser with the keys of the group in place of its parameters.
    pub fn browser(&self) -> Browser {
        let mut browser = self.model.browser();
        macro_rules! change {
            ($($key:ident),+) => {$(
                if let Some(value) = &self.$key {
                    browser.$key = value.clone();
                }
            )+};
        }
        change!(
            think,
            think_from,
            objects,
            gap,
            object,
            request,
            service,
            parallel,
            persistent,
            multiplexed,
            keep_alive,
            server,
            pages_per_server
        );
        // The size of objects is also that of documents, unless these have their own.
        if let Some(document) = self.document.as_ref().or(self.object.as_ref()) {
            browser.document = document.clone();
        }
        browser
    }

    /// A user whose draws are those of `stream`.
    fn user(
        browser: &Arc<Browser>,
        start: Option<Time>,
        stop: Time,
        hosts: u32,
        mut stream: Stream,
    ) -> WebUser {
        let start = start.unwrap_or_else(|| Time::ZERO + browser.think.draw(&mut stream));
        WebUser {
            browser: Arc::clone(browser),
            hosts,
            next_page: Some(start),
            stop,
            begun: 0,
            pages: Vec::new(),
            idle: Vec::new(),
            server: Server::Own,
            pages_left: 0,
            stream,
        }
    }
}

/// A page that is not complete.
#[derive(Clone, Debug)]
struct Page {
    number: u32,
    began: Time,
    /// Objects not yet requested.
    left: u64,
    /// Objects requested whose responses are not complete.
    waiting: u32,
    /// When the next object is launched: if objects do not wait for each other, and if more of them are
    /// requested at one instant than one event allows.
    launch: Option<Time>,
    /// The document is not complete: the other objects cannot be requested yet.
    opening: bool,
    persistent: bool,
    server: Server,
    /// The connections of the page without a pending request.
    free: Vec<ConnectionId>,
    stream: Stream,
}

/// A connection kept for the next page.
#[derive(Clone, Copy, Debug)]
struct Idle {
    connection: ConnectionId,
    server: Server,
    until: Time,
}

/// A user of a group of [`WebParams`].
#[derive(Clone, Debug)]
pub struct WebUser {
    browser: Arc<Browser>,
    hosts: u32,
    next_page: Option<Time>,
    stop: Time,
    /// Pages begun.
    begun: u32,
    pages: Vec<Page>,
    idle: Vec<Idle>,
    server: Server,
    pages_left: u64,
    stream: Stream,
}

impl WebUser {
    fn begin_page(&mut self, network: &mut impl Network) {
        let now = network.now();
        let mut stream = self.stream.numbered_child("page.", self.begun);
        let browser = &self.browser;
        let left = browser.objects.draw_count(&mut stream);
        let persistent = stream.uniform() < browser.persistent;
        match browser.server {
            ServerChoice::Own => {}
            ServerChoice::PerPage | ServerChoice::PerConnection if self.pages_left == 0 => {
                self.pages_left = browser.pages_per_server.draw_count(&mut stream) - 1;
                self.server = draw_host(self.hosts, &mut stream);
            }
            ServerChoice::PerPage | ServerChoice::PerConnection => self.pages_left -= 1,
        }
        if browser.think_from == ThinkFrom::PageStart {
            self.next_page = Some(now + browser.think.draw(&mut self.stream));
        }
        let mut free = Vec::new();
        if persistent {
            let server = self.server;
            self.idle.retain(|idle| {
                let kept = idle.server == server && idle.until > now;
                if kept {
                    free.push(idle.connection);
                }
                !kept
            });
        }
        let page = Page {
            number: self.begun,
            began: now,
            left,
            waiting: 0,
            launch: None,
            opening: true,
            persistent,
            server: self.server,
            free,
            stream,
        };
        self.begun = self.begun.wrapping_add(1);
        // Most users have at most one page; a vector that grows by itself starts with room for four.
        self.pages.reserve_exact(1);
        self.pages.push(page);
        self.fetch(self.pages.len() - 1, network);
    }

    /// Requests the objects of a page that can be requested now.
    fn fetch(&mut self, index: usize, network: &mut impl Network) {
        let page = &mut self.pages[index];
        let browser = &self.browser;
        let most = match (browser.parallel, browser.multiplexed) {
            (0, _) => return self.launch(index, network),
            (_, true) if !page.opening => u32::MAX,
            _ if page.opening => 1,
            (parallel, _) => parallel,
        };
        for _ in 0..MOST_AT_ONCE {
            if page.left == 0 || page.waiting >= most {
                break;
            }
            // Drawn whether needed or not: which connections are free depends on the network.
            let server = page.server_of_next(browser, self.hosts);
            let connection = match page.free.pop() {
                Some(connection) => connection,
                None => network.connect(server),
            };
            page.ask(browser, connection, network);
            if browser.multiplexed {
                page.free.push(connection); // for the next object at once
            }
        }
        page.launch = (page.left > 0 && page.waiting < most).then(|| network.now());
    }

    /// Launches objects over connections of their own, each a gap after the one before.
    fn launch(&mut self, index: usize, network: &mut impl Network) {
        let page = &mut self.pages[index];
        let now = network.now();
        for _ in 0..MOST_AT_ONCE {
            if page.left == 0 || page.launch.is_some_and(|at| at > now) {
                break;
            }
            let connection = network.connect(page.server_of_next(&self.browser, self.hosts));
            page.persistent = false;
            page.ask(&self.browser, connection, network);
            page.opening = false;
            // Nothing more is drawn for a page after its last object.
            let follows = page.left > 0;
            page.launch = follows.then(|| now + self.browser.gap.draw(&mut page.stream));
        }
    }

    fn end_page(&mut self, index: usize, network: &mut impl Network) {
        let page = self.pages.swap_remove(index);
        if self.pages.is_empty() {
            self.pages = Vec::new(); // a user who thinks takes no room for pages
        }
        let now = network.now();
        network.page(now - page.began);
        for connection in page.free {
            if self.browser.keep_alive > Span::ZERO {
                self.idle.push(Idle {
                    connection,
                    server: page.server,
                    until: now + self.browser.keep_alive,
                });
            } else {
                network.close(connection);
            }
        }
        if self.browser.think_from == ThinkFrom::PageEnd {
            self.next_page = Some(now + self.browser.think.draw(&mut self.stream));
        }
    }
}

/// Draws one of the hosts, all with the same probability.
pub(crate) fn draw_host(hosts: u32, stream: &mut Stream) -> Server {
    let drawn = (stream.uniform() * f64::from(hosts)) as u32;
    Server::Host(drawn.min(hosts - 1))
}

impl Page {
    /// The server of a connection for the next object.
    fn server_of_next(&mut self, browser: &Browser, hosts: u32) -> Server {
        match browser.server {
            ServerChoice::PerConnection => draw_host(hosts, &mut self.stream),
            ServerChoice::Own | ServerChoice::PerPage => self.server,
        }
    }

    fn ask(&mut self, browser: &Browser, connection: ConnectionId, network: &mut impl Network) {
        let first = self.waiting == 0 && self.opening;
        let size = if first {
            &browser.document
        } else {
            &browser.object
        };
        let exchange = Exchange {
            request: browser.request.draw(&mut self.stream).as_u64().max(1),
            response: size.draw(&mut self.stream).as_u64().max(1),
            service: browser.service.draw(&mut self.stream),
            tag: self.number,
            last: !self.persistent && !browser.multiplexed,
        };
        network.request(connection, exchange);
        self.left -= 1;
        self.waiting += 1;
    }
}

metrics! {
    /// What a group of kind `web` reports of its pages.
    pub const METRICS of Group;

    /// Web pages that began in the period and were complete before it ended.
    PAGES = "pages", Count, "Pages completed", "pages";
    /// Web pages that were not complete when the period ended, divided by these and `pages`. Pages that began in the warm-up and never became complete are among them.
    PAGES_UNFINISHED = "pages_unfinished", Fraction, "Pages not complete by the end", "unfinished";
    /// Mean time from the beginning of a web page to its last object, over the pages that began in the period and were complete before it ended.
    PAGE_TIME_MEAN = "page_time_mean", Time, "Mean page time", "page";
    /// Median of the page time, from a histogram with three significant digits. Pages that were not complete when the period ended [count too](statistics.md#what-did-not-finish); undefined when it lies beyond what they show.
    PAGE_TIME_P50 = "page_time_p50", Time, "Page time, median", "page p50";
    /// 95th percentile of the page time, as the median.
    PAGE_TIME_P95 = "page_time_p95", Time, "Page time, 95th percentile", "page p95";
    /// 99th percentile of the page time, as the median.
    PAGE_TIME_P99 = "page_time_p99", Time, "Page time, 99th percentile", "page p99";
}

impl Application for WebUser {
    fn next_wakeup(&self) -> Option<Time> {
        let mut next = self.next_page;
        for page in &self.pages {
            next = earlier(next, page.launch);
        }
        for idle in &self.idle {
            next = earlier(next, Some(idle.until));
        }
        next
    }

    fn on_wakeup(&mut self, network: &mut impl Network) {
        let now = network.now();
        self.idle.retain(|idle| {
            let expired = idle.until <= now;
            if expired {
                network.close(idle.connection);
            }
            !expired
        });
        for index in 0..self.pages.len() {
            if self.pages[index].launch.is_some_and(|at| at <= now) {
                self.fetch(index, network);
            }
        }
        if self.next_page.take_if(|at| *at <= now).is_some() && now < self.stop {
            self.begin_page(network);
        }
    }

    fn on_answer(&mut self, answer: Answer, network: &mut impl Network) {
        let found = self.pages.iter().position(|page| page.number == answer.tag);
        let Some(index) = found else {
            debug_assert!(false, "an answer to a page that is over");
            return;
        };
        let page = &mut self.pages[index];
        page.waiting -= 1;
        page.opening = false;
        if page.persistent && !self.browser.multiplexed {
            page.free.push(answer.connection);
        }
        if page.left > 0 {
            self.fetch(index, network);
        } else if page.waiting == 0 {
            self.end_page(index, network);
        }
    }

    fn unfinished_pages(&self, each: &mut impl FnMut(Time)) {
        self.pages.iter().for_each(|page| each(page.began));
    }
}
