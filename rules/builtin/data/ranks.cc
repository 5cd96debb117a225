// Fires when data-parallel ranks train on the same samples.
//
// Reads   scalars ledger/ranks/batch of all workers (docs/ledger.md): a fingerprint of what the model is
//         given in a step. A rank sends it only where all ranks of the run are replicas that share out data.
// Window  `steps` (3) steps in a row with fingerprints.
// Fires   same_batches  two ranks have the same fingerprint in each of them, and it is another in each: the
//                       sampler does not know its rank
// Quiet   where a fingerprint is that of the step before (an input that never changes tells nothing), and
//         where fewer than two ranks sent one: parts of a model, stages of a pipeline and
//         experts share batches by design, and send none.
// Source  ours; docs/rules/ranks.md.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

constexpr std::string_view kRanksKinds[] = {"same_batches"};

struct Ranks {
  static constexpr std::span<const std::string_view> kKinds = kRanksKinds;
  static constexpr bool kPerWorker = false;
  static constexpr std::span<const Sent> kSent{};
  static constexpr std::size_t kMostRanks = 10;  // named in the evidence
  enum Kind : unsigned { kSameBatches };

  struct Config {
    std::uint32_t steps = 3;
  };
  /// A rank at the newest step in which it sent a fingerprint.
  struct Rank {
    std::uint32_t rank = 0;
    double batch = 0;
    std::uint32_t twin = 0;  // the lowest rank with the same batch; itself: none
    std::uint32_t row = 0;   // steps in a row with this twin and always another batch
    std::int64_t since = 0;
    template <typename A>
    friend void io(A& a, Rank& r) {
      io_all(a, r.rank, r.batch, r.twin, r.row, r.since);
    }
  };
  struct State {
    std::vector<Rank> ranks;  // by rank
    double compared = 0;      // steps
    AnswersSoFar answers;
    template <typename A>
    friend void io(A& a, State& s) {
      io_all(a, s.ranks, s.compared, s.answers);
    }
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes}; }
  static void read(config::Reader& in, Config& cfg, Preset) {
    in.optional("steps", cfg.steps, config::at_least(2U),
                "steps in a row in which two ranks have the same batch");
  }
  static std::vector<Need> needs(const Config&) { return {{"ledger"}}; }
  static void adjust(const Config&, Program& program) {
    if (!program.selection.empty()) return;
    std::string error;
    program.selection.add_regex("^ledger/ranks/batch$", error);
  }
  static bool takes(const Config&, const WorkerRows& rows, const Scope& scope) {
    return rows.scalar != nullptr && (scope.world_size() != 1 || scope.workers() > 1);
  }
  static std::string unjudged(const Scope& scope) {
    if (scope.world_size() == 1 || scope.workers() < 2) return {};
    return "no two ranks have sent fingerprints of their batches: the hook sends them only for "
           "models in DistributedDataParallel or FullyShardedDataParallel over all ranks";
  }

  static void judge(const Config& cfg, State& state, const StepSet& set, SetReport& report) {
    std::vector<Rank> now;
    for (const StepRow& row : set.rows) {
      if (!row.scalar || row.row.non_finite() != 0) continue;
      if (now.empty() || now.back().rank != row.rank) {
        now.push_back({row.rank, row.row.sum, row.rank, 0, set.step});
      }
    }
    if (now.size() < 2) return report.without_unit(EvaluationOutcome::not_applicable);
    find_twins(now);
    std::size_t alike = 0;
    bool told = false;
    for (Rank& one : now) {
      const auto before = std::find_if(state.ranks.begin(), state.ranks.end(),
                                       [&](const Rank& other) { return other.rank == one.rank; });
      const bool known = before != state.ranks.end();
      if (one.twin == one.rank || (known && before->batch == one.batch)) {
        one.twin = one.rank;
        continue;
      }
      ++alike;
      const bool on = known && before->twin == one.twin;
      one.row = on ? before->row + 1 : 1;
      if (on) one.since = before->since;
      told = told || one.row >= cfg.steps;
    }
    const Verdict verdict = told ? hit(kSameBatches) : alike > 0 ? kInsufficient : kOk;
    state.answers.note("batches", verdict,
                       {{"ranks", static_cast<double>(now.size())},
                        {"ranks_alike", static_cast<double>(alike)},
                        {"steps", ++state.compared}},
                       kKinds);
    report.evaluated({}, "batches", verdict,
                     [&](const Subject& subject, unsigned) { return explain(cfg, now, subject); });
    state.ranks = std::move(now);
  }

  static void find_twins(std::vector<Rank>& now) {
    std::vector<std::pair<double, std::uint32_t>> batches;
    batches.reserve(now.size());
    for (const Rank& one : now) batches.emplace_back(one.batch, one.rank);
    std::sort(batches.begin(), batches.end());
    for (Rank& one : now) {
      const auto first =
          std::lower_bound(batches.begin(), batches.end(), std::pair(one.batch, std::uint32_t{0}));
      one.twin = first->second;
    }
  }

  static Finding explain(const Config& cfg, const std::vector<Rank>& now, const Subject& subject) {
    std::string named;
    std::size_t alike = 0;
    std::int64_t since = subject.step;
    std::uint64_t steps = 0;
    for (const Rank& one : now) {
      if (one.row < cfg.steps) continue;
      since = std::min(since, one.since);
      steps = std::max<std::uint64_t>(steps, one.row);
      if (alike++ < kMostRanks) {
        named +=
            sentence("{}{} as rank {}", named.empty() ? "rank " : ", rank ", one.rank, one.twin);
      }
    }
    if (alike > kMostRanks) named += ", …";
    return Finding::that("ranks", static_cast<double>(alike))
        .is(">", "ranks", 0)
        .titled("ranks", Verb::are, "training on the same samples")
        .says(sentence("{} of {} ranks trained on the batches of a lower rank, in {} steps in a "
                       "row up to {}: {}.",
                       alike, now.size(), steps, subject.place(), named))
        .advises(
            "Give the data loader a DistributedSampler (or let the framework do it), or seed the "
            "shuffling by rank. Until then these ranks add nothing.")
        .since(since, steps)
        .with("workers", static_cast<std::uint64_t>(now.size()));
  }
};

}  // namespace

RuleDescriptor ranks() {
  return {.name = "ranks",
          .original_name = "Ranks",
          .title = "Data-parallel ranks train on the same samples.",
          .unit = "run",
          .needs = "collection ledger of at least two data-parallel ranks",
          .presets = "",
          .severity = core::Severity::error,
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<Ranks>};
}

}  // namespace tocsin::rules
