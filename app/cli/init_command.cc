#include "app/cli/init_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string_view>

#include "app/process/exit_code.h"
#include "core/value.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kStarter = R"(# yaml-language-server: $schema=./tocsin.schema.json
#
# Tocsin: rules say what is wrong, routes say who is told and when, receivers say how.
#   tocsin check                          finds every error in this file, and what would keep an alarm silent
#   tocsin up                             starts everything in one process
#   tocsin status                         says what is going on
#   tocsin schema > tocsin.schema.json    lets editors complete what you type here

# Where records travel. A directory, for one machine; or a Kafka cluster:
#   transport: { kafka: { bootstrap.servers: "kafka:9092" } }
transport: { journal: ./tocsin-data }

# What the hook in the training script measures: statistics of each collection at every tenth step,
# logged scalars such as the loss at every step.
capture:
  every: 10 steps
  collections: [gradients, weights, biases, losses]

# What is wrong. `tocsin rules list` shows all rules, `tocsin rules describe NAME` their parameters.
rules:
  - use: exploding_tensor             # NaN or Inf anywhere
    # actions: [stop]                 # also end the run: see the receiver `stop` below
  - use: vanishing_gradient           # gradients too small to train with
    # with: { threshold: 1e-8 }       # parameters of a rule stand inside `with`
  - use: chance_level                 # outputs know no more of their targets than one constant answer
  - use: course                       # the loss is stuck, rises, or loses what it had learnt, beyond its own noise
  - use: overfit                      # the evaluation loss leaves its best behind
  - use: stalled_training_rule        # no sign of progress for so long
    with: { threshold: 1800 }         # seconds
    actions: [look]                   # each rank says where it stands: see the receiver `look` below

# Who is told, and when. Children under `routes` narrow it down by labels.
route:
  receiver: team
  group_by: [job, run_uid]            # one incident per run, named by its first sign
  group_wait: 10s                     # gathers what fires together
  repeat_interval: 4h
  # routes:
  #   - matchers: ['severity=~"error|critical"']
  #     receiver: oncall

# How. Several actions may stand in one receiver.
receivers:
  team:
    publish_metric: {}                # for Prometheus, at http://127.0.0.1:9760/metrics/issues
    # email: { to: [ml-team@example.com], from: tocsin@example.com, host: smtp.example.com }
  look:                               # stacks of all threads, as the issue worker_place of each rank
    profile_training: {}              # at most every 10 minutes, 5 times per attempt
  # oncall:
  #   webhook: { url: "https://alerts.example.com/tocsin", secret_file: /run/secrets/tocsin-webhook }
  # stop:                             # a run that is beyond help saves a checkpoint and ends
  #   stop_training: { armed: true, mode: checkpoint_then_stop, grace: 30s }

http: { listen: "127.0.0.1:9760" }    # /metrics, /metrics/issues, /-/healthy, /-/ready
)";

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

int init_command(const InitOptions& options) {
  const std::string path = options.file.empty() ? "tocsin.yaml" : options.file;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) {
    std::cerr << "tocsin: " << path << ": "
              << (errno == EEXIST ? "is there already, and is left as it is" : std::strerror(errno))
              << "\n";
    return kFailed;
  }
  const bool written = write_all(file, kStarter);
  if (close(file) != 0 || !written) {
    std::cerr << "tocsin: " << path << " could not be written: " << std::strerror(errno) << "\n";
    return kFailed;
  }
  if (options.json) {
    std::cout << core::to_json(core::ValueMap{{"wrote", path}}) << "\n";
    return kOk;
  }
  std::cout << "wrote " << path << "; next: tocsin check " << path << ", then tocsin up -c " << path
            << "\n";
  return kOk;
}

}  // namespace tocsin::app
