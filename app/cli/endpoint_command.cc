#include "app/cli/endpoint_command.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/cli/command_audit.h"
#include "app/cli/looking.h"
#include "app/config/app_config.h"
#include "app/config/config_path.h"
#include "app/process/exit_code.h"
#include "app/process/person.h"
#include "app/view/endpoint_view.h"
#include "core/system_clock.h"
#include "core/text.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kEndpointWritten = 10s;

std::optional<AppConfig> endpoint_config(const std::string& file) {
  config::Diagnostics diagnostics;
  AppConfig out = load_config(config_path(file), config::process_environment(), diagnostics);
  if (!diagnostics.has_errors()) return out;
  for (const auto& item : diagnostics.items()) std::cerr << config::to_text(item) << "\n";
  return std::nullopt;
}

bool has_integration(const AppConfig& config, const std::string& id) {
  return std::any_of(config.receivers.integrations.begin(), config.receivers.integrations.end(),
                     [&](const auto& one) { return one.common.id == id; });
}

int no_such_integration(const AppConfig& config, const std::string& id) {
  std::vector<std::string> known;
  for (const auto& one : config.receivers.integrations) known.push_back(one.common.id);
  const std::string near = core::nearest(id, known);
  std::cerr << "tocsin: no integration \"" << core::visible(id, 100) << "\""
            << (near.empty() ? "; see: tocsin endpoint list"
                             : "; did you mean \"" + core::visible(near, 100) + "\"?")
            << "\n";
  return kUsage;
}

core::Status write_order(const Looking& looking, const actions::EndpointOrder& order) {
  ingest::PublisherOptions publishing;
  publishing.writer = "endpoint-" + std::to_string(getpid());
  publishing.durable = true;
  auto publisher = looking.transport().publisher(publishing);
  if (!publisher) return publisher.error();
  const core::OutRecord record = actions::endpoint_record(order);
  const core::OutRecord audit =
      command_audit("endpoint." + std::string(to_string(order.deed)), order.integration,
                    core::Value(), value_of(record), order.at);
  if (auto sent = (*publisher)->publish(audit); !sent) return sent;
  if (auto sent = (*publisher)->publish(record); !sent) return sent;
  return (*publisher)->flush(kEndpointWritten);
}

std::string order_words(actions::EndpointDeed deed) {
  switch (deed) {
    case actions::EndpointDeed::disable:
      return "is switched off: what comes waits until tocsin endpoint enable";
    case actions::EndpointDeed::enable:
      return "is switched on: what waits is sent";
    case actions::EndpointDeed::reset:
      return "has its breaker closed and its pause ended";
    case actions::EndpointDeed::probe:
      return "is asked";
  }
  return {};
}

int tell_order(const EndpointOptions& options, actions::EndpointDeed deed,
               const core::Value& answer, const std::string& words, int code) {
  if (options.json) {
    std::cout << core::to_json(core::ValueMap{{"integration", options.integration},
                                              {"do", std::string(to_string(deed))},
                                              {"answer", answer}})
              << "\n";
  } else {
    std::cout << core::visible(options.integration, 100) << " " << words << "\n";
  }
  return code;
}

// The first attempt since then; nullopt: none came in time.
core::Result<std::optional<core::Delivery>> next_attempt(core::RecordSource& deliveries,
                                                         const actions::EndpointOrder& order,
                                                         core::Duration patience) {
  core::SystemClock clock;
  const core::WallTime end = order.at + patience;
  std::optional<core::Delivery> out;
  while (!out && clock.now() < end) {
    const auto read = deliveries.poll(200ms, 256, [&](const core::RecordView& record) {
      auto delivery = ingest::decode_delivery(record);
      const bool ours = delivery && !out && delivery->integration == order.integration &&
                        delivery->attempt > 0 && delivery->stages.answered >= order.at;
      if (ours) out = std::move(*delivery);
    });
    if (!read && !read.error().retryable()) return read.error();
  }
  return out;
}

int probe(const EndpointOptions& options, const AppConfig& config, const Looking& looking,
          const actions::EndpointOrder& order) {
  // Followed from before the look: what is tried meanwhile is an answer too.
  ingest::SourceOptions from;
  from.topics = {core::topic::kRouterDeliveries};
  from.start = ingest::Start::end;
  auto deliveries = looking.transport().source(std::move(from));
  if (!deliveries) return refuse(deliveries.error());
  (void)(*deliveries)->poll(10ms, 1, [](const core::RecordView&) {});
  const auto seen =
      read_endpoints(looking.transport(), actions::lane_options(config.receivers, config.cluster),
                     config.receivers, order.at);
  if (!seen) return refuse(seen.error());
  const auto one = std::find_if(seen->begin(), seen->end(), [&](const SeenEndpoint& endpoint) {
    return endpoint.stand.integration == order.integration;
  });
  if (one == seen->end() || one->stand.waiting == 0) {
    return tell_order(options, order.deed, core::Value(),
                      "has nothing to send; a marked message: tocsin send-test " +
                          core::visible(order.integration, 100),
                      kFailed);
  }
  if (!one->stand.held.empty()) {
    return tell_order(options, order.deed, core::Value(),
                      "is " + one->stand.held + "; first: tocsin endpoint enable", kFailed);
  }
  if (auto written = write_order(looking, order); !written) return refuse(written.error());
  const auto attempt = next_attempt(**deliveries, order, options.wait);
  if (!attempt) return refuse(attempt.error());
  if (!*attempt) {
    return tell_order(options, order.deed, core::Value(),
                      "has made no attempt within " + core::to_text(options.wait) +
                          "; does a router run? tocsin history --integration " +
                          core::visible(order.integration, 100),
                      kTemporary);
  }
  const core::Delivery& answer = **attempt;
  const bool arrived = answer.outcome == core::OutcomeClass::delivered;
  std::string words = "answered: " + std::string(to_string(answer.outcome));
  if (!answer.code.empty()) words += ", " + core::visible(answer.code, 60);
  if (!answer.detail.empty()) words += ": " + core::visible(answer.detail, 300);
  return tell_order(options, order.deed,
                    core::ValueMap{{"notification_id", answer.notification_id},
                                   {"class", std::string(to_string(answer.outcome))},
                                   {"code", answer.code},
                                   {"detail", answer.detail}},
                    words, arrived ? kOk : kFailed);
}

}  // namespace

int endpoint_list(const EndpointOptions& options) {
  const auto config = endpoint_config(options.config_file);
  if (!config) return kConfiguration;
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened) {
    return refuse(opened.error());
  }
  if (auto reached = looking.transport().ping(5s); !reached) return refuse(reached.error());
  const core::WallTime now = core::SystemClock().now();
  const auto seen =
      read_endpoints(looking.transport(), actions::lane_options(config->receivers, config->cluster),
                     config->receivers, now);
  if (!seen) return refuse(seen.error());
  if (options.json) {
    std::cout << core::to_json(endpoints_value(*seen, now)) << "\n";
  } else {
    std::cout << (seen->empty() ? "no integrations\n" : endpoints_text(*seen, now));
  }
  const bool unwell = std::any_of(seen->begin(), seen->end(),
                                  [&](const SeenEndpoint& one) { return is_unwell(one, now); });
  return unwell ? kFailed : kOk;
}

int endpoint_order(const EndpointOptions& options, actions::EndpointDeed deed) {
  const auto config = endpoint_config(options.config_file);
  if (!config) return kConfiguration;
  if (!has_integration(*config, options.integration)) {
    return no_such_integration(*config, options.integration);
  }
  Looking looking;
  if (auto opened = looking.open(options.config_file, options.out); !opened) {
    return refuse(opened.error());
  }
  if (auto reached = looking.transport().ping(5s); !reached) return refuse(reached.error());
  const actions::EndpointOrder order{options.integration, deed, this_person(), options.comment,
                                     core::SystemClock().now()};
  if (deed == actions::EndpointDeed::probe) return probe(options, *config, looking, order);
  if (auto written = write_order(looking, order); !written) return refuse(written.error());
  return tell_order(options, deed, core::Value(), order_words(deed), kOk);
}

}  // namespace tocsin::app
