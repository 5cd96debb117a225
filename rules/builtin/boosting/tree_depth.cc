// Fires when a round builds a tree that is deeper than allowed.
//
// Reads   the scalar trees/depth, the statistic depth of a tensor with role tree, or, without them,
//         the largest node number (maximum of the tensor trees/Node).
// Window  one round of one worker and mode; judged when the worker has ended it.
// Fires   depth > `depth`, where depth is the longest path from the root to a leaf, in edges; of
//         several trees the deepest counts. From a node number m: ⌊log₂(m + 1)⌋.
// Quiet   for single leaves (depth 0); for rounds without any of the three.
// Source  Amazon SageMaker Debugger, TreeDepth; docs/rules/tree_depth.md.

#include <cmath>

#include "core/identity.h"
#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

struct TreeDepth {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr bool kPerWorker = true;
  static constexpr Sent kSent[] = {core::SparseStat::depth};

  struct Config {
    double depth = 4;
  };
  struct State {};
  /// What a round says of its trees.
  struct Trees {
    std::optional<double> depth;   // measured; of several the deepest
    std::optional<double> node;    // largest number
    std::optional<double> leaves;  // of that tree
    std::optional<double> number;  // its own, among those of the round
    std::uint64_t count = 0;       // trees that were measured
  };

  // The original's hook knows no modes; our XGBoost callback counts rounds as training steps.
  static Defaults defaults(Preset) {
    return {.modes = kTrainModes, .roles = {core::Role::tree}, .patterns = {"^trees/"}};
  }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("depth", cfg.depth, config::at_least(0.0), "largest depth of a tree, in edges");
  }
  static std::vector<Need> needs(const Config&) { return {{"trees", {"depth"}}}; }

  static Trees measure(const StepSet& set) {
    static const std::uint64_t kDepth = core::name_hash("trees/depth");
    static const std::uint64_t kNode = core::name_hash("trees/Node");
    static const std::uint64_t kLeaves = core::name_hash("trees/leaves");
    static const std::uint64_t kNumber = core::name_hash("trees/deepest");
    Trees out;
    const auto deepest = [](std::optional<double>& known, double value) {
      known = !known || value > *known || std::isnan(value) ? value : *known;
    };
    for (const StepRow& row : set.rows) {
      const auto sent = row.statistic(core::SparseStat::depth);
      if (sent || (row.scalar && row.name() == kDepth)) {
        deepest(out.depth, sent ? *sent : row.row.sum);
        ++out.count;
      } else if (row.scalar && row.name() == kLeaves) {
        deepest(out.leaves, row.row.sum);
      } else if (row.scalar && row.name() == kNumber) {
        out.number = row.row.sum;
      } else if (!row.scalar && row.name() == kNode && row.row.count > 0) {
        deepest(out.node, row.row.max);
      }
    }
    return out;
  }

  static void judge(const Config& cfg, State&, const StepSet& set, SetReport& report) {
    const Trees trees = measure(set);
    const double depth = trees.depth  ? *trees.depth
                         : trees.node ? std::floor(std::log2(*trees.node + 1))
                                      : std::nan("");
    Verdict verdict = kInsufficient;
    if (std::isfinite(depth) && depth >= 0) verdict = depth > cfg.depth ? hit() : kOk;
    report.evaluated({}, "trees", verdict, [&](const Subject& subject, unsigned) {
      Finding finding = Finding::that("depth", depth);
      finding.is(">", "depth", cfg.depth)
          .titled("trees", Verb::are, "too deep")
          .says(
              sentence("A tree has depth {} (limit {}) at {}.", depth, cfg.depth, subject.place()))
          .advises(
              "Deep trees memorise single rows. Set max_depth (or max_leaves), or raise "
              "min_child_weight or gamma.")
          .with("measured", trees.depth ? "paths" : "node numbers");
      if (trees.count > 0) finding.with("trees", trees.count);
      if (trees.node) finding.with("largest_node", *trees.node);
      if (trees.leaves) finding.with("leaves", *trees.leaves);
      if (trees.number) finding.with("tree", *trees.number);
      return finding;
    });
  }
};

}  // namespace

RuleDescriptor tree_depth() {
  return {.name = "tree_depth",
          .original_name = "TreeDepth",
          .title = "A tree is deeper than allowed.",
          .unit = "worker",
          .needs = "scalar trees/depth, or collection trees with statistic depth",
          .presets = "",
          .severity = core::Severity::info,
          .version = "2",
          .groups = group::kXGBoost,
          .read = &read_step_set_rule<TreeDepth>};
}

}  // namespace tocsin::rules
