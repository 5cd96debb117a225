// What the engine remembers about one run (one shard of it): plain data, all of it in snapshots.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/identity.h"
#include "core/issue.h"
#include "core/json.h"
#include "rules/archive.h"
#include "rules/evaluators.h"
#include "rules/first_sign.h"
#include "rules/flat_index.h"
#include "rules/launches.h"
#include "rules/names.h"
#include "rules/open_issue.h"
#include "rules/rule.h"
#include "rules/step_clock.h"

namespace tocsin::rules {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
inline constexpr std::size_t kModes = 4;

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
  bool skewed = false;             // its clock is far ahead: its times are not believed
  bool gap = false;                // frames were lost since its last step-end
  std::int64_t last_arrival = 0;   // of progress, engine time
  std::int64_t last_progress = 0;  // of progress, record time
  std::int64_t last_time = 0;      // of measurement, of its newest progress
  std::array<std::int64_t, kModes> mark{kNever, kNever, kNever, kNever};  // last ended step
  std::array<std::int64_t, kModes> seen{kNever, kNever, kNever, kNever};  // last step with data
  std::uint32_t pass = 0;   // of its newest frame in an evaluation
  std::uint8_t active = 0;  // modes it takes part in
  core::Mode mode = core::Mode::global;
  double loss_scale = 1;
  // What it last said of its learning rate, and the most it ever said; NaN: nothing.
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  double max_learning_rate = std::numeric_limits<double>::quiet_NaN();
  std::array<std::int64_t, 8> step_times{};  // latest durations, for the idle limit
  std::uint32_t steps_timed = 0;
  Life gap_life;
  std::uint64_t gap_frames = 0;  // missing since the last report

  template <typename A>
  friend void io(A& a, Worker& w) {
    io_all(a, w.name_hash, w.rank, w.name, w.node, w.named, w.incarnation, w.sequence,
           w.has_sequence, w.unsequenced, w.agent, w.gone, w.idle, w.skewed, w.gap, w.last_arrival,
           w.last_progress, w.last_time, w.mark, w.seen, w.pass, w.active, w.mode, w.loss_scale,
           w.learning_rate, w.max_learning_rate, w.step_times, w.steps_timed, w.gap_life,
           w.gap_frames);
  }
};

struct Slot {
  std::uint64_t name = 0;
  std::int64_t last_step = kNever;
};

/// How a worker's step went for one row rule: what `affected` speaks of.
struct StepTally {
  std::int64_t step = kNever;
  std::int64_t global_step = 0;
  std::uint64_t hit = 0;
  std::uint64_t evaluated = 0;
  std::uint32_t first = RowBatch::kSkip;  // slot of the first hit
};

/// One rule's memory of the units of one lane.
struct Block {
  std::vector<std::byte> states;
  std::vector<Life> lives;
  std::vector<Match> applies;
  std::uint32_t state_size = 0;  // bytes of each in `states`
  StepTally tally;
  std::vector<RowHit> waiting;  // verdicts that wait for the end of the step
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
  // Not in snapshots:
  std::vector<PartMark> marks;             // per range of slots
  std::vector<std::vector<Match>> chosen;  // per evaluator that takes rows, per slot
  std::size_t chosen_slots = 0;
  std::uint64_t chosen_version = 0;
  bool chosen_unsure = false;
};

/// What a lane has once.
template <typename A>
void io_lane_head(A& a, Lane& l) {
  io_all(a, l.worker, l.mode, l.scalars, l.losses, l.unresolved, l.names_version);
  const std::size_t blocks = io_size(a, l.blocks.size(), 1);
  if constexpr (A::kReading) l.blocks.resize(blocks);
  for (Block& block : l.blocks) io_all(a, block.state_size, block.tally, block.waiting);
}

/// What a lane has per slot, for the slots from…to. Reading appends; the head was read before.
template <typename A>
void io_lane_slots(A& a, Lane& l, std::size_t from, std::size_t to) {
  io_slice(a, l.slots, from, to);
  io_slice(a, l.types, from, to);
  io_slice(a, l.wanted, from, to);
  for (Block& block : l.blocks) {
    const std::size_t size = block.state_size;
    io_slice(a, block.states, from * size, to * size);
    io_slice(a, block.lives, from, to);
    io_slice(a, block.applies, from, to);
  }
}

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

/// Per configured rule: what it came to in this run.
struct RuleProgress {
  OutcomeCounts counts{};
  core::RuleState state = core::RuleState::no_data;
  std::uint64_t issue_sequence = 0;
  std::int64_t last_window = kNever;  // of operational rules: when they last said something
};

/// A node's samples that are not a snapshot yet.
struct NodeState {
  std::uint32_t worker = 0;
  SnapshotBuilder builder;

  template <typename A>
  friend void io(A& a, NodeState& n) {
    io_all(a, n.worker, n.builder);
  }
};

struct ClockState {
  bool fired = false;
  std::int64_t counted = kNever;      // engine time of the newest check that was counted as ok
  std::int64_t last_window = kNever;  // what its newest issue says: no two say the same
};

/// The newest process that started on a node.
struct Opened {
  std::string boot;         // first 8 hex digits of the machine's boot id
  std::int64_t opened = 0;  // boot-time ns

  template <typename A>
  friend void io(A& a, Opened& o) {
    io_all(a, o.boot, o.opened);
  }
};

/// How many parts the head of a run stands with.
struct RunShape {
  std::uint64_t workers = 0;
  std::uint64_t names = 0;
  std::vector<std::uint32_t> slots;       // per lane
  std::vector<std::uint64_t> evaluators;  // their identities

  template <typename A>
  friend void io(A& a, RunShape& s) {
    io_all(a, s.workers, s.names, s.slots, s.evaluators);
  }
};

/// One shard of one run.
struct Run {
  RunId id;
  std::uint32_t life = 1;  // grows when its parts begin anew: their keys never mean two things
  std::uint32_t names_life = 1;
  std::int32_t partition = 0;
  std::uint32_t attempt = 0;
  std::uint32_t world_size = 0;
  bool started = false;  // a start record was seen
  bool ended = false;
  bool lost = false;   // ended because nothing was heard any more: may be heard of again
  bool beats = false;  // a process with a hook: its heartbeats prove that it lives
  bool grace_over = false;
  std::string outcome;  // of the worst `end` so far
  std::optional<int> exit_code;
  std::string job;
  std::string platform = "local";
  core::Value platform_ref;  // the platform's own identity of it
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<std::string> captured;  // collections of the start record's capture; empty = unknown
  std::int64_t started_at = 0;
  std::int64_t ended_at = 0;
  std::int64_t first_train_arrival = kNever;  // engine time: the grace starts here
  std::int64_t first_seen = 0;                // engine time
  std::int64_t last_arrival = 0;              // engine time, of progress
  std::int64_t last_any = 0;                  // engine time, of any sign of life of its processes
  std::int64_t last_heartbeat = kNever;       // event time of the newest job heartbeat sent on
  std::int64_t told_step = kNever;            // what that said
  bool job_changed = false;                   // something that it says besides is new
  std::map<std::string, Opened> launch;       // per node
  std::array<std::int64_t, 16> step_times{};  // latest durations of train steps, of any worker
  std::uint32_t steps_timed = 0;
  std::uint64_t ends = 0;  // ended events so far
  Launches launches;
  std::int64_t last_step = kNever;
  std::int64_t last_global_step = 0;
  std::int64_t last_time = 0;                 // newest measurement
  core::Mode last_mode = core::Mode::global;  // of the newest progress,
  std::int64_t last_mode_step = 0;            // and its step in that mode
  std::uint64_t heartbeats = 0;
  std::array<std::int64_t, kModes> closed{kNever, kNever, kNever, kNever};
  std::array<std::int64_t, kModes> told_closed{kNever, kNever, kNever, kNever};  // to evaluators
  std::uint8_t seen_modes = 0;
  std::vector<Worker> workers;
  std::vector<Lane> lanes;
  std::vector<PendingScalar> pending;
  std::map<std::pair<std::uint8_t, std::int64_t>, std::vector<std::uint32_t>> partial;  // ranks
  std::map<std::pair<std::uint32_t, std::uint64_t>, Life> lives;  // (rule, unit) of evaluators
  std::map<std::uint64_t, NodeState> nodes;                       // by worker name
  std::map<std::pair<std::uint32_t, std::uint32_t>, ClockState> clocks;  // (rule, worker)
  std::vector<RuleProgress> progress;
  std::map<OpenKey, Open> open;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> open_counts;  // rule, kind, worker
  NameTable names;
  std::uint64_t names_version = 0;
  std::uint64_t units = 0;

  // Parts of their own, not of the head: workers, lanes, names, and
  EvaluatorParts evaluators;  // per evaluated rule; may be shorter
  // Not in snapshots: marks, and places that are found again.
  PartMark head_mark;
  std::vector<PartMark> worker_marks;  // per range
  std::vector<PartMark> name_marks;
  std::vector<PartMark> lane_marks;
  RunShape shape;  // while being restored
  StepClock clock;
  FirstSigns signs;
  bool release_due = true;                             // some pending value may be ready
  std::array<std::int64_t, kModes + 3> released_at{};  // what readiness was last judged by
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> worker_index;
  std::vector<std::array<std::uint32_t, kModes * 2>> lane_index;  // per worker
};

/// As compact JSON; null is an empty text.
template <typename A>
void io(A& a, core::Value& value) {
  std::string text;
  if constexpr (!A::kReading && !A::kLayout) {
    if (!value.is_null()) text = core::to_json(value, true);
  }
  io(a, text);
  if constexpr (A::kReading) {
    auto parsed = text.empty() ? core::Result<core::Value>(core::Value())
                               : core::parse_json(text, core::kMaxFrameBytes);
    if (parsed) {
      value = std::move(*parsed);
    } else {
      a.fail();
    }
  }
}

template <typename A>
void io(A& a, Name& n) {
  io_all(a, n.text, n.collections, n.shape, n.dtype, n.role, n.direction, n.op_type);
}
template <typename A>
void io(A& a, NameTable::Entry& e) {
  io_all(a, e.hash, e.name, e.lasting);
}

/// The head: everything but workers, names and lanes, which are parts of their own.
template <typename A>
void io(A& a, Run& r) {
  io_all(a, r.id, r.life, r.names_life, r.partition, r.attempt, r.world_size, r.started, r.ended,
         r.lost, r.beats, r.grace_over, r.outcome, r.exit_code, r.job, r.platform, r.platform_ref,
         r.labels, r.captured, r.started_at, r.ended_at, r.first_train_arrival, r.first_seen,
         r.last_arrival, r.last_any, r.last_heartbeat, r.told_step, r.job_changed, r.launch,
         r.step_times, r.steps_timed, r.ends, r.launches, r.last_step, r.last_global_step,
         r.last_time, r.last_mode, r.last_mode_step, r.heartbeats, r.closed, r.told_closed,
         r.seen_modes, r.pending, r.partial, r.lives, r.nodes, r.clocks, r.progress, r.open,
         r.open_counts, r.names_version, r.units);
  RunShape shape;
  if constexpr (!A::kReading && !A::kLayout) {
    shape.workers = r.workers.size();
    shape.names = r.names.size();
    for (const Lane& lane : r.lanes) {
      shape.slots.push_back(static_cast<std::uint32_t>(lane.slots.size()));
    }
    for (const EvaluatorPart& part : r.evaluators) {
      if (part.evaluator) shape.evaluators.push_back(part.identity);
    }
  }
  io(a, shape);
  if constexpr (A::kReading) r.shape = std::move(shape);
}

/// What the step clock needs to know of a worker.
inline StepClock::Standing standing_of(const Worker& worker) {
  StepClock::Standing out;
  out.present = !worker.agent;
  out.gone = worker.gone;
  out.counted = !worker.agent && !worker.gone && !worker.idle;
  out.active = worker.active;
  out.pass = worker.pass;
  out.mark = worker.mark;
  out.seen = worker.seen;
  return out;
}

/// Rebuilds what is not in snapshots.
inline void index_run(Run& r) {
  r.signs.rebuild(r.open);
  for (std::uint32_t i = 0; i < r.workers.size(); ++i) {
    r.worker_index[{r.workers[i].name_hash, r.workers[i].rank}] = i;
    r.clock.update(i, standing_of(r.workers[i]));
  }
  std::array<std::uint32_t, kModes * 2> none;
  none.fill(kNoLane);
  r.lane_index.assign(r.workers.size(), none);
  for (std::uint32_t i = 0; i < r.lanes.size(); ++i) {
    Lane& lane = r.lanes[i];
    for (std::uint32_t k = 0; k < lane.slots.size(); ++k) lane.index.insert(lane.slots[k].name, k);
    if (lane.worker < r.lane_index.size()) {
      r.lane_index[lane.worker][at(lane.mode) * 2 + (lane.scalars ? 1 : 0)] = i;
    }
  }
}

}  // namespace tocsin::rules
