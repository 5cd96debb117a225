// Events with anything in every member that a record can carry: the generators of the round trips.
#pragma once

#include <rapidcheck.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/command.h"
#include "core/issue.h"
#include "core/limits.h"
#include "core/notification.h"

namespace tocsin::ingest::any {

inline std::uint64_t below(std::uint64_t end) { return *rc::gen::inRange<std::uint64_t>(0, end); }
inline bool coin() { return below(2) == 1; }

/// Valid UTF-8 with what JSON and headers must escape; may be empty.
inline std::string text() {
  static const std::vector<std::string> kPieces{"a",    "B7",   "größe", "\"", "\\", "\n",
                                                "日本", "\x01", "/",     "{",  ":",  " "};
  std::string out;
  for (std::uint64_t i = below(4); i > 0; --i) out += kPieces[below(kPieces.size())];
  return out;
}
/// Not empty, and not equal to another one of the same container when `number` differs.
inline std::string name(std::uint64_t number = 0) { return "n" + std::to_string(number) + text(); }
/// A text that a header carries.
inline std::string word() { return coin() ? "" : "w" + std::to_string(below(1000)); }

inline core::WallTime time() {
  if (below(8) == 0) return {};
  return core::wall_time(1 + static_cast<std::int64_t>(below(4'000'000'000'000'000'000)));
}
template <typename Make>
auto maybe(Make make) -> std::optional<decltype(make())> {
  if (coin()) return std::nullopt;
  return make();
}
inline std::optional<core::WallTime> maybe_time() {
  return maybe([] { return core::wall_time(1 + static_cast<std::int64_t>(below(1ULL << 60))); });
}
inline std::int64_t whole() { return *rc::gen::arbitrary<std::int64_t>(); }
inline std::uint64_t natural() { return below(std::uint64_t{1} << 63); }
inline std::uint32_t small() { return static_cast<std::uint32_t>(below(std::uint64_t{1} << 32)); }
inline double number() {
  switch (below(4)) {
    case 0:
      return std::numeric_limits<double>::infinity();
    case 1:
      return static_cast<double>(whole());
    default:
      return static_cast<double>(whole()) / 1e17;
  }
}

inline core::Value value(int depth = 0) {
  switch (below(depth > 2 ? 5 : 7)) {
    case 0:
      return {};
    case 1:
      return coin();
    case 2:
      return whole();
    case 3:
      return number();
    case 4:
      return text();
    case 5: {
      core::ValueList list;
      for (std::uint64_t i = below(3); i > 0; --i) list.push_back(value(depth + 1));
      return list;
    }
    default: {
      core::ValueMap map;
      for (std::uint64_t i = below(3); i > 0; --i) map.emplace_back(name(i), value(depth + 1));
      return map;
    }
  }
}
inline core::ValueMap value_map() {
  core::ValueMap map;
  for (std::uint64_t i = below(3); i > 0; --i) map.emplace_back(name(i), value(1));
  return map;
}
inline std::vector<std::pair<std::string, std::string>> text_pairs() {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::uint64_t i = below(3); i > 0; --i) out.emplace_back(name(i), text());
  return out;
}
inline std::map<std::string, std::string> text_map() {
  const auto pairs = text_pairs();
  return {pairs.begin(), pairs.end()};
}
inline std::vector<std::string> texts() {
  std::vector<std::string> out;
  for (std::uint64_t i = below(3); i > 0; --i) out.push_back(text());
  return out;
}
template <typename T, typename Make>
std::vector<T> list(Make make) {
  std::vector<T> out;
  for (std::uint64_t i = below(3); i > 0; --i) out.push_back(make());
  return out;
}
template <typename E>
E one_of(std::initializer_list<E> values) {
  return *(values.begin() + static_cast<std::ptrdiff_t>(below(values.size())));
}

/// Sometimes with the labels that other fields have as well, in any disagreement with them.
inline core::Labels labels() {
  core::Labels out{{"x", "1"}};
  for (const char* known : {"rule", "kind", "job", "severity", "cluster", "run_uid"}) {
    if (below(3) == 0) out.set(known, "l" + text());
  }
  if (below(3) == 0) out.set("severity", one_of<const char*>({"info", "critical", "page"}));
  for (auto [key, text] : text_pairs()) {
    core::bound_name(key);  // as events have it: without control characters
    out.set(key, text);
  }
  return out;
}

inline core::RunUid uid() { return core::run_uid_for("job", std::to_string(below(1000))); }
inline core::RunRef run() {
  core::RunRef out;
  if (below(4) != 0) out.uid = uid();
  out.attempt = below(3) == 0 ? 0 : small();
  out.job = text();
  out.platform = text();
  out.ref = value();
  return out;
}
inline core::NamedNumber named() { return {text(), number()}; }
inline core::TensorRef tensor() {
  return {text(), text(), one_of({core::Dtype::unknown, core::Dtype::f8_e4m3, core::Dtype::text}),
          list<std::int64_t>(whole)};
}
inline core::Evidence evidence() {
  core::Evidence out;
  out.observed = named();
  out.op = text();
  out.threshold = maybe(named);
  out.tensor = maybe(tensor);
  out.window = {text(), whole(),   whole(), time(),
                time(), natural(), coin(),  list<std::uint32_t>(small)};
  for (std::uint64_t i = below(3); i > 0; --i) {
    out.parameters.push_back({name(i), value(), text()});
  }
  out.first_seen = time();
  out.occurrences = natural();
  out.affected = {natural(), natural(), list<std::pair<std::string, double>>([] {
                    return std::pair<std::string, double>(text(), number());
                  })};
  out.data_refs = list<core::DataRef>([] {
    return core::DataRef{text(), static_cast<std::int32_t>(small()), whole(), whole()};
  });
  out.values = value_map();
  return out;
}

inline core::Issue issue() {
  core::Issue out;
  out.event_id = name();
  out.source = name();
  out.sequence = natural();
  out.time = time();
  out.status = one_of({core::IssueStatus::firing, core::IssueStatus::resolved});
  out.rule = text();
  out.rule_type = text();
  out.rule_version = text();
  out.params_hash = text();
  out.kind = text();
  out.shadow = coin();
  out.severity = one_of({core::Severity::info, core::Severity::warning, core::Severity::critical});
  out.labels = labels();
  out.summary = text();
  out.description = text();
  out.recommendation = text();
  out.runbook_url = text();
  out.annotations = text_pairs();
  out.generator_url = text();
  out.traceparent = word();
  out.tracestate = word();
  out.starts_at = time();
  if (coin()) out.ends_at = out.starts_at + core::Duration(below(1000));
  out.explicit_expiry = coin();
  out.resolution =
      one_of({core::Resolution::none, core::Resolution::superseded, core::Resolution::manual,
              core::Resolution::rule_removed, core::Resolution::rule_changed});
  out.ending = maybe([] { return core::Ending{text(), text(), maybe(whole), maybe(whole)}; });
  out.run = run();
  out.step = maybe(whole);
  out.global_step = maybe(whole);
  out.mode = maybe([] { return one_of({core::Mode::global, core::Mode::predict}); });
  out.epoch = maybe(whole);
  out.evidence = evidence();
  out.caused_by = list<core::Cause>([] {
    const auto mode = maybe([] { return one_of({core::Mode::train, core::Mode::eval}); });
    return core::Cause{text(), text(), text(), text(), mode, maybe(whole), maybe(whole)};
  });
  out.measured_at = time();
  out.published_at = time();
  out.evaluated_at = time();
  return out;
}

inline core::JobEvent job() {
  core::JobEvent out;
  out.phase = one_of({core::JobPhase::started, core::JobPhase::heartbeat, core::JobPhase::ended});
  out.number = natural();
  out.run = run();
  out.labels = labels();
  out.world_size = small();
  out.rules = texts();
  out.time = time();
  out.started_at = maybe_time();
  out.ended_at = maybe_time();
  out.outcome = one_of<const char*>({"", "completed", "unknown", "lost", "failed"});
  out.exit_code = maybe([] { return static_cast<int>(below(300)) - 20; });
  out.step = maybe(whole);
  out.step_seconds = maybe(number);
  out.launch = text_map();
  return out;
}

inline core::RuleStatusEvent rule_status() {
  const auto state = [] {
    return one_of({core::RuleState::no_data, core::RuleState::error, core::RuleState::stopped});
  };
  core::RuleStatusEvent out;
  out.rule = name();
  out.rule_type = text();
  out.rule_version = text();
  out.status = state();
  out.previous = state();
  out.reason = text();
  out.missing = texts();
  for (std::uint64_t i = below(3); i > 0; --i) out.evaluations[name(i)] = natural();
  out.summary = value_map();
  out.run = run();
  out.time = time();
  return out;
}

inline core::Command command() {
  core::Command out;
  out.command_id = name();
  out.action = one_of<const char*>({"stop", "capture", "adjust/learning_rate"});
  out.run = uid();
  out.attempt = below(3) == 0 ? 0 : small();
  out.launch = text_map();
  out.ranks = list<std::uint32_t>(small);
  out.revision = natural();
  out.issued_at = time();
  out.expires_at = maybe_time();
  out.requested_by = text();
  out.reason = {text(), text(), natural(), text(), text()};
  out.dry_run = coin();
  out.args = value_map();
  return out;
}

inline core::Ack ack() {
  core::Ack out;
  out.command_id = name();
  out.revision = natural();
  out.action = text();
  out.phase = name();
  out.run = uid();
  out.attempt = below(3) == 0 ? 0 : small();
  out.rank = small();
  out.worker = text();
  out.incarnation = natural();
  out.node = text();
  out.step = whole();
  out.time = time();
  out.reason = text();
  if (coin()) {
    out.checkpoint_path = name();
    out.checkpoint_bytes = natural();
  }
  out.version = text();
  out.effective_step = maybe(whole);
  out.exit_code = maybe([] { return static_cast<int>(below(300)) - 20; });
  return out;
}

inline core::Delivery delivery() {
  core::Delivery out;
  out.notification_id = name();
  out.integration = text();
  out.type = text();
  out.receiver = text();
  out.route_id = text();
  out.group_key = text();
  out.reason = text();
  out.kind = one_of({core::NotificationKind::open, core::NotificationKind::repeat});
  out.attempt = small();
  out.state = one_of({core::DeliveryState::pending, core::DeliveryState::cancelled});
  out.outcome = one_of({core::OutcomeClass::delivered, core::OutcomeClass::gone});
  out.code = text();
  out.detail = text();
  out.latency = core::Duration(below(1ULL << 50));
  out.handles = text_pairs();
  out.next_attempt_at = maybe_time();
  out.config_version = text();
  out.issues = list<core::IssueRef>([] { return core::IssueRef{text(), natural(), text()}; });
  out.stages = {time(), time(), time(), time(), time(), time()};
  return out;
}

inline core::StopTold stop_told() {
  core::StopTold out;
  out.command_id = text();
  out.requested_by = text();
  out.rule = text();
  out.mode = text();
  out.state = text();
  out.reason = text();
  out.requested_at = time();
  out.step = maybe(whole);
  out.checkpoint = maybe([] { return core::Checkpoint{text(), text(), natural(), maybe(whole)}; });
  out.checkpoint_failure = text();
  out.exit_code = maybe([] { return static_cast<int>(below(256)); });
  out.answers = {small(), small(), small(), small(), small()};
  return out;
}

inline core::RunTold run_told() {
  core::RunTold out;
  out.run = run();
  out.labels = labels();
  out.outcome = text();
  out.exit_code = maybe([] { return static_cast<int>(below(256)); });
  out.step = maybe(whole);
  out.started_at = maybe_time();
  out.ended_at = maybe_time();
  out.hosts = texts();
  out.world_size = small();
  out.report = text();
  out.stop = maybe(stop_told);
  return out;
}

inline core::Notification notification() {
  const auto ack = [] { return core::AckTold{text(), text(), time(), maybe_time()}; };
  const auto notified = [ack] {
    return core::NotifiedIssue{text(), natural(), issue(), maybe(ack)};
  };
  core::Notification out;
  out.notification_id = name();
  out.integration = name();
  out.type = text();
  out.receiver = text();
  out.route_id = text();
  out.group_key = text();
  out.group_hash = text();
  out.generation = natural();
  out.reason = text();
  out.why = text();
  out.kind = one_of({core::NotificationKind::update, core::NotificationKind::close});
  out.firing = coin();
  out.group_labels = labels();
  out.common_labels = labels();
  out.issues = list<core::NotifiedIssue>(notified);
  out.suppressed = list<core::NotifiedIssue>(notified);
  out.runs = list<core::RunTold>(run_told);
  out.firing_count = natural();
  out.resolved_count = natural();
  out.truncated = natural();
  out.decided_at = time();
  out.expires_at = time();
  out.config_version = text();
  out.rendered = text();
  return out;
}

}  // namespace tocsin::ingest::any
