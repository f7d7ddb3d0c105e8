//! Dates of the calendar.

/// Returns the day of a time in seconds since 1970, `2026-11-27`, in UTC.
#[must_use]
pub fn day_of(seconds: u64) -> String {
    // Years begin in March here, so that the leap day is the last day of a year. An era has 400 years.
    let days = (seconds / 86_400).saturating_add(719_468);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year_of_era + next)
}

/// Returns the day at the beginning of a text such as `2026-11-27T21:32:12Z`.
pub(crate) fn leading_day(text: &str) -> Option<String> {
    let day = text.trim().get(..10)?;
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    day.bytes().enumerate().all(fits).then(|| day.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are from `date -u -d @SECONDS +%F`.
    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_795_815_132, "2026-11-27"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day_of(seconds), day);
        }
        assert_eq!(leading_day("2026-11-27-21:32:12").as_deref(), Some("2026-11-27"));
        assert_eq!(leading_day("Fri, 27 Nov"), None);
    }
}
