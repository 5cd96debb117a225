// What is said of a run, its workers and its names.
#pragma once

#include <cstdint>
#include <string>

#include "core/frame.h"
#include "core/issue.h"
#include "rules/contract/selection.h"
#include "rules/engine/memory/run.h"

namespace tocsin::rules {

/// The name's text; its hash in hex where no dictionary has it.
std::string name_of(const Run& run, std::uint64_t hash);
core::RunRef run_ref(const Run& run);
/// The labels of an open issue's unit as one text: the same whatever numbers it has.
std::string unit_text(const Open& open);
bool wants_worker(const Common& common, const Worker& worker);
/// Whether the rule would see the tensors of one shard only where it needs several: it gets none.
bool withholds_tensors(const Run& run, const Program& program);
/// Whether it goes by what others find, of which each shard knows its own part: it judges none of it.
bool withholds_run(const Run& run, const Program& program);
/// What matchers may ask of a worker, and of a unit of a roster.
Candidate candidate_of(const Run& run, std::uint32_t number);
Candidate candidate_of(const Run& run, const Roster& roster, std::size_t number);

/// Frames by which a training shows that it goes on.
inline bool is_progress(core::FrameKind kind) {
  return kind == core::FrameKind::summary || kind == core::FrameKind::scalar ||
         kind == core::FrameKind::step_end;
}

}  // namespace tocsin::rules
