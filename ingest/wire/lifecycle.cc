#include "ingest/wire/lifecycle.h"

#include "core/fields/json_in.h"
#include "core/fields/lifecycle.h"
#include "core/fields/out.h"
#include "core/frame.h"

namespace tocsin::ingest {

std::string encode_lifecycle(const core::Lifecycle& lifecycle) {
  return core::write_json(lifecycle);
}

core::Result<core::Lifecycle> parse_lifecycle(std::string_view json) {
  core::Lifecycle out;
  const core::Status read = core::read_json(json, core::kMaxFrameBytes, out);
  if (!read) return read.error().in("lifecycle");
  return out;
}

}  // namespace tocsin::ingest
