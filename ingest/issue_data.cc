// Issues, job events and rule statuses as JSON data (wire-and-api §9.2, §9.3).
#include <algorithm>
#include <array>
#include <utility>

#include "ingest/event_data.h"

namespace tocsin::ingest {
namespace {

using core::Evidence;
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

Json named_json(const core::NamedNumber& number) {
  Json out = Json::object();
  out["name"] = number.name;
  out["value"] = number_json(number.value);
  return out;
}

void read_named(const Fields& in, core::NamedNumber& out) {
  in.text("name", out.name);
  in.number("value", out.value);
}

Json window_json(const core::WindowRef& window) {
  Json out = Json::object();
  out["clock"] = window.clock;
  out["first"] = window.first;
  out["last"] = window.last;
  out["first_time"] = time_or_null(window.first_time);
  out["last_time"] = time_or_null(window.last_time);
  out["points"] = window.points;
  out["partial"] = window.partial;
  out["missing_ranks"] = window.missing_ranks;
  return out;
}

template <typename T>
void read_numbers(const Fields& in, std::string_view name, std::vector<T>& out) {
  in.each(name, [&](const Json& item) {
    if (!item.is_number_integer()) return in.wrong(name, "a list of whole numbers");
    if constexpr (std::is_unsigned_v<T>) {
      const auto number = item.get<std::int64_t>();
      if (number < 0 || number > std::int64_t{std::numeric_limits<T>::max()}) {
        return in.wrong(name, "a list of ranks");
      }
    }
    out.push_back(item.get<T>());
  });
}

void read_window(const Fields& in, core::WindowRef& out) {
  in.text("clock", out.clock);
  in.integer("first", out.first);
  in.integer("last", out.last);
  in.time("first_time", out.first_time);
  in.time("last_time", out.last_time);
  in.integer("points", out.points);
  in.boolean("partial", out.partial);
  read_numbers(in, "missing_ranks", out.missing_ranks);
}

Json tensor_json(const core::TensorRef& tensor) {
  Json out = Json::object();
  out["name"] = tensor.name;
  out["collection"] = text_or_null(tensor.collection);
  out["dtype"] = core::to_string(tensor.dtype);
  out["shape"] = tensor.shape;
  return out;
}

void read_tensor(const Fields& in, core::TensorRef& out) {
  in.text("name", out.name);
  in.text("collection", out.collection);
  in.word("dtype", out.dtype, [](const std::string& text) { return core::dtype_from(text); });
  read_numbers(in, "shape", out.shape);
}

Json affected_json(const core::Affected& affected) {
  Json worst = Json::array();
  for (const auto& [unit, value] : affected.worst) {
    Json item = Json::object();
    item["unit"] = unit;
    item["value"] = number_json(value);
    worst.push_back(std::move(item));
  }
  Json out = Json::object();
  out["hit"] = affected.hit;
  out["evaluated"] = affected.evaluated;
  out["worst"] = std::move(worst);
  return out;
}

void read_affected(const Fields& in, core::Affected& out) {
  in.integer("hit", out.hit);
  in.integer("evaluated", out.evaluated);
  in.objects("worst", [&](const Fields& item) {
    auto& [unit, value] = out.worst.emplace_back();
    item.text("unit", unit);
    item.number("value", value);
  });
}

Json evidence_json(const Evidence& from) {
  Json out = Json::object();
  out["observed"] = named_json(from.observed);
  out["operator"] = from.op;
  out["threshold"] = from.threshold ? named_json(*from.threshold) : Json(nullptr);
  if (from.tensor) out["tensor"] = tensor_json(*from.tensor);
  out["window"] = window_json(from.window);
  Json parameters = Json::object();
  for (const core::Parameter& parameter : from.parameters) {
    parameters[parameter.name] = {{"value", value_json(parameter.value)},
                                  {"origin", parameter.origin}};
  }
  out["parameters"] = std::move(parameters);
  out["first_seen"] = time_or_null(from.first_seen);
  out["occurrences"] = from.occurrences;
  out["affected"] = affected_json(from.affected);
  Json refs = Json::array();
  for (const core::DataRef& ref : from.data_refs) {
    refs.push_back({{"topic", ref.topic},
                    {"partition", ref.partition},
                    {"first", ref.first},
                    {"last", ref.last}});
  }
  out["data_refs"] = std::move(refs);
  out["values"] = value_json(core::Value(from.values));
  return out;
}

void read_evidence(const Fields& in, Evidence& out) {
  in.object("observed", [&](const Fields& found) { read_named(found, out.observed); });
  in.text("operator", out.op);
  in.object("threshold", [&](const Fields& found) { read_named(found, out.threshold.emplace()); });
  in.object("tensor", [&](const Fields& found) { read_tensor(found, out.tensor.emplace()); });
  in.object("window", [&](const Fields& found) { read_window(found, out.window); });
  if (const Json* parameters = in.find("parameters"); parameters && parameters->is_object()) {
    for (const auto& [name, parameter] : parameters->items()) {
      core::Parameter& read = out.parameters.emplace_back();
      read.name = name;
      if (!parameter.is_object()) {
        read.value = value_from(parameter);  // the short form of other producers
        continue;
      }
      if (const auto value = parameter.find("value"); value != parameter.end()) {
        read.value = value_from(*value);
      }
      if (const auto origin = parameter.find("origin");
          origin != parameter.end() && origin->is_string()) {
        read.origin = origin->get<std::string>();
      }
    }
  }
  in.time("first_seen", out.first_seen);
  in.integer("occurrences", out.occurrences);
  in.object("affected", [&](const Fields& found) { read_affected(found, out.affected); });
  in.objects("data_refs", [&](const Fields& item) {
    core::DataRef& ref = out.data_refs.emplace_back();
    item.text("topic", ref.topic);
    item.integer("partition", ref.partition);
    item.integer("first", ref.first);
    item.integer("last", ref.last);
  });
  if (const Json* values = in.find("values")) {
    core::Value value = value_from(*values);
    if (const auto* map = std::get_if<core::ValueMap>(&value.storage())) out.values = *map;
  }
}

/// The longest prefix of at most `bytes` that ends between two characters.
std::string_view cut_text(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

bool cut_annotations(Issue& issue, std::size_t max_bytes) {
  constexpr std::string_view kMarker = " … (cut)";
  const std::array<std::string*, 4> all{&issue.summary, &issue.description, &issue.recommendation,
                                        &issue.runbook_url};
  bool cut = false;
  for (std::size_t round = 0; round < all.size(); ++round) {
    std::size_t total = 0;
    for (const std::string* text : all) total += text->size();
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
  out["attempt"] = run.attempt;
  out["job"] = run.job;
  out["platform"] = run.platform;
  out["ref"] = value_json(run.ref);
  return out;
}

void read_run(const Fields& in, core::RunRef& out) {
  in.uid("uid", out.uid);
  in.integer("attempt", out.attempt);
  in.text("job", out.job);
  in.text("platform", out.platform);
  in.value("ref", out.ref);
}

Json issue_data(const Issue& issue) {
  core::Labels labels = issue.labels;
  if (!labels.has("rule")) labels.set("rule", issue.rule);
  if (!labels.has("severity")) labels.set("severity", core::to_string(issue.severity));
  Json annotations = Json::object();
  annotations["summary"] = issue.summary;
  if (!issue.description.empty()) annotations["description"] = issue.description;
  if (!issue.recommendation.empty()) annotations["recommendation"] = issue.recommendation;
  if (!issue.runbook_url.empty()) annotations["runbook_url"] = issue.runbook_url;

  Json out = Json::object();
  out["status"] = core::to_string(issue.status);
  out["rule"] = issue.rule;
  out["rule_type"] = issue.rule_type;
  out["rule_version"] = issue.rule_version;
  out["params_hash"] = issue.params_hash;
  out["kind"] = text_or_null(issue.kind);
  out["shadow"] = issue.shadow;
  out["labels"] = labels_json(labels);
  out["annotations"] = std::move(annotations);
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
  if (out.labels.has("severity")) {  // a word outside the set counts as error, the label stays
    out.severity = core::severity_from(out.labels.get("severity")).value_or(core::Severity::error);
  }
  in.object("annotations", [&](const Fields& found) {
    found.text("summary", out.summary);
    found.text("description", out.description);
    found.text("recommendation", out.recommendation);
    found.text("runbook_url", out.runbook_url);
  });
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
