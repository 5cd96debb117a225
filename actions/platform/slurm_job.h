// A job of Slurm as it is read, by slurmrestd or by squeue, and whether it is the one that a run was
// in. Pure; internal to actions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tocsin::actions {

struct SlurmJobState {
  std::vector<std::string> words;  // "CANCELLED", "COMPLETING"

  [[nodiscard]] bool has(std::string_view word) const;
  /// Terminal, and its processes have ended.
  [[nodiscard]] bool over() const;
  /// For people; "in no state" if there is none.
  [[nodiscard]] std::string text() const;
};

/// The key `job_state`: a text, or a list of them.
SlurmJobState slurm_job_state(const core::Value& job);
/// Does a fence name a job of Slurm, and tell it from every other? `cluster`: the only one whose jobs
/// are meant; empty: of any.
bool slurm_reaches(const core::Value& fence, const std::string& cluster);
std::int64_t slurm_job_id(const core::Value& fence);
/// "Slurm job 77".
std::string slurm_job_name(std::int64_t id);
/// Ids wrap, and a job that was requeued keeps its own: why the job with `restart_cnt`, `start_time` and
/// `cluster` is another one than the fence's. Empty: it is not.
std::string slurm_difference(const core::Value& job, const core::Value& fence);

}  // namespace tocsin::actions
