use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{ExpressionError, MAX_DEPTH, MAX_EXPRESSION_CHARS, evaluate};

#[track_caller]
fn assert_value(expression: &str, expected: Json) {
    assert_eq!(evaluate(expression).map(Json::Number), Ok(expected), "{expression}");
}

#[track_caller]
fn assert_error(expression: &str, expected: &ExpressionError) {
    assert_eq!(evaluate(expression).as_ref(), Err(expected), "{expression}");
}

/// `inner` between `times` repetitions of `open` and `close`.
fn nested(times: usize, open: &str, inner: &str, close: &str) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn reads_numbers() {
    assert_value("1", json!(1));
    assert_value("1.5", json!(1.5));
    assert_value(".5", json!(0.5));
    assert_value("5.", json!(5));
    assert_value("007", json!(7));
    assert_value("0.0", json!(0));
    assert_value(".0", json!(0));
    assert_value(" \t\r\n\x0c12 ", json!(12));
    assert_value(&format!("2.5{}", "0".repeat(100)), json!(2.5));
    assert_value(&format!(".{}5", "0".repeat(49)), json!(5e-50));
    assert_value(&format!(".{}5", "0".repeat(900)), json!(0));
    assert_value(&format!("1{}", "0".repeat(50)), json!(1e50));
}

#[test]
fn follows_the_grammar() {
    for (expression, expected) in [
        ("2+3*4", json!(14)),
        ("(2+3)*4", json!(20)),
        ("10-4-3", json!(3)),
        ("100/10/5", json!(2)),
        ("2 - -3", json!(5)),
        ("2*-3", json!(-6)),
        ("2/+4", json!(0.5)),
        ("--2", json!(2)),
        ("---2", json!(-2)),
        ("+-+2", json!(-2)),
        ("-2^2", json!(-4)),
        ("(-2)^2", json!(4)),
        ("2^3^2", json!(512)),
        ("2^-1", json!(0.5)),
        ("2^+3", json!(8)),
        ("2^--3", json!(8)),
        ("2^-2^2", json!(0.0625)),
        ("-2^-2^-1*4", json!(-2.82842712474619)),
        ("2*3^2", json!(18)),
        ("-(3+4)^2", json!(-49)),
        ("((((7))))", json!(7)),
    ] {
        assert_value(expression, expected);
    }
}

#[test]
fn returns_the_decimals_people_expect() {
    for (expression, expected) in [
        ("0.1+0.2", json!(0.3)),
        ("0.1+0.2-0.3", json!(0)),
        ("1.1*1.1", json!(1.21)),
        ("4.35*100", json!(435)),
        ("1/3", json!(1.0 / 3.0)),
        ("2/3", json!(2.0 / 3.0)),
        ("1/3*3", json!(1)),
        ("(1/49)*49", json!(1)),
        ("10^15+0.3", json!(1000000000000000.3)),
        ("10^-20", json!(1e-20)),
        ("6/4", json!(1.5)),
        ("0.5+0.5", json!(1)),
    ] {
        assert_value(expression, expected);
    }
    assert_eq!(evaluate("0.1+0.2").unwrap().to_string(), "0.3");
    assert_eq!(evaluate("6/3").unwrap().to_string(), "2");
}

#[test]
fn keeps_integers_exact_while_they_fit_64_bits() {
    for (expression, expected) in [
        ("123456789*987654321", json!(121932631112635269_i64)),
        ("2^63-1", json!(i64::MAX)),
        ("-2^63", json!(i64::MIN)),
        ("2^64-1", json!(u64::MAX)),
        ("2^64", json!(18446744073709551616.0)),
        ("-2^63-1", json!(-9223372036854775808.0)),
        ("2^100/2^99", json!(2)),
        ("10^38/10^38", json!(1)),
        ("10^30/10^29*10^38/10^38", json!(10)),
    ] {
        assert_value(expression, expected);
    }
}

#[test]
fn continues_in_floating_point_when_fractions_do_not_fit() {
    for (expression, expected) in [
        ("3^0.5", json!(1.73205080756888)),
        ("2^0.5*2^0.5", json!(2)),
        ("4^0.5", json!(2)),
        ("8^(1/3)", json!(2)),
        ("10^39", json!(1e39)),
        ("-10^39", json!(-1e39)),
        ("10^40/10^25", json!(1000000000000000_i64)),
        ("10^300/10^299", json!(10)),
        ("2^1000", json!(1.07150860718627e301)),
        ("10^-400", json!(0)),
        ("-10^-400", json!(0)),
        ("(-3)^101", json!(-1.54613256219603e48)),
        ("(-3)^100", json!(5.15377520732011e47)),
        ("(-2)^(4^0.5)", json!(4)),
        ("(-2)^(9^0.5)", json!(-8)),
        ("(-2)^(2^0.5*2^0.5)", json!(4)),
        ("(-2)^-(9^0.5)", json!(-0.125)),
        ("2^1023*(2-2^-52)", json!(f64::MAX)),
    ] {
        assert_value(expression, expected);
    }
}

/// The expected values come from 80-digit arithmetic; a base rounded to an `f64` first would miss them.
#[test]
fn powers_of_bases_near_one_are_exact_to_the_last_digit() {
    for (expression, expected) in [
        ("1.05^30", json!(4.32194237515066)),
        ("(1+0.06/365)^3650", json!(1.82202895453845)),
        ("(1+1/1000000)^1000000", json!(2.71828046931938)),
        ("2*(1+10^-30)^(10^30)", json!(5.43656365691809)),
        ("0.99^500", json!(0.00657048304241463)),
        ("(-1.01)^501", json!(-146.220500156899)),
    ] {
        assert_value(expression, expected);
    }
}

#[test]
fn powers_of_zero_and_one_work_with_any_exponent() {
    let huge = "9".repeat(60);
    for (expression, expected) in [
        ("0^0", json!(1)),
        ("0^5", json!(0)),
        ("0^0.5", json!(0)),
        ("5^0", json!(1)),
        ("(-5)^0", json!(1)),
        ("1^99999999999999999999", json!(1)),
        ("1^-99999999999999999999", json!(1)),
        ("1^0.5", json!(1)),
        ("(-1)^99999999999999999999", json!(-1)),
        ("(-1)^99999999999999999998", json!(1)),
        ("0^99999999999999999999", json!(0)),
        ("0.5^99999999999999999999", json!(0)),
        ("(-0.5)^99999999999999999999", json!(0)),
    ] {
        assert_value(expression, expected);
    }
    assert_value(&format!("1^{huge}"), json!(1));
    assert_value(&format!("0^{huge}"), json!(0));
    assert_value(&format!("(-0.5)^{huge}"), json!(0));
}

#[test]
fn never_shows_a_negative_zero() {
    for expression in ["-0", "0*-1", "-0.0", "0/-5", "-(10^-400)", "-(2^0.5)*0", "-(2^0.5)*10^-400"] {
        assert_eq!(evaluate(expression).unwrap().to_string(), "0", "{expression}");
    }
}

#[test]
fn fractions_become_the_nearest_float() {
    // From 2^52 to 2^53 floats are 1 apart. A half is a tie, which goes to the even neighbour. A number just
    // beside the half is no tie.
    assert_value("(2^53+1)/2", json!(4503599627370496_i64));
    assert_value("(2^53+1+10^-15)/2", json!(4503599627370497_i64));
    assert_value("(2^53+3)/2", json!(4503599627370498_i64));
    assert_value("(2^53+3-10^-15)/2", json!(4503599627370497_i64));
    // Above 2^53 they are 2 apart, and a whole float stays a float.
    assert_value("2^53+0.5", json!(9007199254740992.0));
    assert_value("2^53+1.5", json!(9007199254740994.0));
    for denominator in 1..400 {
        for numerator in [1, 7, 355, 99_991] {
            let number = evaluate(&format!("-{numerator}/{denominator}")).unwrap();
            // A single division of integers is correctly rounded.
            assert_eq!(number.as_f64(), Some(-f64::from(numerator) / f64::from(denominator)));
        }
    }
}

#[test]
fn errors_say_what_is_wrong_where_and_how_to_correct_it() {
    for (expression, text) in [
        ("", "The expression is empty at character 1: write one such as 2 * (3 + 4)"),
        (&" ".repeat(1_001), "The expression has 1001 characters: remove all after character 1000"),
        (
            "2+x",
            "Invalid expression: only numbers and operators allowed, but character 3 is 'x'; use only \
             digits, + - * / ^ ( ) . and spaces",
        ),
        ("1.2.3", "'1.2.3' at character 1 is no number: use digits and at most one decimal point"),
        ("2**3", "Unexpected '*' at character 3: put a number before it or remove it"),
        ("2(3)", "Unexpected '(' at character 2: put an operator such as * before it"),
        ("1+", "Unexpected end after character 2: add the number that is missing there"),
        ("(1+2", "The '(' at character 1 is never closed: add the missing ')' or remove the '('"),
        ("1+2)", "The ')' at character 4 was never opened: add the missing '(' or remove the ')'"),
        (&"-".repeat(65), "Nested too deeply at character 65: open at most 64 parentheses and signs at once"),
        ("1/0", "Division by zero at character 2: use a divisor or base other than zero"),
        ("10^400", "Overflow at character 3: use smaller numbers, the limit is about 1.8 * 10^308"),
        ("(-4)^.5", "No real result at character 5: use a whole exponent or a base that is not negative"),
        ("(-1)^10^40", "Exponent too large at character 5: for a negative base, use one below 10^15"),
    ] {
        assert_eq!(evaluate(expression).unwrap_err().to_string(), text, "{expression}");
    }
}

#[test]
fn rejects_characters_that_are_not_allowed() {
    for (expression, character, position) in [
        ("1e5", 'e', 2),
        ("5%2", '%', 2),
        ("1,5", ',', 2),
        ("2×3", '×', 2),
        ("1\u{a0}+2", '\u{a0}', 2),
        ("1+\0", '\0', 3),
        ("1.2.3 ) é", 'é', 9),
        ("'", '\'', 1),
    ] {
        assert_error(expression, &ExpressionError::InvalidCharacter { character, position });
    }
    for (expression, text, position) in [
        ("1 + .", ".", 5),
        ("2*1..5", "1..5", 3),
        ("1.23456789012345678901234.5", "1.234567890123456789...", 1),
    ] {
        assert_error(expression, &ExpressionError::MalformedNumber { text: text.into(), position });
    }
    assert_error(" \t\n", &ExpressionError::Empty);
}

#[test]
fn rejects_syntax_errors() {
    for (expression, found, position) in
        [("*2", '*', 1), ("1 + / 2", '/', 5), ("()", ')', 2), ("(1+)", ')', 4), ("2^^3", '^', 3)]
    {
        assert_error(expression, &ExpressionError::ExpectedOperand { found, position });
    }
    for (expression, found, position) in [
        ("1 2", "2", 3),
        ("(2)(3)", "(", 4),
        ("(2)3", "3", 4),
        ("(1 2)", "2", 4),
        ("1. 5", "5", 4),
        ("1 123456789012345678901", "12345678901234567890...", 3),
    ] {
        assert_error(expression, &ExpressionError::ExpectedOperator { found: found.into(), position });
    }
    for (expression, position) in [("1 * -  ", 5), ("(", 1), ("(12^", 4), ("-", 1)] {
        assert_error(expression, &ExpressionError::UnexpectedEnd { position });
    }
    for (expression, position) in [("((1)", 1), ("((1", 2), ("2*((1)+(3", 8)] {
        assert_error(expression, &ExpressionError::UnclosedParenthesis { position });
    }
    // In the last row the syntax error wins over the division by zero.
    for (expression, position) in [(")", 1), ("(1))*2", 4), ("-)", 2), ("1/0)", 4)] {
        assert_error(expression, &ExpressionError::StrayClosingParenthesis { position });
    }
}

#[test]
fn rejects_expressions_without_a_result() {
    for (expression, position) in
        [("0/0", 2), ("5/(0.3-0.1-0.2)", 2), ("0^-1", 2), ("0^-0.5", 2), ("1+2/0+9^9^9", 4)]
    {
        assert_error(expression, &ExpressionError::DivisionByZero { position });
    }
    for (expression, position) in [
        ("9^9^9", 2),
        ("2^1000000", 2),
        ("0.5^-1000000", 4),
        ("(-2)^1000001", 5),
        ("10^300*10^300", 7),
        ("(-10)^(10^40)", 6),
        (&"9".repeat(400), 1),
    ] {
        assert_error(expression, &ExpressionError::Overflow { position });
    }
    for (expression, position) in [("(-8)^(1/3)", 5), ("(-9)^99999.5", 5), ("(-2)^2^0.5", 5)] {
        assert_error(expression, &ExpressionError::NoRealResult { position });
    }
    assert_error("(-1)^(10^40+1)", &ExpressionError::ExponentTooLarge { position: 5 });
}

#[test]
fn limits_length_and_depth() {
    assert_value(&format!("1{}", " ".repeat(MAX_EXPRESSION_CHARS - 1)), json!(1));
    assert_error(&"é".repeat(MAX_EXPRESSION_CHARS + 1), &ExpressionError::TooLong { length: 1_001 });

    assert_value(&nested(MAX_DEPTH, "(", "1", ")"), json!(1));
    assert_value(&nested(MAX_DEPTH, "-", "1", ""), json!(1));
    assert_value(&nested(MAX_DEPTH / 2, "-(", "1", ")"), json!(1));
    // Neither parentheses side by side nor powers in a row are nested.
    assert_value(&["-(--1)"; 140].join("+"), json!(-140));
    assert_value(&["1"; 500].join("^"), json!(1));
    for (expression, position) in [
        (nested(MAX_DEPTH + 1, "(", "1", ")"), 65),
        (nested(MAX_DEPTH + 1, "-", "1", ""), 65),
        (nested(MAX_DEPTH / 2 + 1, "+(", "1", ")"), 65),
        (nested(MAX_DEPTH + 1, "1^-", "1", ""), 195),
        ("(".repeat(MAX_EXPRESSION_CHARS), 65),
        ("-".repeat(MAX_EXPRESSION_CHARS), 65),
    ] {
        assert_error(&expression, &ExpressionError::TooDeep { position });
    }
}

/// A fully parenthesised expression with its value. It has at most sixteen factors, so that the value cannot
/// overflow.
fn tree() -> impl Strategy<Value = (String, i128)> {
    let leaf = (-99_i128..100).prop_map(|n| (n.to_string(), n));
    leaf.prop_recursive(4, 16, 2, |inner| {
        (inner.clone(), 0..3, inner).prop_map(|((a, x), operator, (b, y))| match operator {
            0 => (format!("({a} + {b})"), x + y),
            1 => (format!("({a} - {b})"), x - y),
            _ => (format!("({a} * {b})"), x * y),
        })
    })
}

/// Expressions with numbers of all sizes and all operators.
fn well_formed() -> impl Strategy<Value = String> {
    let leaf = r"[0-9]{1,3}|[0-9]{0,5}\.[0-9]{1,40}|[0-9]{10,40}\.?";
    leaf.prop_recursive(5, 24, 2, |inner| {
        (inner.clone(), "[-+*/^][-+]?", inner, any::<bool>()).prop_map(|(a, operator, b, close)| {
            if close { format!("({a}{operator}{b})") } else { a + &operator + &b }
        })
    })
}

proptest! {
    #[test]
    fn any_text_gives_the_same_result_each_time(text in prop::collection::vec(any::<char>(), 0..=2_000)) {
        let text: String = text.into_iter().collect();
        prop_assert_eq!(evaluate(&text), evaluate(&text));
    }

    #[test]
    fn any_text_of_allowed_characters_gives_the_same_result_each_time(
        text in r"[-0-9+*/^(). ]{0,12}|[-0-9+*/^(). \t\n]{0,2000}"
    ) {
        prop_assert_eq!(evaluate(&text), evaluate(&text));
    }

    #[test]
    fn any_well_formed_text_gives_a_number_or_a_calculation_error(text in well_formed()) {
        use ExpressionError::{DivisionByZero, ExponentTooLarge, NoRealResult, Overflow, TooLong};
        match evaluate(&text) {
            Ok(number) => prop_assert_ne!(number.to_string(), "-0"),
            Err(TooLong { length }) => prop_assert!(length > MAX_EXPRESSION_CHARS),
            Err(
                DivisionByZero { .. } | Overflow { .. } | NoRealResult { .. } | ExponentTooLarge { .. },
            ) => {}
            Err(error) => prop_assert!(false, "{text}: {error}"),
        }
    }

    #[test]
    fn agrees_with_integer_arithmetic((text, expected) in tree()) {
        let number = evaluate(&text).unwrap();
        match i64::try_from(expected) {
            Ok(expected) => prop_assert_eq!(number, expected.into()),
            Err(_) => prop_assert_eq!(number.as_f64(), Some(expected as f64)),
        }
    }
}
