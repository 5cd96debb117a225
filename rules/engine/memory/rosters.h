// The units of a run that are judged row by row: tensors and scalars of one worker in one mode, side
// by side, with what each rule remembers of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rules/contract/archive.h"
#include "rules/contract/rule.h"
#include "rules/engine/memory/flat_index.h"
#include "rules/engine/memory/moments.h"
#include "rules/engine/memory/open_issue.h"
#include "rules/engine/memory/part_mark.h"
#include "rules/engine/memory/picks.h"

namespace tocsin::rules {

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

/// One rule's memory of the units of one roster.
struct Block {
  std::vector<std::byte> states;
  std::vector<Life> lives;
  std::vector<Match> applies;
  std::uint32_t state_size = 0;  // bytes of each in `states`
  StepTally tally;
  std::vector<RowHit> waiting;  // verdicts that wait for the end of the step
  Picks picks;                  // not in snapshots: those that apply
};

/// The units of one (worker, mode): dense, in the order in which they first came.
struct Roster {
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
  std::vector<Picks> picks;                // per such evaluator
  std::vector<std::uint64_t> shapes;       // per slot: shape_hash() of what names it
  std::uint64_t shapes_version = 0;
  std::size_t chosen_slots = 0;
  std::uint64_t chosen_version = 0;
  bool chosen_unsure = false;
};

/// What a roster has once.
template <typename A>
void io_roster_head(A& a, Roster& l) {
  io_all(a, l.worker, l.mode, l.scalars, l.losses, l.unresolved, l.names_version);
  const std::size_t blocks = io_size(a, l.blocks.size(), 1);
  if constexpr (A::kReading) l.blocks.resize(blocks);
  for (Block& block : l.blocks) io_all(a, block.state_size, block.tally, block.waiting);
}

/// What a roster has per slot, for the slots from…to. Reading appends; the head was read before.
template <typename A>
void io_roster_slots(A& a, Roster& l, std::size_t from, std::size_t to) {
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

class Rosters {
 public:
  /// kNoRoster: there is none yet.
  [[nodiscard]] std::uint32_t find(std::uint32_t worker, core::Mode mode, bool scalars) const;
  Roster& add(std::uint32_t worker, core::Mode mode, bool scalars, std::size_t rules);
  /// What is not in snapshots is found again.
  void index(std::size_t workers);

  [[nodiscard]] Roster& operator[](std::size_t number) noexcept { return list_[number]; }
  [[nodiscard]] const Roster& operator[](std::size_t number) const noexcept {
    return list_[number];
  }
  [[nodiscard]] std::uint32_t number_of(const Roster& roster) const noexcept {
    return static_cast<std::uint32_t>(&roster - list_.data());
  }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size(); }
  [[nodiscard]] auto begin() noexcept { return list_.begin(); }
  [[nodiscard]] auto end() noexcept { return list_.end(); }
  [[nodiscard]] auto begin() const noexcept { return list_.begin(); }
  [[nodiscard]] auto end() const noexcept { return list_.end(); }
  [[nodiscard]] std::vector<Roster>& list() noexcept { return list_; }

  std::uint64_t units = 0;      // slots of all rosters that the run ever had
  std::vector<PartMark> marks;  // per range

 private:
  using Numbers = std::array<std::uint32_t, kModes * 2>;
  Numbers& numbers(std::uint32_t worker);

  std::vector<Roster> list_;
  std::vector<Numbers> index_;  // per worker
};

}  // namespace tocsin::rules
