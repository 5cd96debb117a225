#include "app/action_set.h"

#include <utility>

namespace tocsin::app {

core::Result<std::unique_ptr<ActionSet>> ActionSet::build(const AppConfig& config,
                                                          ingest::Transport& transport,
                                                          actions::Environment environment) {
  auto set = std::make_unique<ActionSet>();
  std::vector<std::string> topics;
  for (const auto& integration : config.receivers.integrations) {
    const auto more = integration.config->topics();
    topics.insert(topics.end(), more.begin(), more.end());
  }
  if (const auto allowed = transport.allow_topics(topics); !allowed) return allowed.error();
  if (!topics.empty()) {
    environment.try_record = [&transport](const core::OutRecord& record) {
      return transport.try_record(record);
    };
  }
  ingest::PublisherOptions publisher;
  publisher.writer = "actions";
  publisher.durable = true;
  auto made = transport.publisher(publisher);
  if (!made) return made.error();
  set->publisher_ = std::move(*made);
  const auto publish = [self = set.get()](const core::OutRecord& record) {
    return self->publish(record);
  };
  environment.publish = publish;
  environment.send_command = [publish, source = "/" + config.cluster +
                                                "/router"](const core::Command& command) {
    return publish(ingest::encode_command(command, source));
  };
  for (const auto& integration : config.receivers.integrations) {
    auto action = integration.build(environment);
    if (!action) return action.error().in(integration.receiver + "." + integration.type);
    set->actions_.emplace(integration.common.id, std::move(*action));
  }
  return set;
}

core::Status ActionSet::publish(const core::OutRecord& record) {
  const core::MutexLock lock(mutex_);
  if (const auto status = publisher_->publish(record); !status) return status;
  return publisher_->flush(std::chrono::seconds(5));
}

core::Action* ActionSet::find(std::string_view integration) const {
  const auto found = actions_.find(integration);
  return found == actions_.end() ? nullptr : found->second.get();
}

core::Result<std::string> ActionSet::render(const core::Notification& notification) const {
  const core::Action* action = find(notification.integration);
  return action == nullptr ? core::Result<std::string>(std::string())
                           : action->render(notification);
}

}  // namespace tocsin::app
