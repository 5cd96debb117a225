// Shards beyond the first of a run: they see no lifecycle, so what the engine of the first settled
// of its launches, its name and its end comes from the registry, as logged entries.
#pragma once

#include <vector>

#include "rules/engine/jobs/ends.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class FurtherShards {
 public:
  /// Nobody says of a further shard that its last record has come: it is over so long after that,
  /// when the run is.
  static constexpr std::int64_t kQuiet = 3'000'000'000;

  explicit FurtherShards(Ends& ends) : ends_(ends) {}

  /// Runs of which a further shard lies in the partition; each once.
  [[nodiscard]] static std::vector<core::RunUid> runs_of(const PartitionState& part);
  /// The entries to decide. `live`: all that the partition holds has been read.
  static std::vector<Entry> news(const Turn& turn, const core::JobEvent& event, bool live);
  void apply(const Turn& turn, const Entry& entry);

 private:
  Ends& ends_;
};

}  // namespace tocsin::rules
