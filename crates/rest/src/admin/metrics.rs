//! `/metrics`: counts and durations in the text form of Prometheus. Numbers only, no names of callers or arguments.

use std::{fmt::Write as _, time::SystemTime};

use axum::{extract::State, http::header, response::IntoResponse};
use toolcrib_core::{
    gateway::meter::{BOUNDS_US, Tally},
    id::SourceId,
    source::State as SourceState,
};

use crate::{Desk, refusal::Refused};

const STATES: [SourceState; 6] = [
    SourceState::Disabled,
    SourceState::Idle,
    SourceState::Connecting,
    SourceState::Ready,
    SourceState::Failed,
    SourceState::Stopped,
];

/// Metrics in the text form of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "about", operation_id = "metrics",
    responses((status = 200, content_type = "text/plain", body = String), (status = "4XX", body = Refused)))]
pub async fn metrics(State(desk): State<Desk>) -> impl IntoResponse {
    let mut page = Page::default();
    calls(&mut page, &desk.gateway.meter().read());
    page.gauge("toolcrib_calls_running", "Calls under way.", desk.gateway.roster().calls().len() as f64);
    sources(&mut page, &desk);
    if let Some(sessions) = &desk.sessions {
        page.gauge("toolcrib_sessions", "Open MCP sessions.", sessions() as f64);
    }
    process(&mut page, &desk);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.0)
}

/// The text, line by line.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, told: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {told}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, told: &str, value: f64) {
        self.head(name, "gauge", told);
        self.line(name, &[], value);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

fn calls(page: &mut Page, series: &[(Option<SourceId>, &'static str, Tally)]) {
    // No source: the target was not found. A source id is never empty, so this cannot be mistaken for one.
    let source = |id: &Option<SourceId>| id.as_ref().map_or(String::new(), ToString::to_string);
    page.head("toolcrib_calls_total", "counter", "Calls that ended.");
    for (id, outcome, tally) in series {
        let labels = [("source", &*source(id)), ("outcome", outcome)];
        page.line("toolcrib_calls_total", &labels, tally.calls as f64);
    }
    let name = "toolcrib_call_duration_seconds";
    page.head(name, "histogram", "How long calls took.");
    for (id, outcome, tally) in series {
        let source = source(id);
        let labels = [("source", &*source), ("outcome", outcome)];
        let [first, second] = labels;
        for (bound, within) in BOUNDS_US.iter().zip(tally.within) {
            let bound = seconds(*bound).to_string();
            page.line(&format!("{name}_bucket"), &[first, second, ("le", &bound)], within as f64);
        }
        page.line(&format!("{name}_bucket"), &[first, second, ("le", "+Inf")], tally.calls as f64);
        page.line(&format!("{name}_sum"), &labels, seconds(tally.total_us));
        page.line(&format!("{name}_count"), &labels, tally.calls as f64);
    }
}

fn sources(page: &mut Page, desk: &Desk) {
    let statuses = desk.gateway.supervisor().statuses();
    page.head("toolcrib_sources", "gauge", "Sources by state.");
    for state in STATES {
        let count = statuses.iter().filter(|status| status.state == state).count();
        page.line("toolcrib_sources", &[("state", state.word())], count as f64);
    }
    page.head("toolcrib_source_ready", "gauge", "Whether a source is connected.");
    for status in &statuses {
        let ready = f64::from(u8::from(status.state == SourceState::Ready));
        page.line("toolcrib_source_ready", &[("source", status.id.as_str())], ready);
    }
}

fn process(page: &mut Page, desk: &Desk) {
    page.head("toolcrib_build", "gauge", "The version that runs.");
    page.line("toolcrib_build", &[("version", desk.version)], 1.0);
    let up = desk.began.elapsed();
    page.gauge("toolcrib_uptime_seconds", "Seconds since the start.", up.as_secs_f64());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let began = now.saturating_sub(up).as_secs_f64();
    page.gauge("process_start_time_seconds", "Start of the process, in seconds since 1970.", began);
    if let Some(bytes) = resident() {
        page.gauge("process_resident_memory_bytes", "Resident memory.", bytes as f64);
    }
}

/// Resident memory, where the system tells it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_cumulative_and_ends_in_infinity() {
        let mut tally = Tally { calls: 3, total_us: 2_000_000, ..Tally::default() };
        tally.within[11] = 2;
        let mut page = Page::default();
        calls(&mut page, &[(None, "unknown", Tally::default()), (SourceId::new("s").ok(), "done", tally)]);
        for line in [
            r#"toolcrib_calls_total{source="",outcome="unknown"} 0"#,
            r#"toolcrib_calls_total{source="s",outcome="done"} 3"#,
            r#"toolcrib_call_duration_seconds_bucket{source="s",outcome="done",le="0.0001"} 0"#,
            r#"toolcrib_call_duration_seconds_bucket{source="s",outcome="done",le="60"} 2"#,
            r#"toolcrib_call_duration_seconds_bucket{source="s",outcome="done",le="+Inf"} 3"#,
            r#"toolcrib_call_duration_seconds_sum{source="s",outcome="done"} 2"#,
        ] {
            assert!(page.0.lines().any(|each| each == line), "{line} in\n{}", page.0);
        }
        assert_eq!(escaped("a\"\\\n"), "a\\\"\\\\\\n");
    }
}
