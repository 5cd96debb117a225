#include "ingest/events/issue_fit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/fields/issue.h"
#include "core/fields/out.h"
#include "core/json.h"
#include "core/limits.h"
#include "ingest/events/annotations.h"

namespace tocsin::ingest {
namespace {

using core::Issue;

constexpr std::string_view kLeftOut = "left_out";
constexpr std::size_t kShortText = 200;
constexpr std::size_t kFewItems = 16;
constexpr std::size_t kLeastAnnotations = 1024;

bool whole(const Issue& issue) {
  return core::write_json(issue).size() <= core::limit::kEventBytes;
}

/// Names of what is not there any more, among the rule's own values.
class LeftOut {
 public:
  explicit LeftOut(Issue& issue) : issue_(issue) {}
  void note(const std::string& name) {
    auto& values = issue_.evidence.values;
    auto at = std::find_if(values.begin(), values.end(),
                           [](const auto& value) { return value.first == kLeftOut; });
    if (at == values.end()) {
      values.emplace_back(std::string(kLeftOut), core::ValueList{});
      at = std::prev(values.end());
    }
    const auto* known = core::as<core::ValueList>(at->second);
    if (known == nullptr || known->size() >= kFewItems) return;
    std::string text = name;
    core::bound_text(text, kShortText);
    core::ValueList list = *known;
    list.emplace_back(std::move(text));
    at->second = std::move(list);
  }

 private:
  Issue& issue_;
};

// The rule's own values, the longest first, until it fits or all that is long is gone.
void drop_values(Issue& issue, LeftOut& left_out) {
  while (!whole(issue)) {
    auto& values = issue.evidence.values;
    const auto size = [](const auto& value) {
      return value.first == kLeftOut ? 0 : value.first.size() + core::to_json(value.second).size();
    };
    const auto longest =
        std::max_element(values.begin(), values.end(),
                         [&](const auto& a, const auto& b) { return size(a) < size(b); });
    if (longest == values.end() || size(*longest) <= kShortText) return;
    const std::string name = longest->first;
    values.erase(longest);
    left_out.note(name);
  }
}

void drop_parameters(Issue& issue, LeftOut& left_out) {
  auto& parameters = issue.evidence.parameters;
  const auto long_one = [](const core::Parameter& one) {
    return one.name.size() + core::to_json(one.value).size() > kShortText;
  };
  const std::size_t before = parameters.size();
  std::erase_if(parameters, long_one);
  if (parameters.size() > kFewItems) parameters.resize(kFewItems);
  if (parameters.size() < before) left_out.note("parameters");
}

template <typename List>
void keep_few(List& list, const char* name, LeftOut& left_out) {
  if (list.size() <= kFewItems) return;
  list.resize(kFewItems);
  left_out.note(name);
}

void drop_lists(Issue& issue, LeftOut& left_out) {
  core::Evidence& evidence = issue.evidence;
  keep_few(evidence.window.missing_ranks, "missing_ranks", left_out);
  keep_few(evidence.data_refs, "data_refs", left_out);
  if (evidence.tensor) keep_few(evidence.tensor->shape, "shape", left_out);
  for (auto& [unit, value] : evidence.affected.worst) core::bound_text(unit, kShortText);
  for (core::Cause& cause : issue.caused_by) core::bound_text(cause.unit, kShortText);
}

void shorten_texts(Issue& issue) {
  core::Evidence& evidence = issue.evidence;
  for (std::string* text :
       {&issue.run.job, &issue.run.platform, &issue.generator_url, &issue.traceparent,
        &issue.tracestate, &evidence.observed.name, &evidence.op, &issue.kind}) {
    core::bound_text(*text, core::limit::kJobBytes);
  }
  if (issue.ending) core::bound_text(issue.ending->summary, core::limit::kJobBytes);
  if (evidence.tensor) {
    core::bound_text(evidence.tensor->name, core::limit::kNameBytes);
    core::bound_text(evidence.tensor->collection, core::limit::kHostBytes);
  }
  if (core::to_json(issue.run.ref).size() > core::limit::kReferenceBytes) issue.run.ref = {};
}

void cut_annotations_further(Issue& issue) {
  for (std::size_t most = core::limit::kAnnotationBytes / 2;
       most >= kLeastAnnotations && !whole(issue); most /= 2) {
    cut_annotations(issue, most);
  }
}

}  // namespace

bool fits(const Issue& issue, std::size_t bytes) {
  core::Labels labels = issue.labels;
  return bytes <= core::limit::kEventBytes &&
         annotation_bytes(issue) <= core::limit::kAnnotationBytes &&
         core::bound_labels(labels, core::limit::kLabels, [](std::string_view) {
           return false;
         }).fits();
}

Issue fitting(Issue issue) {
  core::bound_labels(issue.labels, core::limit::kLabels, [](std::string_view name) {
    return name == "rule" || name == "severity" || name == "run_uid" || name == "job";
  });
  if (issue.labels.empty()) issue.labels.set("rule", issue.rule.empty() ? "(no name)" : issue.rule);
  cut_annotations(issue, core::limit::kAnnotationBytes);
  LeftOut left_out(issue);
  if (!whole(issue)) drop_lists(issue, left_out);
  drop_values(issue, left_out);
  if (!whole(issue)) drop_parameters(issue, left_out);
  if (!whole(issue)) shorten_texts(issue);
  cut_annotations_further(issue);
  if (!whole(issue)) issue.evidence.values.clear();
  if (!whole(issue)) issue.caused_by.clear();
  return issue;
}

}  // namespace tocsin::ingest
