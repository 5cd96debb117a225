#include "app/api/alertmanager_json.h"

#include <algorithm>

#include "app/view/silence_records.h"
#include "core/identity.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;
using routing::MatchOperator;

constexpr std::size_t kMostOfASilence = 64 * 1024;
constexpr std::string_view kRule = "rule";

Value labels_value(const core::Labels& labels) {
  ValueMap out;
  for (const auto& [name, value] : labels.entries()) out.emplace_back(name, value);
  return out;
}

Value annotations_value(const core::Issue& issue) {
  ValueMap out;
  for (const auto& [name, text] :
       {std::pair{"summary", &issue.summary}, std::pair{"description", &issue.description},
        std::pair{"recommendation", &issue.recommendation},
        std::pair{"runbook_url", &issue.runbook_url}}) {
    if (!text->empty()) out.emplace_back(name, *text);
  }
  for (const auto& [name, text] : issue.annotations) out.emplace_back(name, text);
  return out;
}

Value texts(const std::vector<std::string>& list) { return ValueList(list.begin(), list.end()); }

Value named(const std::string& name) { return ValueMap{{"name", name}}; }

std::vector<std::string> receivers_of(const ShownAlert& alert) {
  std::vector<std::string> out;
  for (const auto& leaf : alert.leaves)
    out.insert(out.end(), leaf.receivers.begin(), leaf.receivers.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// A field of that name that is a text; empty: it is missing.
core::Result<std::string> text_field(const Value& from, std::string_view name) {
  const Value* found = core::find(from, name);
  if (found == nullptr || found->is_null()) return std::string();
  if (const auto* text = core::as<std::string>(*found)) return *text;
  return core::invalid_argument(std::string(name) + ": expected a text");
}

core::Result<std::optional<core::WallTime>> time_field(const Value& from, std::string_view name) {
  const auto text = text_field(from, name);
  if (!text) return text.error();
  // Go writes a time that is not set as the year 1.
  if (text->empty() || text->starts_with("0001-01-01")) return std::optional<core::WallTime>();
  const auto time = core::parse_rfc3339(*text);
  if (!time) {
    return core::invalid_argument(std::string(name) +
                                  ": expected a time such as 2026-01-02T03:04:05Z, found \"" +
                                  core::visible(*text, 100) + "\"");
  }
  return std::optional(*time);
}

core::Result<bool> flag_field(const Value& from, std::string_view name, bool otherwise) {
  const Value* found = core::find(from, name);
  if (found == nullptr || found->is_null()) return otherwise;
  if (const auto* flag = core::as<bool>(*found)) return *flag;
  return core::invalid_argument(std::string(name) + ": expected true or false");
}

std::string operator_text(bool equal, bool regex) {
  if (regex) return equal ? "=~" : "!~";
  return equal ? "=" : "!=";
}

core::Result<std::string> asked_matcher(const Value& matcher) {
  auto name = text_field(matcher, "name");
  if (!name) return name;
  auto value = text_field(matcher, "value");
  if (!value) return value;
  const auto regex = flag_field(matcher, "isRegex", false);
  if (!regex) return regex.error();
  const auto equal = flag_field(matcher, "isEqual", true);
  if (!equal) return equal.error();
  if (name->empty()) return core::invalid_argument("name: a matcher needs the name of a label");
  if (*name == kAlertName) *name = kRule;
  return core::to_json(Value(*name)) + operator_text(*equal, *regex) + core::to_json(Value(*value));
}

core::Result<std::string> asked_set(const Value& asked, std::string_view name) {
  const auto* list = core::as<ValueList>(asked);
  if (list == nullptr) return core::invalid_argument(std::string(name) + ": expected a list");
  std::vector<std::string> terms;
  for (const Value& one : *list) {
    auto term = asked_matcher(one);
    if (!term) return term.error().in(name);
    terms.push_back(std::move(*term));
  }
  const auto parsed = routing::Matchers::parse(terms);
  if (!parsed) return parsed.error().in(name);
  return parsed->canonical();
}

Value set_value(const std::string& set) {
  ValueList out;
  const auto parsed = routing::Matchers::parse(set);
  if (!parsed) return out;
  for (const auto& term : parsed->terms()) {
    const bool equal = term.op == MatchOperator::equal || term.op == MatchOperator::regex;
    const bool regex = term.op == MatchOperator::regex || term.op == MatchOperator::not_regex;
    out.push_back(ValueMap{
        {"isEqual", equal}, {"isRegex", regex}, {"name", term.name}, {"value", term.value}});
  }
  return out;
}

// What is ours beside Alertmanager's fields: matcherSets, annotations, version.
core::Status read_our_fields(const Value& asked, AskedSilence& out) {
  if (const auto* sets = core::as<ValueList>(core::find(asked, "matcherSets"))) {
    for (const Value& one : *sets) {
      auto set = asked_set(one, "matcherSets");
      if (!set) return set.error();
      out.silence.matcher_sets.push_back(std::move(*set));
    }
  }
  if (const auto* texts = core::as<ValueMap>(core::find(asked, "annotations"))) {
    for (const auto& [name, value] : *texts) {
      const auto* text = core::as<std::string>(value);
      if (text == nullptr) {
        return core::invalid_argument("annotations." + core::visible(name, 100) +
                                      ": expected a text");
      }
      out.silence.annotations[name] = *text;
    }
  }
  if (const Value* version = core::find(asked, "version"); version && !version->is_null()) {
    const auto* number = core::as<std::int64_t>(*version);
    if (number == nullptr || *number < 1) {
      return core::invalid_argument("version: expected the number that the silence had");
    }
    out.version = static_cast<std::uint64_t>(*number);
  }
  return core::ok();
}

}  // namespace

Value alert_value(const ShownAlert& alert, core::Duration resolve_timeout, core::WallTime now) {
  const core::Issue& issue = alert.issue;
  ValueList receivers;
  for (const std::string& name : receivers_of(alert)) receivers.push_back(named(name));
  const core::WallTime ends = issue.explicit_expiry
                                  ? now + resolve_timeout
                                  : issue.ends_at.value_or(issue.time + resolve_timeout);
  return ValueMap{
      {"annotations", annotations_value(issue)},
      {"endsAt", core::to_rfc3339(ends)},
      {"fingerprint", core::fingerprint(issue.labels)},
      {"receivers", std::move(receivers)},
      {"startsAt", core::to_rfc3339(alert.since)},
      {"status", ValueMap{{"inhibitedBy", texts(alert.inhibited_by)},
                          {"mutedBy", texts(alert.held.muted_by)},
                          {"silencedBy", texts(alert.held.silenced_by())},
                          {"state", alert.held.suppressed() ? "suppressed" : "active"}}},
      {"updatedAt", core::to_rfc3339(issue.time)},
      {"generatorURL", issue.generator_url},
      {"labels", labels_value(alert.labels)}};
}

void AlertGroups::add(const ShownAlert& alert, const std::string& json,
                      const routing::Matchers& receiver) {
  for (const auto& leaf : alert.leaves) {
    for (const std::string& name : leaf.receivers) {
      if (!receiver.matches(core::Labels{{"receiver", name}})) continue;
      Group& group = groups_[{name, leaf.group_key}];
      group.labels = leaf.group_labels;
      group.alerts += (group.alerts.empty() ? "" : ",") + json;
    }
  }
}

std::string AlertGroups::json() const {
  std::string out;
  for (const auto& [key, group] : groups_) {
    out += (out.empty() ? "{\"alerts\":[" : ",{\"alerts\":[") + group.alerts +
           "],\"labels\":" + core::to_json(labels_value(group.labels)) +
           ",\"receiver\":" + core::to_json(named(key.first)) + "}";
  }
  return "[" + out + "]";
}

Value silence_value(const routing::Silence& silence, core::WallTime now) {
  ValueList sets;
  for (const std::string& set : matcher_sets(silence)) sets.push_back(set_value(set));
  const core::WallTime updated =
      silence.updated_at == core::WallTime{} ? silence.created_at : silence.updated_at;
  Value first = sets.front();
  ValueMap out{{"id", silence.id},
               {"status", ValueMap{{"state", silence_state(silence, now)}}},
               {"updatedAt", core::to_rfc3339(updated)},
               {"comment", silence.comment},
               {"createdBy", silence.created_by},
               {"endsAt", core::to_rfc3339(silence.ends_at)},
               {"matchers", std::move(first)},
               {"startsAt", core::to_rfc3339(silence.starts_at)},
               {"version", static_cast<std::int64_t>(silence.version)}};
  if (sets.size() > 1) out.emplace_back("matcherSets", std::move(sets));
  if (!silence.replaces.empty()) out.emplace_back("replaces", silence.replaces);
  if (!silence.annotations.empty()) {
    ValueMap texts;
    for (const auto& [name, text] : silence.annotations) texts.emplace_back(name, text);
    out.emplace_back("annotations", std::move(texts));
  }
  return out;
}

core::Result<AskedSilence> read_asked_silence(std::string_view json) {
  const auto asked = core::parse_json(json, kMostOfASilence);
  if (!asked) return asked.error();
  AskedSilence out;
  for (const auto& [name, place] :
       {std::pair{"id", &out.id}, std::pair{"comment", &out.silence.comment},
        std::pair{"createdBy", &out.silence.created_by}}) {
    auto text = text_field(*asked, name);
    if (!text) return text.error();
    *place = std::move(*text);
  }
  for (const auto& [name, place] :
       {std::pair{"startsAt", &out.silence.starts_at}, std::pair{"endsAt", &out.silence.ends_at}}) {
    const auto time = time_field(*asked, name);
    if (!time) return time.error();
    if (!*time) return core::invalid_argument(std::string(name) + " is missing");
    *place = **time;
  }
  if (const auto read = read_our_fields(*asked, out); !read) return read.error();
  if (!out.silence.matcher_sets.empty()) return out;
  const Value* given = core::find(*asked, "matchers");
  auto matchers = asked_set(given == nullptr ? Value() : *given, "matchers");
  if (!matchers) return matchers.error();
  out.silence.matchers = std::move(*matchers);
  return out;
}

core::Result<Value> event_of_alert(const Value& alert, core::Duration resolve_timeout,
                                   core::WallTime at) {
  const auto* given = core::as<ValueMap>(core::find(alert, "labels"));
  if (given == nullptr) return core::invalid_argument("labels: expected names and values");
  core::Labels labels;
  for (const auto& [name, value] : *given) {
    const auto* text = core::as<std::string>(value);
    if (text == nullptr)
      return core::invalid_argument("labels." + core::visible(name, 100) + ": expected a text");
    labels.set(name, *text);
  }
  if (!labels.has(kRule)) labels.set(kRule, labels.get(kAlertName));
  if (labels.empty()) return core::invalid_argument("labels: one at least must have a value");
  const auto starts = time_field(alert, "startsAt");
  if (!starts) return starts.error();
  const auto ends = time_field(alert, "endsAt");
  if (!ends) return ends.error();
  const auto generator = text_field(alert, "generatorURL");
  if (!generator) return generator.error();
  const bool resolved = *ends && **ends <= at;
  const Value* annotations = core::find(alert, "annotations");
  const std::string key = core::issue_key(labels);
  const std::string& run = labels.get("run_uid");
  ValueMap data{
      {"status", resolved ? "resolved" : "firing"},
      {"labels", labels_value(labels)},
      {"annotations", annotations == nullptr ? Value(ValueMap()) : *annotations},
      {"starts_at", core::to_rfc3339(starts->value_or(resolved ? std::min(**ends, at) : at))},
      {"ends_at", core::to_rfc3339(ends->value_or(at + resolve_timeout))},
      {"expiry", "timeout"},
      {"generator_url", *generator}};
  if (resolved) data.emplace_back("resolution", "recovered");
  return Value(ValueMap{{"specversion", "1.0"},
                        {"type", std::string(ingest::event_type::kIssue)},
                        {"source", "/alerts/" + key},
                        {"id", core::make_id("alt_", {key, std::to_string(core::nanoseconds(at))})},
                        {"time", core::to_rfc3339(at)},
                        {"subject", run},
                        {"datacontenttype", "application/json"},
                        {"data", std::move(data)}});
}

}  // namespace tocsin::app
