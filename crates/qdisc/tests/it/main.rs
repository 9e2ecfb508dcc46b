//! What `qdisc` shows to those who use it: one program, a file per topic.

mod ack_filter;
mod aqm_laws;
mod bottleneck;
mod cake;
mod classes_law;
mod cobalt_law;
mod codel_law;
mod common;
mod conformance;
mod docsis_pie;
mod flow_queueing;
mod fq;
mod fq_pie;
mod pfifo_fast;
mod pi_laws;
mod plugin;
mod policer;
mod red_adaptations;
mod red_law;
mod red_tail_law;
mod red_tuning;
mod sfb;
mod shaping;
mod tail_drop;
mod wred_law;
