#include "rules/engine/partition/cut.h"

#include <algorithm>

namespace tocsin::rules {
namespace {

/// What a part's bytes depend on besides its own state.
struct CutPlace {
  std::int32_t partition = 0;
  std::uint32_t slots = 0;  // units per part
};

template <typename F>
void for_each_part(Run& run, F&& each) {
  each(run.head_mark, PartId{PartKind::head, 0, 0});
  const auto ranges = [&](std::vector<PartMark>& marks, PartKind kind, std::uint32_t roster) {
    for (std::uint32_t i = 0; i < marks.size(); ++i) each(marks[i], PartId{kind, roster, i});
  };
  ranges(run.workers.marks, PartKind::workers, 0);
  ranges(run.names.marks, PartKind::names, 0);
  ranges(run.rosters.marks, PartKind::rosters, 0);
  for (std::uint32_t roster = 0; roster < run.rosters.size(); ++roster) {
    ranges(run.rosters[roster].marks, PartKind::slots, roster);
  }
  for (EvaluatorPart& part : run.evaluators) {
    if (part.evaluator) each(part.mark, evaluator_part(part.identity));
  }
}

template <typename F>
void for_each_part(Family& family, F&& each) {
  each(family.head_mark, PartId{PartKind::head, 0, 0});
  for (EvaluatorPart& part : family.evaluators) {
    if (part.evaluator) each(part.mark, evaluator_part(part.identity));
  }
}

void pack_evaluator(EvaluatorParts& parts, const PartId& part, Writer& writer) {
  for (EvaluatorPart& one : parts) {
    const PartId here = evaluator_part(one.identity);
    if (!one.evaluator || here.roster != part.roster || here.range != part.range) continue;
    std::uint64_t layout = one.evaluator->layout();
    io(writer, layout);
    one.evaluator->save(writer);
  }
}

std::string key_of(const Run& run, const PartId& part) {
  return part_key(run.id, part.kind == PartKind::names ? run.names.life : run.life, part);
}

std::string key_of(const Family& family, const PartId& part) {
  return part_key(family.id(), family.life, part);
}

template <typename T, typename F>
void each_of(std::vector<T>& items, std::uint32_t range, std::uint32_t size, F&& write) {
  const std::size_t from = std::size_t{range} * size;
  const std::size_t to = std::min(items.size(), from + size);
  for (std::size_t i = from; i < to; ++i) write(items[i]);
}

std::string pack_part(Run& run, const PartId& part, const CutPlace& place) {
  std::string out;
  Writer writer(out);
  switch (part.kind) {
    case PartKind::head:
      io(writer, run);
      break;
    case PartKind::workers:
      each_of(run.workers.list(), part.range, Cut::kWorkers, [&](Worker& one) { io(writer, one); });
      break;
    case PartKind::names:
      each_of(run.names.table.entries(), part.range, Cut::kNames,
              [&](NameTable::Entry& one) { io(writer, one); });
      break;
    case PartKind::rosters:
      each_of(run.rosters.list(), part.range, Cut::kRosters,
              [&](Roster& one) { io_roster_head(writer, one); });
      break;
    case PartKind::slots: {
      const std::size_t from = std::size_t{part.range} * place.slots;
      io_roster_slots(writer, run.rosters[part.roster], from, from + place.slots);
      break;
    }
    case PartKind::evaluator:
      pack_evaluator(run.evaluators, part, writer);
      break;
  }
  return out;
}

std::string pack_part(Family& family, const PartId& part, const CutPlace& place) {
  std::string out;
  Writer writer(out);
  if (part.kind == PartKind::head) {
    io_head(writer, family, place.partition);
  } else {
    pack_evaluator(family.evaluators, part, writer);
  }
  return out;
}

}  // namespace

void Cut::before_change(Run& run, PartMark& mark, const PartId& part) {
  if (writing() && due(mark)) save_part(run, mark, part);
  mark.changed = epoch_;
  changed_ = true;
}

void Cut::before_change(Family& family, PartMark& mark, const PartId& part) {
  if (writing() && due(mark)) save_part(family, mark, part);
  mark.changed = epoch_;
  changed_ = true;
}

void Cut::touch_all(Run& run) {
  touch_head(run);
  for (std::uint32_t i = 0; i < run.workers.size(); i += kWorkers) touch_worker(run, i);
  for (std::uint32_t i = 0; i < run.names.table.size(); i += kNames) touch_name(run, i);
  for (std::uint32_t i = 0; i < run.rosters.size(); ++i) {
    touch_roster(run, i);
    touch_slots(run, i);
  }
  for (std::uint32_t i = 0; i < run.evaluators.size(); ++i) {
    if (run.evaluators[i].evaluator) touch_evaluator(run, i);
  }
}

void Cut::touch_all(Family& family) {
  touch_head(family);
  for (std::uint32_t i = 0; i < family.evaluators.size(); ++i) {
    if (family.evaluators[i].evaluator) touch_evaluator(family, i);
  }
}

void Cut::stage(std::string key, std::string value) {
  // A key that is written again must not be taken away after that.
  unused_.erase(key);
  replaced_.erase(key);
  outdated_.erase(key);
  staged_bytes_ += key.size() + value.size();
  staged_.push_back({partition_, std::move(key), std::move(value)});
}

// The evaluator of a rule that was taken out and comes back is a new part under the key of its old one,
// whose records the last cut needs until this one is whole.
std::uint8_t Cut::next_slot(const std::string& key, const PartMark& mark) const {
  if (mark.saved != 0) return static_cast<std::uint8_t>(mark.slot ^ 1U);
  return replaced_.contains(chunk_key(key, 0, 0)) ? 1 : 0;
}

template <typename RunOrFamily>
void Cut::save_part(RunOrFamily& owner, PartMark& mark, const PartId& part) {
  save(key_of(owner, part), pack_part(owner, part, {partition_, slots_per_part()}), mark);
}

void Cut::save(const std::string& key, const std::string& bytes, PartMark& mark) {
  const std::uint8_t slot = next_slot(key, mark);
  for (std::uint32_t chunk = 0; mark.saved != 0 && chunk < mark.chunks; ++chunk) {
    replaced_.insert(chunk_key(key, mark.slot, chunk));
  }
  const auto chunks = static_cast<std::uint32_t>(
      std::max<std::size_t>(1, (bytes.size() + kChunkBytes - 1) / kChunkBytes));
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::string_view piece =
        std::string_view(bytes).substr(std::size_t{chunk} * kChunkBytes, kChunkBytes);
    stage(chunk_key(key, slot, chunk), seal(piece, epoch_ - 1, chunk, chunks));
  }
  mark.saved = epoch_ - 1;
  mark.slot = slot;
  mark.chunks = chunks;
}

void Cut::outdated(std::string_view part, const PartMark& mark) {
  for (std::uint32_t chunk = 0; chunk < mark.chunks; ++chunk) {
    outdated_.insert(chunk_key(part, mark.slot, chunk));
  }
}

template <typename RunOrFamily>
void Cut::discard(RunOrFamily& owner) {
  for_each_part(owner, [&](PartMark& mark, const PartId& part) {
    if (mark.saved != 0) outdated(key_of(owner, part), mark);
  });
  changed_ = true;
}

void Cut::retire(std::unique_ptr<Run> gone) {
  changed_ = true;
  if (writing()) {
    gone_.push_back(std::move(gone));
  } else {
    discard(*gone);
  }
}

void Cut::retire(Family gone) {
  changed_ = true;
  if (writing()) {
    gone_families_.push_back(std::move(gone));
  } else {
    discard(gone);
  }
}

void Cut::begin(Index index, std::uint64_t old_log_first) {
  for (std::uint64_t n = old_log_first; n < index.log_first; ++n) outdated_.insert(log_key(n));
  index_ = std::move(index);
  replaced_ = std::exchange(outdated_, {});
  cursor_ = {};
  family_cursor_ = {};
  changed_ = false;
  ++epoch_;
}

StateRecord Cut::begin_empty(Index index) {
  std::string bytes;
  Writer writer(bytes);
  io(writer, index);
  return {partition_, chunk_key(kIndexKey, 0, 0), seal(bytes, epoch_++)};
}

template <typename RunOrFamily>
bool Cut::save_due(RunOrFamily& owner, std::size_t budget) {
  bool all = true;
  for_each_part(owner, [&](PartMark& mark, const PartId& part) {
    if (!due(mark)) return;
    if (staged_bytes_ >= budget) {
      all = false;
    } else {
      save_part(owner, mark, part);
    }
  });
  return all;
}

namespace {

Run& owner_of(const std::unique_ptr<Run>& run) { return *run; }
Family& owner_of(Family& family) { return family; }

}  // namespace

// True: nothing is left of them.
template <typename Gone>
bool Cut::save_gone(std::vector<Gone>& gone, std::size_t budget) {
  for (; !gone.empty(); gone.pop_back()) {
    auto& owner = owner_of(gone.back());
    if (!save_due(owner, budget)) return false;
    discard(owner);
  }
  return true;
}

bool Cut::save_all(Runs& runs, FamilyTable& families, std::size_t budget) {
  if (!save_gone(gone_, budget) || !save_gone(gone_families_, budget)) return false;
  for (auto run = runs.lower_bound(cursor_); run != runs.end(); ++run) {
    cursor_ = run->first;
    if (!save_due(*run->second, budget)) return false;
  }
  for (auto family = families.from(family_cursor_); family != families.end(); ++family) {
    family_cursor_ = family->first;
    if (!save_due(family->second, budget)) return false;
  }
  return true;
}

bool Cut::clean(std::set<std::string>& keys, std::size_t budget, std::size_t& spent, Emit emit) {
  while (!keys.empty() && spent < budget) {
    auto key = keys.extract(keys.begin());
    spent += key.value().size() + 16;
    emit({partition_, std::move(key.value()), std::nullopt});
  }
  return keys.empty();
}

void Cut::stage_index() {
  std::string bytes;
  Writer writer(bytes);
  io(writer, *index_);
  const auto chunks = static_cast<std::uint32_t>((bytes.size() + kChunkBytes - 1) / kChunkBytes);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::string_view piece =
        std::string_view(bytes).substr(std::size_t{chunk} * kChunkBytes, kChunkBytes);
    stage(chunk_key(kIndexKey, 0, chunk), seal(piece, epoch_ - 1, chunk, chunks));
  }
  index_.reset();
}

bool Cut::write(Runs& runs, FamilyTable& families, std::size_t budget, Emit emit,
                EngineStats& stats) {
  std::size_t spent = 0;
  if (!clean(unused_, budget, spent, emit)) return true;
  if (writing()) {
    if (save_all(runs, families, budget)) {
      stage_index();
      ++stats.snapshots;
    }
  }
  // The records of the index stay together: half of it would make nothing valid.
  while (!staged_.empty() && (spent < budget || staged_.front().key.starts_with(kIndexKey))) {
    const std::size_t size = staged_.front().key.size() + staged_.front().value->size();
    spent += size;
    staged_bytes_ -= size;
    emit(std::move(staged_.front()));
    staged_.pop_front();
  }
  stats.snapshot_bytes += spent;
  if (writing() || !staged_.empty()) return true;
  return !clean(replaced_, budget, spent, emit);
}

void Cut::rename(Run& run) {
  discard(run);
  run.life = run.names.life = fresh_life();
  run.head_mark = {};
  run.workers.marks.clear();
  run.names.marks.clear();
  run.rosters.marks.clear();
  for (Roster& roster : run.rosters) roster.marks.clear();
  for (EvaluatorPart& part : run.evaluators) part.mark = {};
}

void Cut::restored(Run& run, const PartId& part, const PartMark& mark) {
  switch (part.kind) {
    case PartKind::head:
      run.head_mark = mark;
      break;
    case PartKind::workers:
      at_range(run.workers.marks, part.range) = mark;
      break;
    case PartKind::names:
      at_range(run.names.marks, part.range) = mark;
      break;
    case PartKind::rosters:
      at_range(run.rosters.marks, part.range) = mark;
      break;
    case PartKind::slots:
      at_range(run.rosters[part.roster].marks, part.range) = mark;
      break;
    case PartKind::evaluator:
      for (EvaluatorPart& one : run.evaluators) {
        const PartId here = evaluator_part(one.identity);
        if (one.evaluator && here.roster == part.roster && here.range == part.range)
          one.mark = mark;
      }
      break;
  }
}

}  // namespace tocsin::rules
