#include "routing/tables/size.h"

namespace tocsin::routing {
namespace {

/// Names and punctuation of an issue's JSON with nothing in it.
constexpr std::size_t kIssueFrame = 1200;
/// Names and numbers of one entry of `caused_by`.
constexpr std::size_t kCauseFrame = 120;
/// Quotes, colon, comma.
constexpr std::size_t kEntryFrame = 6;
constexpr std::size_t kNumber = 12;

/// As JSON: quotes and backslashes take two bytes, other control characters six.
std::size_t escaped(const std::string& text) {
  std::size_t sum = text.size();
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '\n') ++sum;
    if (byte < 0x20 && c != '\n') sum += 5;
  }
  return sum;
}

std::size_t bytes_of(const std::string& text) { return escaped(text) + kEntryFrame; }

std::size_t bytes_of(const core::Value& value);

std::size_t bytes_of(const core::ValueMap& map) {
  std::size_t sum = kEntryFrame;
  for (const auto& [name, item] : map) sum += bytes_of(name) + bytes_of(item);
  return sum;
}

std::size_t bytes_of(const core::Value& value) {
  struct Sum {
    std::size_t operator()(const std::string& text) const { return bytes_of(text); }
    std::size_t operator()(const core::ValueList& list) const {
      std::size_t sum = kEntryFrame;
      for (const core::Value& item : list) sum += bytes_of(item);
      return sum;
    }
    std::size_t operator()(const core::ValueMap& map) const { return bytes_of(map); }
    std::size_t operator()(std::monostate) const { return kNumber; }
    std::size_t operator()(bool) const { return kNumber; }
    std::size_t operator()(std::int64_t) const { return kNumber; }
    std::size_t operator()(double) const { return kNumber; }
  };
  return std::visit(Sum{}, value.storage());
}

std::size_t bytes_of(const core::Evidence& evidence) {
  std::size_t sum = bytes_of(evidence.values);
  for (const core::Parameter& parameter : evidence.parameters) {
    sum += bytes_of(parameter.name) + bytes_of(parameter.value) + bytes_of(parameter.origin) + 24;
  }
  for (const auto& [unit, value] : evidence.affected.worst) sum += bytes_of(unit) + 24;
  for (const core::DataRef& ref : evidence.data_refs) sum += bytes_of(ref.topic) + 64;
  sum += evidence.window.missing_ranks.size() * kEntryFrame;
  return sum;
}

}  // namespace

std::size_t approximate_bytes(const core::Issue& issue) {
  std::size_t sum = kIssueFrame + bytes_of(issue.evidence) + bytes_of(issue.run.ref);
  for (const std::string* text :
       {&issue.event_id, &issue.source, &issue.rule, &issue.rule_type, &issue.params_hash,
        &issue.kind, &issue.summary, &issue.description, &issue.recommendation, &issue.runbook_url,
        &issue.generator_url, &issue.traceparent, &issue.tracestate, &issue.run.job}) {
    sum += escaped(*text);
  }
  if (issue.ending) sum += bytes_of(issue.ending->summary) + bytes_of(issue.ending->event_id);
  for (const core::Cause& cause : issue.caused_by) {
    sum += cause.event_id.size() + cause.issue_key.size() + cause.rule.size() + cause.unit.size() +
           kCauseFrame;
  }
  for (const auto& [name, value] : issue.labels.entries()) sum += bytes_of(name) + bytes_of(value);
  for (const auto& [name, text] : issue.annotations) sum += bytes_of(name) + bytes_of(text);
  return sum;
}

std::size_t approximate_bytes(const core::RunTold& run) {
  std::size_t sum = kIssueFrame + bytes_of(run.run.ref) + bytes_of(run.report);
  for (const auto& [name, value] : run.labels.entries()) sum += bytes_of(name) + bytes_of(value);
  for (const std::string& host : run.hosts) sum += bytes_of(host);
  if (run.stop) sum += kIssueFrame + bytes_of(run.stop->reason);
  return sum;
}

std::size_t approximate_bytes(const core::Notification& notification) {
  std::size_t sum = 0;
  for (const auto* issues : {&notification.issues, &notification.suppressed}) {
    for (const core::NotifiedIssue& one : *issues) sum += approximate_bytes(one.issue);
  }
  return sum;
}

}  // namespace tocsin::routing
