//! What `sim` shows to those who use it: one program, a file per topic.

mod bbr;
mod capture;
mod changing_links;
mod closed_forms;
mod common;
mod conservation;
mod exact_timing;
mod flow_rows;
mod golden;
mod jitter;
mod metrics;
mod queues_aqm;
mod queues_classes;
mod queues_codel;
mod queues_flows;
mod queues_pi;
mod queues_red;
mod queues_red_tail;
mod real_time;
mod repeatability;
mod steady_state;
mod traces;
mod traffic_kinds;
mod users;
mod users_arrivals;
mod users_video;
