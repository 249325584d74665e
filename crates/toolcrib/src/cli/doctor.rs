//! `doctor`: everything that usually goes wrong, looked at in order, each problem with what to do about it.
//!
//! It changes nothing: a data folder that is missing is not made, and a running crib is asked instead of its servers
//! being started twice. `machine` looks at files, ports and the clock, `programs` at commands, `sources` at servers.

mod machine;
mod programs;
mod sources;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::trouble::{Code, Trouble};
use super::{Desk, Ended, JsonFlag};
use crate::config as settings;
use crate::output::{Tint, clean};
use crate::reach::Running;

/// Look for problems: config, data, ports, programs, and every server
#[derive(Debug, Args)]
#[command(after_help = "\
Each server is connected once and let go again (a running crib is asked instead), so this may take a while. The exit \
code is 1 when there is a problem, 3 when the config cannot be used at all.

Examples:
  toolcrib doctor
  toolcrib doctor --no-connect
  toolcrib doctor --json | jq '.findings[] | select(.verdict == \"problem\")'")]
pub struct Doctor {
    #[command(flatten)]
    pub(super) form: JsonFlag,
    /// Do not connect the servers
    #[arg(long)]
    no_connect: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    Warning,
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    about: String,
    verdict: Verdict,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn good(about: impl Into<String>, found: impl Into<String>) -> Self {
        Self { about: about.into(), verdict: Verdict::Good, found: found.into(), remedy: None }
    }

    fn warning(about: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, remedy: Some(remedy.into()), ..Self::good(about, found) }
    }

    fn problem(about: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Problem, remedy: Some(remedy.into()), ..Self::good(about, found) }
    }
}

/// What was found so far; said as it is found, because some of it takes time.
struct Chart<'a> {
    desk: &'a Desk,
    findings: Vec<Finding>,
}

impl Chart<'_> {
    fn note(&mut self, finding: Finding) -> std::io::Result<()> {
        let output = &self.desk.output;
        if !output.is_json() {
            let (word, tint) = match finding.verdict {
                Verdict::Good => ("ok     ", Tint::Good),
                Verdict::Warning => ("warning", Tint::Warn),
                Verdict::Problem => ("problem", Tint::Bad),
            };
            let (word, about) = (output.paint(tint, word), output.paint(Tint::Head, &finding.about));
            output.line(format!("{word}  {about}: {}", clean(&finding.found)))?;
            if let Some(remedy) = &finding.remedy {
                output.line(format!("         {}", output.paint(Tint::Faint, &format!("-> {remedy}"))))?;
            }
        }
        self.findings.push(finding);
        Ok(())
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.findings.iter().filter(|finding| finding.verdict == verdict).count()
    }
}

pub async fn run(words: &Doctor, desk: &Desk) -> Ended {
    let mut chart = Chart { desk, findings: Vec::new() };
    let loaded = match settings::load(desk.config.as_deref(), &super::env) {
        Ok(loaded) => loaded,
        Err(mistakes) => {
            return Err(
                Trouble::from(mistakes).hint("mend the config first; `toolcrib config check` reads it again")
            );
        }
    };
    let place = loaded.path.as_ref().map_or("embedded default".into(), |path| path.display().to_string());
    chart.note(Finding::good("config", format!("{place}, {} servers", loaded.config.servers.len())))?;
    for warning in &loaded.warnings {
        let remedy = warning.expected.clone().unwrap_or_else(|| "see `toolcrib config check`".into());
        chart.note(Finding::warning(
            "config",
            format!("{}:{}: {}", warning.file, warning.line, warning.what),
            remedy,
        ))?;
    }
    let config = &loaded.config;
    chart.note(machine::data_folder(&config.data))?;
    chart.note(machine::ledger(&config.data).await)?;
    chart.note(machine::clock())?;
    let running = Running::find(config, &desk.address()).await?;
    for finding in machine::ports(config, running.as_ref()) {
        chart.note(finding)?;
    }
    for finding in Box::pin(programs::look(config)).await {
        chart.note(finding)?;
    }
    if !words.no_connect {
        Box::pin(sources::look(config, running.as_ref(), &mut chart)).await?;
    }
    end(&chart)
}

fn end(chart: &Chart<'_>) -> Ended {
    let (problems, warnings) = (chart.count(Verdict::Problem), chart.count(Verdict::Warning));
    let output = &chart.desk.output;
    if output.is_json() {
        let findings = &chart.findings;
        output.json(&json!({ "findings": findings, "problems": problems, "warnings": warnings }))?;
    } else {
        let plural = |count: usize, word: &str| match count {
            0 => format!("no {word}s"),
            1 => format!("1 {word}"),
            count => format!("{count} {word}s"),
        };
        output.line(format!("\n{}, {}", plural(problems, "problem"), plural(warnings, "warning")))?;
    }
    Ok(if problems > 0 { Code::Failed } else { Code::Done })
}
