#include "app/api/stop_desk.h"

#include <optional>
#include <utility>
#include <vector>

#include "app/view/listed_stops.h"
#include "core/fields/stop_request.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

/// One stop as it stood, without what it borrowed.
struct StopSeen {
  std::string id;
  std::string name;  // of its run, for sentences
  std::string state;
  core::RunUid run;
  bool waits = false;
  bool asked = false;  // the command is written, and not over
  core::StopRequest request;
  core::Value before;
};

core::Result<StopSeen> look_at_stop(ApiDesk& desk, const std::string& id) {
  core::Result<StopSeen> out = StopSeen{};
  const auto seen = desk.view.read([&](const TopicView& view) {
    const auto found = stop_by_id(view, id);
    if (!found) {
      out = found.error();
      return;
    }
    out->id = found->id;
    out->run = found->run();
    const std::string job = job_of(*found, view);
    out->name = (job.empty() ? core::to_text(out->run) : core::visible(job)) + ", attempt " +
                std::to_string(found->attempt());
    out->state = found->state();
    out->waits = found->waits();
    out->asked = found->stop != nullptr && found->open();
    if (found->request != nullptr) out->request = *found->request;
    out->before = stop_value(*found, view);
  });
  if (!seen) return seen.error();
  return out;
}

core::Error waits_no_longer(const StopSeen& stop) {
  return {core::Code::failed_precondition,
          "the stop of " + stop.name + " does not wait for approval: it is " + stop.state};
}

core::Result<StopDecided> written_word(ApiDesk& desk, const StopSeen& stop, StopDecided word,
                                       core::OutRecord record, const std::string& comment,
                                       const ApiCall& call) {
  core::ValueMap after{{"command_id", stop.id}, {"state", word.state}, {"comment", comment}};
  const std::vector<core::OutRecord> records{audit_of(call, desk.clock.now(), "stop." + word.state,
                                                      stop.id, stop.before, std::move(after)),
                                             std::move(record)};
  if (const auto sent = desk.writer.write(records); !sent) return sent.error();
  desk.log.info(
      "api_stop_" + word.state,
      {{"id", stop.id}, {"by", call.who.name}, {"client", std::string(call.request.client)}});
  return word;
}

core::Result<StopDecided> written_rejection(ApiDesk& desk, const StopSeen& stop,
                                            const std::string& comment, const ApiCall& call) {
  return written_word(
      desk, stop,
      {stop.id, "cancelled", stop.name + " is not stopped: " + stop.id + " was rejected"},
      core::stop_request_record(
          core::decided(stop.request, "rejected", call.who.name, desk.clock.now(), comment)),
      comment, call);
}

}  // namespace

core::Result<StopDecided> approve_stop(ApiDesk& desk, const std::string& id,
                                       const std::string& comment, const ApiCall& call) {
  const auto stop = look_at_stop(desk, id);
  if (!stop) return stop.error();
  if (!stop->waits) return waits_no_longer(*stop);
  return written_word(
      desk, *stop, {stop->id, "approved", "approved: the server asks " + stop->name + " to stop"},
      core::stop_request_record(
          core::decided(stop->request, "approved", call.who.name, desk.clock.now(), comment)),
      comment, call);
}

core::Result<StopDecided> reject_stop(ApiDesk& desk, const std::string& id,
                                      const std::string& comment, const ApiCall& call) {
  const auto stop = look_at_stop(desk, id);
  if (!stop) return stop.error();
  if (!stop->waits) return waits_no_longer(*stop);
  return written_rejection(desk, *stop, comment, call);
}

core::Result<StopDecided> cancel_stop(ApiDesk& desk, const std::string& id,
                                      const std::string& comment, const ApiCall& call) {
  const auto stop = look_at_stop(desk, id);
  if (!stop) return stop.error();
  if (stop->waits) return written_rejection(desk, *stop, comment, call);
  if (!stop->asked) return waits_no_longer(*stop);
  return written_word(desk, *stop,
                      {stop->id, "cancelled",
                       "the request to " + stop->name +
                           " was withdrawn; a rank that has accepted it stops all the same"},
                      ingest::withdraw_command(stop->run, "stop"), comment, call);
}

}  // namespace tocsin::app
