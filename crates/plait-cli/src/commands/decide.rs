//! `plait decide`: states in, decisions out, one JSON object a line.

use crate::decide::Session;
use crate::failure::Failure;
use std::io::{self, BufRead, ErrorKind, Write};

const EXAMPLES: &str = r#"Examples:
  echo '{"scheduler":"ecf","subflows":[{"id":0,"srtt_ms":9}]}' | plait decide
  plait schema decide-question
  plait schema decide"#;

/// Ask schedulers for decisions: JSON lines on stdin, JSON lines on stdout
///
/// Counts are in segments and times in milliseconds; what is left out has a neutral value. The
/// `state` of an answer, fed back in, continues a run. Every key is described in docs/decide.md.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES, verbatim_doc_comment)]
pub(crate) struct Args {}

pub(crate) fn run(_args: &Args) -> Result<(), Failure> {
    converse(io::stdin().lock(), io::stdout().lock())
}

/// Answers line by line, so that another program can hold a dialogue. Stops at the first line that
/// cannot be understood.
fn converse(mut questions: impl BufRead, mut answers: impl Write) -> Result<(), Failure> {
    let mut line = Vec::new();
    let mut session = Session::default();
    for number in 1_u64.. {
        line.clear();
        let length = questions.read_until(b'\n', &mut line).map_err(|error| {
            let problem = plait_lab::unreadable(&error);
            Failure::Usage(format!("stdin:{number}: {problem}"))
        })?;
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
        let answer = session
            .answer(text)
            .map_err(|refusal| Failure::Usage(format!("stdin:{number}: {refusal}")))?;
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
        let end = converse(text.as_bytes(), &mut answers);
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
        let failure = converse(&b"\xff\n"[..], Vec::new()).unwrap_err().to_string();
        assert!(failure.contains("stdin:1: byte 1 is not text"), "{failure}");
    }
}
