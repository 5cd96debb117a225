// Properties of the engine as a function of its input: any interleaving that keeps each worker's
// order, duplicates and other runs in between change nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

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

// ── Rules of series: each way in which a script may name its modes and sets ─────────────────────

constexpr char kSeriesRules[] =
    "  - {use: overfit, name: far_above, preset: original, with: {ratio_threshold: 0.3}}\n"
    "  - {use: overfit, with: {patience: 1, noise_factor: 0}}\n"
    "  - {use: overtraining, with: {patience_validation: 1, noise_factor: 0}}\n"
    "  - {use: overtraining, name: stalled, preset: original, with: {patience_train: 1, "
    "patience_validation: 1}}\n"
    "  - {use: loss_not_decreasing, with: {num_steps: 1}}\n"
    "  - {use: loss_not_decreasing, name: increase, preset: original, with: {num_steps: 2}}\n"
    "  - {use: loss_spike}\n"
    "  - {use: mode_mismatch}\n"
    "  - {use: learning_rate_decay}";

struct Layout {
  const char* name;
  Mode training;    // mode of training steps
  bool passes;      // evaluations are passes of mode eval between them
  bool sets;        // evaluations stand beside the training loss, as boosting rounds have them
  bool late_start;  // the first evaluation comes before any training
};

/// What one rank of a layout sends; its values are its own.
std::vector<OwnedFrame> told_by(const Layout& layout, std::uint32_t rank, std::uint64_t seed) {
  std::mt19937_64 random(seed * 2 + rank);
  const auto value = [&] { return 0.25 * static_cast<double>(1 + random() % 16); };
  FakeWorker worker("digits", "ordered", rank, 2);
  std::vector<OwnedFrame> frames{
      worker.start(),
      worker.dictionary({{core::DictionaryType::scalar, "loss", Role::loss},
                         {core::DictionaryType::scalar, "train-rmse", Role::metric},
                         {core::DictionaryType::scalar, "valid-rmse", Role::metric},
                         {core::DictionaryType::scalar, "learning_rate", Role::metric}})};
  std::int64_t batch = 0;
  const auto evaluate = [&] {
    for (int i = 0; i < 2; ++i) {
      frames.push_back(worker.scalars(Mode::eval, {{"loss", batch, value()}}));
      frames.push_back(worker.step_end(Mode::eval, batch++));
    }
    ++worker.header.pass;
  };
  if (layout.passes && layout.late_start) evaluate();
  for (std::int64_t step = 0; step < 12; ++step) {
    std::vector<Scalar> said{{"loss", step, value()}};
    if (layout.sets) {
      said.push_back({"train-rmse", step, value(), Role::metric});
      said.push_back({"valid-rmse", step, value(), Role::metric});
    }
    said.push_back({"learning_rate", step, 1 / value(), Role::metric});
    frames.push_back(worker.scalars(layout.training, said));
    frames.push_back(worker.step_end(layout.training, step));
    if (layout.passes && step % 3 == 2) evaluate();
  }
  frames.push_back(worker.end());
  return frames;
}

class SeriesOrder : public testing::TestWithParam<Layout> {};

TEST_P(SeriesOrder, AnyInterleavingGivesTheSameFindings) {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const std::vector<std::vector<OwnedFrame>> stories{told_by(GetParam(), 0, seed),
                                                       told_by(GetParam(), 1, seed)};
    RuleHarness first(kSeriesRules);
    for (const OwnedFrame& frame : interleave(stories, {})) first.feed(frame);
    const std::vector<std::string> expected = findings(first);
    found += expected.size();
    std::mt19937_64 random(seed);
    for (int way = 0; way < 20; ++way) {
      // From turn by turn to one worker far ahead of the other.
      std::vector<int> order(200);
      const auto lean = 1 + random() % 8;
      const int ahead = static_cast<int>(random() % 2);
      for (int& one : order) one = random() % lean == 0 ? 1 - ahead : ahead;
      RuleHarness mixed(kSeriesRules);
      for (const OwnedFrame& frame : interleave(stories, order)) mixed.feed(frame);
      ASSERT_EQ(findings(mixed), expected) << "seed " << seed << " way " << way;
    }
  }
  EXPECT_GT(found, 6U) << "nothing was compared";
}

INSTANTIATE_TEST_SUITE_P(
    Rules, SeriesOrder,
    testing::Values(Layout{"Train", Mode::train, true, false, false},
                    Layout{"TrainEvaluatedFirst", Mode::train, true, false, true},
                    Layout{"Boosting", Mode::global, false, true, false},
                    Layout{"Global", Mode::global, true, false, false},
                    Layout{"GlobalEvaluatedFirst", Mode::global, true, false, true},
                    Layout{"GlobalWithSets", Mode::global, true, true, false}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace tocsin::rules
