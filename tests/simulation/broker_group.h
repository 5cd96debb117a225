// One consumer group of the broker in memory: who is in it, who has which partition, where it
// stands. Rounds as on Kafka: everybody joins, then everybody learns the new assignment.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/record.h"
#include "core/time.h"

namespace tocsin::simulation {

using Partitions = std::set<core::StreamPartition>;

class Group {
 public:
  struct Member {
    std::vector<std::string> topics;
    Partitions owned;              // told to it and not given back
    Partitions target;             // by the last round
    std::uint64_t generation = 0;  // the one it has learnt
    bool joined = false;           // in the round under way
    bool shaken = false;           // gives everything back before it joins
    core::Duration seen{};
  };

  /// What a member has to do next, in its poll. Every round ends with `take`, also of nothing.
  struct Step {
    enum class Kind { nothing, give_back, take } kind = Kind::nothing;
    std::vector<core::StreamPartition> partitions;
  };

  void join(std::uint64_t id, std::vector<std::string> topics, core::Duration now);
  /// Goes by itself, or is thrown out.
  void leave(std::uint64_t id);
  void throw_out_all();
  /// Members not seen for a session are thrown out.
  void expire(core::Duration now, core::Duration session);
  /// Begins a round in which everybody gives everything back first. `salt` other than 0: partitions
  /// are dealt out by it.
  void rebalance(std::uint64_t salt);
  [[nodiscard]] bool knows(std::uint64_t id) const { return members_.contains(id); }
  [[nodiscard]] std::size_t size() const { return members_.size(); }

  /// The next step of a member that polls; `all` are the partitions of a topic. After give_back
  /// call given_back(), after take nothing.
  Step advance(std::uint64_t id, core::Duration now, bool eager,
               const std::map<std::string, std::int32_t>& all);
  void given_back(std::uint64_t id, const std::vector<core::StreamPartition>& partitions);

  /// May this member commit positions? (KIP-447: by generation, not by partition.)
  [[nodiscard]] bool may_commit(std::uint64_t id) const;
  /// The one a member has learnt; 0 for a stranger.
  [[nodiscard]] std::uint64_t generation_of(std::uint64_t id) const;

  std::map<core::StreamPartition, std::int64_t> committed;
  std::map<core::StreamPartition, int> undecided;  // positions in transactions that are open

 private:
  void begin_round();
  void complete(bool eager, const std::map<std::string, std::int32_t>& all);
  [[nodiscard]] std::map<std::uint64_t, Partitions> desired(
      const std::map<std::string, std::int32_t>& all) const;

  std::map<std::uint64_t, Member> members_;
  std::uint64_t generation_ = 0;
  std::uint64_t salt_ = 0;
  bool preparing_ = false;
};

}  // namespace tocsin::simulation
