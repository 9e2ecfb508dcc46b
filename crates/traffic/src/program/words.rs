//! The words of command lines, such as `{port}`.

use std::fmt::Write;

/// What stands for the words of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The address of the sending side, where servers run.
    pub server: String,
    /// The address of the receiving side, where clients run.
    pub client: String,
    /// The port of the pair.
    pub port: u16,
    /// A number that follows from seed, replication, group and pair.
    pub seed: u32,
    /// The folder for results of the program.
    pub out: String,
    /// The number of the pair in its group, from 0.
    pub flow: u32,
}

/// A word of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The address of the sending side.
    Server,
    /// The address of the receiving side.
    Client,
    /// The port of the pair.
    Port,
    /// A number from the named random streams.
    Seed,
    /// The folder for results.
    Out,
    /// The number of the pair.
    Flow,
}

impl Word {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Server,
        Self::Client,
        Self::Port,
        Self::Seed,
        Self::Out,
        Self::Flow,
    ];

    /// How it is written between braces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Port => "port",
            Self::Seed => "seed",
            Self::Out => "out",
            Self::Flow => "flow",
        }
    }

    /// All of them, for messages.
    pub fn names() -> String {
        let names = Self::ALL.map(|word| format!("{{{}}}", word.name()));
        names.join(", ")
    }
}

/// A part of a text with words.
enum Part<'a> {
    Text(&'a str),
    Word(Word),
}

/// The parts of a text, in their order.
///
/// # Errors
/// What is wrong with it, in a clause.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        parts.push(Part::Text(&rest[..at]));
        let after = &rest[at + 1..];
        if let Some(behind) = after.strip_prefix('{') {
            parts.push(Part::Text("{"));
            rest = behind;
            continue;
        }
        let end = after
            .find(['{', '}'])
            .filter(|&end| after[end..].starts_with('}'));
        let Some(end) = end else {
            let shown: String = rest[at..].chars().take(20).collect();
            return Err(format!("has a brace that is not closed, \"{shown}\""));
        };
        let name = &after[..end];
        let Some(word) = Word::ALL.into_iter().find(|word| word.name() == name) else {
            return Err(format!("has {{{name}}}, which stands for nothing"));
        };
        parts.push(Part::Word(word));
        rest = &after[end + 1..];
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// Refuses a text with words that are none.
///
/// # Errors
/// What is wrong with it, in a clause.
pub fn check(text: &str) -> Result<(), String> {
    parts(text).map(|_| ())
}

/// The text with values in the place of its words.
///
/// # Panics
/// When [`check`] refuses it.
pub fn fill_in(text: &str, values: &Values) -> String {
    let mut filled = String::new();
    for part in parts(text).expect("the text was checked") {
        let written = match part {
            Part::Text(text) => filled.write_str(text),
            Part::Word(Word::Server) => filled.write_str(&values.server),
            Part::Word(Word::Client) => filled.write_str(&values.client),
            Part::Word(Word::Port) => write!(filled, "{}", values.port),
            Part::Word(Word::Seed) => write!(filled, "{}", values.seed),
            Part::Word(Word::Out) => filled.write_str(&values.out),
            Part::Word(Word::Flow) => write!(filled, "{}", values.flow),
        };
        written.expect("a string takes all");
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_in_and_two_braces_are_one() {
        let values = Values {
            server: "10.0.0.2".to_owned(),
            client: "10.1.0.2".to_owned(),
            port: 80,
            seed: 7,
            out: "/o".to_owned(),
            flow: 3,
        };
        let text = "a {server}:{port} {client} -o {out}/x{flow} {{print $1} ${{HOME} {seed}";
        assert_eq!(
            fill_in(text, &values),
            "a 10.0.0.2:80 10.1.0.2 -o /o/x3 {print $1} ${HOME} 7"
        );
    }

    #[test]
    fn what_is_no_word_is_refused() {
        for text in [
            "{prot}",
            "${HOME}",
            "{ a; }",
            "{",
            "{port",
            "{a {port}",
            "{}",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        assert_eq!(check("no words }"), Ok(()));
    }
}
