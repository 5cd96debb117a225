// Fires when workers that should hold the same weights do not.
//
// Reads   the statistic digest of weights, of all workers; parts (row flag 19) are left out, and
//         what differs in size or type from rank to rank is not the same tensor.
// Window  one step of one mode; judged when nobody can add to it any more.
// Fires   two workers have different digests of one tensor at one step.
// Quiet   where one worker alone has the tensor, or fewer than two have sent a digest.
// Source  ours; docs/rules/replica_divergence.md.

#include <algorithm>
#include <bit>
#include <map>

#include "rules/contract/sentence.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {
namespace {

struct ReplicaDivergence {
  static constexpr std::span<const std::string_view> kKinds{};
  static constexpr TensorUse kTensorUse = TensorUse::one;
  static constexpr bool kPerWorker = false;
  static constexpr Sent kSent[] = {core::SparseStat::digest};
  static constexpr std::size_t kTold = 10;  // ranks in the evidence

  struct Config {};
  struct State {};
  struct Replica {
    const StepRow* row = nullptr;
    std::uint64_t digest = 0;
  };
  /// What most replicas hold, and who does not.
  struct Split {
    std::size_t compared = 0;
    std::uint64_t common = 0;
    std::vector<const Replica*> others;
  };

  static Defaults defaults(Preset) { return {.modes = kTrainModes, .roles = {core::Role::weight}}; }
  static void read(config::Reader&, Config&, Preset) {}
  static std::vector<Need> needs(const Config&) { return {{"weights", {"digest"}}}; }

  /// Ranks may have other roles (stages of a pipeline, experts) and tensors of the same names: each
  /// is compared with those of its size and type.
  static Split split(std::vector<Replica>& replicas) {
    const auto kind = [](const Replica& one) {
      return std::pair(one.row->row.count, core::meta::dtype(one.row->row.meta));
    };
    std::stable_sort(replicas.begin(), replicas.end(),
                     [&](const Replica& a, const Replica& b) { return kind(a) < kind(b); });
    Split out;
    for (auto from = replicas.begin(); from != replicas.end();) {
      const auto to = std::find_if(from, replicas.end(),
                                   [&](const Replica& one) { return kind(one) != kind(*from); });
      if (to - from > 1) split_alike({from, to}, out);
      from = to;
    }
    return out;
  }

  static void split_alike(std::span<const Replica> replicas, Split& out) {
    std::map<std::uint64_t, std::size_t> counts;
    for (const Replica& one : replicas) ++counts[one.digest];
    std::uint64_t common = replicas.front().digest;  // of the lowest rank, without a majority
    for (const auto& [digest, count] : counts) {
      if (count > counts[common]) common = digest;
    }
    out.compared += replicas.size();
    for (const Replica& one : replicas) {
      if (one.digest == common) continue;
      if (out.others.empty()) out.common = common;
      out.others.push_back(&one);
    }
  }

  static std::string unjudged(const Scope& scope) {
    if (scope.world_size() == 1 || scope.workers() < 2) return {};
    return "no two workers have sent the digest of the same tensor. With capture.workers: auto, "
           "only rank 0 sends tensors that all ranks hold; set it to all. Shards of sharded models "
           "are not replicas and are not compared";
  }

  /// A job of one worker has no replicas; 0: it does not say of how many.
  static bool takes(const Config&, const WorkerRows&, const Scope& scope) {
    return scope.world_size() != 1 || scope.workers() > 1;
  }
  static void judge(const Config&, State&, const StepSet& set, SetReport& report) {
    std::vector<const StepRow*> rows;  // by name, then by rank
    rows.reserve(set.rows.size());
    for (const StepRow& row : set.rows) {
      if (row.scalar || row.has(core::meta::kPartial) || row.has(core::meta::kEmptyHere)) continue;
      rows.push_back(&row);
    }
    const auto by_name = [](const StepRow* a, const StepRow* b) { return a->name() < b->name(); };
    if (!std::is_sorted(rows.begin(), rows.end(), by_name)) {  // of one worker they are
      std::stable_sort(rows.begin(), rows.end(), by_name);
    }
    std::vector<Replica> replicas;
    for (auto from = rows.begin(); from != rows.end();) {
      const auto to = std::upper_bound(from, rows.end(), *from, by_name);
      judge_tensor({from, to}, replicas, report);
      from = to;
    }
  }

  static void judge_tensor(std::span<const StepRow* const> rows, std::vector<Replica>& replicas,
                           SetReport& report) {
    if (rows.size() < 2) return report.without_unit(EvaluationOutcome::not_applicable);
    replicas.clear();
    for (const StepRow* row : rows) {
      const auto digest = row->statistic(core::SparseStat::digest);
      if (digest) replicas.push_back({row, std::bit_cast<std::uint64_t>(*digest)});
    }
    if (replicas.size() < 2) return report.without_unit(EvaluationOutcome::insufficient_data);
    const Split apart = split(replicas);
    if (apart.compared == 0) return report.without_unit(EvaluationOutcome::not_applicable);
    const std::string name = report.scope().text(rows.front()->name());
    report.evaluated(
        {{"tensor", name}}, name, apart.others.empty() ? kOk : hit(),
        [&](const Subject& subject, unsigned) { return explain(apart, report, subject); });
  }

  static Finding explain(const Split& apart, const SetReport& report, const Subject& subject) {
    std::string ranks;
    core::ValueList told;
    for (std::size_t i = 0; i < std::min(apart.others.size(), kTold); ++i) {
      const Replica& one = *apart.others[i];
      ranks += (i == 0 ? "" : ", ") + std::to_string(one.row->rank);
      told.emplace_back(core::ValueList{static_cast<std::int64_t>(one.row->rank),
                                        sentence("{:016x}", one.digest)});
    }
    if (apart.others.size() > kTold) ranks += ", …";
    Finding finding = Finding::that("replicas", static_cast<double>(apart.others.size()));
    finding.is(">", "replicas", 0)
        .titled(sentence("replicas of {}", subject.name), Verb::are, "different")
        .says(sentence("{} of {} replicas of {} differ from the others at {}: rank {}.",
                       apart.others.size(), apart.compared, subject.name, subject.place(), ranks))
        .advises(
            "Data-parallel workers must start from the same weights and apply the same updates. "
            "Most probable first: parameters left out of the reduction; random numbers in the "
            "update; a faulty device, if it is always the same rank.")
        .with("digest", sentence("{:016x}", apart.common))
        .with("different", std::move(told))
        .with("workers", static_cast<std::uint64_t>(apart.compared));
    finding.tensor = report.tensor(*apart.others.front()->row);
    return finding;
  }
};

}  // namespace

RuleDescriptor replica_divergence() {
  return {.name = "replica_divergence",
          .original_name = "ReplicaDivergence",
          .title = "Workers that should hold the same weights differ.",
          .unit = "tensor",
          .needs = "collection weights with statistic digest, of at least two workers",
          .presets = "",
          .severity = core::Severity::error,
          .groups = group::kDefault | group::kPyTorch,
          .read = &read_step_set_rule<ReplicaDivergence>};
}

}  // namespace tocsin::rules
