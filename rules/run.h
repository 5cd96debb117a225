// What the engine remembers about one run (one shard of it): plain data, all of it in snapshots.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/identity.h"
#include "core/issue.h"
#include "rules/archive.h"
#include "rules/flat_index.h"
#include "rules/rule.h"

namespace tocsin::rules {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kModes = 4;
inline constexpr std::uint32_t kNoLane = 0xFFFFFFFFU;

constexpr std::size_t at(core::Mode mode) noexcept { return static_cast<std::size_t>(mode) & 3U; }

struct RunId {
  core::RunUid uid;
  std::uint16_t shard = 0;
  friend auto operator<=>(const RunId&, const RunId&) = default;
};

/// One training process, or a node's agent.
struct Worker {
  std::uint64_t name_hash = 0;
  std::uint32_t rank = 0;
  std::string name;
  std::string node;
  bool named = false;  // by a dictionary
  std::uint64_t incarnation = 0;
  std::uint64_t sequence = 0;
  bool has_sequence = false;
  bool unsequenced = false;  // sends JSON only: no step-ends
  bool agent = false;
  bool gone = false;  // left or ended
  bool idle = false;
  bool gap = false;                // frames were lost since its last step-end
  std::int64_t last_arrival = 0;   // of progress, engine time
  std::int64_t last_progress = 0;  // of progress, record time
  std::array<std::int64_t, kModes> mark{kNever, kNever, kNever, kNever};  // last ended step
  std::array<std::int64_t, kModes> seen{kNever, kNever, kNever, kNever};  // last step with data
  std::uint32_t pass = 0;   // of its newest frame in an evaluation
  std::uint8_t active = 0;  // modes it takes part in
  core::Mode mode = core::Mode::global;
  double loss_scale = 1;
  std::array<std::int64_t, 8> step_times{};  // latest durations, for the idle limit
  std::uint32_t steps_timed = 0;
  Life gap_life;
  std::uint64_t gap_frames = 0;  // missing since the last report

  template <typename A>
  friend void io(A& a, Worker& w) {
    io_all(a, w.name_hash, w.rank, w.name, w.node, w.named, w.incarnation, w.sequence,
           w.has_sequence, w.unsequenced, w.agent, w.gone, w.idle, w.gap, w.last_arrival,
           w.last_progress, w.mark, w.seen, w.pass, w.active, w.mode, w.loss_scale, w.step_times,
           w.steps_timed, w.gap_life, w.gap_frames);
  }
};

struct Slot {
  std::uint64_t name = 0;
  std::int64_t last_step = kNever;
};

/// How a worker's step went for one row rule: what `affected` speaks of.
struct StepTally {
  std::int64_t step = kNever;
  std::uint64_t hit = 0;
  std::uint64_t evaluated = 0;
  std::uint32_t first = RowBatch::kSkip;  // slot of the first hit
};

/// One rule's memory of the units of one lane.
struct Block {
  std::vector<std::byte> states;
  std::vector<Life> lives;
  std::vector<Match> applies;
  StepTally tally;
  std::vector<RowHit> waiting;  // verdicts that wait for the end of the step

  template <typename A>
  friend void io(A& a, Block& b) {
    io_all(a, b.states, b.lives, b.applies, b.tally, b.waiting);
  }
};

/// The units of one (worker, mode): dense, in the order in which they first came.
struct Lane {
  std::uint32_t worker = 0;
  core::Mode mode = core::Mode::global;
  bool scalars = false;
  std::vector<Slot> slots;
  std::vector<std::uint16_t> types;  // dtype, role << 8 of each slot
  std::vector<Block> blocks;         // per row rule; empty vectors where the rule does not look
  bool losses = false;               // some slot holds a loss: series rules want it
  std::vector<Match> wanted;         // per slot: some series rule may want it
  bool unresolved = false;           // some `applies` is unknown
  std::uint64_t names_version = 0;
  FlatIndex index;  // rebuilt after a restore

  template <typename A>
  friend void io(A& a, Lane& l) {
    io_all(a, l.worker, l.mode, l.scalars, l.slots, l.types, l.blocks, l.losses, l.wanted,
           l.unresolved, l.names_version);
    if constexpr (A::kReading) {
      for (std::uint32_t i = 0; i < l.slots.size(); ++i) l.index.insert(l.slots[i].name, i);
    }
  }
};

/// A scalar whose step is not complete yet.
struct PendingScalar {
  core::Mode mode = core::Mode::train;
  std::uint32_t pass = 0;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;
  std::int64_t after_train = kNever;  // the worker's last ended train step
  std::uint64_t name = 0;
  double value = 0;
  std::int64_t offset = 0;
  std::uint32_t worker = 0;
  core::Role role = core::Role::other;
};

/// Unit of an open issue, in numbers. Series and other units without a lane use kNoLane − n.
struct OpenKey {
  std::uint32_t rule = 0;
  std::uint32_t lane = 0;
  std::uint64_t item = 0;
  std::uint8_t mode = 0xFF;
  std::uint8_t kind = 0;
  friend auto operator<=>(const OpenKey&, const OpenKey&) = default;
};

/// An issue that fires.
struct Open {
  std::vector<std::pair<std::string, std::string>> unit;  // labels that the rule adds
  std::string kind;
  std::uint32_t worker = kNoLane;
  core::Severity severity = core::Severity::warning;
  std::int64_t starts_at = 0;
  std::int64_t last_report = 0;
  std::uint64_t occurrences = 0;
  std::string observed_name;
  double observed = 0;

  template <typename A>
  friend void io(A& a, Open& o) {
    io_all(a, o.unit, o.kind, o.worker, o.severity, o.starts_at, o.last_report, o.occurrences,
           o.observed_name, o.observed);
  }
};

/// Per configured rule: what it came to in this run.
struct RuleProgress {
  OutcomeCounts counts{};
  core::RuleState state = core::RuleState::no_data;
  std::uint64_t issue_sequence = 0;
};

/// A node's samples for the system rules.
struct NodeState {
  struct Core {
    double idle = 0;
    double busy = 0;
    bool has_idle = false;
    bool present = false;
  };
  std::uint32_t worker = 0;
  std::int64_t started = kNever;  // first sample of the open snapshot
  std::map<std::string, double> gpus;
  std::map<std::string, Core> cores;
  std::vector<std::vector<std::byte>> states;  // per system rule
  std::vector<std::int64_t> interval;          // per system rule: end of the open interval, kNever
  std::vector<Life> lives;

  template <typename A>
  friend void io(A& a, NodeState& n) {
    io_all(a, n.worker, n.started, n.gpus, n.cores, n.states, n.interval, n.lives);
  }
};

struct ClockState {
  bool fired = false;
};

/// One shard of one run.
struct Run {
  RunId id;
  std::int32_t partition = 0;
  std::uint32_t attempt = 0;
  std::uint32_t world_size = 0;
  bool started = false;  // a start record was seen
  bool ended = false;
  bool grace_over = false;
  bool dirty = true;
  std::string outcome;  // of the worst `end` so far
  std::optional<int> exit_code;
  std::string job;
  std::string platform = "local";
  std::string platform_ref;  // compact JSON
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::string> captured;  // collections of the start record's capture; empty = unknown
  std::int64_t started_at = 0;
  std::int64_t ended_at = 0;
  std::int64_t first_train_arrival = kNever;  // engine time: the grace starts here
  std::int64_t first_seen = 0;                // engine time
  std::int64_t last_arrival = 0;              // engine time, of progress
  std::int64_t last_any = 0;                  // engine time, of anything
  std::int64_t last_heartbeat = kNever;       // event time of the newest job heartbeat sent on
  std::int64_t last_step = kNever;
  std::int64_t last_global_step = 0;
  std::int64_t last_time = 0;  // newest measurement
  core::Mode last_mode = core::Mode::global;
  std::uint64_t heartbeats = 0;
  std::array<std::int64_t, kModes> closed{kNever, kNever, kNever, kNever};
  std::uint8_t seen_modes = 0;
  std::vector<Worker> workers;
  std::vector<Lane> lanes;
  std::vector<PendingScalar> pending;
  std::map<std::pair<std::uint8_t, std::int64_t>, std::vector<std::uint32_t>> partial;  // ranks
  std::vector<SeriesMemory> series;  // per series rule
  std::map<std::pair<std::uint32_t, SeriesKey>, Life> series_lives;
  std::map<std::uint64_t, NodeState> nodes;                              // by worker name
  std::map<std::pair<std::uint32_t, std::uint32_t>, ClockState> clocks;  // (rule, worker)
  std::vector<RuleProgress> progress;
  std::map<OpenKey, Open> open;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> open_counts;  // rule, kind, worker
  std::unordered_map<std::uint64_t, Name> names;
  std::uint64_t names_version = 0;
  std::uint64_t units = 0;

  // Not in snapshots: places that are found again.
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> worker_index;
  std::vector<std::array<std::uint32_t, kModes * 2>> lane_index;  // per worker
};

template <typename A>
void io(A& a, Name& n) {
  io_all(a, n.text, n.collections, n.shape, n.dtype, n.role, n.higher_is_better);
}

/// Writes or reads everything but the index structures; the reader rebuilds those.
template <typename A>
void io(A& a, Run& r) {
  io_all(a, r.id, r.partition, r.attempt, r.world_size, r.started, r.ended, r.grace_over, r.outcome,
         r.exit_code, r.job, r.platform, r.platform_ref, r.labels, r.captured, r.started_at,
         r.ended_at, r.first_train_arrival, r.first_seen, r.last_arrival, r.last_any,
         r.last_heartbeat, r.last_step, r.last_global_step, r.last_time, r.last_mode, r.heartbeats,
         r.closed, r.seen_modes, r.workers, r.lanes, r.pending, r.partial, r.series, r.series_lives,
         r.nodes, r.clocks, r.progress, r.open, r.open_counts, r.names_version, r.units);
  std::map<std::uint64_t, Name> names(r.names.begin(), r.names.end());
  io(a, names);
  if constexpr (A::kReading) {
    r.names = {names.begin(), names.end()};
    for (std::uint32_t i = 0; i < r.workers.size(); ++i) {
      r.worker_index[{r.workers[i].name_hash, r.workers[i].rank}] = i;
    }
    std::array<std::uint32_t, kModes * 2> none;
    none.fill(kNoLane);
    r.lane_index.assign(r.workers.size(), none);
    for (std::uint32_t i = 0; i < r.lanes.size(); ++i) {
      const Lane& lane = r.lanes[i];
      if (lane.worker < r.lane_index.size()) {
        r.lane_index[lane.worker][at(lane.mode) * 2 + (lane.scalars ? 1 : 0)] = i;
      }
    }
  }
}

}  // namespace tocsin::rules
