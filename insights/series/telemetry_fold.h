// Frames of telemetry into the store of series.
#pragma once

#include "core/frame.h"
#include "core/frame_body.h"
#include "insights/series/series_writer.h"

namespace tocsin::insights {

/// Scalars, step clocks and tensors, with their histograms, of one frame, each sequence number once; other kinds are passed over.
/// Inside a commit of the store's.
void fold_frame(const core::FrameView& frame, const core::FrameBody& body, SeriesWriter& into);

}  // namespace tocsin::insights
