// A backlog of 100 000 issues in 1 000 groups meets group_interval 5 s: does the router read it and
// tell it, or does it tell the same groups again and again while the rest waits? The clock is
// simulated but pays for the work: each turn moves it by the CPU time that the turn took, as on a
// machine with nothing to spare. Baseline: the same records read into the same state, nothing told.
// Run: routing_overload
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench_report.h"
#include "ingest/ingest.h"
#include "routing/routing.h"

namespace tocsin {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kIssues = 100'000;
constexpr std::size_t kGroups = 1'000;
constexpr std::size_t kBatch = 512;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

core::WallTime begin() { return core::wall_time(1'767'323'000'000'000'000); }

/// `round` 0: new; later ones report the same issues again.
std::vector<core::OutRecord> backlog(std::size_t round) {
  std::vector<core::OutRecord> records;
  records.reserve(kIssues);
  for (std::size_t i = 0; i < kIssues; ++i) {
    core::Issue issue;
    const std::string job = "job-" + std::to_string(i % kGroups);
    issue.run.uid = core::run_uid_for(job, "run");
    issue.run.job = job;
    issue.rule = issue.rule_type = "exploding_tensor";
    issue.source = "/c1/rules/exploding_tensor";
    issue.event_id = "iss_" + std::to_string(round) + "_" + std::to_string(i);
    issue.sequence = round * kIssues + i / kGroups + 1;
    issue.severity = core::Severity::error;
    issue.labels = {{"rule", issue.rule},
                    {"severity", "error"},
                    {"job", job},
                    {"run_uid", core::to_text(issue.run.uid)},
                    {"tensor", "gradient/layer" + std::to_string(i / kGroups) + ".weight"}};
    issue.summary =
        "17 values of gradient/layer" + std::to_string(i / kGroups) + ".weight are not finite";
    issue.starts_at = begin() - 10min + std::chrono::milliseconds(i);
    issue.time = issue.starts_at + std::chrono::minutes(round);
    records.push_back(ingest::encode_issue(issue));
  }
  return records;
}

core::RecordView view_of(const core::OutRecord& record) {
  core::RecordView view;
  view.topic = record.topic;
  view.key = record.key;
  view.value = std::as_bytes(std::span(*record.value));
  view.native = &record;
  view.find_header = [](const void* native,
                        std::string_view name) -> std::optional<std::string_view> {
    for (const auto& [key, value] : static_cast<const core::OutRecord*>(native)->headers) {
      if (key == name) return value;
    }
    return std::nullopt;
  };
  return view;
}

std::unique_ptr<routing::Router> make_router(core::Duration group_wait) {
  routing::RouteConfig root;
  root.receivers = {"oncall"};
  root.group_by = {{"job"}};
  root.group_wait = group_wait;
  root.group_interval = 5s;
  routing::Integration integration;
  integration.id = integration.receiver = "oncall";
  integration.type = "webhook";
  auto made = routing::Router::create(root, {}, {integration}, {});
  (*made)->restored(begin());
  return std::move(*made);
}

struct Outcome {
  double cpu = 0;
  double clock = 0;  // simulated seconds until all was told
  std::size_t notifications = 0;
  double megabytes = 0;  // outbox and state
  std::size_t told = 0;
  std::size_t turns = 0;
};

/// Reads `records`, telling as the stage does; `tells` false: reads only.
Outcome run(const std::vector<core::OutRecord>& records, bool tells, bool says_behind) {
  const auto router = make_router(30s);
  Outcome out;
  const double start = cpu_seconds();
  core::WallTime now = begin();
  std::size_t read = 0;
  bool more = true;
  while (read < records.size() || (tells && more)) {
    const double turn = cpu_seconds();
    for (std::size_t i = 0; i < kBatch && read < records.size(); ++i) {
      const auto decoded = ingest::decode_event(view_of(records[read++]));
      router->on_issue(std::get<core::Issue>(decoded->event), now);
    }
    if (tells) {
      if (says_behind) router->set_behind(read < records.size(), now);
      more = router->tick(now);
    }
    const routing::Output output = router->take();
    for (const auto& notification : output.notifications) {
      ++out.notifications;
      if (notification.kind == core::NotificationKind::open) out.told += notification.firing_count;
      out.megabytes +=
          static_cast<double>(ingest::encode_notification(notification).value->size()) / 1e6;
    }
    for (const auto& record : output.state) {
      out.megabytes +=
          static_cast<double>(record.key.size() + record.value.value_or("").size()) / 1e6;
    }
    ++out.turns;
    now += std::chrono::duration_cast<core::Duration>(
        std::chrono::duration<double>(cpu_seconds() - turn));
  }
  out.cpu = cpu_seconds() - start;
  out.clock = std::chrono::duration<double>(now - begin()).count();
  return out;
}

struct Intake {
  double first = 0, again = 0;  // microseconds per event, decoding and state records included
};

/// Events of issues that are new, then of the same ones again, while nothing is told.
Intake intake(const std::vector<core::OutRecord>& records) {
  const std::vector<core::OutRecord> later = backlog(1);
  const auto router = make_router(30s);
  std::size_t bytes = 0;
  const auto read = [&](const std::vector<core::OutRecord>& all) {
    const double start = cpu_seconds();
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto decoded = ingest::decode_event(view_of(all[i]));
      router->on_issue(std::move(std::get<core::Issue>(decoded->event)), begin());
      if (i % kBatch != kBatch - 1) continue;
      for (const auto& record : router->take().state) bytes += record.value.value_or("").size();
    }
    return (cpu_seconds() - start) * 1e6 / static_cast<double>(all.size());
  };
  Intake out;
  out.first = read(records);
  out.again = read(later);
  return bytes > 0 ? out : Intake{-1, -1};
}

/// 5 000 groups of one issue each come due in the same instant.
double flush_five_thousand() {
  const auto router = make_router(30s);
  core::Issue issue;
  issue.source = "/c1/rules/r";
  for (int i = 0; i < 5'000; ++i) {
    issue.event_id = "iss_" + std::to_string(i);
    issue.labels = {{"rule", "r"}, {"job", "job-" + std::to_string(i)}};
    issue.time = issue.starts_at = begin();
    router->on_issue(issue, begin());
  }
  router->take();
  const double start = cpu_seconds();
  std::size_t bytes = 0;
  for (bool more = true; more;) {
    more = router->tick(begin() + 30s);
    const routing::Output output = router->take();
    for (const auto& one : output.notifications) {
      bytes += ingest::encode_notification(one).value->size();
    }
  }
  return bytes > 0 ? cpu_seconds() - start : -1;
}

}  // namespace
}  // namespace tocsin

int main() {
  using namespace tocsin;
  const auto records = backlog(0);
  const Intake intake_alone = intake(records);
  bench::judged("intake of a new issue, alone", intake_alone.first, "us", 40, false);
  bench::judged("intake of a further report of a known one, alone", intake_alone.again, "us", 40,
                false);
  const Outcome reading = run(records, false, false);
  const Outcome held = run(records, true, true);
  const Outcome open = run(records, true, false);
  bench::figure("reading alone", reading.cpu, "CPU-s");
  bench::figure("reading and telling, the input says it is behind", held.cpu, "CPU-s");
  bench::figure("  notifications", static_cast<double>(held.notifications), "");
  bench::figure("  outbox and state", held.megabytes, "MB");
  bench::judged("  issues told in the first message of their group", static_cast<double>(held.told),
                "", static_cast<double>(kIssues), true);
  bench::judged("  ratio to reading alone", held.cpu / reading.cpu, "x", 2, false);
  bench::figure("reading and telling, nobody says so", open.cpu, "CPU-s");
  bench::figure("  notifications", static_cast<double>(open.notifications), "");
  bench::figure("  outbox and state", open.megabytes, "MB");
  bench::judged("  ratio to reading alone", open.cpu / reading.cpu, "x", 5, false);
  bench::judged("5 000 due groups", flush_five_thousand(), "CPU-s", 2, false);
  return 0;
}
