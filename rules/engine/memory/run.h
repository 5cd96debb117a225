// What the engine remembers about one run (one shard of it): the states of its parts, and how they
// stand in snapshots. Their order there is part of the format (state_record.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/json.h"
#include "rules/contract/archive.h"
#include "rules/engine/memory/evaluator_part.h"
#include "rules/engine/memory/issue_state.h"
#include "rules/engine/memory/job.h"
#include "rules/engine/memory/launches.h"
#include "rules/engine/memory/names.h"
#include "rules/engine/memory/rosters.h"
#include "rules/engine/memory/step_state.h"
#include "rules/engine/memory/workers.h"
#include "rules/evaluate/snapshot.h"

namespace tocsin::rules {

struct RunId {
  core::RunUid uid;
  std::uint16_t shard = 0;
  friend auto operator<=>(const RunId&, const RunId&) = default;
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

/// How many parts the head of a run stands with.
struct RunShape {
  std::uint64_t workers = 0;
  std::uint64_t names = 0;
  std::vector<std::uint32_t> slots;       // per roster
  std::vector<std::uint64_t> evaluators;  // their identities

  template <typename A>
  friend void io(A& a, RunShape& s) {
    io_all(a, s.workers, s.names, s.slots, s.evaluators);
  }
};

/// Its dictionaries.
struct RunNames {
  NameTable table;
  std::uint64_t version = 0;    // grows with every name
  std::uint32_t life = 1;       // they outlive attempts, so they have one of their own
  std::vector<PartMark> marks;  // per range
};

/// One shard of one run.
struct Run {
  RunId id;
  std::uint32_t life = 1;  // grows when its parts begin anew: their keys never mean two things
  std::int32_t partition = 0;
  std::uint32_t attempt = 0;
  std::uint32_t world_size = 0;
  Launches launches;
  Job job;
  Pulse pulse;
  Course course;
  StepState steps;
  IssueState issues;
  std::map<std::uint64_t, NodeState> nodes;  // by worker name
  // Parts of their own in snapshots, not of the head:
  Workers workers;
  Rosters rosters;
  RunNames names;
  EvaluatorParts evaluators;  // per evaluated rule; may be shorter
  // Not in snapshots:
  PartMark head_mark;
  RunShape shape;  // while being restored
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
  io_all(a, n.text, n.collections, n.shape, n.dtype, n.role, n.direction, n.op_type, n.axis);
}
template <typename A>
void io(A& a, NameTable::Entry& e) {
  io_all(a, e.hash, e.name, e.lasting);
}

/// The head: everything but workers, names, rosters and evaluators, which are parts of their own; of these
/// it has `shape`.
template <typename A>
void io_head(A& a, Run& r, RunShape& shape) {
  io_all(a, r.id, r.life, r.names.life, r.partition, r.attempt, r.world_size);
  Job& j = r.job;
  Pulse& p = r.pulse;
  Course& c = r.course;
  io_all(a, j.started, j.ended, j.lost, p.beats, c.grace_over, j.outcome, j.exit_code, j.name,
         j.platform, j.platform_ref, j.labels, j.captured, j.thinned, j.started_at, j.ended_at,
         c.first_train_arrival, c.first_seen, c.last_arrival, c.last_any, c.promise,
         p.last_heartbeat, p.told_step, p.changed, j.launch, p.step_times, p.steps_timed, p.ends);
  io_all(a, r.launches, c.last_step, c.last_global_step, c.last_time, c.last_mode, c.last_mode_step,
         p.heartbeats);
  io_all(a, r.steps.closed, r.steps.told_closed, c.seen_modes, c.shards, r.steps.pending,
         r.steps.passes, r.steps.partial);
  IssueState& i = r.issues;
  io_all(a, i.lives, r.nodes, i.clocks, i.progress, i.open, i.open_counts);
  io_all(a, r.names.version, r.rosters.units);
  io(a, shape);
}

inline RunShape shape_of(const Run& r) {
  RunShape shape;
  shape.workers = r.workers.size();
  shape.names = r.names.table.size();
  for (const Roster& roster : r.rosters) {
    shape.slots.push_back(static_cast<std::uint32_t>(roster.slots.size()));
  }
  shape.evaluators = identities_of(r.evaluators);
  return shape;
}

template <typename A>
void io(A& a, Run& r) {
  RunShape shape;
  if constexpr (!A::kReading && !A::kLayout) shape = shape_of(r);
  io_head(a, r, shape);
  if constexpr (A::kReading) r.shape = std::move(shape);
}

/// Rebuilds what is not in snapshots.
inline void index_run(Run& r) {
  r.issues.signs.rebuild(r.issues.open);
  r.workers.index();
  r.rosters.index(r.workers.size());
}

}  // namespace tocsin::rules
