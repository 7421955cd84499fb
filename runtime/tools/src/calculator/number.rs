//! The calculator's arithmetic.
//!
//! Values are exact fractions as long as they fit, and floating point numbers afterwards. A value is never
//! infinite and never NaN: such a result is a [`Fault`]. This file knows neither the syntax of expressions
//! nor positions in them.

use serde_json::Number;

/// The significant digits of a floating-point result: as many as every `f64` can hold exactly, so that
/// rounding noise is not shown.
const APPROXIMATE_DIGITS: usize = 15;

/// From this size on, [`APPROXIMATE_DIGITS`] digits cannot tell odd numbers from even ones.
const PARITY_LIMIT: f64 = 1e15;

/// 2^53: every whole number below it has its own `f64`.
const WHOLE_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Why an operation has no result. The caller adds the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    DivisionByZero,
    Overflow,
    /// A negative base and an exponent that is not whole.
    NoRealResult,
    /// A negative base and an exponent too large to tell odd from even.
    UnknownSign,
}

/// An operand or an intermediate result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Exact(Fraction),
    /// Always finite.
    Approximate(f64),
}

/// Always reduced; `denominator` is above zero and `numerator` is never `i128::MIN`, so both can be negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fraction {
    numerator: i128,
    denominator: i128,
}

/// What decides the sign of a negative base's power.
enum Parity {
    Even,
    Odd,
    NotWhole,
    Unknown,
}

impl Value {
    /// Parses `1`, `1.5`, `.5` or `5.`; the caller has checked the form.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        match Fraction::parse(text) {
            Some(fraction) => Ok(Self::Exact(fraction)),
            None => Self::approximate(text.parse().unwrap_or(f64::INFINITY)),
        }
    }

    pub(super) fn negate(self) -> Self {
        match self {
            Self::Exact(fraction) => Self::Exact(fraction.negate()),
            Self::Approximate(float) => Self::Approximate(-float),
        }
    }

    pub(super) fn add(self, other: Self) -> Result<Self, Fault> {
        self.combine(other, Fraction::add, |a, b| a + b)
    }

    pub(super) fn subtract(self, other: Self) -> Result<Self, Fault> {
        self.add(other.negate())
    }

    pub(super) fn multiply(self, other: Self) -> Result<Self, Fault> {
        self.combine(other, Fraction::multiply, |a, b| a * b)
    }

    pub(super) fn divide(self, other: Self) -> Result<Self, Fault> {
        if other.is_zero() {
            return Err(Fault::DivisionByZero);
        }
        self.combine(other, |a, b| a.multiply(b.reciprocal()), |a, b| a / b)
    }

    /// `0^0` is 1, as in most programming languages.
    pub(super) fn power(self, exponent: Self) -> Result<Self, Fault> {
        if exponent.is_zero() || self == Self::Exact(Fraction::ONE) {
            return Ok(Self::Exact(Fraction::ONE));
        }
        if self.is_zero() {
            let negative = exponent.to_f64() < 0.0;
            return if negative { Err(Fault::DivisionByZero) } else { Ok(Self::Exact(Fraction::ZERO)) };
        }
        if let (Self::Exact(base), Self::Exact(exponent)) = (self, exponent)
            && let Some(result) = base.power(exponent)
        {
            return Ok(Self::Exact(result));
        }
        let size = self.size_of_power(exponent.to_f64());
        if self.to_f64() > 0.0 {
            return Self::approximate(size);
        }
        match exponent.parity() {
            Parity::Even => Self::approximate(size),
            Parity::Odd => Self::approximate(-size),
            Parity::NotWhole => Err(Fault::NoRealResult),
            // Zero needs no sign, and an overflow is an error with any sign.
            Parity::Unknown if size == 0.0 || size.is_infinite() => Self::approximate(size),
            Parity::Unknown => Err(Fault::UnknownSign),
        }
    }

    /// The result as JSON: an integer where it is whole and fits, never `-0`.
    pub(super) fn to_number(self) -> Result<Number, Fault> {
        if let Self::Exact(Fraction { numerator, denominator: 1 }) = self {
            if let Ok(integer) = i64::try_from(numerator) {
                return Ok(integer.into());
            }
            if let Ok(integer) = u64::try_from(numerator) {
                return Ok(integer.into());
            }
        }
        let float = match self {
            Self::Exact(fraction) => fraction.to_f64(),
            Self::Approximate(float) => round(float),
        };
        if float.fract() == 0.0 && float.abs() < WHOLE_LIMIT {
            return Ok((float as i64).into());
        }
        Number::from_f64(float).ok_or(Fault::Overflow)
    }

    fn approximate(float: f64) -> Result<Self, Fault> {
        if float.is_finite() { Ok(Self::Approximate(float)) } else { Err(Fault::Overflow) }
    }

    fn combine(
        self,
        other: Self,
        exact: impl Fn(Fraction, Fraction) -> Option<Fraction>,
        approximate: impl Fn(f64, f64) -> f64,
    ) -> Result<Self, Fault> {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other)
            && let Some(result) = exact(a, b)
        {
            return Ok(Self::Exact(result));
        }
        Self::approximate(approximate(self.to_f64(), other.to_f64()))
    }

    fn is_zero(self) -> bool {
        self.to_f64() == 0.0
    }

    fn to_f64(self) -> f64 {
        match self {
            Self::Exact(fraction) => fraction.to_f64(),
            Self::Approximate(float) => float,
        }
    }

    /// The power of the base without its sign.
    fn size_of_power(self, exponent: f64) -> f64 {
        // Rounding a base near 1, such as an interest rate, loses digits that a large exponent would magnify.
        // So the difference from 1 is computed exactly.
        if let Self::Exact(base) = self
            && let Some(excess) = base.absolute().add(Fraction::ONE.negate())
            && excess.to_f64().abs() <= 0.1
        {
            return (exponent * excess.to_f64().ln_1p()).exp();
        }
        self.to_f64().abs().powf(exponent)
    }

    fn parity(self) -> Parity {
        match self {
            Self::Exact(Fraction { numerator, denominator: 1 }) if numerator % 2 == 0 => Parity::Even,
            Self::Exact(Fraction { denominator: 1, .. }) => Parity::Odd,
            Self::Exact(_) => Parity::NotWhole,
            Self::Approximate(float) if float.abs() >= PARITY_LIMIT => Parity::Unknown,
            // Rounded as in the result, so that `2^0.5 * 2^0.5` counts as 2.
            Self::Approximate(float) => match round(float) % 2.0 {
                0.0 => Parity::Even,
                1.0 | -1.0 => Parity::Odd,
                _ => Parity::NotWhole,
            },
        }
    }
}

/// Each operation returns `None` if its result does not fit.
impl Fraction {
    const ZERO: Self = Self { numerator: 0, denominator: 1 };
    const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `denominator` is above zero.
    fn new(numerator: i128, denominator: i128) -> Option<Self> {
        if numerator == i128::MIN {
            return None;
        }
        let common = common_divisor(numerator, denominator);
        Some(Self { numerator: numerator / common, denominator: denominator / common })
    }

    fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let decimals = decimals.trim_end_matches('0');
        // The leading zero replaces a missing whole part.
        let numerator = format!("0{whole}{decimals}").parse().ok()?;
        let denominator = 10_i128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
        Self::new(numerator, denominator)
    }

    fn negate(self) -> Self {
        Self { numerator: -self.numerator, ..self }
    }

    fn absolute(self) -> Self {
        Self { numerator: self.numerator.abs(), ..self }
    }

    /// The fraction must not be zero.
    fn reciprocal(self) -> Self {
        Self { numerator: self.denominator * self.numerator.signum(), denominator: self.numerator.abs() }
    }

    fn add(self, other: Self) -> Option<Self> {
        let common = common_divisor(self.denominator, other.denominator);
        let (scale, other_scale) = (other.denominator / common, self.denominator / common);
        let numerator =
            self.numerator.checked_mul(scale)?.checked_add(other.numerator.checked_mul(other_scale)?)?;
        Self::new(numerator, self.denominator.checked_mul(scale)?)
    }

    fn multiply(self, other: Self) -> Option<Self> {
        // Reducing crosswise first keeps the products small.
        let left = Self::new(self.numerator, other.denominator)?;
        let right = Self::new(other.numerator, self.denominator)?;
        Self::new(
            left.numerator.checked_mul(right.numerator)?,
            left.denominator.checked_mul(right.denominator)?,
        )
    }

    /// The fraction must not be zero. Returns `None` also for an exponent that is not whole.
    fn power(self, exponent: Self) -> Option<Self> {
        if exponent.denominator != 1 {
            return None;
        }
        let exponent = exponent.numerator;
        let base = if exponent < 0 { self.reciprocal() } else { self };
        // Only these bases stay small with any exponent.
        if base.absolute() == Self::ONE {
            return Some(if exponent % 2 == 0 { Self::ONE } else { base });
        }
        let exponent = u32::try_from(exponent.unsigned_abs()).ok()?;
        Self::new(base.numerator.checked_pow(exponent)?, base.denominator.checked_pow(exponent)?)
    }

    /// The nearest `f64`, ties to even. A binary long division runs until the quotient has more bits than an
    /// `f64`. The remainder sets the lowest bit, so that a number just above a tie is not taken for a tie.
    fn to_f64(self) -> f64 {
        const ENOUGH: u128 = 1 << 64;
        let divisor = self.denominator.unsigned_abs();
        let dividend = self.numerator.unsigned_abs();
        let (mut quotient, mut remainder) = (dividend / divisor, dividend % divisor);
        let mut shift = 0_u64;
        while remainder != 0 && quotient < ENOUGH {
            remainder *= 2;
            quotient = quotient * 2 + remainder / divisor;
            remainder %= divisor;
            shift += 1;
        }
        let rounded = (quotient | u128::from(remainder != 0)) as f64;
        // 2^-shift, built from its bits; `shift` stays below 200, far from the limit of the exponent.
        let size = rounded * f64::from_bits((1023 - shift) << 52);
        if self.numerator < 0 { -size } else { size }
    }
}

/// The greatest common divisor; `b` is above zero.
fn common_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (b, a % b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

/// Rounds to [`APPROXIMATE_DIGITS`] significant digits.
fn round(float: f64) -> f64 {
    let text = format!("{float:.*e}", APPROXIMATE_DIGITS - 1);
    // Near the largest `f64`, rounding up would overflow.
    text.parse().ok().filter(|rounded: &f64| rounded.is_finite()).unwrap_or(float)
}
