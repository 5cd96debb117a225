// Issues as our rules make them, appended to the topic `issues` of a journal: what bench/peers/run.py
// feeds the router with.
//
//   peers_feed FOLDER MEMBERS ROUND FIRST LAST    MEMBERS to a group; from FIRST to before LAST
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/log.h"
#include "core/telemetry.h"
#include "ingest/ingest.h"

namespace {

using namespace tocsin;  // a program of one file

core::NullLog quiet;
core::NullTelemetry uncounted;

core::Issue issue_of(std::size_t number, std::size_t members, std::size_t round,
                     core::WallTime now) {
  core::Issue issue;
  const std::string job = "job-" + std::to_string(number / members);
  const std::string tensor = "gradient/layer" + std::to_string(number % members) + ".weight";
  issue.run.uid = core::run_uid_for(job, "run");
  issue.run.job = job;
  issue.rule = issue.rule_type = "exploding_tensor";
  issue.params_hash = "9e6014ae63e4a968";
  issue.source = "/default/rules/exploding_tensor";
  issue.event_id = "iss_" + std::to_string(round) + "_" + std::to_string(number);
  issue.sequence = round + 1;
  issue.severity = core::Severity::error;
  issue.labels = {{"rule", issue.rule}, {"severity", "error"},
                  {"job", job},         {"run_uid", core::to_text(issue.run.uid)},
                  {"tensor", tensor},   {"worker", "worker_0"}};
  issue.summary = "17 values of " + tensor + " are not finite";
  issue.recommendation = "Look at the learning rate and at the batch of this step.";
  issue.starts_at = now;
  issue.time = issue.measured_at = issue.published_at = issue.evaluated_at = now;
  issue.step = issue.global_step = 412 + static_cast<std::int64_t>(round);
  issue.mode = core::Mode::train;
  core::Evidence& seen = issue.evidence;
  seen.observed = {"non_finite", 17};
  seen.op = ">=";
  seen.threshold = core::NamedNumber{"limit", 1};
  seen.tensor = core::TensorRef{tensor, "gradients", core::Dtype::f32, {32, 3, 3, 3}};
  seen.window.first = seen.window.last = 412;
  seen.window.first_time = seen.window.last_time = now;
  seen.window.points = 1;
  seen.parameters = {{"only_nan", false, "default"}};
  seen.first_seen = now;
  return issue;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: peers_feed FOLDER MEMBERS ROUND FIRST LAST\n");
    return 2;
  }
  const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(argv[i])); };
  ingest::TransportConfig cfg;
  cfg.journal = argv[1];
  auto transport = ingest::Transport::open(cfg, {}, quiet, uncounted);
  if (!transport) return std::fprintf(stderr, "%s\n", transport.error().message.c_str()), 2;
  auto publisher = (*transport)->publisher({});
  if (!publisher) return std::fprintf(stderr, "%s\n", publisher.error().message.c_str()), 2;
  const core::WallTime now =
      std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now());
  for (std::size_t i = number(4); i < number(5); ++i) {
    const auto record = ingest::encode_issue(issue_of(i, number(2), number(3), now));
    while (!(*publisher)->publish(record))
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  const auto flushed = (*publisher)->flush(std::chrono::seconds{60});
  return flushed ? 0 : 2;
}
