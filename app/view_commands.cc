#include "app/view_commands.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "app/commands.h"
#include "app/log_console.h"
#include "app/logging.h"
#include "app/system_clock.h"
#include "app/topic_view.h"
#include "app/transport_settings.h"
#include "app/view_text.h"
#include "core/json.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
constexpr std::size_t kMaxIssue = 1U << 20;

int refuse(const core::Error& error) {
  std::cerr << "tocsin: " << error.message << "\n";
  return exit_code(error);
}

/// The transport, opened to look only: a journal that is not there is not made.
class Looking {
 public:
  core::Status open(const ViewOptions& options) {
    const auto settings = transport_settings(options.config_file, options.out);
    if (!settings) return settings.error();
    const ingest::TransportConfig& cfg = settings->transport;
    std::error_code error;
    if (cfg.kafka.is_null() && !std::filesystem::is_directory(cfg.journal, error)) {
      return core::unavailable("there is no journal " + cfg.journal +
                               ": nothing has written to it yet");
    }
    auto opened = ingest::Transport::open(cfg, settings->topics, log_, telemetry_);
    if (!opened) return opened.error();
    transport_ = std::move(*opened);
    return core::ok();
  }
  [[nodiscard]] ingest::Transport& transport() const { return *transport_; }

 private:
  core::NullLog log_;
  core::NullTelemetry telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
};

core::Status look(const ViewOptions& options, Looking& looking, TopicView& view) {
  if (auto opened = looking.open(options); !opened) return opened;
  return read_view(looking.transport(), view, kPatience);
}

core::Value issue_value(const core::Issue& issue) {
  const auto value = core::parse_json(ingest::issue_json(issue), kMaxIssue);
  return value ? *value : core::Value();
}

bool wanted(const core::Issue& issue, const ViewOptions& options) {
  return (options.job.empty() || options.job == issue.run.job) &&
         (options.rule.empty() || options.rule == issue.rule);
}

// Open ones, worst first, then oldest.
std::vector<const TopicView::SeenIssue*> chosen(const TopicView& view, const ViewOptions& options) {
  std::vector<const TopicView::SeenIssue*> out;
  for (const auto& [key, seen] : view.issues()) {
    const bool open = seen.newest.status == core::IssueStatus::firing;
    if ((open || options.all) && wanted(seen.newest, options)) out.push_back(&seen);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) {
    const auto rank = [](const TopicView::SeenIssue& one) {
      return std::tuple(one.newest.status != core::IssueStatus::firing,
                        -static_cast<int>(one.newest.severity), one.since, one.newest.event_id);
    };
    return rank(*a) < rank(*b);
  });
  return out;
}

bool begins(const std::string& text, const std::string& wanted) {
  return !wanted.empty() && text.rfind(wanted, 0) == 0;
}

bool goes_by(const std::string& key, const core::Issue& issue, const std::string& id) {
  return begins(key, id) || begins(issue.event_id, id) ||
         begins(core::fingerprint(issue.labels), id);
}

volatile std::sig_atomic_t stop_requested = 0;  // set by the signal handler alone

// Signals end the following; a closed pipe does as well.
void follow_until_signalled() {
  stop_requested = 0;
  std::signal(SIGINT, [](int) { stop_requested = 1; });
  std::signal(SIGTERM, [](int) { stop_requested = 1; });
}

bool goes_on() { return stop_requested == 0 && std::cout.good(); }

void print_event(const core::RecordView& record, const ViewOptions& options, bool colour) {
  if (record.tombstone) return;
  const auto decoded = ingest::decode_event(record);
  if (!decoded) return;
  if (const auto* issue = std::get_if<core::Issue>(&decoded->event)) {
    if (!wanted(*issue, options)) return;
    std::cout << (options.json ? ingest::issue_json(*issue) : issue_line(*issue, colour)) << "\n";
  } else if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) {
    const bool heard = job->phase != core::JobPhase::heartbeat && options.rule.empty() &&
                       (options.job.empty() || options.job == job->run.job);
    if (heard && !options.json) std::cout << job_line(*job, colour) << "\n";
  }
}

}  // namespace

int status_command(const ViewOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const SystemClock clock;
  std::cout << (options.json ? status_json(view, looking.transport().describe(), clock.now()) + "\n"
                             : status_text(view, looking.transport().describe(), clock.now()));
  return kOk;
}

int issues_list(const ViewOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  const auto found = chosen(view, options);
  if (options.json) {
    core::ValueList list;
    list.reserve(found.size());
    for (const auto* seen : found) list.push_back(issue_value(seen->newest));
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  } else {
    const SystemClock clock;
    std::cout << (found.empty() ? "no open issues\n" : issues_text(found, clock.now()));
  }
  return kOk;
}

int issues_show(const ViewOptions& options) {
  Looking looking;
  TopicView view;
  if (const auto seen = look(options, looking, view); !seen) return refuse(seen.error());
  std::vector<const TopicView::SeenIssue*> found;
  for (const auto& [key, seen] : view.issues()) {
    if (goes_by(key, seen.newest, options.id)) found.push_back(&seen);
  }
  if (found.size() != 1) {
    std::cerr << "tocsin: "
              << (found.empty() ? "no issue" : std::to_string(found.size()) + " issues")
              << " of id " << options.id << "; see: tocsin issues list --all\n";
    return kFailed;
  }
  const SystemClock clock;
  std::cout << (options.json ? ingest::issue_json(found[0]->newest) + "\n"
                             : issue_text(*found[0], clock.now()));
  return kOk;
}

int tail_command(const ViewOptions& options) {
  Looking looking;
  if (const auto opened = looking.open(options); !opened) return refuse(opened.error());
  if (const auto reached = looking.transport().ping(5s); !reached) return refuse(reached.error());
  ingest::SourceOptions from;
  from.topics = {core::topic::kIssues};
  from.start = options.all ? ingest::Start::beginning : ingest::Start::end;
  auto source = looking.transport().source(from);
  if (!source) return refuse(source.error());
  follow_until_signalled();
  const bool colour = shows_colour(STDOUT_FILENO);
  std::string trouble;  // said once while it lasts
  while (goes_on()) {
    const auto read = (*source)->poll(
        200ms, 256, [&](const core::RecordView& record) { print_event(record, options, colour); });
    std::cout.flush();
    if (read) {
      trouble.clear();
      continue;
    }
    if (trouble != read.error().message) {
      trouble = read.error().message;
      std::cerr << "tocsin: " << trouble << "\n";
    }
    const bool passes = read.error().retryable() || read.error().code == core::Code::data_loss;
    if (!passes) return exit_code(read.error());
  }
  return kOk;
}

}  // namespace tocsin::app
