//! Parses and evaluates an arithmetic expression.
//!
//! Owns the grammar, the limits and the errors of expressions; `number` calculates. It runs no code, does no
//! I/O, and recurses only into parentheses, whose depth is limited.
//!
//! ```text
//! expression = term , { ( "+" | "-" ) , term } ;
//! term       = signed , { ( "*" | "/" ) , signed } ;
//! signed     = { "+" | "-" } , power ;
//! power      = primary , [ "^" , signed ] ;
//! primary    = number | "(" , expression , ")" ;
//! number     = digit , { digit } , [ "." , { digit } ] | "." , digit , { digit } ;
//! digit      = "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" ;
//! ```
//!
//! ASCII white space may stand between tokens, but not inside a number. So `-2^2` is -4, `2^3^2` is 512,
//! `2^-1` is 0.5 and `--2` is 2. A unary plus changes nothing. Multiplication needs a `*`.
//!
//! Fractions are exact while numerator and denominator fit 127 bits. Beyond that, and for an exponent that is
//! not whole, the calculation continues in `f64`, and its result is rounded to 15 significant digits. A
//! syntax error is reported before an error of calculation, wherever it is.

use serde_json::Number;

use super::number::{Fault, Value};

/// Characters of an expression.
pub const MAX_EXPRESSION_CHARS: usize = 1_000;

/// Parentheses and unary signs that may be open around a number, counted together.
pub const MAX_DEPTH: usize = 64;

/// Characters of the expression that an error quotes.
const MAX_QUOTED_CHARS: usize = 20;

/// Why an expression has no result. Every `position` counts characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It has only white space.
    #[error("The expression is empty at character 1: write one such as 2 * (3 + 4)")]
    Empty,
    /// It is longer than [`MAX_EXPRESSION_CHARS`].
    #[error("The expression has {length} characters: remove all after character {MAX_EXPRESSION_CHARS}")]
    TooLong {
        /// Its number of characters.
        length: usize,
    },
    /// A character that no expression may contain.
    #[error(
        "Invalid expression: only numbers and operators allowed, but character {position} is {character:?}; \
         use only digits, + - * / ^ ( ) . and spaces"
    )]
    InvalidCharacter {
        /// The character.
        character: char,
        /// Where it stands.
        position: usize,
    },
    /// Digits and points that do not form a number.
    #[error("'{text}' at character {position} is no number: use digits and at most one decimal point")]
    MalformedNumber {
        /// The text, shortened if it is long.
        text: String,
        /// Where it begins.
        position: usize,
    },
    /// Another symbol stands where a number must follow.
    #[error("Unexpected '{found}' at character {position}: put a number before it or remove it")]
    ExpectedOperand {
        /// The symbol.
        found: char,
        /// Where it stands.
        position: usize,
    },
    /// A number or an opening parenthesis directly follows a finished part.
    #[error("Unexpected '{found}' at character {position}: put an operator such as * before it")]
    ExpectedOperator {
        /// The text, shortened if it is long.
        found: String,
        /// Where it begins.
        position: usize,
    },
    /// It ends where a number must follow.
    #[error("Unexpected end after character {position}: add the number that is missing there")]
    UnexpectedEnd {
        /// The last character that is not white space.
        position: usize,
    },
    /// An opening parenthesis without a closing one.
    #[error("The '(' at character {position} is never closed: add the missing ')' or remove the '('")]
    UnclosedParenthesis {
        /// Where the opening one stands.
        position: usize,
    },
    /// A closing parenthesis without an opening one.
    #[error("The ')' at character {position} was never opened: add the missing '(' or remove the ')'")]
    StrayClosingParenthesis {
        /// Where the closing one stands.
        position: usize,
    },
    /// More than [`MAX_DEPTH`] parentheses and unary signs inside one another.
    #[error(
        "Nested too deeply at character {position}: open at most {MAX_DEPTH} parentheses and signs at once"
    )]
    TooDeep {
        /// The first one beyond the limit.
        position: usize,
    },
    /// A division by zero, or zero to a negative power.
    #[error("Division by zero at character {position}: use a divisor or base other than zero")]
    DivisionByZero {
        /// Where the operator stands.
        position: usize,
    },
    /// A number beyond the range of an `f64`.
    #[error("Overflow at character {position}: use smaller numbers, the limit is about 1.8 * 10^308")]
    Overflow {
        /// Where the number or the operator stands.
        position: usize,
    },
    /// A root of a negative number.
    #[error("No real result at character {position}: use a whole exponent or a base that is not negative")]
    NoRealResult {
        /// Where the `^` stands.
        position: usize,
    },
    /// A negative base with an exponent too large to be known as odd or even.
    #[error("Exponent too large at character {position}: for a negative base, use one below 10^15")]
    ExponentTooLarge {
        /// Where the `^` stands.
        position: usize,
    },
}

/// Evaluates `expression`: an integer if the result is whole and fits 64 bits, else the nearest `f64`.
///
/// # Errors
///
/// An [`ExpressionError`] that says what is wrong, where, and how to correct it.
pub fn evaluate(expression: &str) -> Result<Number, ExpressionError> {
    let mut parser = Parser { tokens: tokenise(expression)?, next: 0, parentheses: 0, signs: 0 };
    let outcome = parser.expression()?;
    if let Some(token) = parser.peek() {
        return Err(match token.text {
            ")" => ExpressionError::StrayClosingParenthesis { position: token.position },
            _ => token.expected_operator(),
        });
    }
    // An overflow was reported where it arose, so the position does not matter here.
    outcome?.to_number().map_err(|fault| error_at(fault, 1))
}

/// The value of a part. Separate from syntax errors, which are reported first.
type Evaluation = Result<Value, ExpressionError>;

/// A number or a single symbol.
#[derive(Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    position: usize,
}

impl Token<'_> {
    fn symbol(self) -> Option<char> {
        self.text.chars().next().filter(|&c| !is_numeric(c))
    }

    fn expected_operator(self) -> ExpressionError {
        ExpressionError::ExpectedOperator { found: quoted(self.text), position: self.position }
    }
}

fn is_numeric(character: char) -> bool {
    character.is_ascii_digit() || character == '.'
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Splits an expression into tokens, and checks its length and characters.
fn tokenise(expression: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    let length = expression.chars().count();
    if length > MAX_EXPRESSION_CHARS {
        return Err(ExpressionError::TooLong { length });
    }
    let allowed = |c: char| is_numeric(c) || "+-*/^()".contains(c) || c.is_ascii_whitespace();
    if let Some((index, character)) = expression.chars().enumerate().find(|&(_, c)| !allowed(c)) {
        return Err(ExpressionError::InvalidCharacter { character, position: index + 1 });
    }
    // The expression is ASCII from here on, so bytes and characters are the same.
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(character) = expression[start..].chars().next() {
        let rest = &expression[start..];
        let length =
            if is_numeric(character) { rest.find(|c| !is_numeric(c)).unwrap_or(rest.len()) } else { 1 };
        let token = Token { text: &rest[..length], position: start + 1 };
        if is_numeric(character) && (token.text == "." || token.text.matches('.').count() > 1) {
            return Err(ExpressionError::MalformedNumber {
                text: quoted(token.text),
                position: token.position,
            });
        }
        if !character.is_ascii_whitespace() {
            tokens.push(token);
        }
        start += length;
    }
    if tokens.is_empty() { Err(ExpressionError::Empty) } else { Ok(tokens) }
}

/// Has one method for each rule of the grammar, except that `signed` reads `power` too.
struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    /// Parentheses that are open now.
    parentheses: usize,
    /// Unary signs that wait for their operand.
    signs: usize,
}

/// An operation that waits for the innermost operand of a `signed`. The last one is applied first.
enum Pending {
    Minus,
    Power { base: Evaluation, position: usize },
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).copied()
    }

    /// Takes the next token if it is one of `symbols`.
    fn take(&mut self, symbols: &str) -> Option<(char, usize)> {
        let token = self.peek()?;
        let symbol = token.symbol().filter(|&c| symbols.contains(c))?;
        self.next += 1;
        Some((symbol, token.position))
    }

    fn check_depth(&self, position: usize) -> Result<(), ExpressionError> {
        if self.parentheses + self.signs > MAX_DEPTH {
            Err(ExpressionError::TooDeep { position })
        } else {
            Ok(())
        }
    }

    fn expression(&mut self) -> Result<Evaluation, ExpressionError> {
        let mut left = self.term()?;
        while let Some((symbol, position)) = self.take("+-") {
            let operation = if symbol == '+' { Value::add } else { Value::subtract };
            left = apply(operation, left, self.term()?, position);
        }
        Ok(left)
    }

    fn term(&mut self) -> Result<Evaluation, ExpressionError> {
        let mut left = self.signed()?;
        while let Some((symbol, position)) = self.take("*/") {
            let operation = if symbol == '*' { Value::multiply } else { Value::divide };
            left = apply(operation, left, self.signed()?, position);
        }
        Ok(left)
    }

    /// A loop instead of a recursion, so that many signs or powers need no stack.
    fn signed(&mut self) -> Result<Evaluation, ExpressionError> {
        let signs_outside = self.signs;
        let mut pending = Vec::new();
        let mut outcome = loop {
            while let Some((symbol, position)) = self.take("+-") {
                self.signs += 1;
                self.check_depth(position)?;
                if symbol == '-' {
                    pending.push(Pending::Minus);
                }
            }
            let base = self.primary()?;
            match self.take("^") {
                Some((_, position)) => pending.push(Pending::Power { base, position }),
                None => break base,
            }
        };
        while let Some(operation) = pending.pop() {
            outcome = match operation {
                Pending::Minus => outcome.map(Value::negate),
                Pending::Power { base, position } => apply(Value::power, base, outcome, position),
            };
        }
        self.signs = signs_outside;
        Ok(outcome)
    }

    fn primary(&mut self) -> Result<Evaluation, ExpressionError> {
        if let Some((_, opened)) = self.take("(") {
            self.parentheses += 1;
            self.check_depth(opened)?;
            let inner = self.expression()?;
            if self.take(")").is_none() {
                return Err(match self.peek() {
                    Some(token) => token.expected_operator(),
                    None => ExpressionError::UnclosedParenthesis { position: opened },
                });
            }
            self.parentheses -= 1;
            return Ok(inner);
        }
        let Some(token) = self.peek() else {
            let end = self.tokens.last().map_or(0, |last| last.position + last.text.len() - 1);
            return Err(ExpressionError::UnexpectedEnd { position: end });
        };
        let position = token.position;
        match token.symbol() {
            None => {
                self.next += 1;
                Ok(Value::parse(token.text).map_err(|fault| error_at(fault, position)))
            }
            Some(')') if self.parentheses == 0 => Err(ExpressionError::StrayClosingParenthesis { position }),
            Some(found) => Err(ExpressionError::ExpectedOperand { found, position }),
        }
    }
}

fn apply(
    operation: fn(Value, Value) -> Result<Value, Fault>,
    left: Evaluation,
    right: Evaluation,
    position: usize,
) -> Evaluation {
    operation(left?, right?).map_err(|fault| error_at(fault, position))
}

fn error_at(fault: Fault, position: usize) -> ExpressionError {
    match fault {
        Fault::DivisionByZero => ExpressionError::DivisionByZero { position },
        Fault::Overflow => ExpressionError::Overflow { position },
        Fault::NoRealResult => ExpressionError::NoRealResult { position },
        Fault::UnknownSign => ExpressionError::ExponentTooLarge { position },
    }
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
