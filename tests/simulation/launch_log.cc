#include "tests/simulation/launch_log.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/simulation/broker_log.h"

namespace tocsin::simulation {

LaunchLog::LaunchLog(World& world) : world_(world) {
  std::set<std::tuple<core::RunUid, std::uint32_t, std::uint64_t>> heard;
  for (const auto& stored : world_.telemetry()) {
    const auto decoded = ingest::decode_frame(view_of(stored).value);
    if (!decoded) continue;
    const auto& header = decoded.frame().header();
    partition_of_[header.run] = stored.partition;
    const auto launch = world_.launch_of(header);
    if (!launch) continue;
    sent_by_[{stored.partition, stored.offset}] = *launch;
    last_sent_[{header.run, *launch}] = stored.offset;
    if (!heard.insert({header.run, header.rank, header.incarnation}).second) continue;
    const auto [first, fresh] =
        opening_.try_emplace({header.run, *launch}, stored.offset, stored.offset);
    first->second.second = stored.offset;
  }
}

std::optional<std::size_t> LaunchLog::that_sent(std::int32_t partition, std::int64_t offset) const {
  const auto from = sent_by_.find({partition, offset});
  if (from == sent_by_.end()) return std::nullopt;
  return from->second;
}

std::optional<std::int32_t> LaunchLog::partition_of(const core::RunUid& run) const {
  const auto at = partition_of_.find(run);
  if (at == partition_of_.end()) return std::nullopt;
  return at->second;
}

std::vector<std::pair<core::RunUid, std::size_t>> LaunchLog::heard_of() const {
  std::vector<Launch> out;
  for (const auto& [launch, offsets] : opening_) out.push_back(launch);
  return out;
}

const LaunchPlan* LaunchLog::plan_of(const core::RunUid& run, std::size_t launch) const {
  for (const auto& plan : world_.scenario().runs) {
    if (core::run_uid_for("job", plan.name) == run) return &plan.launches[launch];
  }
  return nullptr;
}

bool LaunchLog::keys_agree(const core::RunUid& run, std::size_t one, std::size_t two) const {
  const LaunchPlan* first = plan_of(run, one);
  const LaunchPlan* second = plan_of(run, two);
  return first != nullptr && second != nullptr &&
         (first->key.empty() || second->key.empty() || first->key == second->key);
}

bool LaunchLog::are_one(const core::RunUid& run, std::size_t earlier, std::size_t later) const {
  const auto began = opening_.find({run, later});
  const auto sent = last_sent_.find({run, earlier});
  return keys_agree(run, earlier, later) && began != opening_.end() && sent != last_sent_.end() &&
         (began->second.first < sent->second || mixed(run, earlier));
}

// Its ranks opened while those of another launch with an agreeing key did: who belongs together is
// anybody's guess.
bool LaunchLog::mixed(const core::RunUid& run, std::size_t launch) const {
  const auto mine = opening_.find({run, launch});
  return mine != opening_.end() &&
         std::any_of(opening_.begin(), opening_.end(), [&](const auto& other) {
           return other.first.first == run && other.first.second != launch &&
                  keys_agree(run, launch, other.first.second) &&
                  other.second.first <= mine->second.second &&
                  mine->second.first <= other.second.second;
         });
}

bool LaunchLog::mingled(const core::RunUid& run) const {
  for (const auto& [earlier, began] : opening_) {
    for (auto later = earlier.second + 1; opening_.contains({run, later}); ++later) {
      if (earlier.first == run && are_one(run, earlier.second, later)) return true;
    }
  }
  return false;
}

}  // namespace tocsin::simulation
