// What a session has counted, for stats() and the last words of a run.
#pragma once

#include "collectors/hook/capture/capture_control.h"
#include "collectors/hook/capture/step_counter.h"
#include "collectors/hook/identity/identity.h"
#include "collectors/hook/publish/frame_batcher.h"
#include "collectors/hook/publish/name_table.h"
#include "collectors/hook/publish/tensor_rows.h"
#include "core/value.h"

namespace tocsin::hook {

/// Keys in the order in which stats() prints them.
core::ValueMap session_counters(const Identity& identity, const StepCounter& counter,
                                const CaptureControl& capture, const NameTable& names,
                                const FrameBatcher& frames, const TensorRows& rows);

}  // namespace tocsin::hook
