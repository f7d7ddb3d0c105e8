//! Tests of manifests.

use super::*;
use proptest::prelude::*;

const TEMPLATE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT22M12S">
  <Period>
    <AdaptationSet mimeType="audio/mp4">
      <Representation id="a" bandwidth="128000"/>
    </AdaptationSet>
    <AdaptationSet mimeType="video/mp4">
      <SegmentTemplate media="$RepresentationID$/$Number$.m4s" timescale="1000" duration="5000"/>
      <Representation id="hd" bandwidth="8470000"/>
      <Representation id="ld" bandwidth="260000"/>
    </AdaptationSet>
  </Period>
</MPD>
"#;

const LISTS: &str = r#"<MPD type="static">
  <Period>
    <AdaptationSet contentType="video">
      <Representation bandwidth="400">
        <SegmentList timescale="10" duration="20">
          <SegmentURL mediaRange="0-99"/><SegmentURL mediaRange="100-299"/>
        </SegmentList>
      </Representation>
    </AdaptationSet>
  </Period>
  <Period duration="PT2.5S">
    <AdaptationSet contentType="video">
      <SegmentTemplate timescale="1000">
        <SegmentTimeline><S t="0" d="1000" r="-1"/></SegmentTimeline>
      </SegmentTemplate>
      <Representation bandwidth="400"/>
    </AdaptationSet>
  </Period>
</MPD>
"#;

fn message(text: &str) -> String {
    read("clip.mpd", text).unwrap_err().to_string()
}

#[test]
fn a_template_gives_chunks_of_one_length() {
    let clip = read("clip.mpd", TEMPLATE).unwrap();
    // 1332 s in chunks of 5 s: 266 chunks, and one of 2 s.
    assert_eq!((clip.chunks(), clip.length()), (267, Span::from_secs(1_332)));
    let rates: Vec<u64> = clip.rungs().iter().map(|rung| rung.rate.as_bps()).collect();
    assert_eq!(rates, [260_000, 8_470_000]);
    assert_eq!([clip.rungs()[0].size(0), clip.rungs()[1].size(266)], [162_500, 2_117_500]);
}

#[test]
fn lists_give_sizes_timelines_give_times_and_periods_follow_each_other() {
    let clip = read("clip.mpd", LISTS).unwrap();
    let lasts: Vec<u64> = (0..5).map(|it| clip.lasts(it).as_nanos() / 1_000_000).collect();
    assert_eq!((clip.chunks(), lasts), (5, vec![2_000, 2_000, 1_000, 1_000, 1_000]));
    let sizes: Vec<u64> = (0..5).map(|it| clip.rungs()[0].size(it)).collect();
    assert_eq!(sizes, [100, 200, 50, 50, 50]);
}

#[test]
fn errors_name_the_place_and_what_would_help() {
    let without = TEMPLATE.replace(r#"<Representation id="hd" bandwidth="8470000"/>"#, "");
    let none = without.replace(r#"<Representation id="ld" bandwidth="260000"/>"#, "");
    assert_eq!(
        message(&none),
        "clip.mpd:7:5: the AdaptationSet has no <Representation>; add <Representation \
         bandwidth=\"...\"> for each encoding"
    );
    let unnamed = TEMPLATE.replace(r#" bandwidth="260000""#, "");
    assert!(message(&unnamed).starts_with("clip.mpd:10:7: the Representation has no usable band"));
    assert!(message(&TEMPLATE.replace("</Period>", "")).starts_with("clip.mpd:13:1: no XML: "));
    assert!(message("<mpd/>").starts_with("clip.mpd:1:1: the root is <mpd>, not <MPD>"));
    assert!(message("<MPD/>").starts_with("clip.mpd:1:1: <MPD> has no <Period>"));
    assert!(message("<MPD><Period/></MPD>").contains("<Period> has no <AdaptationSet>"));
    assert!(message(&TEMPLATE.replace("static", "dynamic")).contains("2:1: a live stream"));
    let endless = TEMPLATE.replace(r#" mediaPresentationDuration="PT22M12S""#, "");
    assert!(message(&endless).contains("the length of the clip is missing"));
    assert!(
        message(&TEMPLATE.replace(r#" duration="5000""#, ""))
            .contains("the duration of its chunks")
    );
    assert!(
        message(&TEMPLATE.replace("PT22M", "22 min")).contains("is not a duration; write it as")
    );
    assert!(message(&TEMPLATE.replace("5000", "0")).contains("is not a number above zero"));
    assert!(message(&TEMPLATE.replace("PT22M12S", "PT0S")).contains("no chunk with a duration"));
    assert!(message(&TEMPLATE.replace("\"5000\"", "\"1\"")).contains("at most 100000"));
    assert!(message(&LISTS.replace("0-99", "99-0")).contains("mediaRange=\"99-0\" is not a range"));
    assert!(message(&LISTS.replacen("400", "500", 1)).contains("this Period has other bandwidths"));
    assert!(message(&LISTS.replace("d=\"1000\"", "d=\"x\"")).contains("<S> has no usable d"));
}

#[test]
fn a_manifest_without_video_is_refused() {
    let audio = TEMPLATE.replace("video/mp4", "audio/mp4");
    assert_eq!(
        message(&audio),
        "clip.mpd:4:5: no AdaptationSet of its Period is video: all say that they are audio, text or \
         image; name a manifest with video (mimeType=\"video/mp4\")"
    );
    let content = audio.replace("mimeType=\"audio/mp4\"", "contentType=\"audio\"");
    assert!(message(&content).contains("no AdaptationSet of its Period is video"));
    let inside = audio.replace(" mimeType=\"audio/mp4\"", "");
    let inside = inside.replace("<Representation", "<Representation mimeType=\"Audio/mp4\"");
    assert!(message(&inside).contains("no AdaptationSet of its Period is video"));
    // A set without a type may be video, even after a set of another type.
    let silent = TEMPLATE.replace(" mimeType=\"video/mp4\"", "");
    assert_eq!(read("clip.mpd", &silent), read("clip.mpd", TEMPLATE));
    // Thumbnails have a width, but are not video.
    let thumbnails = "<Period><AdaptationSet mimeType=\"image/jpeg\"><Representation bandwidth=\"9\" \
                      width=\"320\"/></AdaptationSet>";
    assert_eq!(read("a", &TEMPLATE.replace("<Period>", thumbnails)), read("a", TEMPLATE));
    assert!(
        message(&audio.replace("<Period>", thumbnails)).contains("no AdaptationSet of its Per")
    );
}

#[test]
fn durations_are_those_of_iso_8601() {
    let ms = |text| iso_8601(text).map(|span| span.as_nanos() / 1_000_000);
    assert_eq!(ms("PT22M12S"), Ok(1_332_000));
    assert_eq!(ms("PT0.5S"), Ok(500));
    assert_eq!(ms("P1DT1H"), Ok(90_000_000));
    assert_eq!(ms("P2D"), Ok(172_800_000));
    assert_eq!(ms("P0Y0M0DT0H1M0.000S"), Ok(60_000));
    assert_eq!(ms("P0Y1DT1S"), Ok(86_401_000));
    assert_eq!(ms("P0M0DT2M"), Ok(120_000));
    for text in [
        "",
        "P",
        "PT",
        "22",
        "PT1",
        "PTS",
        "PT1S2M",
        "PT-1S",
        "PT1.S",
        "PTxS",
        "P1DM",
        "PD",
        "P1.5D",
        "P+1D",
        "P1M0Y",
        "P1D0M",
        "P1H",
        "P1Y2",
        "-P1D",
        "P1W",
        "P999999999999999999D",
    ] {
        assert_eq!(ms(text), Err(Unread::Form), "{text}");
    }
    for text in ["P1Y", "P1M", "P0Y1M0DT0H1M0S", "P99999999999Y", "P01Y0M"] {
        assert_eq!(ms(text), Err(Unread::Calendar), "{text}");
    }
    let clip = |length: &str| read("clip.mpd", &TEMPLATE.replace("PT22M12S", length));
    assert_eq!(clip("P0Y0M0DT0H1M0.000S").unwrap().length(), Span::from_secs(60));
    assert_eq!(
        clip("P0Y1M0DT0H1M0S").unwrap_err().to_string(),
        "clip.mpd:2:1: mediaPresentationDuration=\"P0Y1M0DT0H1M0S\" has years or months, whose length \
         is not fixed; write it in days, hours, minutes and seconds: P31DT2H"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_mutated_manifest_is_read_or_refused(
        which: bool, at in 0..1_000usize, with in "[ -~]{0,6}", cut in 0..40usize,
    ) {
        let whole = if which { TEMPLATE } else { LISTS };
        let at = at % whole.len();
        let end = (at + cut).min(whole.len());
        let text = format!("{}{with}{}", &whole[..at], &whole[end..]);
        match read("clip.mpd", &text) {
            Ok(clip) => prop_assert!(clip.chunks() > 0 && !clip.rungs().is_empty()),
            Err(error) => prop_assert!(error.to_string().starts_with("clip.mpd:")),
        }
    }
}
