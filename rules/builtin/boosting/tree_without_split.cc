// Fires when none of the first trees has split its samples: all of them get one answer.
//
// Reads   the scalar trees/depth or trees/leaves, or the statistic depth of a tensor with role tree.
// Window  the rounds of one worker and mode since the start; judged when the worker has ended one.
// Fires   depth 0, or a single leaf, in each of the first `rounds` (5) rounds that tell a depth.
// Quiet   once a tree has split, for good: at its end a training may have nothing left to learn.
// Source  our own; docs/rules/tree_without_split.md.

#include <cmath>

#include "core/identity.h"
#include "rules/contract/no_number.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

struct TreeWithoutSplit {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr bool kPerWorker = true;
  static constexpr Sent kSent[] = {core::SparseStat::depth};

  struct Config {
    std::uint32_t rounds = 5;
  };
  struct State {
    std::int64_t first = 0;
    std::uint32_t flat = 0;   // rounds so far
    std::uint32_t split = 0;  // 1: a tree has
  };

  static Defaults defaults(Preset) {
    return {
        .modes = kTrainModes, .roles = {core::Role::tree}, .patterns = {"^trees/(depth|leaves)$"}};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("rounds", cfg.rounds, config::at_least(1U),
                "first rounds that must all be without a split");
  }
  static std::vector<Need> needs(const Config&) { return {{"trees", {"depth"}}}; }

  /// Of the deepest tree of the round, 0 where none has split; NaN: none tells.
  static double depth_of(const StepSet& set) {
    static const std::uint64_t kDepth = core::name_hash("trees/depth");
    static const std::uint64_t kLeaves = core::name_hash("trees/leaves");
    double out = kNoNumber;
    for (const StepRow& row : set.rows) {
      if (const auto sent = row.statistic(core::SparseStat::depth)) {
        out = std::fmax(out, *sent);
      } else if (row.scalar && row.name() == kDepth) {
        out = std::fmax(out, row.row.sum);
      } else if (row.scalar && row.name() == kLeaves) {
        out = std::fmax(out, row.row.sum - 1);
      }
    }
    return out;
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    const double depth = depth_of(set);
    Verdict verdict = kInsufficient;
    if (depth > 0) state.split = 1;
    if (depth == 0 && state.split == 0 && state.flat++ == 0) state.first = set.step;
    if (state.split != 0) {
      verdict = std::isnan(depth) ? kInsufficient : kOk;
    } else if (depth == 0 && state.flat >= cfg.rounds) {
      verdict = hit();
    }
    report.evaluated({}, "trees", verdict, [&](const Subject& subject, unsigned) {
      return Finding::that("rounds", state.flat)
          .is(">=", "rounds", cfg.rounds)
          .titled("trees", Verb::have, "no splits")
          .says(sentence("No tree has split its samples in {} rounds up to {}: all samples get the "
                         "same answer.",
                         state.flat, subject.place()))
          .advises(
              "Check the features (constant, all missing, misread) and the parameters that forbid "
              "splits: min_child_weight, gamma, max_depth.")
          .since(state.first, state.flat);
    });
  }
};

}  // namespace

RuleDescriptor tree_without_split() {
  return {.name = "tree_without_split",
          .original_name = "TreeWithoutSplit",
          .title = "None of the first trees splits its samples.",
          .unit = "worker",
          .needs = "scalar trees/depth or trees/leaves, or collection trees with statistic depth",
          .presets = "",
          .severity = core::Severity::warning,
          .groups = group::kDefault | group::kXGBoost,
          .read = &read_step_set_rule<TreeWithoutSplit>};
}

}  // namespace tocsin::rules
