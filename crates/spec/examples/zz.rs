//! x
fn main() { println!("{}", serde_json::to_string_pretty(&redtail_spec::schema()).unwrap()); }
