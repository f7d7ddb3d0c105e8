//! Tests of the text of a page workload, and of the files that it names.

use crate::Workload;
use proptest::prelude::*;
use std::io;

const GRAPH: &str = r#"{"name": "example.org", "start_activity": "download_0", "load_activity": -1,
  "objs": [
    {"id": "r1", "path": "/", "host": "h", "url": "u", "when_comp_start": 1,
     "download": {"id": "download_0", "type": "text/html", "s_time": 0},
     "comps": [{"id": "c1", "type": "evalhtml", "time": 30.5, "s_time": 1, "e_time": 2},
               {"id": "c2", "type": "evalhtml", "time": 4}]},
    {"id": "r2", "when_comp_start": -1, "download": {"id": "download_1"},
     "comps": [{"id": "c3", "type": 2, "time": 10}]}],
  "deps": [{"id": "dep1", "a1": "c1", "a2": "download_1", "time": 12.5},
           {"id": "dep2", "a1": "c3", "a2": "c2", "time": -1}]}"#;

const ARCHIVE: &str = r#"{"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": [
  {"startedDateTime": "2024-05-01T10:00:00.000Z", "time": 120.5, "request": {"method": "GET", "url": "http://h/"},
   "response": {"status": 200, "bodySize": 5000, "content": {"size": 9000}}, "cache": {}, "timings": {}},
  {"startedDateTime": "2024-05-01T10:00:00.150Z", "time": 80, "request": {"method": "GET", "url": "http://h/a.js"},
   "response": {"status": 200, "bodySize": -1, "content": {"size": 700}},
   "_initiator": {"type": "parser", "url": "http://h/", "lineNumber": 3}}]}}"#;

fn parse(text: &str, file: &str) -> Result<Workload, String> {
    let read = |_: &str| Ok(file.to_owned());
    Workload::parse_with(text, &read).map_err(|error| error.to_string())
}

fn page(text: &str, file: &str) -> super::Page {
    match parse(text, file) {
        Ok(Workload::Web(web)) => web.page().clone(),
        other => panic!("{other:?}"),
    }
}

fn error(file: &str) -> String {
    parse("web:dir/page.json", file).unwrap_err()
}

#[test]
fn every_form_is_printed_as_it_was_read() {
    for text in [
        "web:amazon",
        "web:amazon,http=1",
        "web:google,http=1,connections=2",
        "web:wikipedia,window=65536B",
        "web:guardian,http=1,connections=18,think=off",
        "web:./page.json,bytes=5000B",
    ] {
        let workload = parse(text, GRAPH).unwrap();
        assert_eq!(workload.to_string(), text);
        assert_eq!(parse(&workload.to_string(), GRAPH), Ok(workload));
    }
    // The default is HTTP/2, unless `connections` is given.
    assert_eq!(parse("web:amazon,http=2", ""), parse("web:amazon", ""));
    assert_eq!(parse("web:amazon,connections=3", ""), parse("web:amazon,http=1,connections=3", ""));
}

#[test]
fn errors_name_what_was_given_and_what_may_stand_there() {
    let of = |text: &str| parse(text, GRAPH).unwrap_err();
    assert!(
        of("web:amzon").starts_with("unknown page `amzon`, did you mean `amazon`? known: google")
    );
    assert!(of("web:nosuch").starts_with("unknown page `nosuch`; known: google"));
    assert_eq!(of("web:amazon,http=3"), "http=`3` is none of: 1, 2");
    assert_eq!(
        of("web:amazon,http=2,connections=2"),
        "connections is only for http=1; http=2 has one"
    );
    assert_eq!(of("web:amazon,http=1,window=9kB"), "window is only for http=2");
    assert_eq!(of("web:amazon,connections=65"), "connections=`65` is not a number from 1 to 64");
    assert_eq!(of("web:amazon,http=1,http=1"), "`http` is given twice");
    assert_eq!(of("web:amazon,bytes=9kB"), "bytes is only for files; `amazon` has 1200666");
    assert!(of("web:amazon,window=9").starts_with("window: `9` has no unit"));
    assert!(of("web:amazon,htp=1").contains("does not have the form `web:NAME_OR_FILE"));
    assert!(of("web:").contains("does not have the form `web:NAME_OR_FILE"));
    let none = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
    let error = Workload::parse_with("web:a/b.har", &none).unwrap_err().to_string();
    assert!(
        error.starts_with("a/b.har: cannot be read (") && error.ends_with("HAR 1.2 file"),
        "{error}"
    );
}

#[test]
fn an_epload_graph_is_read() {
    let graph = page("web:p.json", GRAPH);
    // c1 takes 30.5 ms, in parallel with c3 from 12.5 to 22.5; then c2.
    let floor = graph.floor().as_millis_f64();
    assert_eq!((graph.objects(), graph.bytes(), floor), (2, 2 * 21_243, 34.5));
    assert_eq!(page("web:p.json,bytes=5000B", GRAPH).bytes(), 5_000);
    // A measured page has its measured bytes, and a graph with sizes has its own.
    let named = GRAPH.replace("example.org", "www.amazon.com_");
    assert_eq!(page("web:p.json", &named).bytes(), 1_200_666);
    let sized = named.replace("\"download\":", "\"size\": 70, \"download\":");
    assert_eq!(page("web:p.json", &sized).bytes(), 140);
}

#[test]
fn a_har_file_is_read() {
    let page = page("web:p.har", ARCHIVE);
    assert_eq!((page.objects(), page.bytes(), page.floor().as_millis_f64()), (2, 5_700, 29.5));
    let error = parse("web:p.har,bytes=9kB", ARCHIVE).unwrap_err();
    assert_eq!(error, "p.har: bytes is only for Epload graphs; a HAR file has sizes");
}

#[test]
fn a_byte_order_mark_is_ignored() {
    for (file, objects) in [(ARCHIVE, 2), (GRAPH, 2)] {
        assert_eq!(page("web:p.json", &format!("\u{feff}{file}")).objects(), objects);
    }
    // One is a byte order mark; more are text.
    assert!(error(&format!("\u{feff}\u{feff}{GRAPH}")).contains("not JSON of a page: "));
}

#[test]
fn files_that_are_no_pages_are_refused_with_the_place_and_a_remedy() {
    let starts = |file: &str, expected: &str| {
        let error = error(file);
        assert!(error.starts_with(&format!("dir/page.json: {expected}")), "{error}");
    };
    starts(
        "{",
        "not JSON of a page: EOF while parsing an object at line 1 column 1; export it again",
    );
    starts("{}", "neither a HAR file (`log`) nor an Epload graph (`objs`, `deps`)");
    starts(
        "7",
        "not JSON of a page: invalid type: integer `7`, expected an object with `log` (HAR 1.2), \
         or with `objs` and `deps` (Epload) at line 1 column 1; export it again",
    );
    starts(" [[[]]]", "neither a HAR file (`log`) nor an Epload graph");
    starts(r#"{"objs":[7]}"#, "not an Epload graph: invalid type: integer `7`, expected an object");
    starts(r#"{"log":{"entries":[]}}"#, "`log.entries` is empty; record the page again");
    starts(r#"{"objs":[],"deps":[]}"#, "no object to fetch; a page has at least one");
    let unknown = GRAPH.replace(r#""a1": "c3""#, r#""a1": "c9""#);
    starts(&unknown, "dependency 1: no activity `c9`; add it, or remove the dependency");
    let twice = GRAPH.replace(r#""id": "c2""#, r#""id": "c1""#);
    starts(&twice, "activity `c1` is given twice; give each its own id");
    let cycle = GRAPH.replace(r#""a1": "c1""#, r#""a1": "c2""#);
    starts(&cycle, "a cycle: `c2` -> `download_1` -> `c3` wait for each other; remove one");
    let long = GRAPH.replace("30.5", "1e300");
    starts(&long, "time of `c1` of object `r1` is");
    let untyped = GRAPH.replace("30.5", "\"long\"");
    starts(
        &untyped,
        "not an Epload graph: invalid type: string \"long\", expected f64 at line 5 column",
    );
    let when = ARCHIVE.replace("2024-05-01T10:00:00.150Z", "yesterday");
    starts(&when, "entry 1: startedDateTime `yesterday` is not an ISO 8601 time");
}

/// Reads each recorded graph, if the files are present. The times follow the rules of Epload.
#[test]
fn recorded_graphs_are_read() {
    let data = std::env::var("PLAIT_DATA").unwrap_or_else(|_| "../../../shared/data".to_owned());
    let mut seen = 0;
    for (name, objects, bytes, floor) in [
        ("google", 6, 906_147, 1_021),
        ("wikipedia", 19, 131_954, 999),
        ("instagram", 30, 1_671_349, 469),
        ("amazon", 59, 1_200_666, 2_015),
        ("guardian", 228, 3_147_398, 7_265),
        ("huffpost", 141, 3_132_974, 12_861),
    ] {
        let Ok(text) = std::fs::read_to_string(format!("{data}/pages/{name}.json")) else {
            continue;
        };
        seen += 1;
        let page = page("web:p.json", &text);
        let has = (page.objects(), page.bytes(), page.floor().as_micros() / 1_000);
        assert_eq!(has, (objects, bytes, floor), "{name}");
    }
    if seen == 0 {
        println!("skipped: no recorded pages in {data}");
    }
}

proptest! {
    #[test]
    fn a_changed_file_is_a_page_or_an_error(
        har: bool, at in 0usize..900, cut in 0usize..40, put in ".{0,6}", digits in "[-0-9eE.\"]{0,5}",
    ) {
        let whole = if har { ARCHIVE } else { GRAPH };
        let at = whole.floor_char_boundary(at.min(whole.len()));
        let end = whole.floor_char_boundary((at + cut).min(whole.len()));
        for put in [&put, &digits] {
            let changed = format!("{}{put}{}", &whole[..at], &whole[end..]);
            match parse("web:x/p.json", &changed) {
                Ok(Workload::Web(web)) => prop_assert!(web.page().objects() > 0),
                Ok(other) => prop_assert!(false, "{other}"),
                Err(error) => prop_assert!(error.starts_with("x/p.json: "), "{}", error),
            }
        }
    }

    #[test]
    fn no_text_of_a_page_panics(text in "(web:)?(amazon|p\\.json)?[,=a-z0-9.%]{0,40}") {
        if let Err(error) = parse(&text, GRAPH) {
            prop_assert!(!error.is_empty());
        }
    }
}
