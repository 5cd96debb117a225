#include "app/cli/send_test.h"

#include <iostream>
#include <memory>
#include <vector>

#include "actions/actions.h"
#include "app/cli/receiver_choice.h"
#include "app/config/app_config.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "core/log.h"
#include "core/mutex.h"
#include "core/system_clock.h"
#include "core/telemetry.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kShownLines = 60;  // of a body; JSON has all
constexpr std::size_t kShownColumns = 2000;

std::string body_lines(const std::string& body, const std::string& margin) {
  std::string out;
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < body.size(); ++line) {
    const std::size_t end = std::min(body.find('\n', begin), body.size());
    if (line < kShownLines) {
      out += margin + core::visible(body.substr(begin, end - begin), kShownColumns) + "\n";
    }
    begin = end + 1;
  }
  if (line <= kShownLines) return out;
  return out + margin + "… " + std::to_string(line - kShownLines) + " more lines (--output json)\n";
}

std::string exchange_text(const actions::Exchange& one) {
  std::string out = "    > " + one.request + "\n";
  for (const auto& [name, value] : one.request_headers)
    out += "    > " + name + ": " + value + "\n";
  if (!one.request_body.empty()) out += "    >\n" + body_lines(one.request_body, "    > ");
  if (one.answer.empty()) return out;
  out += "    < " + one.answer + "\n";
  for (const auto& [name, value] : one.answer_headers) out += "    < " + name + ": " + value + "\n";
  if (!one.answer_body.empty()) out += "    <\n" + body_lines(one.answer_body, "    < ");
  return out;
}

std::string trial_step_text(const actions::TrialStep& step, bool dry_run) {
  std::string out = "  " + std::string(to_string(step.kind)) + ": ";
  if (dry_run) {
    out += step.exchanges.empty() ? "no request: " + step.outcome.detail : "not sent (--dry-run)";
  } else {
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(step.took);
    out += std::string(to_string(step.outcome.outcome)) + ", " + step.outcome.code + ", " +
           std::to_string(took.count()) + " ms";
    if (!step.outcome.detail.empty()) out += ": " + step.outcome.detail;
  }
  out += "\n";
  for (const actions::Exchange& one : step.exchanges) out += exchange_text(one);
  return out;
}

std::string trial_text(const actions::Trial& trial) {
  std::string out = trial.integration + " (" + trial.type + ")\n";
  if (!trial.skipped.empty()) return out + "  skipped: " + trial.skipped + "\n";
  for (const actions::TrialStep& step : trial.steps) out += trial_step_text(step, trial.dry_run);
  for (const std::string& note : trial.notes) out += "  note: " + note + "\n";
  return out;
}

// Until an action asks again what became of its message.
void pause_for(core::Duration wait) {
  core::Mutex mutex;
  core::CondVar never;
  const core::MutexLock lock(mutex);
  never.wait_for(mutex, wait, [] { return false; });
}

// Opens the cluster with the first record.
class KafkaTest {
 public:
  KafkaTest(const AppConfig& config, bool dry_run, core::Log& log, core::Telemetry& telemetry)
      : config_(config), dry_run_(dry_run), log_(log), telemetry_(telemetry) {}

  core::Status take(const core::OutRecord& record) {
    if (dry_run_) return core::ok();
    if (!transport_) {
      auto opened = ingest::Transport::open(config_.transport, config_.topics, log_, telemetry_);
      if (!opened) return opened.error();
      transport_ = std::move(*opened);
    }
    if (const auto allowed = transport_->allow_topics({record.topic.substr(1)}); !allowed) {
      return allowed;
    }
    if (const auto tried = transport_->try_record(record); !tried) return tried;
    ingest::PublisherOptions options;
    options.writer = "send-test";
    auto publisher = transport_->publisher(options);
    if (!publisher) return publisher.error();
    if (const auto written = (*publisher)->publish(record); !written) return written;
    return (*publisher)->flush(std::chrono::seconds(5));
  }

 private:
  const AppConfig& config_;
  bool dry_run_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  std::unique_ptr<ingest::Transport> transport_;
};

// Skipped actions decide only where there is no other.
int code_of(const std::vector<actions::Trial>& trials) {
  int out = kFailed;
  for (const actions::Trial& trial : trials) {
    if (!trial.skipped.empty()) continue;
    if (!trial.passed() && !trial.worth_repeating()) return kFailed;
    if (!trial.passed()) out = kTemporary;
    if (trial.passed() && out != kTemporary) out = kOk;
  }
  return out;
}

}  // namespace

int send_test(const SendTestOptions& options) {
  const auto config = receiver_configuration(options.config_file);
  if (!config) return kConfiguration;
  const auto chosen = chosen_integrations(options.receiver, config->receivers);
  if (chosen.empty()) return no_such_receiver(options.receiver, config->receivers);
  core::SystemClock clock;
  core::NullLog log;
  core::NullTelemetry telemetry;
  actions::Environment environment = trial_environment(*config);
  environment.clock = &clock;
  environment.log = &log;
  environment.telemetry = &telemetry;
  // A test of a topic of the user's is a record there, at once.
  KafkaTest kafka(*config, options.dry_run, log, telemetry);
  environment.try_record = [&kafka](const core::OutRecord& record) { return kafka.take(record); };
  const actions::TrialOptions trial{options.drill, options.dry_run,
                                    *core::severity_from(options.severity), this_person(),
                                    pause_for};
  std::vector<actions::Trial> trials;
  core::ValueList list;
  for (const auto& integration : chosen) {
    trials.push_back(actions::try_integration(integration, environment, trial));
    if (options.json) {
      list.push_back(actions::to_value(trials.back()));
    } else {
      std::cout << trial_text(trials.back()) << std::flush;
    }
  }
  if (options.json) std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  return code_of(trials);
}

}  // namespace tocsin::app
