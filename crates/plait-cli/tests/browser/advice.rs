//! The page of `plait advise --html` in the browser.

use super::devtools::Look;
use super::papers::PROBE;
use super::{DARK, LIGHT, PHONE, PLAIT, browser, directory};
use serde_json::{Value, json};
use std::process::Command;

/// Returns the coloured texts whose contrast with the ground is below 4.5.
const FAINT: &str = "(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (rgb) => rgb.reduce((sum, value, at) => {
    const share = value / 255;
    return sum + [0.2126, 0.7152, 0.0722][at] * (share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4);
  }, 0);
  const ground = light(numbers(getComputedStyle(document.body).backgroundColor));
  const texts = document.querySelectorAll('.loads td.n, .key span, .axis svg text, .verdict, .hint');
  const contrast = (text) => {
    const style = getComputedStyle(text);
    const own = light(numbers(text.tagName === 'text' ? style.fill : style.color));
    const [low, high] = [own, ground].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  if (texts.length < 10) return ['too few texts: ' + texts.length];
  return Array.from(texts).filter((it) => contrast(it) < 4.5).map((it) => it.textContent);
})()";

/// A phone that is a little wider.
const WIDE_PHONE: Look = Look { scheme: "light", width: 390, mobile: true };

#[test]
fn the_page_of_an_advice_opens_light_dark_and_on_a_phone() {
    let dir = directory("advice");
    let Some(mut browser) = browser(&dir) else { return };
    let (wifi, lte) = ("rate=18mbit..25mbit,rtt=22ms", "rate=4mbit..12mbit,rtt=60ms");
    for (name, lte) in [("free", lte.to_owned()), ("priced", format!("{lte},cost=1,quota=50MB"))] {
        let page = dir.join(format!("{name}.html"));
        let output = Command::new(PLAIT)
            .args(["advise", "--draws", "2", "--html"])
            .arg(&page)
            .args(["--path", &format!("wifi:{wifi}"), "--path", &format!("lte:{lte}")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for look in [LIGHT, DARK, PHONE, WIDE_PHONE] {
            browser.open(&page, look);
            let seen: Value = browser.evaluate(PROBE);
            let place = format!("{name}, {look:?}");
            assert_eq!(browser.complaints(&page), Vec::<String>::new(), "{place}");
            assert_eq!(seen["wrong"], json!([]), "{place}");
            let faint: Value = browser.evaluate(FAINT);
            assert_eq!(faint, json!([]), "{place}");
            // The scale, five loads, and an outage of each path.
            let drawings = "document.querySelectorAll('svg').length";
            assert_eq!(browser.evaluate(drawings), 8, "{place}");
            let wider =
                "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.evaluate(wider), 0, "{place}");
        }
    }
}
