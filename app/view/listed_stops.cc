#include "app/view/listed_stops.h"

#include "core/fields/stop_request.h"
#include "core/json.h"
#include "core/visible_text.h"

namespace tocsin::app {

using core::StopRequest;

namespace {

constexpr std::size_t kMostOfARequest = std::size_t{1} << 17;

}  // namespace

bool ListedStop::waits() const { return request != nullptr && request->state == "waiting"; }

std::string ListedStop::state() const {
  if (waits()) return request->quorum.is_null() ? "awaiting_approval" : "awaiting_quorum";
  return stop == nullptr ? request->state : stop->told.state;
}

bool ListedStop::open() const {
  const std::string now = state();
  return waits() || now == "requested" || now == "cooperative" || now == "checkpointing" ||
         now == "approved" || now.starts_with("platform");
}

core::RunUid ListedStop::run() const {
  return request != nullptr ? request->run.uid : stop->command.run;
}

std::uint32_t ListedStop::attempt() const {
  return request != nullptr ? request->run.attempt : stop->command.attempt;
}

std::string ListedStop::because() const {
  return request != nullptr ? request->reason.summary : stop->command.reason.summary;
}

std::string ListedStop::by() const {
  if (waits()) return "until " + core::to_rfc3339(request->until);
  if (request != nullptr && !request->decided_by.empty()) return request->decided_by;
  return stop != nullptr ? stop->command.requested_by : std::string();
}

std::vector<ListedStop> stops_of(const TopicView& view) {
  std::vector<ListedStop> out;
  for (const auto& [id, request] : view.stop_requests()) out.push_back({id, &request, nullptr});
  for (const auto& [run, stop] : view.stops()) {
    const std::string& id = stop.command.command_id;
    bool known = false;
    for (ListedStop& one : out) {
      if (one.id != id) continue;
      one.stop = &stop;
      known = true;
    }
    if (!known) out.push_back({id, nullptr, &stop});
  }
  return out;
}

std::string job_of(const ListedStop& stop, const TopicView& view) {
  if (stop.request != nullptr && !stop.request->run.job.empty()) return stop.request->run.job;
  const auto run = view.runs().find(stop.run());
  return run == view.runs().end() ? std::string() : run->second.run.job;
}

core::Value stop_value(const ListedStop& stop, const TopicView& view) {
  core::ValueMap out{{"command_id", stop.id},
                     {"state", stop.state()},
                     {"run", core::to_text(stop.run())},
                     {"attempt", std::int64_t{stop.attempt()}},
                     {"job", job_of(stop, view)},
                     {"reason", stop.because()}};
  if (stop.request != nullptr) {
    if (auto request = core::parse_json(core::stop_request_json(*stop.request), kMostOfARequest)) {
      out.emplace_back("approval", std::move(*request));
    }
  }
  if (stop.stop != nullptr) {
    out.emplace_back("requested_by", stop.stop->command.requested_by);
    out.emplace_back("requested_at", core::to_rfc3339(stop.stop->command.issued_at));
    out.emplace_back("revision", std::uint64_t{stop.stop->command.revision});
    out.emplace_back("args", stop.stop->command.args);
    out.emplace_back("detail", stop.stop->told.reason);
  }
  return out;
}

core::Result<ListedStop> stop_by_id(const TopicView& view, const std::string& id) {
  std::vector<ListedStop> found;
  for (const ListedStop& one : stops_of(view)) {
    if (!id.empty() && one.id == id) return one;
    if (!id.empty() && one.id.starts_with(id)) found.push_back(one);
  }
  if (found.size() == 1) return found.front();
  const std::string shown = core::visible(id, 100);
  if (found.empty()) {
    return core::Error{core::Code::not_found,
                       "no stop has the ID " + shown + "; see: tocsin stops list"};
  }
  return core::Error{
      core::Code::failed_precondition,
      std::to_string(found.size()) + " stops have the ID " + shown + "; see: tocsin stops list"};
}

}  // namespace tocsin::app
