#include "ingest/wire/frame_body.h"

#include <utility>

#include "core/fields/dictionary.h"
#include "core/fields/json_in.h"
#include "ingest/wire/frame_decoder.h"
#include "ingest/wire/lifecycle.h"

namespace tocsin::ingest {
namespace {

constexpr std::size_t kMaxAttrs = 64 * 1024;  // of one dictionary entry

core::NamedEntry named(const core::DictionaryEntry& entry) {
  core::NamedEntry out;
  out.hash = entry.hash;
  out.type = entry.type;
  out.dtype = entry.dtype;
  out.role = entry.role;
  out.dims_bytes = entry.dims_bytes;
  out.name = entry.name;
  if (!entry.attrs.empty()) {
    out.attrs_wrong = !core::read_json(entry.attrs, kMaxAttrs, out.attrs);
  }
  return out;
}

}  // namespace

core::Result<core::FrameBody> decode_body(const core::FrameView& frame) {
  if (frame.header().kind == core::FrameKind::lifecycle) {
    auto lifecycle = parse_lifecycle(frame.body_text());
    if (!lifecycle) return lifecycle.error();
    return core::FrameBody(std::move(*lifecycle));
  }
  if (frame.header().kind != core::FrameKind::dictionary) return core::FrameBody();
  core::Dictionary names;
  names.reserve(frame.rows());
  for_each_dictionary_entry(
      frame, [&](const core::DictionaryEntry& entry) { names.push_back(named(entry)); });
  return core::FrameBody(std::move(names));
}

}  // namespace tocsin::ingest
