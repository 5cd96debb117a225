// Properties of the engine as a function of its input: any interleaving that keeps each worker's
// order, duplicates and other runs in between change nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/unit/rules/stories.h"

namespace tocsin::rules {
namespace {

using namespace stories;  // NOLINT: the stories are this file's language

// What must not depend on the interleaving: ids and what the issue says; not the counters that tell
// in which order issues of different workers came out.
std::vector<std::string> findings(RuleHarness& rule) {
  std::vector<std::string> out;
  for (const core::Issue& issue : rule.issues()) {
    out.push_back(issue.event_id + " " + issue.rule + " " + issue.summary + " since " +
                  core::to_rfc3339(issue.starts_at) + " " +
                  std::to_string(issue.evidence.occurrences));
  }
  std::sort(out.begin(), out.end());
  return out;
}

RC_GTEST_PROP(Replay, AnyInterleavingOfWorkersGivesTheSameFindings,
              (const std::vector<int>& one, const std::vector<int>& two,
               const std::vector<int>& order)) {
  const std::vector<std::vector<OwnedFrame>> stories{story("r", 0, 2, one), story("r", 1, 2, two)};
  RuleHarness sequential(kRules);
  for (const OwnedFrame& frame : interleave(stories, {})) sequential.feed(frame);
  RuleHarness mixed(kRules);
  for (const OwnedFrame& frame : interleave(stories, order)) mixed.feed(frame);
  RC_ASSERT(findings(sequential) == findings(mixed));
}

RC_GTEST_PROP(Replay, DuplicatesAreHarmless,
              (const std::vector<int>& steps, const std::vector<int>& again)) {
  const std::vector<OwnedFrame> frames = story("r", 0, 1, steps);
  RuleHarness once(kRules);
  RuleHarness twice(kRules);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    once.feed(frames[i]);
    twice.feed(frames[i]);
    if (again.empty()) continue;
    const auto back = static_cast<std::size_t>(std::abs(again[i % again.size()] % 1000)) % (i + 1);
    twice.feed(frames[i - back]);
  }
  RC_ASSERT(findings(once) == findings(twice));
}

RC_GTEST_PROP(Replay, RunsDoNotDisturbEachOther,
              (const std::vector<int>& one, const std::vector<int>& two,
               const std::vector<int>& order)) {
  RuleHarness apart(kRules);
  for (const OwnedFrame& frame : story("a", 0, 1, one)) apart.feed(frame);
  for (const OwnedFrame& frame : story("b", 0, 1, two)) apart.feed(frame);
  RuleHarness together(kRules);
  for (const OwnedFrame& frame :
       interleave({story("a", 0, 1, one), story("b", 0, 1, two)}, order)) {
    together.feed(frame);
  }
  RC_ASSERT(findings(apart) == findings(together));
}

}  // namespace
}  // namespace tocsin::rules
