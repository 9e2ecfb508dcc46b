//! The models of Web users that the literature uses, as one browser with different numbers.

use redtail_core::schemars::JsonSchema;
use redtail_core::serde::{Deserialize, Serialize};
use redtail_core::{Bytes, Span, schemars, serde};

use crate::dist::{Dist, Law};

/// A model of Web users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum WebModel {
    /// HTTP/1.0 sessions of Feldmann, Gilbert, Huang and Willinger (SIGCOMM 1999, set Pareto 1), as ns-2's `webtraf` realises them: pages from start to start, each object launched over a connection of its own, a server drawn for each page.
    Feldmann,
    /// One transfer, then thinking, on a persistent connection: Jou and Baras (CSHCN TR 2003-4), 800 of which the RED+Tail study has.
    RequestThink,
    /// Documents with embedded objects, half of them over persistent connections: a stand-in for the empirical model of Smith et al. (SIGMETRICS 2001), whose distributions are not public. Derived: sizes, objects, think times and pages per server are the CDFs of Mah (INFOCOM 1997).
    Empirical,
    /// A page of 50 objects and more over 6 persistent connections, as RFC 7928 asks for the older kind. Derived: sizes.
    Http1,
    /// A page of about 70 objects multiplexed on one connection, as today over HTTP/2. Derived: objects and sizes, from medians of the HTTP Archive's Web Almanac 2022.
    Http2,
}

/// Event from which the time between pages is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum ThinkFrom {
    /// The start of a page, even if the page is not complete when the next one begins.
    PageStart,
    /// The completion of a page.
    PageEnd,
}

/// Which host of the group a user's connection goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(crate = "serde", rename_all = "kebab-case")]
#[schemars(crate = "schemars")]
pub enum ServerChoice {
    /// The user's own host, as flows are dealt out to hosts.
    Own,
    /// A host drawn for each page, or for several consecutive pages.
    PerPage,
    /// A host drawn for each connection.
    PerConnection,
}

/// Everything a user's browser does, in numbers. Its fields are the keys of
/// [`WebParams`](super::WebParams).
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // documented as keys of the group
pub struct Browser {
    pub think: Dist<Span>,
    pub think_from: ThinkFrom,
    pub objects: Dist<f64>,
    pub gap: Dist<Span>,
    pub document: Dist<Bytes>,
    pub object: Dist<Bytes>,
    pub request: Dist<Bytes>,
    pub service: Dist<Span>,
    pub parallel: u32,
    pub persistent: f64,
    pub multiplexed: bool,
    pub keep_alive: Span,
    pub server: ServerChoice,
    pub pages_per_server: Dist<f64>,
}

/// A distribution written in this file.
fn dist<T: crate::dist::Drawn>(text: &str) -> Dist<T> {
    text.parse()
        .unwrap_or_else(|error| panic!("the law {text:?} of a model is sound: {error}"))
}

fn cdf<T: crate::dist::Drawn>(points: &[(f64, f64)]) -> Dist<T> {
    let points = points.iter().map(|&(p, value)| (p, T::nearest(value)));
    Dist::new(Law::Table(points.collect()), None).expect("the points of a model are sound")
}

impl WebModel {
    /// What users of this model do.
    pub fn browser(self) -> Browser {
        match self {
            Self::Feldmann => feldmann(),
            Self::RequestThink => request_think(),
            Self::Empirical => empirical(),
            Self::Http1 => http1(),
            Self::Http2 => http2(),
        }
    }
}

/// Feldmann et al., table 1, set "Pareto 1", as quoted in the comments of pttcp's client; ns-2.35:
/// a request of one packet (here of 1000 bytes, ns-2's default), a server drawn for each page, page
/// to page from start to start (the option of November 2001 that changed it is off).
fn feldmann() -> Browser {
    let object: Dist<Bytes> = dist("pareto mean 12 kB shape 1.2");
    Browser {
        think: dist("pareto mean 50 s shape 2"),
        think_from: ThinkFrom::PageStart,
        objects: dist("pareto mean 4 shape 1.2"),
        gap: dist("pareto mean 500 ms shape 1.5"),
        document: object.clone(),
        object,
        request: dist("1000 B"),
        service: dist("0 s"),
        parallel: 0,
        persistent: 0.0,
        multiplexed: false,
        keep_alive: Span::ZERO,
        server: ServerChoice::PerPage,
        pages_per_server: dist("1"),
    }
}

/// Jou and Baras 2003, section V: Pareto sizes with k = 2.3 kB and shape 1.3, exponential think
/// time of 50 s. HTTP/1.1: an idle connection is kept for 15 s (KeepAliveTimeout of Apache 1.3, our
/// choice). The request's size is that of the RFC 2884 example, our choice too.
fn request_think() -> Browser {
    let object: Dist<Bytes> = dist("pareto min 2.3 kB shape 1.3");
    Browser {
        think: dist("exponential mean 50 s"),
        think_from: ThinkFrom::PageEnd,
        objects: dist("1"),
        document: object.clone(),
        object,
        parallel: 1,
        persistent: 1.0,
        keep_alive: Span::from_s(15),
        server: ServerChoice::Own,
        ..feldmann()
    }
}

/// Mah's distribution functions (B. Mah, "An Empirical Model of HTTP Network Traffic", INFOCOM
/// 1997, traces of 1995), read off the data that ns-2.35 carries at these probabilities. Think
/// times end at 300 s: above that a user has left (the last 13 % of Mah's).
fn empirical() -> Browser {
    let reply: Dist<Bytes> = cdf(&[
        (0.0, 62.0),
        (0.05, 103.0),
        (0.1, 110.0),
        (0.2, 412.0),
        (0.3, 830.0),
        (0.4, 1434.0),
        (0.5, 2112.0),
        (0.6, 2811.0),
        (0.7, 3886.0),
        (0.8, 6036.0),
        (0.85, 8188.0),
        (0.9, 12_581.0),
        (0.93, 18_219.0),
        (0.95, 23_332.0),
        (0.97, 33_537.0),
        (0.98, 47_758.0),
        (0.99, 67_379.0),
        (0.995, 103_200.0),
        (0.999, 649_354.0),
        (1.0, 1_636_039.0),
    ]);
    let think: Dist<Span> = cdf(&[
        (0.0, 1.005),
        (0.0115, 1.102),
        (0.0575, 1.58),
        (0.115, 2.212),
        (0.23, 4.198),
        (0.345, 6.682),
        (0.46, 10.911),
        (0.575, 16.192),
        (0.69, 25.119),
        (0.805, 41.638),
        (0.92, 98.426),
        (0.9775, 197.008),
        (1.0, 300.0),
    ]);
    Browser {
        think,
        think_from: ThinkFrom::PageEnd,
        // Connections of a document; interpolated and rounded up, whole numbers come out as in the data.
        objects: cdf(&[
            (0.0, 0.0),
            (0.512, 1.0),
            (0.721, 2.0),
            (0.796, 3.0),
            (0.832, 4.0),
            (0.882, 5.0),
            (0.9, 6.0),
            (0.93, 8.0),
            (0.95, 9.0),
            (0.97, 12.0),
            (0.98, 16.0),
            (0.99, 19.0),
            (0.995, 20.0),
            (1.0, 65.0),
        ]),
        document: reply.clone(),
        object: reply,
        request: cdf(&[
            (0.0, 67.0),
            (0.05, 135.0),
            (0.1, 148.0),
            (0.2, 198.0),
            (0.5, 231.0),
            (0.8, 291.0),
            (0.85, 315.0),
            (0.9, 1057.0),
            (0.99, 1134.0),
            (1.0, 1373.0),
        ]),
        // Netscape's and Internet Explorer's of the time for HTTP/1.0.
        parallel: 4,
        // About half of the objects (Smith et al. 2001, abstract).
        persistent: 0.5,
        keep_alive: Span::ZERO,
        server: ServerChoice::PerConnection,
        pages_per_server: cdf(&[
            (0.0, 0.0),
            (0.357, 1.0),
            (0.524, 2.0),
            (0.629, 3.0),
            (0.719, 4.0),
            (0.779, 5.0),
            (0.9, 9.0),
            (1.0, 23.0),
        ]),
        ..feldmann()
    }
}

/// RFC 7928, section 2.2 and what follows from it: many objects, 6 connections, as browsers use for
/// HTTP/1.1. The sizes are derived: a mean of 23 kB, as pages of 50 objects and 1.2 MB have.
fn http1() -> Browser {
    Browser {
        think: dist("exponential mean 15 s"),
        think_from: ThinkFrom::PageEnd,
        objects: dist("uniform 50..100"),
        document: dist("lognormal median 30 kB sigma 1"),
        object: dist("lognormal median 7.4 kB sigma 1.5 max 5 MB"),
        request: dist("500 B"),
        parallel: 6,
        persistent: 1.0,
        keep_alive: Span::ZERO,
        server: ServerChoice::PerPage,
        ..feldmann()
    }
}

/// Web Almanac 2022: a median page makes some 70 requests and weighs 2 MB.
fn http2() -> Browser {
    Browser {
        objects: dist("lognormal median 70 sigma 0.7 max 1000"),
        object: dist("lognormal median 9 kB sigma 1.5 max 10 MB"),
        parallel: 1,
        multiplexed: true,
        ..http1()
    }
}
