use super::{MAX_HEADER_BYTES, Weights};
use proptest::prelude::{any, prop, prop_assert, proptest};
use std::io::Cursor;

fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn open(bytes: &[u8]) -> Option<Weights<Cursor<&[u8]>>> {
    Weights::open(Cursor::new(bytes), bytes.len() as u64).ok()
}

fn numbers(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn tensors_are_read_by_name_and_shape() {
    let header = r#"{"__metadata__":{"format":"pt"},
        "b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]},
        "ids":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},
        "a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#;
    let bytes = file(header, &numbers(&[1.0, 2.0, 3.0, 4.0, -5.5, 6.0]));
    let mut weights = open(&bytes).unwrap();
    assert_eq!(weights.read("b", &[2]).unwrap(), [-5.5, 6.0]);
    assert_eq!(weights.read("a", &[2, 2]).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    weights.check("a", &[2, 2]).unwrap();
    for (name, shape) in
        [("a", &[4][..]), ("a", &[2, 3]), ("b", &[1]), ("ids", &[2]), ("c", &[2]), ("__metadata__", &[])]
    {
        let error = weights.check(name, shape).unwrap_err();
        assert!(error.message.starts_with("`model.safetensors` is not that of"), "{error}");
        assert!(weights.read(name, shape).is_err());
    }
}

#[test]
fn hostile_headers_are_refused() {
    let huge = u64::MAX.to_le_bytes();
    let long = (MAX_HEADER_BYTES + 1).to_le_bytes();
    let long = [&long[..], &vec![b' '; MAX_HEADER_BYTES as usize + 1]].concat();
    for bytes in
        [&b""[..], b"1234567", &huge, &1_000_u64.to_le_bytes(), &long, &file("[]", b""), &file("{", b"")]
    {
        assert!(open(bytes).is_none());
    }
    let row = |shape: &str, offsets: &str| {
        file(&format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#), &[0; 16])
    };
    for (shape, offsets) in [
        ("[4]", "[0,20]"),
        ("[4]", "[4,20]"),
        ("[4]", "[16,0]"),
        ("[4]", "[18446744073709551600,0]"),
        ("[18446744073709551615]", "[0,16]"),
        ("[4611686018427387904,4]", "[0,0]"),
        ("[2,2]", "[0,16]"),
    ] {
        let bytes = row(shape, offsets);
        let read = |mut weights: Weights<_>| weights.read("a", &[4]).or(weights.read("a", &[usize::MAX]));
        assert!(open(&bytes).is_none_or(|weights| read(weights).is_err()), "{shape} {offsets}");
    }
    for (shape, offsets) in
        [("[-1]", "[0,16]"), ("4", "[0,16]"), ("[4]", "[0]"), ("[4]", "[0,1,2]"), ("[4]", "null")]
    {
        assert!(open(&row(shape, offsets)).is_none(), "{shape} {offsets}");
    }
    let bytes = row("[4]", "[0,16]");
    assert!(open(&bytes).unwrap().read("a", &[4]).is_ok());
    let infinite = [&bytes[..bytes.len() - 4], &f32::INFINITY.to_le_bytes()].concat();
    assert!(open(&infinite).unwrap().read("a", &[4]).is_err());
    // The file was cut after its size was asked for.
    let cut = Cursor::new(&bytes[..bytes.len() - 1]);
    assert!(Weights::open(cut, bytes.len() as u64).unwrap().read("a", &[4]).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_fail_otherwise(mut header in prop::collection::vec(any::<u8>(), 0..100), data in prop::collection::vec(any::<u8>(), 0..40)) {
        header.insert(0, b'{');
        let bytes = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
        if let Some(mut weights) = open(&bytes) {
            prop_assert!(weights.read("a", &[4]).is_err());
        }
    }
}
