#include "routing/suppress/acknowledgement.h"

#include "core/fields/json_in.h"
#include "core/fields/out.h"

namespace tocsin::routing {

using core::How;
using core::Of;
using core::Status;

namespace {

constexpr std::size_t kMaxAck = std::size_t{128} << 10;
constexpr std::size_t kMaxAckText = 2000;  // bytes of a name, a note

Status check_ack(const Acknowledgement& ack) {
  if (ack.issues.empty() && ack.group.empty() && ack.run.empty()) {
    return core::invalid_argument("an acknowledgement names an issue, a group or a run");
  }
  if (ack.issues.size() > kMaxAckIssues) {
    return core::invalid_argument("an acknowledgement names at most " +
                                  std::to_string(kMaxAckIssues) + " issues");
  }
  if (ack.by.empty()) return core::invalid_argument("an acknowledgement says by whom it is");
  if (ack.by.size() > kMaxAckText || ack.note.size() > kMaxAckText) {
    return core::invalid_argument("by and note have at most " + std::to_string(kMaxAckText) +
                                  " bytes each");
  }
  if (ack.until && *ack.until <= ack.at) {
    return core::invalid_argument("an acknowledgement that ends before it begins");
  }
  return core::ok();
}

}  // namespace

template <typename A>
void fields(A& io, Of<A, Acknowledgement>& ack) {
  io.field("id", ack.id, "its name in commands", How::required);
  io.field("issues", ack.issues, "keys of issues", How::omit_if_empty);
  io.field("group", ack.group, "hash of a group", How::omit_if_empty);
  io.field("run", ack.run, "uid of a run", How::omit_if_empty);
  io.field("by", ack.by, "who acknowledges", How::required);
  io.field("note", ack.note, "what they write");
  io.field("at", ack.at, "when", How::required);
  io.field("until", ack.until, "until when", How::omit_if_empty);
  io.field("origin", ack.origin, "cli, api, or the integration that it came from");
}

std::string ack_json(const Acknowledgement& ack) { return core::write_json(ack); }

core::Result<Acknowledgement> read_ack(std::string_view json) {
  Acknowledgement out;
  if (const Status read = core::read_json(json, kMaxAck, out); !read) return read.error();
  if (const Status good = check_ack(out); !good) return good.error();
  return out;
}

}  // namespace tocsin::routing
