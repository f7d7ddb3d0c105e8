//! Comparisons over paths with a cost or a quota.

use super::*;

/// With a cost or a quota, the table and the CSV have the copies on each path.
#[test]
fn paths_with_a_price_show_their_copies() {
    let mut priced = report();
    for row in &mut priced.rows {
        let extra = [("wifi".to_owned(), 0.041), ("lte".to_owned(), 0.0)];
        row.traffic.path_extra_share = extra.into();
    }
    let ecf =
        |text: &str, cell: &str| text.lines().any(|it| it.contains("ecf") && it.contains(cell));
    let narrow = text(&document(priced.clone()), 80, false);
    fits(&narrow, 80);
    assert!(narrow.contains("wifi/lte    extra") && ecf(&narrow, " 4.1/0 %"), "{narrow}");
    assert!(legend(&priced, &[]).contains("by the path that carried them"));
    assert!(
        legend(&priced, &[])
            .contains("wifi/lte: share of all bytes sent, with copies (path_sent_share).")
    );
    let page = markdown(&document(priced.clone()));
    assert!(page.contains("| wifi/lte | extra |") && ecf(&page, "4.1/0 %"), "{page}");
    assert!(csv(&document(priced)).contains("\necf,cubic,path_extra_share.wifi,0.041,"));
}

/// At 80 columns, the bytes of a path with a price stay in the table. Without a price, they are left out first.
#[test]
fn the_bytes_of_paths_with_a_price_stay() {
    let mut priced = report();
    for row in &mut priced.rows {
        row.traffic.path_extra_share =
            [("wifi".to_owned(), 0.041), ("lte".to_owned(), 0.002)].into();
        if row.scheduler == "ecf" {
            row.scheduler = "slot+price:goal=thrifty".to_owned();
        }
    }
    let narrow = text(&document(priced.clone()), 80, false);
    fits(&narrow, 80);
    let heading = |text: &str| {
        let line = text.lines().find(|line| line.contains("behind best, %"));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert!(heading(&narrow).ends_with("wifi/lte      extra"), "{narrow}");
    assert!(
        narrow.replace('\n', " ").contains("Not enough columns for: vs best path."),
        "{narrow}"
    );
    for width in 60..80 {
        let narrow = text(&document(priced.clone()), width, false);
        let least = 3 + 23 + 9 + 17 + 8 + 2 * 3;
        assert!(width < least || heading(&narrow).contains("wifi/lte"), "{width}: {narrow}");
    }
    for row in &mut priced.rows {
        row.traffic.path_extra_share.clear();
    }
    let narrow = heading(&text(&document(priced), 80, false));
    assert!(narrow.contains("vs best path") && !narrow.contains("wifi/lte"), "{narrow}");
}
