//! The user of any group that has users.

use redtail_core::{Metric, Time};

use crate::application::{Answer, Application, Network};
use crate::arrivals::ArrivalSource;
use crate::trace::TraceUser;
use crate::transactions::TransactionUser;
use crate::video::VideoUser;
use crate::web::WebUser;

macro_rules! users {
    ($($kind:ident($user:ty),)+) => {
        /// A user, dispatched by its kind.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)] // there is one for each user, on the heap as a whole
        #[allow(missing_docs)] // each is documented with its group
        #[allow(clippy::large_enum_variant)] // there is one for each user, on the heap as a whole
        pub enum User {
            $($kind($user),)+
        }

        impl Application for User {
            fn next_wakeup(&self) -> Option<Time> {
                match self {
                    $(Self::$kind(user) => user.next_wakeup(),)+
                }
            }

            fn on_wakeup(&mut self, network: &mut impl Network) {
                match self {
                    $(Self::$kind(user) => user.on_wakeup(network),)+
                }
            }

            fn on_answer(&mut self, answer: Answer, network: &mut impl Network) {
                match self {
                    $(Self::$kind(user) => user.on_answer(answer, network),)+
                }
            }

            fn start_measuring(&mut self, now: Time) {
                match self {
                    $(Self::$kind(user) => user.start_measuring(now),)+
                }
            }

            fn report(&self, now: Time, add: &mut impl FnMut(&'static Metric, f64, f64)) {
                match self {
                    $(Self::$kind(user) => user.report(now, add),)+
                }
            }
        }
    };
}

users! {
    Trace(TraceUser),
    Transactions(TransactionUser),
    Web(WebUser),
    Video(VideoUser),
    Arrivals(ArrivalSource),
}
