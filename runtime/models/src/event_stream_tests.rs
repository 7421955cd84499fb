use super::{EventStream, EventTooLong, MAX_EVENT_BYTES, StreamFormat};
use proptest::prelude::*;

type Event = (Option<String>, String);

fn events(format: StreamFormat, parts: &[&[u8]]) -> Vec<Event> {
    let mut stream = EventStream::new(format);
    let mut all = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for part in parts {
        let result = stream.push(part, |name, data| {
            all.push((name.map(text), text(data)));
            None::<()>
        });
        assert_eq!(result, Ok(None));
    }
    let _ = stream.finish(|name, data| {
        all.push((name.map(text), text(data)));
        None::<()>
    });
    all
}

fn event(name: &str, data: &str) -> Event {
    ((!name.is_empty()).then(|| name.to_owned()), data.to_owned())
}

#[test]
fn splits_server_sent_events() {
    let stream = "\u{feff}: hello\r\ndata: a\r\ndata:b\r\n\r\nevent: x\nid: 7\nretry: 5\ndata: {\"t\":1}\n\nevent: empty\n\ndata\n\n\ndata: last";
    let expected = [event("", "a\nb"), event("x", "{\"t\":1}"), event("", ""), event("", "last")];
    assert_eq!(events(StreamFormat::Sse, &[stream.as_bytes()]), expected);
    // A lone carriage return ends a line too.
    assert_eq!(events(StreamFormat::Sse, &[b"data: a\r\rdata: b\r\r"]), [event("", "a"), event("", "b")]);
}

#[test]
fn splits_lines() {
    assert_eq!(
        events(StreamFormat::JsonLines, &[b"{\"a\":1}\n\n  \r\n{\"b\"", b":2}"]),
        [event("", "{\"a\":1}"), event("", "{\"b\":2}")]
    );
}

#[test]
fn stops_when_the_callback_returns_something() {
    let mut stream = EventStream::new(StreamFormat::JsonLines);
    let mut seen = 0;
    let result = stream.push(b"1\n2\n3\n", |_, data| {
        seen += 1;
        (data == b"2").then_some("two")
    });
    assert_eq!((result, seen), (Ok(Some("two")), 2));
}

#[test]
fn an_endless_event_is_refused() {
    for format in [StreamFormat::Sse, StreamFormat::JsonLines] {
        let mut stream = EventStream::new(format);
        let part = vec![b'x'; 64 * 1024];
        let pushed = (0..=MAX_EVENT_BYTES / part.len()).map(|_| stream.push(&part, |_, _| None::<()>));
        assert_eq!(pushed.last(), Some(Err(EventTooLong)));
    }
    let mut stream = EventStream::new(StreamFormat::Sse);
    let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
    let pushed = (0..5).map(|_| stream.push(&line, |_, _| None::<()>));
    assert_eq!(pushed.last(), Some(Err(EventTooLong)));
}

proptest! {
    #[test]
    fn the_events_do_not_depend_on_how_the_bytes_are_split(
        lines in prop::collection::vec("(data|event|id|:)?:? ?[a-z\\r\\n]{0,6}", 0..20),
        cuts in prop::collection::vec(0_usize..200, 0..10),
        sse in any::<bool>(),
    ) {
        let stream = lines.join("\n");
        let format = if sse { StreamFormat::Sse } else { StreamFormat::JsonLines };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]).collect();
        prop_assert_eq!(events(format, &parts), events(format, &[stream.as_bytes()]));
    }
}
