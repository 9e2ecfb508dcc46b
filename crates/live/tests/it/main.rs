//! What `live` shows to those who use it: one program, a file per topic.

mod tc;
