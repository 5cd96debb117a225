#include "app/cli/stops_commands.h"

#include <unistd.h>

#include <iostream>
#include <optional>
#include <vector>

#include "app/cli/command_audit.h"
#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/listed_stops.h"
#include "app/view/topic_view.h"
#include "app/view/view_text.h"
#include "core/fields/stop_request.h"
#include "core/json.h"
#include "core/system_clock.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::StopRequest;

constexpr auto kStopsPatience = 60s;
constexpr auto kWordWritten = 10s;
constexpr std::size_t kStopIdLength = 14;
constexpr std::size_t kShownReason = 100;

core::Status look(const StopWordOptions& options, Looking& looking, TopicView& view) {
  if (auto opened = looking.open(options.config_file, options.out); !opened) return opened;
  return read_view(looking.transport(), view, kStopsPatience);
}

/// The one stop of that id; nullopt: said on stderr why there is none.
std::optional<ListedStop> chosen(const std::string& id, const TopicView& view) {
  auto found = stop_by_id(view, id);
  if (found) return std::move(*found);
  std::cerr << "tocsin: " << found.error().message << "\n";
  return std::nullopt;
}

core::Status write_records(const Looking& looking, const std::vector<core::OutRecord>& records) {
  ingest::PublisherOptions publishing;
  publishing.writer = "stops-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = looking.transport().publisher(publishing);
  if (!publisher) return publisher.error();
  for (const core::OutRecord& record : records) {
    if (auto sent = (*publisher)->publish(record); !sent) return sent;
  }
  return (*publisher)->flush(kWordWritten);
}

std::string name_of(const ListedStop& stop, const TopicView& view) {
  const std::string job = job_of(stop, view);
  return (job.empty() ? "run " + core::to_text(stop.run()) : core::visible(job)) + ", attempt " +
         std::to_string(stop.attempt());
}

int say(const StopWordOptions& options, const ListedStop& stop, const char* state,
        const std::string& sentence, int code) {
  if (options.json) {
    std::cout << core::to_json(core::ValueMap{{"command_id", stop.id},
                                              {"run", core::to_text(stop.run())},
                                              {"attempt", std::int64_t{stop.attempt()}},
                                              {"state", state},
                                              {"detail", sentence}})
              << "\n";
  } else {
    std::cout << sentence << "\n";
  }
  return code;
}

// What does not wait has had its word.
int no_longer(const StopWordOptions& options, const ListedStop& stop, const TopicView& view) {
  std::string sentence =
      "the stop of " + name_of(stop, view) + " does not wait for approval: it is ";
  sentence += stop.state();
  if (const std::string who = stop.by(); !who.empty()) sentence += " (" + core::visible(who) + ")";
  return say(options, stop, "not_waiting", sentence, kFailed);
}

// The leader writes the command: it knows the launch that runs now, and counts.
bool command_comes(const Looking& looking, const ListedStop& stop, core::Duration wait) {
  const core::SystemClock clock;
  const core::Duration until = clock.monotonic() + wait;
  auto source = view_source(looking.transport());
  if (!source) return false;
  TopicView view;
  while (clock.monotonic() < until) {
    const auto read =
        (*source)->poll(200ms, 256, [&](const core::RecordView& record) { view.apply(record); });
    if (!read && !read.error().retryable() && read.error().code != core::Code::data_loss) {
      return false;
    }
    const auto found = view.stops().find(stop.run());
    if (found != view.stops().end() && found->second.command.command_id == stop.id) return true;
  }
  return false;
}

}  // namespace

int stops_list(const StopWordOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  core::ValueList list;
  std::vector<core::TableRow> rows{{"ID", "STATE", "JOB", "ATTEMPT", "BY", "BECAUSE"}};
  for (const ListedStop& stop : stops_of(view)) {
    if (!stop.open() && !options.all) continue;
    list.push_back(stop_value(stop, view));
    const std::string job = job_of(stop, view);
    rows.push_back({stop.id.substr(0, kStopIdLength), stop.state(),
                    job.empty() ? core::to_text(stop.run()) : core::visible(job),
                    std::to_string(stop.attempt()), core::visible(stop.by()),
                    core::visible(stop.because(), kShownReason)});
  }
  if (options.json) {
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  } else {
    std::cout << (rows.size() > 1 ? core::text_table(rows)
                  : options.all   ? "no stops\n"
                                  : "no stops are open; see: tocsin stops list --all\n");
  }
  return kOk;
}

int stops_show(const StopWordOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const auto stop = chosen(options.id, view);
  if (!stop) return kFailed;
  if (options.json) {
    std::cout << core::to_json(stop_value(*stop, view)) << "\n";
    return kOk;
  }
  std::vector<core::TableRow> rows{
      {"ID", stop->id},
      {"State", stop->state()},
      {"Run", name_of(*stop, view) + ", " + core::to_text(stop->run())},
      {"Because", core::visible(stop->because())}};
  if (const StopRequest* request = stop->request) {
    rows.push_back(
        {"Waits by", core::visible(request->why) + ", " + core::visible(request->integration)});
    rows.push_back({"Asked", core::to_rfc3339(request->asked_at)});
    rows.push_back({"Until", core::to_rfc3339(request->until) + ", then " + request->on_timeout});
    if (request->decided_at) {
      rows.push_back({"Decided", request->state + " by " + core::visible(request->decided_by) +
                                     ", " + core::to_rfc3339(*request->decided_at)});
    }
    if (!request->comment.empty()) rows.push_back({"Comment", core::visible(request->comment)});
  }
  if (stop->stop != nullptr) {
    rows.push_back({"Command", "revision " + std::to_string(stop->stop->command.revision) + " by " +
                                   core::visible(stop->stop->command.requested_by) + ", " +
                                   core::to_rfc3339(stop->stop->command.issued_at)});
    if (!stop->stop->told.reason.empty()) {
      rows.push_back({"Came of it", core::visible(stop->stop->told.reason)});
    }
  }
  std::cout << core::text_table(rows);
  return kOk;
}

int stops_approve(const StopWordOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const auto stop = chosen(options.id, view);
  if (!stop) return kFailed;
  if (stop->request == nullptr || stop->request->state != "waiting") {
    return no_longer(options, *stop, view);
  }
  const core::WallTime now = core::SystemClock().now();
  const StopRequest request =
      core::decided(*stop->request, "approved", this_person(), now, options.comment);
  const core::OutRecord word = core::stop_request_record(request);
  const core::OutRecord audit =
      command_audit("stop.approved", stop->id, value_of(core::stop_request_record(*stop->request)),
                    value_of(word), now);
  if (const auto written = write_records(looking, {audit, word}); !written) {
    return refuse(written.error());
  }
  const std::string who = name_of(*stop, view);
  if (options.wait <= core::Duration::zero()) {
    return say(options, *stop, "approved", "approved: " + who + " is stopped by the server", kOk);
  }
  if (command_comes(looking, *stop, options.wait)) {
    return say(options, *stop, "requested",
               "approved, and " + who + " was asked to stop; see: tocsin stops show " + stop->id,
               kOk);
  }
  return say(options, *stop, "approved",
             "approved, and no server has asked " + who +
                 " yet (tocsin up, tocsin route): the word holds, see: tocsin stops show " +
                 stop->id,
             kTemporary);
}

int stops_cancel(const StopWordOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const auto stop = chosen(options.id, view);
  if (!stop) return kFailed;
  const core::WallTime now = core::SystemClock().now();
  std::vector<core::OutRecord> records;
  std::string sentence;
  if (stop->request != nullptr && stop->request->state == "waiting") {
    core::OutRecord word = core::stop_request_record(
        core::decided(*stop->request, "rejected", this_person(), now, options.comment));
    records.push_back(command_audit("stop.rejected", stop->id,
                                    value_of(core::stop_request_record(*stop->request)),
                                    value_of(word), now));
    records.push_back(std::move(word));
    sentence = name_of(*stop, view) + " is not stopped: " + stop->id + " was rejected";
  } else if (stop->stop != nullptr && stop->open()) {
    records.push_back(
        command_audit("stop.withdrawn", stop->id,
                      core::ValueMap{{"run", core::to_text(stop->run())}, {"state", stop->state()}},
                      core::Value(), now));
    records.push_back(ingest::withdraw_command(stop->run(), "stop"));
    sentence = "the request to " + name_of(*stop, view) +
               " was withdrawn; a rank that has accepted it stops all the same";
  } else {
    return no_longer(options, *stop, view);
  }
  if (const auto written = write_records(looking, records); !written)
    return refuse(written.error());
  return say(options, *stop, "cancelled", sentence, kOk);
}

}  // namespace tocsin::app
