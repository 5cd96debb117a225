#include "rules/engine/state/restore.h"

#include <algorithm>
#include <charconv>

#include "rules/engine/state/remap.h"
#include "rules/engine/state/stored_rules.h"

namespace tocsin::rules {
namespace {

/// The newest complete set of records of each part, not newer than the index.
class Parts {
 public:
  Parts(std::map<std::string, std::string>& records, std::uint64_t newest)
      : records_(records), newest_(newest) {}

  /// The part's bytes and where they stand. data_loss: not there, or damaged.
  core::Result<std::string> read(const std::string& part, PartMark& mark) {
    std::optional<core::Error> problem;
    std::uint8_t chosen = 0;
    std::optional<RecordHead> best;
    for (const std::uint8_t slot : {std::uint8_t{0}, std::uint8_t{1}}) {
      const auto first = records_.find(chunk_key(part, slot, 0));
      if (first == records_.end()) continue;
      std::string_view bytes = first->second;
      const auto head = unseal(bytes);
      if (!head) {
        problem = head.error();
      } else if (head->generation <= newest_ && (!best || head->generation > best->generation)) {
        best = *head;
        chosen = slot;
      }
    }
    if (problem) return problem->in(part);
    if (!best) return damaged(part + ": not there");
    std::string out;
    for (std::uint32_t chunk = 0; chunk < best->chunks; ++chunk) {
      const std::string key = chunk_key(part, chosen, chunk);
      const auto record = records_.find(key);
      if (record == records_.end()) return damaged(key + ": not there");
      std::string_view bytes = record->second;
      const auto head = unseal(bytes);
      if (!head) return head.error().in(key);
      if (head->generation != best->generation || head->chunk != chunk ||
          head->chunks != best->chunks) {
        return damaged(key + ": belongs to another snapshot");
      }
      out += bytes;
      records_.erase(record);
    }
    mark = {best->generation, best->generation, best->chunks, chosen};
    return out;
  }

 private:
  std::map<std::string, std::string>& records_;
  std::uint64_t newest_;
};

// In the records a family stands as a run (engine/memory/family.h).
bool is_family(const RuleTable& rules, const Run& run) {
  return run.workers.empty() &&
         std::any_of(rules.families.begin(), rules.families.end(),
                     [&](std::uint32_t number) { return has_evaluator(run.evaluators, number); });
}

template <typename F>
core::Status load(const std::string& bytes, std::string_view what, F&& read) {
  Loader loader(bytes);
  read(loader);
  if (loader.ok() && loader.left() == 0) return core::ok();
  return damaged(std::string(what) + " of a run does not fit its layout");
}

core::Status read_ranges(Parts& parts, Cut& cut, Run& run, PartId part, std::uint64_t size,
                         std::uint32_t per_part,
                         core::FunctionRef<void(Loader&, std::size_t, std::size_t)> read) {
  for (std::uint64_t from = 0; from < size; from += per_part) {
    part.range = static_cast<std::uint32_t>(from / per_part);
    const std::uint32_t life = part.kind == PartKind::names ? run.names.life : run.life;
    const std::string key = part_key(run.id, life, part);
    PartMark mark;
    const auto bytes = parts.read(key, mark);
    if (!bytes) return bytes.error();
    const std::size_t to = std::min<std::uint64_t>(size, from + per_part);
    const auto status = load(
        *bytes, key, [&](Loader& loader) { read(loader, static_cast<std::size_t>(from), to); });
    if (!status) return status;
    cut.restored(run, part, mark);
  }
  return core::ok();
}

/// Makes the evaluator of this identity in the run; nullptr: no rule has it any more.
using Revive = core::FunctionRef<Evaluator*(Run&, std::uint64_t identity)>;

core::Status read_evaluators(Parts& parts, Cut& cut, Run& run,
                             const std::vector<std::uint64_t>& identities, Revive revive) {
  for (const std::uint64_t identity : identities) {
    Evaluator* const evaluator = revive(run, identity);
    const PartId part = evaluator_part(identity);
    const std::string key = part_key(run.id, run.life, part);
    PartMark mark;
    const auto bytes = parts.read(key, mark);
    if (evaluator == nullptr) {
      // The head names it until the next cut; a start before that may be one with its rule again.
      if (bytes) cut.outdated(key, mark);
      cut.touch_head(run);
      continue;
    }
    if (!bytes) return bytes.error();
    bool fits = true;
    const auto status = load(*bytes, key, [&](Loader& in) {
      std::uint64_t layout = 0;
      io(in, layout);
      fits = layout == evaluator->layout();
      if (fits) {
        evaluator->load(in);
      } else {
        in.fail();
      }
    });
    if (!fits) return damaged(key + ": a rule's state has another layout than this program's");
    if (!status) return status;
    cut.restored(run, part, mark);
  }
  return core::ok();
}

core::Status read_names(Parts& parts, Cut& cut, Run& run, const RunShape& shape) {
  auto status =
      read_ranges(parts, cut, run, {PartKind::names, 0, 0}, shape.names, Cut::kNames,
                  [&](Loader& in, std::size_t from, std::size_t to) {
                    for (; from < to && in.ok(); ++from) {
                      NameTable::Entry entry;
                      io(in, entry);
                      if (!in.ok()) continue;
                      run.names.table.set(entry.hash, std::move(entry.name), entry.lasting);
                    }
                  });
  if (!status) return status;
  if (run.names.table.size() != shape.names) return damaged("names of a run are not distinct");
  return core::ok();
}

core::Status read_rosters(Parts& parts, Cut& cut, Run& run, const RunShape& shape,
                          std::uint32_t slots) {
  auto status = read_ranges(parts, cut, run, {PartKind::rosters, 0, 0}, shape.slots.size(),
                            Cut::kRosters, [&](Loader& in, std::size_t from, std::size_t to) {
                              for (; from < to && in.ok(); ++from) {
                                io_roster_head(in, run.rosters.list().emplace_back());
                              }
                            });
  if (!status) return status;
  for (std::uint32_t i = 0; i < run.rosters.size(); ++i) {
    status = read_ranges(parts, cut, run, {PartKind::slots, i, 0}, shape.slots[i], slots,
                         [&](Loader& in, std::size_t from, std::size_t to) {
                           io_roster_slots(in, run.rosters[i], from, to);
                         });
    if (!status) return status;
    if (run.rosters[i].slots.size() != shape.slots[i] ||
        run.rosters[i].types.size() != shape.slots[i]) {
      return damaged("a roster of a run is shorter than its head says");
    }
  }
  return core::ok();
}

core::Result<std::unique_ptr<Run>> read_run(Parts& parts, Cut& cut, const RunId& id,
                                            std::uint32_t life, std::uint32_t slots,
                                            Revive revive) {
  auto run = std::make_unique<Run>();
  PartMark mark;
  const auto head = parts.read(part_key(id, life, {PartKind::head, 0, 0}), mark);
  if (!head) return head.error();
  if (auto status = load(*head, "the head", [&](Loader& in) { io(in, *run); }); !status) {
    return status.error();
  }
  if (run->id != id || run->life != life) return damaged("the head of a run names another run");
  run->head_mark = mark;
  const RunShape shape = std::exchange(run->shape, {});
  core::Status status =
      read_ranges(parts, cut, *run, {PartKind::workers, 0, 0}, shape.workers, Cut::kWorkers,
                  [&](Loader& in, std::size_t from, std::size_t to) {
                    for (; from < to && in.ok(); ++from) io(in, run->workers.list().emplace_back());
                  });
  if (!status) return status.error();
  status = read_names(parts, cut, *run, shape);
  if (!status) return status.error();
  status = read_rosters(parts, cut, *run, shape, slots);
  if (!status) return status.error();
  status = read_evaluators(parts, cut, *run, shape.evaluators, revive);
  if (!status) return status.error();
  index_run(*run);
  return run;
}

/// Of a run's part: what stands behind its shard (part_key); 0: it is none.
std::uint32_t life_of(std::string_view key) {
  if (!key.starts_with("run/")) return 0;
  std::size_t from = 0;
  for (int slash = 0; slash < 3; ++slash) {
    from = key.find('/', from);
    if (from == std::string_view::npos) return 0;
    ++from;
  }
  std::uint32_t life = 0;
  std::from_chars(key.data() + from, key.data() + key.size(), life);
  return life;
}

std::uint64_t newest_generation(const std::map<std::string, std::string>& records) {
  std::uint64_t newest = 0;
  for (const auto& [key, value] : records) {
    std::string_view bytes = value;
    if (const auto head = unseal(bytes)) newest = std::max(newest, head->generation);
  }
  return newest;
}

core::Result<Index> read_index(Parts& parts, const std::map<std::string, std::string>& records,
                               PartMark& mark) {
  // One of an earlier program has another key: it is told by its version, not taken for nothing.
  if (const auto old = records.find(std::string(kIndexKey)); old != records.end()) {
    std::string_view bytes = old->second;
    const auto head = unseal(bytes);
    return head ? damaged("the index has an unknown key") : head.error();
  }
  const auto bytes = parts.read(std::string(kIndexKey), mark);
  if (!bytes) return bytes.error();
  Index index;
  if (auto status = load(*bytes, "the index", [&](Loader& in) { io(in, index); }); !status) {
    return status.error();
  }
  return index;
}

// The rules that judged last: those of the newest reload that is logged, or of the snapshot.
std::string rules_of(const PartitionState& state, const Index& index) {
  for (auto entry = state.replay.rbegin(); entry != state.replay.rend(); ++entry) {
    if (entry->what == Entry::What::reload) return layout_of(entry->rules);
  }
  return layout_of(index.rules);
}

}  // namespace

core::Status Restore::read_log(PartitionState& state, const Index& index,
                               std::map<std::string, std::string>& records) {
  state.log_first = state.log_next = index.log_first;
  for (auto it = records.begin(); it != records.end();) {
    const std::string& key = it->first;
    if (!key.starts_with("log/") || key < log_key(index.log_first)) {
      ++it;
      continue;
    }
    std::string_view bytes = it->second;
    if (const auto head = unseal(bytes); !head) return head.error().in(key);
    Entry entry;
    if (auto status = load(std::string(bytes), key, [&](Loader& in) { io(in, entry); }); !status) {
      return status;
    }
    std::uint64_t number = 0;
    std::from_chars(key.data() + 4, key.data() + key.size(), number);
    if (number != state.log_next) return damaged(key + ": the entry before it is not there");
    ++state.log_next;
    state.replay.push_back(std::move(entry));
    it = records.erase(it);
  }
  return core::ok();
}

core::Status Restore::read_state(const Turn& turn, Index& index,
                                 std::map<std::string, std::string>& records) {
  PartitionState& state = turn.part;
  state.cut.resume_after(newest_generation(records));
  for (const auto& [key, value] : records) state.cut.known_life(life_of(key));
  PartMark mark;
  {
    Parts head(records, ~std::uint64_t{0});
    auto read = read_index(head, records, mark);
    if (!read) return read.error();
    index = std::move(*read);
  }
  Parts parts(records, mark.saved);
  if (auto status = read_log(state, index, records); !status) return status;
  // What was judged until now was judged by these; others begin where they were loaded.
  state.rules = stored_table(index.rules, configured_.table);
  const std::string layout = layout_of(index.rules);
  const Remap moves(layout, *state.rules);
  const bool same_rules = layout == state.rules->layout();
  const bool same_slots = index.slots == state.cut.slots_per_part();
  const std::string newest = rules_of(state, index);
  const auto revive = [&](Run& run, std::uint64_t identity) -> Evaluator* {
    const auto number = turn.rules().evaluated_as(identity);
    if (!number) return nullptr;
    run.evaluators.resize(turn.rules().evaluated.size());
    EvaluatorPart& part = run.evaluators[*number];
    part.evaluator = turn.rules().evaluated[*number].program->evaluator();
    part.identity = identity;
    return part.evaluator.get();
  };
  for (const auto& [id, life] : index.runs) {
    auto run = read_run(parts, state.cut, id, life, index.slots, revive);
    if (!run) return run.error().in("run " + core::to_text(id.uid));
    if (!same_slots) state.cut.rename(**run);
    if (!same_rules) end_issues(turn, **run, moves, newest);
    if (!same_rules) moves.apply(**run);
    if (!same_rules || !same_slots) state.cut.touch_all(**run);
    if (is_family(turn.rules(), **run)) {
      state.families.add(family_of(**run));
    } else {
      state.runs.emplace(id, std::move(*run));
    }
  }
  for (auto& [stream, next] : index.next) state.next[stream] = next;
  state.refused.insert(index.refused.begin(), index.refused.end());
  // Of snapshots that were never finished, and entries that are part of this one.
  for (auto& [key, value] : records) state.cut.unused(key);
  return core::ok();
}

// Of rules that were removed or changed while nobody judged: told when the partition goes live, with
// the names and parameters of the rules as they were. Where a reload removed them, it has told it.
void Restore::end_issues(const Turn& turn, const Run& run, const Remap& moves,
                         const std::string& newest) const {
  for (const auto& [key, open] : run.issues.open) {
    const auto gone = moves.gone(key.rule);
    if (!gone || !RuleTable::names(newest, moves.line(key.rule))) continue;
    const std::uint64_t last =
        key.rule < run.issues.progress.size() ? run.issues.progress[key.rule].issue_sequence : 0;
    turn.part.farewell.emplace_back(book_.end_of_gone(turn, run, *gone, open, last + 1));
  }
}

core::Result<Restored> Restore::finish(std::int32_t partition, const Moment& moment,
                                       std::span<const core::Position> committed) {
  std::map<std::string, std::string> records =
      std::exchange(partitions_.open(partition).restored, {});
  const auto fresh = [&]() -> PartitionState& {
    partitions_.drop(partition);
    PartitionState& state = partitions_.open(partition);
    state.silent = true;
    state.deadline.at_once();  // timers are found again
    return state;
  };
  PartitionState* state = &fresh();
  std::optional<core::Error> problem;
  if (!records.empty()) {
    std::vector<std::string> keys;
    keys.reserve(records.size());
    for (const auto& [key, value] : records) keys.push_back(key);
    const std::uint64_t newest = newest_generation(records);
    Index index;
    const core::Status read = read_state(moment.turn(*state), index, records);
    if (read) {
      Restored out;
      out.positions.emplace();
      for (const auto& [stream, next] : index.next) {
        out.positions->push_back({{stream, partition}, next});
      }
      return out;
    }
    problem = read.error().in("state of partition " + std::to_string(partition));
    state = &fresh();
    state->cut.resume_after(newest);
    for (std::string& key : keys) {
      if (!key.starts_with(kIndexKey)) state->cut.unused(std::move(key));
    }
    ++stats_.state_faults;
    state->incomplete = problem->message;
  }
  // From here on there is a state, the empty one at these positions: said with the first output, so
  // that a restart before the first snapshot does not take it for none.
  Index empty;
  for (const core::Position& position : committed) {
    if (position.where.partition != partition || position.next < 0) continue;
    empty.next[position.where.stream] = position.next;
    state->next[position.where.stream] = position.next;
  }
  empty.slots = state->cut.slots_per_part();
  empty.rules = stored_text(*state->rules);
  state->first_index = state->cut.begin_empty(std::move(empty));
  if (problem) return *problem;
  return Restored{};
}

}  // namespace tocsin::rules
