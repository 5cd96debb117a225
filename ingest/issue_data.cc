// Issues, job events and rule statuses as JSON data (wire-and-api §9.2, §9.3).
#include <algorithm>
#include <array>
#include <utility>

#include "ingest/event_data.h"

namespace tocsin::ingest {
namespace {

using core::Issue;

constexpr core::Resolution kResolutions[] = {
    core::Resolution::recovered, core::Resolution::job_ended, core::Resolution::superseded,
    core::Resolution::expired, core::Resolution::manual};
constexpr core::JobPhase kPhases[] = {core::JobPhase::started, core::JobPhase::heartbeat,
                                      core::JobPhase::ended};
constexpr core::RuleState kRuleStates[] = {
    core::RuleState::no_data,         core::RuleState::in_progress, core::RuleState::issues_found,
    core::RuleState::no_issues_found, core::RuleState::error,       core::RuleState::stopped};

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json optional_json(const std::optional<core::WallTime>& time) {
  return time ? time_json(*time) : Json(nullptr);
}
Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// What the label says: a word outside the set counts as error, none as a warning.
core::Severity severity_of(const core::Labels& labels) {
  if (!labels.has("severity")) return core::Severity::warning;
  return core::severity_from(labels.get("severity")).value_or(core::Severity::error);
}

/// The longest prefix of at most `bytes` that ends between two characters.
std::string_view cut_text(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

std::size_t annotation_bytes(const Issue& issue) {
  std::size_t total = issue.summary.size() + issue.description.size() +
                      issue.recommendation.size() + issue.runbook_url.size();
  for (const auto& [name, text] : issue.annotations) total += name.size() + text.size();
  return total;
}

bool cut_annotations(Issue& issue, std::size_t max_bytes) {
  constexpr std::string_view kMarker = " … (cut)";
  bool cut = false;
  std::size_t names = 0;
  for (const auto& [name, text] : issue.annotations) names += name.size() + kMarker.size();
  while (names > max_bytes / 2) {  // so many that cutting their texts is not enough
    names -= issue.annotations.back().first.size() + kMarker.size();
    issue.annotations.pop_back();
    cut = true;
  }
  std::vector<std::string*> all{&issue.summary, &issue.description, &issue.recommendation,
                                &issue.runbook_url};
  for (auto& [name, text] : issue.annotations) all.push_back(&text);
  for (std::size_t round = 0; round < all.size(); ++round) {
    const std::size_t total = annotation_bytes(issue);
    if (total <= max_bytes) return cut;
    std::string& longest = **std::max_element(
        all.begin(), all.end(), [](const auto* a, const auto* b) { return a->size() < b->size(); });
    const std::size_t over = total - max_bytes + kMarker.size();
    longest = std::string(cut_text(longest, longest.size() > over ? longest.size() - over : 0));
    longest += kMarker;
    cut = true;
  }
  return cut;
}

Json run_json(const core::RunRef& run) {
  Json out = Json::object();
  out["uid"] = run.uid.nil() ? Json(nullptr) : Json(core::to_text(run.uid));
  out["attempt"] = run.attempt == 0 ? Json(nullptr) : Json(run.attempt);
  out["job"] = run.job;
  out["platform"] = run.platform;
  out["ref"] = value_json(run.ref);
  return out;
}

void read_run(const Fields& in, core::RunRef& out) {
  in.uid("uid", out.uid);
  out.attempt = 0;  // not said: nothing may be stopped for it
  in.integer("attempt", out.attempt);
  in.text("job", out.job);
  in.text("platform", out.platform);
  in.value("ref", out.ref);
}

Json annotations_json(const Issue& issue) {
  Json out = Json::object();
  out["summary"] = issue.summary;
  if (!issue.description.empty()) out["description"] = issue.description;
  if (!issue.recommendation.empty()) out["recommendation"] = issue.recommendation;
  if (!issue.runbook_url.empty()) out["runbook_url"] = issue.runbook_url;
  for (const auto& [name, text] : issue.annotations) out.emplace(name, text);
  return out;
}

void read_annotations(const Json& from, Issue& out) {
  for (const auto& [name, value] : from.items()) {
    std::string text = value.is_string() ? value.get<std::string>() : dump(value);
    if (name == "summary") {
      out.summary = std::move(text);
    } else if (name == "description") {
      out.description = std::move(text);
    } else if (name == "recommendation") {
      out.recommendation = std::move(text);
    } else if (name == "runbook_url") {
      out.runbook_url = std::move(text);
    } else {
      out.annotations.emplace_back(name, std::move(text));
    }
  }
}

/// Labels are identity and address: what is only a field is never added to them.
Json issue_data(const Issue& issue) {
  Json out = Json::object();
  out["status"] = core::to_string(issue.status);
  out["rule"] = issue.rule;
  out["rule_type"] = issue.rule_type;
  out["rule_version"] = issue.rule_version;
  out["params_hash"] = issue.params_hash;
  // An empty text is said where a label would be read in its place.
  out["kind"] = issue.labels.has("kind") ? Json(issue.kind) : text_or_null(issue.kind);
  out["shadow"] = issue.shadow;
  if (severity_of(issue.labels) != issue.severity) {
    out["severity"] = core::to_string(issue.severity);
  }
  out["labels"] = labels_json(issue.labels);
  out["annotations"] = annotations_json(issue);
  if (!issue.generator_url.empty()) out["generator_url"] = issue.generator_url;
  out["starts_at"] = time_or_null(issue.starts_at);
  out["ends_at"] = optional_json(issue.ends_at);
  out["expiry"] = issue.explicit_expiry ? "explicit" : "timeout";
  out["resolution"] = text_or_null(std::string(core::to_string(issue.resolution)));
  out["run"] = run_json(issue.run);
  out["step"] = optional_json(issue.step);
  out["global_step"] = optional_json(issue.global_step);
  out["mode"] = issue.mode ? Json(core::to_string(*issue.mode)) : Json(nullptr);
  out["epoch"] = optional_json(issue.epoch);
  out["evidence"] = evidence_json(issue.evidence);
  out["stages"] = {{"measured_at", time_or_null(issue.measured_at)},
                   {"published_at", time_or_null(issue.published_at)},
                   {"evaluated_at", time_or_null(issue.evaluated_at)}};
  return out;
}

void read_issue(const Fields& in, Issue& out) {
  std::string status;
  in.text("status", status);
  if (status.empty()) in.missing("status");
  out.status = status == "resolved" ? core::IssueStatus::resolved : core::IssueStatus::firing;
  if (status != "resolved" && status != "firing") in.wrong("status", "firing or resolved");
  in.labels("labels", out.labels);
  out.rule = out.labels.get("rule");
  out.kind = out.labels.get("kind");
  out.run.job = out.labels.get("job");
  in.text("rule", out.rule);
  out.rule_type = out.rule;
  in.text("rule_type", out.rule_type);
  in.text("rule_version", out.rule_version);
  in.text("params_hash", out.params_hash);
  in.text("kind", out.kind);
  in.boolean("shadow", out.shadow);
  std::string severity;
  in.text("severity", severity);
  out.severity = core::severity_from(severity).value_or(severity_of(out.labels));
  if (const Json* found = in.find("annotations")) {
    if (!found->is_object()) return in.wrong("annotations", "an object of texts");
    read_annotations(*found, out);
  }
  in.text("generator_url", out.generator_url);
  in.time("starts_at", out.starts_at);
  in.time("ends_at", out.ends_at);
  std::string expiry;
  in.text("expiry", expiry);
  out.explicit_expiry = expiry == "explicit";
  if (!expiry.empty() && expiry != "explicit" && expiry != "timeout") {
    in.wrong("expiry", "explicit or timeout");
  }
  in.word("resolution", out.resolution,
          [](const std::string& text) { return enum_from(kResolutions, text); });
  out.run.attempt = 0;
  in.object("run", [&](const Fields& found) { read_run(found, out.run); });
  in.integer("step", out.step);
  in.integer("global_step", out.global_step);
  in.word("mode", out.mode, [](const std::string& text) { return core::mode_from(text); });
  in.integer("epoch", out.epoch);
  in.object("evidence", [&](const Fields& found) { read_evidence(found, out.evidence); });
  in.object("stages", [&](const Fields& found) {
    found.time("measured_at", out.measured_at);
    found.time("published_at", out.published_at);
    found.time("evaluated_at", out.evaluated_at);
  });
}

Json launch_json(const std::map<std::string, std::string>& launch) {
  Json out = Json::object();
  for (const auto& [node, opened] : launch) out[node] = opened;
  return out;
}

void read_launch(const Fields& in, std::map<std::string, std::string>& out) {
  const Json* found = in.find("launch");
  if (found == nullptr) return;
  if (!found->is_object()) return in.wrong("launch", "an object of texts");
  for (const auto& [node, opened] : found->items()) {
    if (!opened.is_string()) return in.wrong("launch", "an object of texts");
    out[node] = opened.get<std::string>();
  }
}

Json job_data(const core::JobEvent& event) {
  Json out = Json::object();
  out["phase"] = core::to_string(event.phase);
  out["number"] = event.number;
  out["run"] = run_json(event.run);
  out["labels"] = labels_json(event.labels);
  out["world_size"] = event.world_size;
  out["rules"] = event.rules;
  out["started_at"] = optional_json(event.started_at);
  out["ended_at"] = optional_json(event.ended_at);
  out["outcome"] = text_or_null(event.outcome);
  out["exit_code"] = optional_json(event.exit_code);
  out["step"] = optional_json(event.step);
  out["step_seconds"] = event.step_seconds ? number_json(*event.step_seconds) : Json(nullptr);
  out["launch"] = launch_json(event.launch);
  return out;
}

void read_job(const Fields& in, core::JobEvent& out) {
  if (!in.has("phase")) in.missing("phase");
  in.word("phase", out.phase, [](const std::string& text) { return enum_from(kPhases, text); });
  in.integer("number", out.number);
  in.object("run", [&](const Fields& found) { read_run(found, out.run); });
  in.labels("labels", out.labels);
  in.integer("world_size", out.world_size);
  in.each("rules", [&](const Json& item) {
    if (!item.is_string()) return in.wrong("rules", "a list of names");
    out.rules.push_back(item.get<std::string>());
  });
  in.time("started_at", out.started_at);
  in.time("ended_at", out.ended_at);
  in.text("outcome", out.outcome);
  in.integer("exit_code", out.exit_code);
  in.integer("step", out.step);
  if (in.has("step_seconds")) in.number("step_seconds", out.step_seconds.emplace());
  read_launch(in, out.launch);
}

Json rule_data(const core::RuleStatusEvent& event) {
  Json out = Json::object();
  out["rule"] = event.rule;
  out["rule_type"] = event.rule_type;
  out["rule_version"] = event.rule_version;
  out["status"] = core::to_string(event.status);
  out["previous"] = core::to_string(event.previous);
  out["reason"] = event.reason;
  out["missing"] = event.missing;
  Json evaluations = Json::object();
  for (const auto& [outcome, count] : event.evaluations) evaluations[outcome] = count;
  out["evaluations"] = std::move(evaluations);
  out["run"] = run_json(event.run);
  return out;
}

void read_rule(const Fields& in, core::RuleStatusEvent& out) {
  const auto state = [](const std::string& text) { return enum_from(kRuleStates, text); };
  in.text("rule", out.rule);
  if (out.rule.empty()) in.missing("rule");
  in.text("rule_type", out.rule_type);
  in.text("rule_version", out.rule_version);
  if (!in.has("status")) in.missing("status");
  in.word("status", out.status, state);
  in.word("previous", out.previous, state);
  in.text("reason", out.reason);
  in.each("missing", [&](const Json& item) {
    if (!item.is_string()) return in.wrong("missing", "a list of texts");
    out.missing.push_back(item.get<std::string>());
  });
  if (const Json* counts = in.find("evaluations")) {
    if (!counts->is_object()) return in.wrong("evaluations", "an object of counts");
    for (const auto& [outcome, count] : counts->items()) {
      if (!count.is_number_unsigned()) return in.wrong("evaluations", "an object of counts");
      out.evaluations[outcome] = count.get<std::uint64_t>();
    }
  }
  in.object("run", [&](const Fields& found) { read_run(found, out.run); });
}

}  // namespace tocsin::ingest
