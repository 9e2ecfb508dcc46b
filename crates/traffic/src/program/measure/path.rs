//! Where a value stands in JSON: `end.streams[0].sender."max.snd"`.

use std::fmt;
use std::str::FromStr;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the value of a key.
    Key(String),
    /// To an element of a list, from 0; from -1 back, counted from its end.
    At(i32),
    /// To all elements of a list, or to the values of all keys.
    All,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) if key.is_empty() || key.chars().any(is_sign) => {
                let quote = if key.contains('"') { '\'' } else { '"' };
                write!(f, "{quote}{key}{quote}")
            }
            Self::Key(key) => f.write_str(key),
            Self::At(place) => write!(f, "[{place}]"),
            Self::All => f.write_str("[*]"),
        }
    }
}

/// A path to values in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath {
    /// The steps, of which there is at least one.
    pub steps: Vec<Step>,
}

impl JsonPath {
    /// The path of some of the steps, for messages.
    pub fn shown(steps: &[Step]) -> String {
        let mut text = String::new();
        for step in steps {
            if matches!(step, Step::Key(_)) && !text.is_empty() {
                text.push('.');
            }
            text += &step.to_string();
        }
        text
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::shown(&self.steps))
    }
}

/// What is accepted.
pub const FORMS: &str = "keys, joined by dots and in quotes if they have signs, and places in lists: \
                         end.streams[0].\"99.9\", jobs[-1].name, jobs[*].name";

/// Steps of a path at most.
const MOST: usize = 64;

/// Whether a key with this character has to stand in quotes.
fn is_sign(character: char) -> bool {
    ".[]\"'*".contains(character) || character.is_whitespace() || character.is_control()
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut reader = Reader {
            rest: text,
            length: text.chars().count(),
        };
        let steps = reader
            .steps()
            .map_err(|(at, why)| format!("\"{text}\": {why} at character {at}"))?;
        if steps.len() > MOST {
            let many = steps.len();
            return Err(format!("has {many} steps, and at most {MOST} are accepted"));
        }
        Ok(Self { steps })
    }
}

/// Why a text is no path, and the number of the character where this shows, from 1.
type Refused = (usize, String);

struct Reader<'a> {
    rest: &'a str,
    length: usize,
}

impl<'a> Reader<'a> {
    fn steps(&mut self) -> Result<Vec<Step>, Refused> {
        let mut steps = vec![if self.eat('[') {
            self.bracket()?
        } else {
            Step::Key(self.key()?)
        }];
        while !self.rest.is_empty() {
            steps.push(if self.eat('[') {
                self.bracket()?
            } else if self.eat('.') {
                Step::Key(self.key()?)
            } else {
                return Err(self.refuse("a dot or [ is missing"));
            });
        }
        Ok(steps)
    }

    fn key(&mut self) -> Result<String, Refused> {
        if let Some(quoted) = self.quoted()? {
            return Ok(quoted.to_owned());
        }
        let end = self.rest.find(is_sign).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.refuse("a key is missing"));
        }
        Ok(self.take(end).to_owned())
    }

    fn quoted(&mut self) -> Result<Option<&'a str>, Refused> {
        let Some(quote) = ['"', '\'']
            .into_iter()
            .find(|&quote| self.rest.starts_with(quote))
        else {
            return Ok(None);
        };
        let Some(end) = self.rest[1..].find(quote) else {
            return Err(self.refuse("a quote is not closed"));
        };
        let inside = self.take(end + 2);
        Ok(Some(&inside[1..=end]))
    }

    /// What stands in brackets, after the first of them.
    fn bracket(&mut self) -> Result<Step, Refused> {
        let step = if self.eat('*') {
            Step::All
        } else if let Some(key) = self.quoted()? {
            Step::Key(key.to_owned())
        } else {
            let signs = |c: char| !(c.is_ascii_digit() || c == '-');
            let end = self.rest.find(signs).unwrap_or(self.rest.len());
            let Ok(place) = self.rest[..end].parse() else {
                return Err(self.refuse("a whole number, * or a key in quotes is missing"));
            };
            self.take(end);
            Step::At(place)
        };
        if self.eat(']') {
            Ok(step)
        } else {
            Err(self.refuse("] is missing"))
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn eat(&mut self, sign: char) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn refuse(&self, why: &str) -> Refused {
        (self.length - self.rest.chars().count() + 1, why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<JsonPath, String> {
        text.parse()
    }

    #[test]
    fn a_path_has_keys_places_and_quotes() {
        let path = read("a.\"99.9\"[0][-1][*].'b \"c\"'[\"d\"]").unwrap();
        let key = |text: &str| Step::Key(text.to_owned());
        let steps = [key("a"), key("99.9"), Step::At(0), Step::At(-1), Step::All];
        assert_eq!(path.steps[..5], steps);
        assert_eq!(path.steps[5..], [key("b \"c\""), key("d")]);
        assert_eq!(
            read("[2].größe").unwrap().steps,
            [Step::At(2), key("größe")]
        );
    }

    #[test]
    fn what_a_path_shows_is_read_as_the_same_path() {
        for text in ["a.\"99.9\"[0][-1][*].'b \"c\"'[\"d\"]", "[*].x", "\"\".a"] {
            let path = read(text).unwrap();
            assert_eq!(read(&path.to_string()).unwrap(), path, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_the_place() {
        let cases = [
            ("", "a key is missing at character 1"),
            ("a..b", "a key is missing at character 3"),
            ("a.", "a key is missing at character 3"),
            (
                "a[",
                "a whole number, * or a key in quotes is missing at character 3",
            ),
            (
                "a[x]",
                "a whole number, * or a key in quotes is missing at character 3",
            ),
            ("a[1", "] is missing at character 4"),
            ("a[1]b", "a dot or [ is missing at character 5"),
            ("größe.\"b", "a quote is not closed at character 7"),
            (
                "a[99999999999]",
                "a whole number, * or a key in quotes is missing at character 3",
            ),
            ("a b", "a dot or [ is missing at character 2"),
        ];
        for (text, why) in cases {
            let refused = read(text).unwrap_err();
            assert!(refused.ends_with(why), "{text}: {refused}");
        }
        assert!(
            read(&"a.".repeat(64))
                .unwrap_err()
                .contains("a key is missing")
        );
        assert!(
            read(&format!("{}a", "a.".repeat(64)))
                .unwrap_err()
                .contains("65 steps")
        );
    }
}
