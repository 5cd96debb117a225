#include "core/fields/stop_request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/fields/command.h"
#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "core/fields/run.h"
#include "core/topics.h"

namespace tocsin::core {
namespace {

constexpr std::size_t kMaxStopRequest = std::size_t{48} << 10;
constexpr std::array<std::string_view, 8> kStates{"waiting", "approved", "rejected",  "expired",
                                                  "ended",   "replaced", "recovered", "held_back"};

}  // namespace

template <typename A>
void fields(A& io, Of<A, StopRequest>& request) {
  io.field("id", request.id, "the command's id", How::required);
  io.field("run", request.run, "the run and attempt that are meant", How::required);
  io.field("labels", request.labels, "of the issue that asked");
  io.field("reason", request.reason, "why it is to be stopped");
  io.field("severity", request.severity, "of that issue", How::omit_if_empty);
  io.field("terms", request.terms, "how it is to be stopped");
  io.field("why", request.why, "why it waits");
  io.field("integration", request.integration, "who asked");
  io.field("asked_at", request.asked_at, "when");
  io.field("until", request.until, "then nobody's word decides");
  io.field("on_timeout", request.on_timeout, "cancel or proceed");
  io.list("also", request.also, "other issues of the attempt that asked for it",
          [](auto& in, auto& one) { fields(in, one); });
  io.field("quorum", request.quorum, "the rules that it waits for; null: it waits for a person",
           How::omit_if_empty);
  io.field("state", request.state,
           "waiting, approved, rejected, expired, ended, replaced, recovered, held_back",
           How::required);
  io.field("decided_by", request.decided_by, "by whom", How::omit_if_empty);
  io.field("decided_at", request.decided_at, "when", How::omit_if_empty);
  io.field("comment", request.comment, "what they said", How::omit_if_empty);
}

OutRecord stop_request_record(const StopRequest& request) {
  OutRecord out{topic::kRouterControl, std::string(kApprovalPrefix) + "/" + request.id,
                stop_request_json(request)};
  out.partition = 0;
  return out;
}

std::string stop_request_json(const StopRequest& request) { return write_json(request); }

Result<StopRequest> read_stop_request(std::string_view json) {
  StopRequest out;
  if (const Status read = read_json(json, kMaxStopRequest, out); !read) return read.error();
  if (std::find(kStates.begin(), kStates.end(), out.state) == kStates.end()) {
    return invalid_argument("state is \"" + out.state.substr(0, 40) +
                            "\": expected waiting, approved, rejected, expired, ended, replaced, "
                            "recovered or held_back");
  }
  if (out.run.uid.nil() || out.run.attempt == 0) {
    return invalid_argument("a stop of no run and attempt");
  }
  return out;
}

}  // namespace tocsin::core
