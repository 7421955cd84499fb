use super::{Frames, MAX_EVENT_BYTES, TooLong};
use crate::wire::Framing;
use proptest::prelude::*;

type Event = (Option<String>, String);

fn events(framing: Framing, pieces: &[&[u8]]) -> Vec<Event> {
    let mut frames = Frames::new(framing);
    let mut all = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for piece in pieces {
        let taken = frames.push(piece, |name, data| {
            all.push((name.map(text), text(data)));
            None::<()>
        });
        assert_eq!(taken, Ok(None));
    }
    let _ = frames.end(|name, data| {
        all.push((name.map(text), text(data)));
        None::<()>
    });
    all
}

fn event(name: &str, data: &str) -> Event {
    ((!name.is_empty()).then(|| name.to_owned()), data.to_owned())
}

#[test]
fn server_sent_events() {
    let stream = "\u{feff}: hello\r\ndata: a\r\ndata:b\r\n\r\nevent: x\nid: 7\nretry: 5\ndata: {\"t\":1}\n\nevent: empty\n\ndata\n\n\ndata: last";
    let expected = [event("", "a\nb"), event("x", "{\"t\":1}"), event("", ""), event("", "last")];
    assert_eq!(events(Framing::Sse, &[stream.as_bytes()]), expected);
    // A lone carriage return ends a line too.
    assert_eq!(events(Framing::Sse, &[b"data: a\r\rdata: b\r\r"]), [event("", "a"), event("", "b")]);
}

#[test]
fn lines() {
    assert_eq!(
        events(Framing::Lines, &[b"{\"a\":1}\n\n  \r\n{\"b\"", b":2}"]),
        [event("", "{\"a\":1}"), event("", "{\"b\":2}")]
    );
}

#[test]
fn stops_when_told_to() {
    let mut frames = Frames::new(Framing::Lines);
    let mut seen = 0;
    let taken = frames.push(b"1\n2\n3\n", |_, data| {
        seen += 1;
        (data == b"2").then_some("two")
    });
    assert_eq!((taken, seen), (Ok(Some("two")), 2));
}

#[test]
fn an_event_without_end_is_refused() {
    for framing in [Framing::Sse, Framing::Lines] {
        let mut frames = Frames::new(framing);
        let piece = vec![b'x'; 64 * 1024];
        let pushed = (0..=MAX_EVENT_BYTES / piece.len()).map(|_| frames.push(&piece, |_, _| None::<()>));
        assert_eq!(pushed.last(), Some(Err(TooLong)));
    }
    let mut frames = Frames::new(Framing::Sse);
    let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
    let pushed = (0..5).map(|_| frames.push(&line, |_, _| None::<()>));
    assert_eq!(pushed.last(), Some(Err(TooLong)));
}

proptest! {
    #[test]
    fn how_the_bytes_are_cut_makes_no_difference(
        lines in prop::collection::vec("(data|event|id|:)?:? ?[a-z\\r\\n]{0,6}", 0..20),
        cuts in prop::collection::vec(0_usize..200, 0..10),
        sse in any::<bool>(),
    ) {
        let stream = lines.join("\n");
        let framing = if sse { Framing::Sse } else { Framing::Lines };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(events(framing, &pieces), events(framing, &[stream.as_bytes()]));
    }
}
