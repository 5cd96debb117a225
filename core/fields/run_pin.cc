#include "core/fields/run_pin.h"

#include <utility>

#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "core/identity.h"
#include "core/topics.h"
#include "core/visible_text.h"

namespace tocsin::core {
namespace {

constexpr std::size_t kMostOfAPin = std::size_t{8} << 10;
constexpr std::size_t kMostOfAPinsName = 1000;  // bytes

OutRecord record_of_pin(std::string_view run, std::optional<std::string> value) {
  OutRecord out{topic::kRouterControl, pin_key(run), std::move(value)};
  out.partition = 0;
  return out;
}

}  // namespace

template <typename A>
void fields(A& io, Of<A, RunPin>& pin) {
  io.field("run", pin.run, "uid of the run", How::required);
  io.field("by", pin.by, "who wants it kept", How::required);
  io.field("at", pin.at, "when they said so", How::required);
  io.field("origin", pin.origin, "cli or api");
}

std::string pin_key(std::string_view run) { return std::string(kPinPrefix) + std::string(run); }

OutRecord pin_record(const RunPin& pin) { return record_of_pin(pin.run, pin_json(pin)); }

OutRecord pin_tombstone(std::string_view run) { return record_of_pin(run, std::nullopt); }

std::string pin_json(const RunPin& pin) { return write_json(pin); }

Result<RunPin> read_run_pin(std::string_view json) {
  RunPin out;
  if (const Status read = read_json(json, kMostOfAPin, out); !read) return read.error();
  const auto uid = parse_run_uid(out.run);
  if (!uid || to_text(*uid) != out.run)
    return invalid_argument("run is \"" + visible(out.run, 60) + "\": expected the uid of a run");
  if (out.by.size() > kMostOfAPinsName)
    return invalid_argument("by has " + std::to_string(out.by.size()) +
                            " bytes: expected at most " + std::to_string(kMostOfAPinsName));
  return out;
}

}  // namespace tocsin::core
