// From a frame's body to the structs that exist for it: lifecycle and dictionary are decoded here,
// once, and nowhere else.
#pragma once

#include "core/frame.h"
#include "core/frame_body.h"
#include "core/result.h"

namespace tocsin::ingest {

/// The body of a validated frame; monostate for kinds of columns and of opaque bytes. Texts of a
/// dictionary borrow from the frame; its attributes are bounded like all JSON from outside, and
/// what is wrong among them is left out and marked (`attrs_wrong`). Error: invalid_argument, a
/// lifecycle that is none.
core::Result<core::FrameBody> decode_body(const core::FrameView& frame);

}  // namespace tocsin::ingest
