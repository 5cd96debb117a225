// Which error ended a job: the first one that a process told of, for what the others say then is mostly that one has gone.
#pragma once

#include <string>

#include "core/lifecycle.h"
#include "rules/contract/finding.h"
#include "rules/engine/memory/run.h"

namespace tocsin::rules {

/// Keeps what `worker` said, if it failed with an error and is the first that did.
void note_error(Run& run, const std::string& worker, const core::Lifecycle& body);

/// "digits failed with exit code 1: RuntimeError: CUDA out of memory (worker_3)." Up to 500 bytes of its text are the value `error`,
/// its further lines (2 KiB with the first) `console`.
Finding failure_of(const Run& run);

}  // namespace tocsin::rules
