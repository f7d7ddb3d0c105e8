//! `plait decide`: reads states and writes decisions, one JSON object a line.

use crate::failure::Failure;
use plait_report::decide::{Refusal, Session, controller};
use std::io::{self, BufRead, ErrorKind, Read, Write};

const EXAMPLES: &str = r#"Examples:
  echo '{"scheduler":"ecf","subflows":[{"id":0,"srtt_ms":9}]}' | plait decide
  echo '{"cc":"lia","flows":[{"cwnd":9}],"event":{"ack":9}}' | plait decide --cc
  plait schema decide-question"#;

/// Get decisions of schedulers, as JSON lines on stdin and stdout
///
/// A line on stdin is a question: the state of a connection. A line on stdout is the answer: the
/// decision of the scheduler in this state. Counts are in segments and times in milliseconds. A missing
/// key has its default value. To continue a run, pass the `state` of an answer with the next question.
///
/// With --cc, a question has the flows of a connection and an event, and the answer of the congestion
/// controller has the flows after the event.
///
/// `plait schema decide-question` and `plait schema decide` describe every key. In the documentation,
/// docs/decide.md has examples.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Take questions for congestion controllers
    #[arg(long)]
    cc: bool,
    /// Scheduler of the questions that name none
    #[arg(long, value_name = "SCHEDULER", conflicts_with = "cc")]
    scheduler: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (questions, answers) = (io::stdin().lock(), io::stdout().lock());
    if args.cc {
        return converse(questions, answers, controller::answer);
    }
    let mut session = match &args.scheduler {
        None => Session::default(),
        Some(text) => Session::with_scheduler(text)
            .map_err(|refusal| Failure::Usage(format!("--scheduler: {refusal}")))?,
    };
    converse(questions, answers, |line| session.answer(line))
}

/// Largest question, in bytes (1 MiB). A longer one is refused.
const LONGEST_QUESTION: u64 = 1 << 20;

/// Answers line by line, so that another program can hold a dialogue. Stops at the first invalid line.
fn converse(
    mut questions: impl BufRead,
    mut answers: impl Write,
    mut asked: impl FnMut(&str) -> Result<String, Refusal>,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let unread = |error: io::Error| {
            let problem = plait_lab::unreadable(&error);
            Failure::Usage(format!("stdin:{number}: {problem}"))
        };
        let mut bounded = (&mut questions).take(LONGEST_QUESTION + 1);
        let length = bounded.read_until(b'\n', &mut line).map_err(unread)?;
        if length as u64 > LONGEST_QUESTION {
            return Err(unread(plait_app::file::too_large(LONGEST_QUESTION)));
        }
        if length == 0 {
            break;
        }
        let text = std::str::from_utf8(&line).map_err(|error| {
            let byte = error.valid_up_to() + 1;
            Failure::Usage(format!("stdin:{number}: byte {byte} is not text in UTF-8"))
        })?;
        if text.trim().is_empty() {
            continue;
        }
        let answer =
            asked(text).map_err(|refusal| Failure::Usage(format!("stdin:{number}: {refusal}")))?;
        match writeln!(answers, "{answer}").and_then(|()| answers.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(error) => return Err(Failure::stdout(&error)),
            Ok(()) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> (String, Result<(), Failure>) {
        let mut answers = Vec::new();
        let mut session = Session::default();
        let end = converse(text.as_bytes(), &mut answers, |line| session.answer(line));
        (String::from_utf8(answers).unwrap(), end)
    }

    #[test]
    fn a_bad_line_is_named_and_earlier_answers_stand() {
        let good = r#"{"scheduler":"minrtt","subflows":[{"id":0,"srtt_ms":10}]}"#;
        let (answers, end) = ask(&format!("{good}\n\n{good}\n{{\"schedular\":1}}\n{good}\n"));
        assert_eq!(answers.lines().count(), 2);
        let failure = end.unwrap_err();
        assert_eq!(failure.code(), 2);
        let text = failure.to_string();
        assert!(text.starts_with("stdin:4:"), "{text}");
        assert!(text.contains("did you mean `scheduler`?"), "{text}");
    }

    #[test]
    fn a_question_without_a_scheduler_takes_that_of_the_flag() {
        let bare = r#"{"subflows":[{"id":0,"srtt_ms":10}]}"#;
        let text = ask(&format!("{bare}\n")).1.unwrap_err().to_string();
        assert!(text.starts_with("stdin:1: missing field `scheduler`"), "{text}");
        let named = r#"{"scheduler":"ecf:beta=0.5","subflows":[{"id":0,"srtt_ms":10}]}"#;
        let mut session = Session::with_scheduler("ecf:beta=0.5").unwrap();
        assert_eq!(session.answer(bare).unwrap(), Session::default().answer(named).unwrap());
        let text = Session::with_scheduler("eff").err().unwrap().to_string();
        assert!(text.contains("did you mean `ecf`?"), "{text}");
    }

    #[test]
    fn what_is_no_question_is_told_in_plain_words() {
        for (line, words) in [
            (r#"{"scheduler":"ecf","subflows":["#, "not finished where the line ends (column 31)"),
            ("hello", "a question is a JSON object on one line"),
            ("[]", r#"such as {"scheduler":"ecf","#),
            (r#"{"scheduler":"eff"}"#, "did you mean `ecf`?"),
            (r#"{"scheduler":"ecf"}"#, "missing field `subflows`"),
            (r#"{"scheduler":"ecf","subflows":{}}"#, "subflows: expected a list, found an object"),
            (r#"{"scheduler":"ecf",subflows:[]}"#, "stdin:1: key must be a string (column 20)"),
            (
                r#"{"scheduler":"ecf","subflows":[{"id":0,"srtt_ms":"9"}]}"#,
                "subflows[0].srtt_ms: expected a number, found the text \"9\"",
            ),
        ] {
            let text = ask(&format!("{line}\n")).1.unwrap_err().to_string();
            assert!(text.contains(words), "{line}: {text}");
        }
        for (line, words) in [
            ("[1]", r#"such as {"cc":"lia","#),
            (r#"{"cc":"lai","flows":[],"event":{}}"#, "did you mean `lia`?"),
            (r#"{"cc":"lia","flows":[],"event":{"ack":1}}"#, "stdin:1: flows: there must be one"),
            (r#"{"cc":"lia","flows":[{"srtt":9}],"event":{"ack":1}}"#, "did you mean `srtt_ms`?"),
            (r#"{"cc":"lia","flows":[{}],"event":{"akc":1}}"#, "did you mean `ack`?"),
            (r#"{"cc":"lia","flows":[{}],"event":{"ack":1,"flow":1}}"#, "there is no such flow"),
            (r#"{"cc":"lia","flows":[{}],"event":{}}"#, "one of `ack`, `loss`,"),
            (
                r#"{"cc":"lia","flows":[{}],"event":{"ack":1,"again":true}}"#,
                "event.again: belongs to",
            ),
            (r#"{"cc":"olia:qualty=x","flows":[{}],"event":{"ack":1}}"#, "did you mean `quality`?"),
            (
                r#"{"cc":"cubic","flows":[{"state":{"wmax":1}}],"event":{"ack":1}}"#,
                "did you mean `w_max`?",
            ),
            (
                r#"{"cc":"lia","flows":[{"cwnd":1,"cwnd_bytes":1}],"event":{"ack":1}}"#,
                "flows[0].cwnd: 1 segments of 1460 bytes are 1460 bytes, and the key",
            ),
        ] {
            let end = converse(format!("{line}\n").as_bytes(), Vec::new(), controller::answer);
            let failure = end.unwrap_err();
            assert_eq!(failure.code(), 2);
            assert!(failure.to_string().contains(words), "{line}: {failure}");
        }
        let failure =
            converse(&b"\xff\n"[..], Vec::new(), controller::answer).unwrap_err().to_string();
        assert!(failure.contains("stdin:1: byte 1 is not text"), "{failure}");
    }
}
