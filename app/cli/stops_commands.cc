#include "app/cli/stops_commands.h"

#include <unistd.h>

#include <iostream>
#include <optional>
#include <vector>

#include "app/cli/looking.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
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

/// One stop: the request that waited, the command that was written, or both.
struct ListedStop {
  std::string id;
  const StopRequest* request = nullptr;
  const TopicView::SeenStop* stop = nullptr;

  [[nodiscard]] std::string state() const {
    if (request != nullptr && (stop == nullptr || request->state == "waiting")) {
      if (request->state != "waiting") return request->state;
      return request->quorum.is_null() ? "awaiting_approval" : "awaiting_quorum";
    }
    return stop->told.state;
  }
  [[nodiscard]] bool open() const {
    const std::string now = state();
    return now == "awaiting_approval" || now == "requested" || now == "cooperative" ||
           now == "checkpointing" || now == "approved" || now.starts_with("platform");
  }
  [[nodiscard]] core::RunUid run() const {
    return request != nullptr ? request->run.uid : stop->command.run;
  }
  [[nodiscard]] std::uint32_t attempt() const {
    return request != nullptr ? request->run.attempt : stop->command.attempt;
  }
};

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

std::string because(const ListedStop& stop) {
  return stop.request != nullptr ? stop.request->reason.summary : stop.stop->command.reason.summary;
}

/// Who has to act, or who has.
std::string by(const ListedStop& stop) {
  if (stop.request != nullptr && stop.request->state == "waiting") {
    return "until " + core::to_rfc3339(stop.request->until);
  }
  if (stop.request != nullptr && !stop.request->decided_by.empty()) {
    return stop.request->decided_by;
  }
  return stop.stop != nullptr ? stop.stop->command.requested_by : std::string();
}

core::Value value_of(const ListedStop& stop, const TopicView& view) {
  core::ValueMap out{{"command_id", stop.id},
                     {"state", stop.state()},
                     {"run", core::to_text(stop.run())},
                     {"attempt", std::int64_t{stop.attempt()}},
                     {"job", job_of(stop, view)},
                     {"reason", because(stop)}};
  if (stop.request != nullptr) {
    if (auto request = core::parse_json(core::stop_request_json(*stop.request), 1U << 17)) {
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

core::Status look(const StopWordOptions& options, Looking& looking, TopicView& view) {
  if (auto opened = looking.open(options.config_file, options.out); !opened) return opened;
  return read_view(looking.transport(), view, kStopsPatience);
}

/// The one stop of that id; nullopt: said on stderr why there is none.
std::optional<ListedStop> chosen(const std::string& id, const TopicView& view) {
  std::vector<ListedStop> found;
  for (const ListedStop& one : stops_of(view)) {
    if (!id.empty() && one.id == id) return one;
    if (!id.empty() && one.id.starts_with(id)) found.push_back(one);
  }
  if (found.size() == 1) return found.front();
  std::cerr << "tocsin: "
            << (found.empty() ? "no stop has" : std::to_string(found.size()) + " stops have")
            << " the ID " << core::visible(id) << "; see: tocsin stops list\n";
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
  if (const std::string who = by(stop); !who.empty()) sentence += " (" + core::visible(who) + ")";
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
    list.push_back(value_of(stop, view));
    const std::string job = job_of(stop, view);
    rows.push_back({stop.id.substr(0, kStopIdLength), stop.state(),
                    job.empty() ? core::to_text(stop.run()) : core::visible(job),
                    std::to_string(stop.attempt()), core::visible(by(stop)),
                    core::visible(because(stop), kShownReason)});
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
    std::cout << core::to_json(value_of(*stop, view)) << "\n";
    return kOk;
  }
  std::vector<core::TableRow> rows{
      {"ID", stop->id},
      {"State", stop->state()},
      {"Run", name_of(*stop, view) + ", " + core::to_text(stop->run())},
      {"Because", core::visible(because(*stop))}};
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
  if (const auto written = write_records(looking, {core::stop_request_record(request)}); !written) {
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
  std::vector<core::OutRecord> records;
  std::string sentence;
  if (stop->request != nullptr && stop->request->state == "waiting") {
    records.push_back(core::stop_request_record(core::decided(
        *stop->request, "rejected", this_person(), core::SystemClock().now(), options.comment)));
    sentence = name_of(*stop, view) + " is not stopped: " + stop->id + " was rejected";
  } else if (stop->stop != nullptr && stop->open()) {
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
