//! Makes inputs: changes seeds at random, as bytes or as JSON.

use redflow_contract::json::push_pointer;
use serde_json::{Value, json};

/// A generator of random numbers. The same seed always gives the same numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The longest input.
const MAX_BYTES: usize = 256 * 1024;

/// The most changes of one input.
const MAX_CHANGES: usize = 4;

/// Texts that readers of JSON, HTTP and flows often treat in a special way.
const TOKENS: [&str; 24] = [
    "0",
    "-0",
    "1e308",
    "1e400",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"%61\"",
    "\"${SECRET}\"",
    "\"__proto__\"",
    "\u{feff}",
    ",",
    ":",
    "}",
    "]",
    "\\",
    "\u{202e}",
];

/// Changes a seed a few times. `others` lends parts.
pub(crate) fn change(random: &mut Random, seed: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut input = seed.to_vec();
    for _ in 0..=random.below(MAX_CHANGES) {
        let value = if random.below(4) > 0 { serde_json::from_slice::<Value>(&input).ok() } else { None };
        input = match value {
            Some(mut value) => {
                let other = random.choose(others);
                let other = serde_json::from_slice(other).unwrap_or_else(|_| special(random));
                change_value(random, &mut value, &other);
                value.to_string().into_bytes()
            }
            None => change_bytes(random, input),
        };
        input.truncate(MAX_BYTES);
    }
    input
}

fn change_bytes(random: &mut Random, mut input: Vec<u8>) -> Vec<u8> {
    let start = random.below(input.len() + 1);
    let end = (start + random.below(32)).min(input.len());
    match random.below(6) {
        0 => drop(input.drain(start..end)),
        1 => drop(input.splice(start..end, random.choose(&TOKENS).bytes())),
        2 => {
            // The same piece again and again.
            let piece = input[start..end].repeat(1 + random.below(200));
            drop(input.splice(start..start, piece));
        }
        3 => input.truncate(start),
        _ => {
            let bit = 1 << random.below(8);
            if let Some(byte) = input.get_mut(start) {
                *byte ^= bit;
            }
        }
    }
    input
}

/// Changes one part of a value: replaces it, nests it, repeats it, removes it or renames it.
fn change_value(random: &mut Random, value: &mut Value, other: &Value) {
    let pointer = pointer_to(value, random.below(count_parts(value)));
    let Some(part) = value.pointer_mut(&pointer) else { return };
    let lent = random_part(random, other).clone();
    match random.below(8) {
        0 => *part = special(random),
        1 | 2 => *part = lent,
        3 => {
            let levels = if random.below(8) == 0 { 150 } else { 1 + random.below(4) };
            for _ in 0..levels {
                let inner = part.take();
                *part = if random.below(2) == 0 { json!([inner]) } else { json!({"a": inner}) };
            }
        }
        _ => match part {
            Value::Array(items) if random.below(2) == 0 => {
                let item = items.get(random.below(items.len())).cloned().unwrap_or(lent);
                items.extend(std::iter::repeat_n(item, 1 + random.below(40)));
            }
            Value::Array(items) if !items.is_empty() => drop(items.remove(random.below(items.len()))),
            Value::Object(map) if random.below(2) == 0 => {
                let name = random_name(other, random).unwrap_or_else(|| "a".to_owned());
                map.insert(name, lent);
            }
            Value::Object(map) => {
                if let Some(key) = map.keys().nth(random.below(map.len())).cloned() {
                    map.shift_remove(&key);
                }
            }
            Value::String(text) => *text = text.repeat(1 + random.below(50)),
            part => *part = special(random),
        },
    }
}

/// The name of a property somewhere in a value.
fn random_name(value: &Value, random: &mut Random) -> Option<String> {
    let map = random_part(random, value).as_object()?;
    map.keys().nth(random.below(map.len())).cloned()
}

fn special(random: &mut Random) -> Value {
    match random.below(12) {
        0 => json!(1e308),
        1 => json!(-1),
        2 => json!(u64::MAX),
        3 => json!(i64::MIN),
        4 => json!(0.1),
        5 => json!("\u{0}\u{202e}é\u{1F600}"),
        6 => json!("${HOME}"),
        7 => json!("a".repeat(random.below(5_000))),
        8 => json!([]),
        9 => json!({}),
        10 => Value::Null,
        _ => json!(random.below(2) == 0),
    }
}

fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn count_parts(value: &Value) -> usize {
    1 + parts(value).map(count_parts).sum::<usize>()
}

/// The JSON Pointer of a part, counted in the order of the text.
fn pointer_to(value: &Value, index: usize) -> String {
    let mut rest = index;
    let mut pointer = String::new();
    let mut part = value;
    while rest > 0 {
        rest -= 1;
        let names: Vec<String> = match part {
            Value::Object(map) => map.keys().cloned().collect(),
            _ => (0..parts(part).count()).map(|index| index.to_string()).collect(),
        };
        let found = parts(part).zip(names).find(|(part, _)| {
            let count = count_parts(part);
            let is_inside = rest < count;
            rest -= if is_inside { 0 } else { count };
            is_inside
        });
        let Some((inner, name)) = found else { break };
        push_pointer(&mut pointer, &name);
        part = inner;
    }
    pointer
}

fn random_part<'a>(random: &mut Random, value: &'a Value) -> &'a Value {
    let pointer = pointer_to(value, random.below(count_parts(value)));
    value.pointer(&pointer).unwrap_or(value)
}
